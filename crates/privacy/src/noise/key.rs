//! The secret of a run: what its noise is derived from, and what vouches for its files.

use zeroize::Zeroize;

use crate::error::Error;

/// Bytes of the operating system.
pub(super) fn from_os<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes)
        .map_err(|cause| Error::invalid("entropy", cause, "a working random source in the operating system"))
}

/// The secret of one run, from the operating system. Whoever has it can remove noise that is still to be drawn.
///
/// It has two halves. The first gives the noise, and is replaced by a one-way successor ([`RunKey::advance`]) after
/// each answer that was kept: whoever finds the key later cannot repeat the noise of what was kept before. The second
/// stays the same from the beginning of a run to its end, and protects no data: it names the run
/// ([`RunKey::commitment`]) and seals its files ([`RunKey::seal`]).
///
/// In memory both halves lie in a page of their own, which the system is asked never to swap, and are overwritten when
/// they are no longer needed. Where it refuses (a limit on locked memory) the key is as any other memory. What is
/// derived from it for one query, and the file that a run keeps it in, are not covered.
///
/// A run that must survive a crash keeps its key in a file that only its owner can read, and deletes the file when it
/// is done: resumed with the same key, it asks the same questions with the same noise, which tells nothing new.
pub struct RunKey {
    generation: u64,
    /// Let go of before the page.
    locked: Option<region::LockGuard>,
    page: Box<Page>,
}

/// As large as a page of memory, so that nothing else is on it.
#[repr(align(4096))]
struct Page {
    noise: [u8; 32],
    identity: [u8; 32],
}

impl RunKey {
    /// The length of a key that is kept.
    pub const BYTES: usize = 72;

    /// A new key.
    ///
    /// # Errors
    /// An operating system without entropy.
    pub fn from_os() -> Result<Self, Error> {
        let mut key = RunKey::empty();
        fill(&mut key.page.noise)?;
        fill(&mut key.page.identity)?;
        Ok(key)
    }

    fn empty() -> Self {
        let page = Box::new(Page { noise: [0; 32], identity: [0; 32] });
        let locked = region::lock(&raw const *page, size_of::<Page>()).ok();
        RunKey { generation: 0, locked, page }
    }

    /// Whether the system keeps the key out of its swap space.
    pub fn is_locked(&self) -> bool {
        self.locked.is_some()
    }

    /// A key that was kept.
    pub fn from_bytes(bytes: &[u8; RunKey::BYTES]) -> Self {
        let mut key = RunKey::empty();
        let mut generation = [0; 8];
        generation.copy_from_slice(&bytes[..8]);
        key.generation = u64::from_le_bytes(generation);
        key.page.noise.copy_from_slice(&bytes[8..40]);
        key.page.identity.copy_from_slice(&bytes[40..]);
        key
    }

    /// The key, to be kept secret.
    pub fn to_bytes(&self) -> [u8; RunKey::BYTES] {
        let mut bytes = [0; RunKey::BYTES];
        bytes[..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..40].copy_from_slice(&self.page.noise);
        bytes[40..].copy_from_slice(&self.page.identity);
        bytes
    }

    /// How often the key was replaced by its successor.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Replaces the noise key by its successor, from which it cannot be computed.
    pub fn advance(&mut self) {
        self.page.noise = blake3::derive_key("progap 2026-11 successor of a noise key", &self.page.noise);
        self.generation += 1;
    }

    /// A hash of the key, which tells nothing: run and ledger hold it, so that the key cannot be replaced by another.
    pub fn commitment(&self) -> [u8; 32] {
        blake3::derive_key("progap 2026-11 commitment to a run key", &self.page.identity)
    }

    /// A seal that only the holder of the key can make.
    pub fn seal(&self, content: &[u8]) -> [u8; 32] {
        let mut key = blake3::derive_key("progap 2026-11 seals of a run", &self.page.identity);
        let seal = *blake3::keyed_hash(&key, content).as_bytes();
        key.zeroize();
        seal
    }

    pub(super) fn for_query(&self, label: &str) -> [u8; 32] {
        derive(&self.page.noise, b"query", label)
    }

    pub(super) fn for_purpose(&self, label: &str) -> [u8; 32] {
        derive(&self.page.noise, b"purpose", label)
    }

    pub(super) fn for_lasting_purpose(&self, label: &str) -> [u8; 32] {
        derive(&self.page.identity, b"lasting", label)
    }
}

/// The key of a label; the kind ends with a zero byte, so that no kind and label read as another pair.
fn derive(key: &[u8; 32], kind: &[u8], label: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(kind).update(b"\0").update(label.as_bytes());
    let derived = *hasher.finalize().as_bytes();
    hasher.zeroize();
    derived
}

impl Drop for RunKey {
    fn drop(&mut self) {
        self.page.noise.zeroize();
        self.page.identity.zeroize();
    }
}

impl std::fmt::Debug for RunKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_key_is_the_same_key() {
        let mut key = RunKey::from_os().unwrap();
        key.advance();
        let kept = RunKey::from_bytes(&key.to_bytes());
        assert_eq!(kept.to_bytes(), key.to_bytes());
        assert_eq!(kept.generation(), 1);
        assert_ne!(RunKey::from_os().unwrap().to_bytes(), key.to_bytes());
    }

    /// The kernel counts locked memory: a key adds a page, and gives it back.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_key_lies_in_locked_memory() {
        let keys: Vec<RunKey> = (0..8).map(|_| RunKey::from_os().unwrap()).collect();
        if !keys.iter().all(RunKey::is_locked) {
            eprintln!("skipped: this system allows no locked memory");
            return;
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
        let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes >= 8 * 4, "{line}");
    }

    /// The commitment and the seals stay the same as the noise key moves on, and differ between keys.
    #[test]
    fn a_key_is_known_by_its_commitment() {
        let mut key = RunKey::from_bytes(&[1; 72]);
        let (commitment, seal) = (key.commitment(), key.seal(b"file"));
        let before = key.to_bytes();
        key.advance();
        assert_eq!((key.commitment(), key.seal(b"file")), (commitment, seal));
        assert_ne!(key.seal(b"fil"), seal);
        assert_ne!(before[8..40], key.to_bytes()[8..40]);
        let other = RunKey::from_bytes(&[2; 72]);
        assert!(other.commitment() != commitment && other.seal(b"file") != seal);
    }
}
