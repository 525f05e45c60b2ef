//! The output of a mechanism: values, tied to where their noise came from.

use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use super::digest::{BlockDigest, QueryDigest};
use super::gaussian::{NoisySum, RoundedGaussian};
use super::laplace::RoundedLaplace;
use super::source::{Provenance, Source};
use super::stream::{Purpose, Query, Stream};

/// Noisy values and the source of their noise, which only a stream can vouch for: a `Noisy<_, Secure>` cannot have
/// been made with a seed.
///
/// ```
/// use progap_privacy::noise::{Noisy, Quantiser, Randomness, RoundedGaussian, Secure};
/// let query = Randomness::from_os().query("sums")?;
/// let scale = Quantiser::<i16>::new(100)?.scale();
/// let private: Noisy<Vec<f32>, Secure> = RoundedGaussian::new(300.0)?.release(&mut [1_i32], scale, query, 1);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
/// A seeded result cannot pass for a secure one:
/// ```compile_fail,E0308
/// use progap_privacy::noise::{Noisy, Quantiser, Randomness, RoundedGaussian, Secure};
/// let query = Randomness::from_seed(1).query("sums")?;
/// let scale = Quantiser::<i16>::new(100)?.scale();
/// let private: Noisy<Vec<f32>, Secure> = RoundedGaussian::new(300.0)?.release(&mut [1_i32], scale, query, 1);
/// # Ok::<(), progap_privacy::Error>(())
/// ```
#[derive(Debug)]
pub struct Noisy<T, S: Source> {
    value: T,
    source: S,
}

impl<T, S: Source> Noisy<T, S> {
    pub(crate) fn new(value: T, source: S) -> Self {
        Self { value, source }
    }

    /// The values, to which anything may be done: they are private already.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The values, and where their noise came from.
    pub fn into_parts(self) -> (T, Provenance) {
        let provenance = self.provenance();
        (self.value, provenance)
    }

    /// Where the noise came from.
    pub fn provenance(&self) -> Provenance {
        self.source.provenance()
    }

    /// The same noise, other values: post-processing.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Noisy<U, S> {
        Noisy { value: f(self.value), source: self.source }
    }
}

/// Values that share one stream. Fixed, so that results do not depend on the number of threads.
pub(super) const BLOCK: usize = 1 << 14;

/// Does some work on several threads; on fewer where the system starts no more, and on this one in any case.
pub(super) fn share<I: Iterator + Send>(threads: usize, items: I, work: impl Fn(I::Item) + Sync)
where
    I::Item: Send,
{
    let items = Mutex::new(items);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some(item) = next() {
            work(item);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            if std::thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
}

/// The streams for the blocks of values whose noise is bound to all of them and to the given parameters.
fn bound_to<T: Into<i64> + Copy + Send + Sync, S: Source>(
    sums: &[T],
    parameters: &[f64],
    query: Query<S>,
    threads: usize,
) -> Purpose<S> {
    query.bind(&QueryDigest::new(parameters, block_digests(sums, threads)))
}

/// The digest of each block of values.
pub(super) fn block_digests<T: Into<i64> + Copy + Send + Sync>(
    sums: &[T],
    threads: usize,
) -> Vec<BlockDigest> {
    let mut digests = vec![None; sums.len().div_ceil(BLOCK)];
    let pairs = digests.iter_mut().zip(sums.chunks(BLOCK));
    share(threads, pairs, |(digest, block)| *digest = Some(BlockDigest::new(block)));
    digests.into_iter().flatten().collect()
}

/// Values whose noise is bound to all of them and to the given parameters, a block at a time, whatever the number of
/// threads.
fn release_blocks<T: Into<i64> + Copy + Send + Sync, S: Source>(
    sums: &mut [T],
    parameters: &[f64],
    query: Query<S>,
    threads: usize,
    noise: impl Fn(&mut Stream<S>, &mut [T], &mut [f32]) + Sync,
) -> Noisy<Vec<f32>, S> {
    let mut purpose = bound_to(sums, parameters, query, threads);
    let source = purpose.source().clone();
    let mut out = vec![0_f32; sums.len()];
    let blocks: Vec<_> =
        sums.chunks_mut(BLOCK).zip(out.chunks_mut(BLOCK)).map(|pair| (pair, purpose.stream())).collect();
    share(threads, blocks.into_iter(), |((sums, out), mut stream)| noise(&mut stream, sums, out));
    Noisy::new(out, source)
}

impl RoundedGaussian {
    /// Add noise to integer sums and divide by the message scale: steps 3 to 5 of the integer mechanism.
    ///
    /// # Proof definition
    /// For integer sums that move by at most `Delta * scale` in L2 norm between neighbours, the result is
    /// post-processing of the Gaussian mechanism with standard deviation `sigma / scale` and sensitivity `Delta`
    /// ([proof](crate::proofs::rounding)), up to [`tables::slack`](super::tables::slack). The noise is bound to the
    /// noise's size, the scale and every sum ([`Query::bind`]). Block `b` of the values uses stream `b`, whatever the
    /// number of threads (0 counts as 1), and the query is used up.
    pub fn release<T: NoisySum + Into<i64> + Send + Sync, S: Source>(
        &self,
        sums: &mut [T],
        scale: NonZeroU32,
        query: Query<S>,
        threads: usize,
    ) -> Noisy<Vec<f32>, S> {
        release_blocks(sums, &[self.sigma(), scale.get().into()], query, threads, |stream, sums, out| {
            self.put(scale, stream, sums, out);
        })
    }

    /// Noisy values of a block of sums, which are used up.
    pub(super) fn put<T: NoisySum + Into<i64>, S: Source>(
        &self,
        scale: NonZeroU32,
        stream: &mut Stream<S>,
        sums: &mut [T],
        out: &mut [f32],
    ) {
        let inverse = 1.0 / f64::from(scale.get());
        self.add_to(stream, sums);
        for (value, &mut sum) in out.iter_mut().zip(sums.iter_mut()) {
            *value = (Into::<i64>::into(sum) as f64 * inverse) as f32;
        }
    }

    /// As [`release`](Self::release), for sums that are used up: the noisy values take their place in memory, the same
    /// to the last bit.
    ///
    /// ```
    /// use progap_privacy::noise::{Quantiser, Randomness, RoundedGaussian};
    ///
    /// let (gaussian, scale) = (RoundedGaussian::new(300.0)?, Quantiser::<i16>::new(100)?.scale());
    /// let query = || Randomness::from_seed(1).query("sums");
    /// let mut sums: Vec<i32> = (0..100_000).collect();
    /// let beside = gaussian.release(&mut sums.clone(), scale, query()?, 2);
    /// assert_eq!(gaussian.release_owned(sums, scale, query()?, 2).value(), beside.value());
    /// # Ok::<(), progap_privacy::Error>(())
    /// ```
    pub fn release_owned<T: NoisySum + Into<i64> + Send + Sync, S: Source>(
        &self,
        mut sums: Vec<T>,
        scale: NonZeroU32,
        query: Query<S>,
        threads: usize,
    ) -> Noisy<Vec<f32>, S> {
        let inverse = 1.0 / f64::from(scale.get());
        let mut purpose = bound_to(&sums, &[self.sigma(), scale.get().into()], query, threads);
        let source = purpose.source().clone();
        let blocks: Vec<_> = sums.chunks_mut(BLOCK).map(|block| (block, purpose.stream())).collect();
        share(threads, blocks.into_iter(), |(block, mut stream)| self.add_to(&mut stream, block));
        // Values of one size are collected where they lay.
        let noisy = sums.into_iter().map(|sum| (Into::<i64>::into(sum) as f64 * inverse) as f32).collect();
        Noisy::new(noisy, source)
    }
}

impl RoundedLaplace {
    /// Integer sums with Laplace noise on every entry.
    ///
    /// # Proof definition
    /// For integer sums that move by at most `Delta` in L1 norm between neighbours, the result is post-processing of
    /// the Laplace mechanism with this scale and sensitivity `Delta`: pure `Delta / scale`, without any slack, since
    /// sampling is exact ([proof](crate::proofs::pure)). Sums and noise add up in 64 bits and come to the nearest
    /// `f32`, a function of the noisy integer alone. The noise is bound to the scale and every sum ([`Query::bind`]),
    /// block by block, and the query is used up. Time depends on the noise, not on the sums.
    ///
    /// ```
    /// use progap_privacy::noise::{Randomness, RoundedLaplace, Scale};
    ///
    /// let votes = [12_i32, 0, 3];
    /// let query = Randomness::from_os().query("votes")?;
    /// let noisy = RoundedLaplace::new(Scale::at_least(2.0)?).release(&mut votes.clone(), query, 1);
    /// assert!(noisy.value().iter().all(|value| value.fract() == 0.0));
    /// # Ok::<(), progap_privacy::Error>(())
    /// ```
    pub fn release<T: Into<i64> + Copy + Send + Sync, S: Source>(
        self,
        sums: &mut [T],
        query: Query<S>,
        threads: usize,
    ) -> Noisy<Vec<f32>, S> {
        release_blocks(sums, &[self.scale().value()], query, threads, |stream, sums, out| {
            self.put(stream, sums, out);
        })
    }

    /// Noisy values of a block of sums.
    pub(super) fn put<T: Into<i64> + Copy, S: Source>(
        self,
        stream: &mut Stream<S>,
        sums: &mut [T],
        out: &mut [f32],
    ) {
        for (value, &mut sum) in out.iter_mut().zip(sums) {
            *value = Into::<i64>::into(sum).saturating_add(self.sample(stream)) as f32;
        }
    }
}
