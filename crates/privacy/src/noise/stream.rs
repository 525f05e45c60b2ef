//! Random bits: ChaCha20 keyed by the operating system, one stream per use, none used twice.
//!
//! ```text
//! Randomness ── query("stage 1 aggregate") ──> Query ── bind(digest) ──> Purpose ── stream() ──> Stream 0, Stream 1, ...
//!  one per run   one per label                  the exact integers        its own key             one per block of rows
//! ```
//! Nothing here can be cloned, a label can be taken once, and a purpose numbers its streams upwards: two mechanisms
//! never see the same bits. Noise is bound to the exact query it protects ([`Query::bind`]), so that two different sums
//! never share noise, whoever asks them under one key. The type parameter says where the bits come from, and every
//! result made with them carries it on: [`Secure`] or [`Reproducible`].

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use super::digest::QueryDigest;
use super::key::RunKey;
use super::source::{AnySource, Provenance, Reproducible, Secure, Source};
use crate::error::Error;

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

impl Randomness<Secure> {
    /// Bits no one can predict or repeat.
    pub fn from_os() -> Self {
        Self { source: Secure(()), key: None, taken: BTreeSet::new() }
    }

    /// Bits no one can predict; the same ones for the same key and queries, so that a run can be resumed.
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

    /// The same randomness, whose source is a value and no longer a type.
    pub fn erase(self) -> Randomness<AnySource> {
        Randomness { source: self.source.erase(), key: self.key, taken: self.taken }
    }

    /// The randomness for one use that is no noise, such as which records join a batch, named by a label that is
    /// refused the second time.
    ///
    /// # Errors
    /// A label already taken, or an operating system without entropy.
    pub fn purpose(&mut self, label: &str) -> Result<Purpose<S>, Error> {
        self.take(label)?;
        let key = match &self.key {
            Some(run) => run.for_purpose(label),
            None => self.source.key(label)?,
        };
        Ok(Purpose { source: self.source.clone(), key, next: 0 })
    }

    /// The randomness for a choice that must be the same in every process of a run, from its first to its last, and
    /// need not be forgotten: it protects nothing.
    ///
    /// # Errors
    /// A label already taken, or an operating system without entropy.
    pub fn lasting_purpose(&mut self, label: &str) -> Result<Purpose<S>, Error> {
        self.take(label)?;
        let key = match &self.key {
            Some(run) => run.for_lasting_purpose(label),
            None => self.source.key(label)?,
        };
        Ok(Purpose { source: self.source.clone(), key, next: 0 })
    }

    /// A query whose noise is drawn once its exact integers are known.
    ///
    /// # Errors
    /// A label already taken, or an operating system without entropy.
    pub fn query(&mut self, label: &str) -> Result<Query<S>, Error> {
        self.take(label)?;
        let key = match &self.key {
            Some(run) => QueryKey::Bound(Secret(run.for_query(label))),
            None => QueryKey::Ready(Secret(self.source.key(label)?)),
        };
        Ok(Query { source: self.source.clone(), key })
    }

    /// The run's key, to be kept where only its owner can read it; none where noise is reproducible or not to be
    /// repeated.
    pub fn key(&self) -> Option<&RunKey> {
        self.key.as_ref()
    }

    /// Replaces the run's key by its successor: from here on nobody can repeat what was drawn before.
    pub fn forget(&mut self) {
        if let Some(key) = &mut self.key {
            key.advance();
        }
    }

    fn take(&mut self, label: &str) -> Result<(), Error> {
        if self.taken.insert(label.to_owned()) {
            return Ok(());
        }
        Err(Error::invalid(
            "purpose",
            label,
            "a label not used before in this run, so that no noise is used twice",
        ))
    }
}

/// Bytes that are overwritten when they are no longer needed.
struct Secret([u8; 32]);

impl Drop for Secret {
    fn drop(&mut self) {
        use zeroize::Zeroize;
        self.0.zeroize();
    }
}

enum QueryKey {
    /// Of a run's key: the noise is that of the label and the integers.
    Bound(Secret),
    /// Of a seed, or of the operating system for this query alone.
    Ready(Secret),
}

/// A query that has a name and no noise yet.
///
/// # Proof definition
/// Under one [`RunKey`] the noise is a pseudorandom function of (key, label, digest): the same query gets the same
/// noise, which tells nothing new, and any other query gets noise of its own, as if drawn afresh, unless BLAKE3 can be
/// told from a random function or two different queries have one digest
/// ([proof](crate::proofs::randomness#keys-and-noise)). With a seed the noise is that of the label alone: a seed
/// protects nothing, and experiments compare under the same noise.
pub struct Query<S: Source> {
    source: S,
    key: QueryKey,
}

impl<S: Source> Query<S> {
    /// The randomness of this query for these integers and no others.
    pub fn bind(self, digest: &QueryDigest) -> Purpose<S> {
        let key = match &self.key {
            QueryKey::Ready(key) => key.0,
            QueryKey::Bound(key) => *blake3::keyed_hash(&key.0, &digest.0).as_bytes(),
        };
        Purpose { source: self.source, key, next: 0 }
    }
}

impl<S: Source> std::fmt::Debug for Query<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Query")
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

    /// Leaves the next stream to another process.
    pub(super) fn skip(&mut self) {
        self.next = self.next.checked_add(1).expect("2^64 streams were opened");
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
    use crate::noise::BlockDigest;

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

    fn first_word(randomness: &mut Randomness<Secure>, label: &str, digest: &QueryDigest) -> u64 {
        randomness.query(label).unwrap().bind(digest).stream().next_u64()
    }

    fn keyed(bytes: u8) -> Randomness<Secure> {
        Randomness::from_key(RunKey::from_bytes(&[bytes; 72]))
    }

    fn digest(integers: &[i64]) -> QueryDigest {
        QueryDigest::new(&[2.0, 127.0], [BlockDigest::new(integers)])
    }

    /// The same query under the same key has the same noise; another key, name, parameter or integer has another.
    #[test]
    fn noise_is_bound_to_the_exact_query() {
        let (sums, other) = (digest(&[1, 2, 3]), digest(&[1, 2, 4]));
        let first = first_word(&mut keyed(1), "a", &sums);
        assert_eq!(first, first_word(&mut keyed(1), "a", &sums), "asked again");
        assert_ne!(first, first_word(&mut keyed(1), "a", &other), "one integer differs");
        assert_ne!(first, first_word(&mut keyed(1), "b", &sums), "another name");
        assert_ne!(first, first_word(&mut keyed(2), "a", &sums), "another key");
        let louder = QueryDigest::new(&[2.5, 127.0], [BlockDigest::new(&[1_i64, 2, 3])]);
        assert_ne!(first, first_word(&mut keyed(1), "a", &louder), "another parameter");
        let purpose = keyed(1).purpose("a").unwrap().stream().next_u64();
        let lasting = keyed(1).lasting_purpose("a").unwrap().stream().next_u64();
        assert!(
            first != purpose && first != lasting && purpose != lasting,
            "no use shares bits with another"
        );
    }

    #[test]
    fn digests_tell_lists_apart_and_types_not() {
        assert_eq!(BlockDigest::new(&[1_i32, -2]), BlockDigest::new(&[1_i64, -2]));
        let lists: [&[i64]; 6] = [&[], &[0], &[0, 0], &[1 << 40], &[1 << 40, 0], &[0, 1 << 40]];
        for (i, a) in lists.iter().enumerate() {
            for b in &lists[i + 1..] {
                assert_ne!(BlockDigest::new(a), BlockDigest::new(b), "{a:?} {b:?}");
            }
        }
        let (a, b) = (BlockDigest::new(&[1_i64]), BlockDigest::new(&[2_i64]));
        assert_ne!(QueryDigest::new(&[], [a, b]), QueryDigest::new(&[], [b, a]));
        assert_ne!(QueryDigest::new(&[0.0], [a]), QueryDigest::new(&[], [a]));
    }

    /// After a key was replaced by its successor, what was drawn before cannot be drawn again.
    #[test]
    fn a_successor_repeats_nothing() {
        let sums = digest(&[7]);
        let mut later = keyed(1);
        later.forget();
        let after = first_word(&mut later, "a", &sums);
        assert_ne!(after, first_word(&mut keyed(1), "a", &sums));
        let mut again = keyed(1);
        again.forget();
        assert_eq!(after, first_word(&mut again, "a", &sums), "a resumed run has the same successor");
        // The stream of a lasting purpose is the same before and after.
        let lasting = |randomness: &mut Randomness<Secure>| {
            randomness.lasting_purpose("sample").unwrap().stream().next_u64()
        };
        assert_eq!(lasting(&mut later), lasting(&mut keyed(1)));
    }

    #[test]
    fn seeded_noise_is_that_of_its_label() {
        let draw = |integers: &[i64]| {
            Randomness::from_seed(1).query("a").unwrap().bind(&digest(integers)).stream().next_u64()
        };
        assert_eq!(draw(&[1]), draw(&[2]));
        assert_eq!(draw(&[1]), Randomness::from_seed(1).purpose("a").unwrap().stream().next_u64());
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
