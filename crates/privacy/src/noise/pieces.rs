//! Sums that are never all in memory: seen once for their digest, and once more for their noise.

use std::num::NonZeroU32;

use super::digest::QueryDigest;
use super::gaussian::{NoisySum, RoundedGaussian};
use super::laplace::RoundedLaplace;
use super::release::{BLOCK, Noisy, block_digests, share};
use super::source::Source;
use super::stream::{Query, Stream};
use crate::Error;

/// A function that is shown a piece of sums, which it may use up.
pub type PieceVisitor<'s, T, E> = dyn FnMut(&mut [T]) -> Result<(), E> + 's;

impl RoundedGaussian {
    /// Every piece of sums but the last has a multiple of this many values.
    pub const PIECE: usize = BLOCK;

    /// As [`release`](Self::release), the same to the last bit, for sums that come in pieces. `pieces` shows all of
    /// them in their order, and is called twice; noisy pieces are handed to `take` in the same order.
    ///
    /// # Proof definition
    /// That of [`release`](Self::release): the noise is bound to the digest of all sums, which is known before the
    /// first value of noise is drawn. A piece that is another the second time is an error before it gets noise.
    ///
    /// # Errors
    /// Those of `pieces` and `take`; pieces that are no multiple of [`PIECE`](Self::PIECE), or that change between the
    /// two calls.
    ///
    /// ```
    /// use progap_privacy::noise::{Quantiser, Randomness, RoundedGaussian};
    ///
    /// let (gaussian, scale) = (RoundedGaussian::new(300.0)?, Quantiser::<i16>::new(100)?.scale());
    /// let query = || Randomness::from_seed(1).query("sums");
    /// let sums: Vec<i32> = (0..100_000).collect();
    /// let whole = gaussian.release(&mut sums.clone(), scale, query()?, 2);
    /// let mut noisy = vec![];
    /// gaussian.release_pieces(
    ///     (scale, query()?, 2),
    ///     |see| sums.chunks(2 * RoundedGaussian::PIECE).try_for_each(|piece| see(&mut piece.to_vec())),
    ///     |piece| Ok::<_, progap_privacy::Error>(noisy.extend(piece.into_parts().0)),
    /// )?;
    /// assert_eq!(&noisy, whole.value());
    /// # Ok::<(), progap_privacy::Error>(())
    /// ```
    pub fn release_pieces<T, S, E>(
        &self,
        (scale, query, threads): (NonZeroU32, Query<S>, usize),
        pieces: impl FnMut(&mut PieceVisitor<'_, T, E>) -> Result<(), E>,
        take: impl FnMut(Noisy<Vec<f32>, S>) -> Result<(), E>,
    ) -> Result<(), E>
    where
        T: NoisySum + Into<i64> + Send + Sync,
        S: Source,
        E: From<Error>,
    {
        release_in_pieces(
            &[self.sigma(), scale.get().into()],
            (query, threads),
            pieces,
            take,
            |stream, sums, out| self.put(scale, stream, sums, out),
        )
    }
}

impl RoundedLaplace {
    /// As [`release`](Self::release), the same to the last bit, for sums that come in pieces, as
    /// [`RoundedGaussian::release_pieces`] takes them.
    ///
    /// # Proof definition
    /// That of [`release`](Self::release): the noise is bound to the digest of all sums, which is known before the
    /// first value of noise is drawn. A piece that is another the second time is an error before it gets noise.
    ///
    /// # Errors
    /// As [`RoundedGaussian::release_pieces`].
    pub fn release_pieces<T, S, E>(
        self,
        (query, threads): (Query<S>, usize),
        pieces: impl FnMut(&mut PieceVisitor<'_, T, E>) -> Result<(), E>,
        take: impl FnMut(Noisy<Vec<f32>, S>) -> Result<(), E>,
    ) -> Result<(), E>
    where
        T: Into<i64> + Copy + Send + Sync,
        S: Source,
        E: From<Error>,
    {
        release_in_pieces(&[self.scale().value()], (query, threads), pieces, take, |stream, sums, out| {
            self.put(stream, sums, out);
        })
    }
}

/// Noise that is bound to the given parameters and to all sums, which `pieces` shows twice.
fn release_in_pieces<T, S, E>(
    parameters: &[f64],
    (query, threads): (Query<S>, usize),
    mut pieces: impl FnMut(&mut PieceVisitor<'_, T, E>) -> Result<(), E>,
    mut take: impl FnMut(Noisy<Vec<f32>, S>) -> Result<(), E>,
    noise: impl Fn(&mut Stream<S>, &mut [T], &mut [f32]) + Sync,
) -> Result<(), E>
where
    T: Into<i64> + Copy + Send + Sync,
    S: Source,
    E: From<Error>,
{
    let (mut digests, mut is_last) = (vec![], false);
    pieces(&mut |sums| {
        if is_last {
            return Err(wrong("no multiple of a block before the last", "whole blocks").into());
        }
        is_last = sums.len() % BLOCK != 0;
        digests.extend(block_digests(sums, threads));
        Ok(())
    })?;
    let mut purpose = query.bind(&QueryDigest::new(parameters, digests.iter().copied()));
    let source = purpose.source().clone();
    let mut seen = 0;
    pieces(&mut |sums| {
        let now = block_digests(sums, threads);
        if digests.get(seen..seen + now.len()) != Some(&now[..]) {
            return Err(wrong("others than before", "the same each time").into());
        }
        seen += now.len();
        let mut noisy = vec![0_f32; sums.len()];
        let blocks = sums.chunks_mut(BLOCK).zip(noisy.chunks_mut(BLOCK));
        let blocks: Vec<_> = blocks.map(|pair| (pair, purpose.stream())).collect();
        share(threads, blocks.into_iter(), |((sums, out), mut stream)| noise(&mut stream, sums, out));
        take(Noisy::new(noisy, source.clone()))
    })?;
    match seen == digests.len() {
        true => Ok(()),
        false => Err(wrong("fewer than before", "the same each time").into()),
    }
}

fn wrong(value: &str, expected: &'static str) -> Error {
    Error::InvalidParameter { name: "a piece of sums", value: value.into(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Quantiser, Randomness, RunKey};

    fn release(mut pieces: Vec<Vec<Vec<i64>>>) -> Result<Vec<f32>, Error> {
        let gaussian = RoundedGaussian::new(300.0)?;
        let scale = Quantiser::<i16>::new(100)?.scale();
        let query = Randomness::from_key(RunKey::from_bytes(&[7; 72])).query("sums")?;
        let mut noisy = vec![];
        pieces.reverse();
        gaussian.release_pieces(
            (scale, query, 1),
            |see: &mut PieceVisitor<'_, i64, Error>| {
                pieces.pop().unwrap_or_default().iter_mut().try_for_each(|piece| see(piece))
            },
            |piece| {
                noisy.extend(piece.into_parts().0);
                Ok(())
            },
        )?;
        Ok(noisy)
    }

    #[test]
    fn the_noise_of_a_key_is_that_of_all_sums_at_once() {
        let sums: Vec<i64> = (0..40_000).map(|k| k * k % 1_000).collect();
        let whole = {
            let gaussian = RoundedGaussian::new(300.0).unwrap();
            let query = Randomness::from_key(RunKey::from_bytes(&[7; 72])).query("sums").unwrap();
            gaussian.release_owned(sums.clone(), Quantiser::<i16>::new(100).unwrap().scale(), query, 2)
        };
        let cut = |size: usize| sums.chunks(size).map(<[i64]>::to_vec).collect::<Vec<_>>();
        for size in [BLOCK, 2 * BLOCK, 40_000] {
            assert_eq!(&release(vec![cut(size), cut(size)]).unwrap(), whole.value());
        }
        // One other sum anywhere, and every value of noise is another.
        let mut other = cut(BLOCK);
        other[2][5] += 1;
        let noisy = release(vec![other.clone(), other]).unwrap();
        assert!(noisy.iter().zip(whole.value()).filter(|(a, b)| a == b).count() < 400);
    }

    #[test]
    fn sums_that_change_between_the_passes_get_no_noise() {
        let sums = vec![vec![1i64; BLOCK], vec![2; 5]];
        let mut changed = sums.clone();
        changed[1][0] = 3;
        assert!(release(vec![sums.clone(), changed]).is_err());
        assert!(release(vec![sums.clone(), vec![sums[0].clone()]]).is_err());
        assert!(release(vec![vec![sums[1].clone(), sums[0].clone()], vec![]]).is_err());
        assert!(release(vec![sums.clone(), sums]).is_ok());
    }
}
