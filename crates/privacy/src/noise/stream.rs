//! Random bits: ChaCha20 keyed by the operating system, one stream per use, none used twice.
//!
//! ```text
//! Randomness ── purpose("stage 1 aggregate") ──> Purpose ── stream() ──> Stream 0, Stream 1, ...
//!  one per run   one per query, its own key       one per block of rows, its own nonce
//! ```
//! Nothing here can be cloned, a label can be taken once, and a purpose numbers its streams upwards: two
//! mechanisms never see the same bits. The type parameter says where the bits come from, and every result
//! made with them carries it on: [`Secure`] or [`Reproducible`].

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Where noise came from, as a value that can be written into a privacy statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Provenance {
    /// Keyed by the operating system; the key was never shown to anyone.
    Secure,
    /// Derived from a seed: anyone who knows the seed can remove the noise, so nothing is private.
    Reproducible {
        /// The seed.
        seed: u64,
    },
}

impl Provenance {
    /// Whether a release made with this noise may be called private.
    pub fn is_private(self) -> bool {
        self == Self::Secure
    }
}

mod sealed {
    pub trait Sealed {
        fn key(&self, label: &str) -> Result<[u8; 32], crate::error::Error>;
    }
}

/// A source of keys: [`Secure`] or [`Reproducible`], and nothing else.
pub trait Source: sealed::Sealed + Clone + Send + Sync + 'static {
    /// The same information as a value.
    fn provenance(&self) -> Provenance;
}

/// Keys from the operating system, a fresh one for every purpose.
#[derive(Debug, Clone)]
pub struct Secure(());

/// Keys derived from a seed, for experiments. Results made with it are not private.
#[derive(Debug, Clone)]
pub struct Reproducible {
    seed: u64,
}

impl Source for Secure {
    fn provenance(&self) -> Provenance {
        Provenance::Secure
    }
}

impl Source for Reproducible {
    fn provenance(&self) -> Provenance {
        Provenance::Reproducible { seed: self.seed }
    }
}

impl sealed::Sealed for Secure {
    fn key(&self, _label: &str) -> Result<[u8; 32], Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|cause| {
            Error::invalid("entropy", cause, "a working random source in the operating system")
        })?;
        Ok(key)
    }
}

impl sealed::Sealed for Reproducible {
    fn key(&self, label: &str) -> Result<[u8; 32], Error> {
        let mut hash = Sha256::new();
        hash.update(b"progap reproducible noise 1\0");
        hash.update(self.seed.to_le_bytes());
        hash.update(label.as_bytes());
        Ok(hash.finalize().into())
    }
}

/// The randomness of one run. Hands out one [`Purpose`] per label, each label once.
///
/// ```
/// use progap_privacy::noise::Randomness;
/// let mut randomness = Randomness::from_os();
/// let mut aggregate = randomness.purpose("stage 1 aggregate")?;
/// let mut first_block = aggregate.stream();
/// let word = first_block.next_u64();
/// assert!(randomness.purpose("stage 1 aggregate").is_err(), "a label is used once");
/// # let _ = word;
/// # Ok::<(), progap_privacy::Error>(())
/// ```
#[derive(Debug)]
pub struct Randomness<S: Source> {
    source: S,
    key: Option<RunKey>,
    taken: BTreeSet<String>,
}

/// The secret of one run, from the operating system. Whoever has it can remove the run's noise.
///
/// A run that must survive a crash keeps it in a file that only its owner can read, and deletes the file when it is
/// done: resumed with the same key, it asks the same questions with the same noise, which reveals nothing new.
pub struct RunKey([u8; 32]);

impl RunKey {
    /// A new key.
    ///
    /// # Errors
    /// An operating system without entropy.
    pub fn from_os() -> Result<Self, Error> {
        sealed::Sealed::key(&Secure(()), "").map(RunKey)
    }

    /// A key that was kept.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        RunKey(bytes)
    }

    /// The key, to be kept secret.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn derive(&self, label: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"progap run key 1\0");
        hash.update(self.0);
        hash.update(label.as_bytes());
        hash.finalize().into()
    }
}

impl Drop for RunKey {
    fn drop(&mut self) {
        use zeroize::Zeroize;
        self.0.zeroize();
    }
}

impl std::fmt::Debug for RunKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunKey")
    }
}

impl Randomness<Secure> {
    /// Bits no one can predict or repeat.
    pub fn from_os() -> Self {
        Self { source: Secure(()), key: None, taken: BTreeSet::new() }
    }

    /// Bits no one can predict; the same ones for the same key and labels, so that a run can be resumed.
    pub fn from_key(key: RunKey) -> Self {
        Self { source: Secure(()), key: Some(key), taken: BTreeSet::new() }
    }
}

impl Randomness<Reproducible> {
    /// The same bits for the same seed and labels, in whatever order the labels are asked for. For
    /// experiments only: the type of everything made from it says so.
    pub fn from_seed(seed: u64) -> Self {
        Self { source: Reproducible { seed }, key: None, taken: BTreeSet::new() }
    }
}

impl<S: Source> Randomness<S> {
    /// Where the bits come from.
    pub fn provenance(&self) -> Provenance {
        self.source.provenance()
    }

    /// The randomness for one use, named by a label that is refused the second time.
    ///
    /// # Errors
    /// A label already taken, or an operating system without entropy.
    pub fn purpose(&mut self, label: &str) -> Result<Purpose<S>, Error> {
        if !self.taken.insert(label.to_owned()) {
            return Err(Error::invalid(
                "purpose",
                label,
                "a label not used before in this run, so that no noise is used twice",
            ));
        }
        let key = match &self.key {
            Some(run) => run.derive(label),
            None => self.source.key(label)?,
        };
        Ok(Purpose { source: self.source.clone(), key, next: 0 })
    }
}

/// One key, numbered streams. Block `b` of a query takes the `b`-th stream, so the noise does not depend on
/// which thread works on which block.
pub struct Purpose<S: Source> {
    source: S,
    key: [u8; 32],
    next: u64,
}

impl<S: Source> Purpose<S> {
    /// Where the bits come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The next stream. A purpose would need 2^64 calls to repeat a number, which no process can make.
    pub fn stream(&mut self) -> Stream<S> {
        let mut cipher = ChaCha20Rng::from_seed(self.key);
        cipher.set_stream(self.next);
        self.next = self.next.checked_add(1).expect("2^64 streams were opened");
        Stream { source: self.source.clone(), cipher, words: [0; BUFFER], position: BUFFER }
    }

    /// The next `count` streams, for `count` blocks worked on in parallel.
    pub fn streams(&mut self, count: usize) -> Vec<Stream<S>> {
        (0..count).map(|_| self.stream()).collect()
    }
}

impl<S: Source> Drop for Purpose<S> {
    fn drop(&mut self) {
        use zeroize::Zeroize;
        self.key.zeroize();
    }
}

impl<S: Source> std::fmt::Debug for Purpose<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Purpose").field("next", &self.next).finish_non_exhaustive()
    }
}

const BUFFER: usize = 256;

/// A sequence of random words that is read once. Cannot be cloned, rewound or serialised.
pub struct Stream<S: Source> {
    source: S,
    cipher: ChaCha20Rng,
    words: [u32; BUFFER],
    position: usize,
}

impl<S: Source> Stream<S> {
    /// Where the bits come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Words generated and not yet read, at least one.
    pub(crate) fn unread(&mut self) -> &[u32] {
        if self.position == BUFFER {
            self.refill();
        }
        &self.words[self.position..]
    }

    /// Mark `count` of the [`unread`](Self::unread) words as read.
    pub(crate) fn advance(&mut self, count: usize) {
        self.position += count;
        debug_assert!(self.position <= BUFFER);
    }

    fn refill(&mut self) {
        let mut bytes = [0_u8; 4 * BUFFER];
        self.cipher.fill_bytes(&mut bytes);
        for (word, chunk) in self.words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        self.position = 0;
    }

    /// 32 fresh random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        let word = self.unread()[0];
        self.advance(1);
        word
    }

    /// 64 fresh random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        (u64::from(self.next_u32()) << 32) | u64::from(self.next_u32())
    }

    /// 128 fresh random bits.
    #[inline]
    pub fn next_u128(&mut self) -> u128 {
        (u128::from(self.next_u64()) << 64) | u128::from(self.next_u64())
    }

    /// A uniform integer in `[0, bound)`, exactly: values beyond the last whole multiple of `bound` are
    /// drawn again. The number of draws depends on random bits alone.
    pub fn below(&mut self, bound: NonZeroU64) -> u64 {
        let rest = (u64::MAX % bound + 1) % bound;
        loop {
            let word = self.next_u64();
            if word <= u64::MAX - rest {
                return word % bound;
            }
        }
    }
}

impl<S: Source> Drop for Stream<S> {
    fn drop(&mut self) {
        use zeroize::Zeroize;
        self.words.zeroize();
    }
}

impl<S: Source> std::fmt::Debug for Stream<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Stream<Reproducible> {
    /// A stream that first yields the given words, to steer a sampler into its rare branches.
    pub(crate) fn scripted(words: &[u32]) -> Self {
        let mut stream = Purpose { source: Reproducible { seed: 0 }, key: [0; 32], next: 0 }.stream();
        stream.position = BUFFER - words.len();
        stream.words[BUFFER - words.len()..].copy_from_slice(words);
        stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key stream of ChaCha20 with twenty rounds, an all-zero key and nonce (RFC 8439, appendix A.1, vectors 1
    /// and 2), so the cipher, its number of rounds and the word order are what they are said to be.
    #[test]
    fn words_are_the_chacha20_key_stream() {
        let mut purpose = Purpose { source: Reproducible { seed: 0 }, key: [0; 32], next: 0 };
        let mut stream = purpose.stream();
        let block: Vec<u32> = (0..17).map(|_| stream.next_u32()).collect();
        assert_eq!(block[..4], [0xade0_b876, 0x903d_f1a0, 0xe56a_5d40, 0x28bd_8653]);
        assert_eq!(block[15..], [0x8665_eeb2, 0xbee7_079f]);
        let mut second = purpose.stream();
        assert_ne!(second.next_u32(), block[0], "the next stream has another nonce");
    }

    #[test]
    fn a_label_is_taken_once() {
        let mut randomness = Randomness::from_seed(1);
        assert!(randomness.purpose("x").is_ok());
        let refusal = randomness.purpose("x").unwrap_err().to_string();
        assert!(refusal.contains("purpose") && refusal.contains("not used before"), "{refusal}");
    }

    #[test]
    fn bounded_integers_stay_in_range_and_redraw() {
        // A bound just above 2^63: nearly half of all words lie beyond the last multiple and are drawn again.
        let bound = NonZeroU64::new((1 << 63) + 1).unwrap();
        let half = NonZeroU64::new(1 << 32).unwrap();
        let mut stream = Stream::scripted(&[u32::MAX, u32::MAX, 0, 5]);
        assert_eq!(stream.below(bound), 5);
        let mut stream = Stream::scripted(&[0x8000_0000, 0]);
        assert_eq!(stream.below(bound), 1 << 63);
        assert_eq!(Stream::scripted(&[u32::MAX, u32::MAX]).below(half), u64::from(u32::MAX));
    }
}
