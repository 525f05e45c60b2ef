//! Noise for values that lie in several processes: the same as if one held them all.
//!
//! Noise belongs to blocks of a query's values, wherever they lie. Each process digests the blocks that it holds whole;
//! those that lie in several are sent round, a few thousand values at each border, and every process that has a part of
//! one draws the noise of all of it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

use super::digest::{BlockDigest, QueryDigest};
use super::gaussian::{NoisySum, RoundedGaussian};
use super::release::{BLOCK, Noisy, share};
use super::source::Source;
use super::stream::Query;

/// Which of a query's values this process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The values, by their place among all.
    pub range: Range<usize>,
    /// The number of all.
    pub of: usize,
}

impl Held {
    fn block(&self, number: usize) -> Range<usize> {
        number * BLOCK..self.of.min((number + 1) * BLOCK)
    }

    /// The blocks that are held whole.
    fn whole(&self) -> Range<usize> {
        let first = self.range.start.div_ceil(BLOCK);
        let end = if self.range.end == self.of { self.of.div_ceil(BLOCK) } else { self.range.end / BLOCK };
        first..end.max(first)
    }

    /// The held parts of blocks that others hold a part of, too.
    fn borders(&self) -> Vec<Range<usize>> {
        let (whole, own) = (self.whole(), self.range.clone());
        let (start, end) = (own.end.min(whole.start * BLOCK), own.start.max(self.of.min(whole.end * BLOCK)));
        match whole.is_empty() && start == own.end {
            true => vec![own],
            false => vec![own.start..start, end..own.end],
        }
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect()
    }
}

/// A query about which the processes do not agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardMismatch;

impl RoundedGaussian {
    /// As [`release_owned`](Self::release_owned) of the values of all processes, of which this one holds some.
    /// `all_gather` gives the bytes of every process, in the order of their values.
    ///
    /// # Proof definition
    /// The noise of each value is that which one process that holds all values would add: it is bound to the digest of
    /// every block, and block `b` is given stream `b`. What travels between processes are exact sums at borders and
    /// digests, which must be kept as secret as the sums themselves.
    ///
    /// # Errors
    /// Those of `all_gather`; and processes that do not hold all values once.
    pub fn release_held<T, S, E>(
        &self,
        (mut sums, held): (Vec<T>, &Held),
        scale: NonZeroU32,
        query: Query<S>,
        threads: usize,
        all_gather: impl FnOnce(Vec<u8>) -> Result<Vec<Vec<u8>>, E>,
    ) -> Result<Noisy<Vec<f32>, S>, E>
    where
        T: NoisySum + Into<i64> + TryFrom<i64> + Send + Sync,
        S: Source,
        E: From<ShardMismatch>,
    {
        if sums.len() != held.range.len() || held.range.end > held.of {
            return Err(ShardMismatch.into());
        }
        let (start, whole) = (held.range.start, held.whole());
        let own = |place: Range<usize>| place.start - start..place.end - start;
        let mut digests = vec![None; whole.len()];
        let blocks = digests.iter_mut().zip(whole.clone());
        share(threads, blocks, |(digest, number)| {
            *digest = Some(BlockDigest::new(&sums[own(held.block(number))]));
        });
        let mut message = Message::default();
        message.numbers([whole.start as u64, whole.len() as u64]);
        digests.iter().flatten().for_each(|digest| message.0.extend(digest.to_bytes()));
        for border in held.borders() {
            message.numbers([border.start as u64, border.len() as u64]);
            message.numbers(sums[own(border)].iter().map(|&sum| Into::<i64>::into(sum) as u64));
        }
        let (digests, borders) = assemble(&all_gather(message.0)?, held).ok_or(ShardMismatch)?;
        let digest = QueryDigest::new(&[self.sigma(), scale.get().into()], digests);
        let mut purpose = query.bind(&digest);
        let source = purpose.source().clone();
        // Borders first, with the streams of their own.
        let mut streams: Vec<_> = Vec::with_capacity(whole.len());
        for number in 0..held.of.div_ceil(BLOCK) {
            let block = held.block(number);
            let mine = block.start.max(held.range.start)..block.end.min(held.range.end);
            if whole.contains(&number) {
                streams.push(purpose.stream());
            } else if mine.is_empty() {
                purpose.skip();
            } else {
                let all = borders.get(&number).ok_or(ShardMismatch)?;
                let all: Result<Vec<T>, _> = all.iter().map(|&sum| T::try_from(sum)).collect();
                let mut all = all.map_err(|_| ShardMismatch)?;
                self.add_to(&mut purpose.stream(), &mut all);
                let theirs = mine.start - block.start..mine.end - block.start;
                sums[own(mine)].copy_from_slice(&all[theirs]);
            }
        }
        if !whole.is_empty() {
            let places = own(held.block(whole.start).start..held.block(whole.end - 1).end);
            let blocks: Vec<_> = sums[places].chunks_mut(BLOCK).zip(streams).collect();
            share(threads, blocks.into_iter(), |(block, mut stream)| self.add_to(&mut stream, block));
        }
        let inverse = 1.0 / f64::from(scale.get());
        let noisy = sums.into_iter().map(|sum| (Into::<i64>::into(sum) as f64 * inverse) as f32).collect();
        Ok(Noisy::new(noisy, source))
    }
}

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn numbers(&mut self, numbers: impl IntoIterator<Item = u64>) {
        self.0.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
    }
}

fn number(from: &mut &[u8]) -> Option<u64> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*bytes))
}

type Borders = BTreeMap<usize, Vec<i64>>;

/// The digests of all blocks, and the values of those that lie in several processes; nothing unless each value came
/// once.
fn assemble(messages: &[Vec<u8>], held: &Held) -> Option<(Vec<BlockDigest>, Borders)> {
    let mut digests: Vec<Option<BlockDigest>> = vec![None; held.of.div_ceil(BLOCK)];
    let mut borders = Borders::new();
    let mut next = 0;
    for message in messages {
        let mut from = &message[..];
        let (first, count) = (number(&mut from)? as usize, number(&mut from)? as usize);
        for place in digests.get_mut(first..first.checked_add(count)?)? {
            let (bytes, rest) = from.split_first_chunk()?;
            from = rest;
            if place.replace(BlockDigest::from_bytes(*bytes)).is_some() {
                return None;
            }
        }
        while !from.is_empty() {
            let (start, count) = (number(&mut from)? as usize, number(&mut from)? as usize);
            if start < next || count > BLOCK {
                return None;
            }
            next = start + count;
            let values = borders.entry(start / BLOCK).or_default();
            if start % BLOCK != values.len() {
                return None;
            }
            for _ in 0..count {
                values.push(number(&mut from)? as i64);
            }
        }
    }
    for (&block, values) in &borders {
        if values.len() != held.block(block).len() || digests.get(block)?.is_some() {
            return None;
        }
        digests[block] = Some(BlockDigest::new(values));
    }
    Some((digests.into_iter().collect::<Option<_>>()?, borders))
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Mutex};

    use super::*;
    use crate::noise::{Quantiser, Randomness, RunKey};

    #[derive(Debug)]
    struct Wrong;

    impl From<ShardMismatch> for Wrong {
        fn from(_: ShardMismatch) -> Self {
            Wrong
        }
    }

    fn key() -> RunKey {
        RunKey::from_bytes(&[7; RunKey::BYTES])
    }

    /// The values as released by processes with these borders.
    fn in_parts(values: &[i64], cuts: &[usize]) -> Result<Vec<f32>, Wrong> {
        let (gaussian, scale) =
            (RoundedGaussian::new(300.0).unwrap(), Quantiser::<i16>::new(100).unwrap().scale());
        let parts = cuts.len() - 1;
        let (board, barrier) = (Mutex::new(vec![vec![]; parts]), Barrier::new(parts));
        let (board, barrier, gaussian) = (&board, &barrier, &gaussian);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..parts)
                .map(|part| {
                    scope.spawn(move || {
                        let held = Held { range: cuts[part]..cuts[part + 1], of: values.len() };
                        let query = Randomness::from_key(key()).query("sums").unwrap();
                        let own = values[held.range.clone()].to_vec();
                        gaussian.release_held((own, &held), scale, query, 2, |bytes| {
                            board.lock().unwrap()[part] = bytes;
                            barrier.wait();
                            Ok::<_, Wrong>(board.lock().unwrap().clone())
                        })
                    })
                })
                .collect();
            let mut all = vec![];
            for thread in threads {
                all.extend(thread.join().unwrap()?.into_parts().0);
            }
            Ok(all)
        })
    }

    #[test]
    fn noise_does_not_depend_on_where_values_lie() {
        let count = 5 * BLOCK + 77;
        let values: Vec<i64> = (0..count as i64).map(|i| i * i % 10_007 - 5_000).collect();
        let (gaussian, scale) =
            (RoundedGaussian::new(300.0).unwrap(), Quantiser::<i16>::new(100).unwrap().scale());
        let query = Randomness::from_key(key()).query("sums").unwrap();
        let alone = gaussian.release_owned(values.clone(), scale, query, 2).into_parts().0;
        let cuts: [&[usize]; 7] = [
            &[0, count],
            &[0, BLOCK, count],
            &[0, 100, 200, count],
            &[0, 0, BLOCK - 1, BLOCK + 1, BLOCK + 2, 3 * BLOCK, count, count],
            &[0, 3 * BLOCK / 2, 5 * BLOCK + 1, count],
            &[0, 5 * BLOCK, count],
            &[0, 1, 2, 3, 4 * BLOCK + 9, 4 * BLOCK + 10, count],
        ];
        for cuts in cuts {
            assert!(in_parts(&values, cuts).unwrap() == alone, "{cuts:?}");
        }
        let few = &values[..50];
        let query = Randomness::from_key(key()).query("sums").unwrap();
        let alone = gaussian.release_owned(few.to_vec(), scale, query, 1).into_parts().0;
        assert!(in_parts(few, &[0, 10, 10, 50]).unwrap() == alone);
    }

    #[test]
    fn values_that_are_missing_or_come_twice_are_refused() {
        let values: Vec<i64> = (0..3 * BLOCK as i64).collect();
        assert!(in_parts(&values, &[0, BLOCK, 2 * BLOCK]).is_err());
        assert!(in_parts(&values, &[10, BLOCK, 3 * BLOCK]).is_err());
    }

    /// One value of another process changes the noise of all: no two sums ever share noise.
    #[test]
    fn noise_is_bound_to_the_values_of_all_processes() {
        let mut values: Vec<i64> = (0..2 * BLOCK as i64).collect();
        let cuts = [0, BLOCK, 2 * BLOCK];
        let before = in_parts(&values, &cuts).unwrap();
        values[2 * BLOCK - 1] += 100;
        let after = in_parts(&values, &cuts).unwrap();
        let same = before[..BLOCK].iter().zip(&after[..BLOCK]).filter(|(a, b)| a == b).count();
        assert!(same < BLOCK / 10, "{same}");
    }
}
