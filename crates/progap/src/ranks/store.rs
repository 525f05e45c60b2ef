//! A run's files under several ranks: the first rank keeps them, and every rank has its own rows of what is kept, or
//! all.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

use progap_graph::{Buffer, Graph};
use progap_privacy::noise::RunKey;

use super::{Ranks, Sent};
use crate::ledger::Warning;
use crate::method::checkpoint::{CheckpointStore, State};
use crate::method::{Observer, Progress};
use crate::{Error, Result};

/// How many values travel at a time to where they are kept.
const AT_ONCE: usize = 1 << 22;

/// Keeps what rows say of all ranks, piece by piece: the first rank holds no more of it than its own.
pub(crate) trait PieceStore: CheckpointStore {
    /// As [`CheckpointStore::keep_aggregate`], for values that come in pieces until there are no more.
    fn keep_pieces(
        &mut self,
        number: usize,
        width: usize,
        key: Option<&RunKey>,
        next: &mut dyn FnMut() -> Result<Option<Vec<f32>>>,
    ) -> Result<()>;
}

/// The store of all ranks.
pub(crate) struct SharedStore<'s> {
    pub ranks: Ranks,
    pub borders: Vec<usize>,
    /// Whether every rank has all rows of what is kept, and not its own alone.
    pub is_whole: bool,
    /// The files, on the first rank.
    pub first: Option<&'s mut dyn PieceStore>,
    pub folder: PathBuf,
}

impl SharedStore<'_> {
    /// The pieces in which values of this width travel: a rank, and a range of its values.
    fn pieces(&self, width: usize) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let lengths: Vec<usize> = self.borders.windows(2).map(|w| (w[1] - w[0]) * width).collect();
        lengths.into_iter().enumerate().flat_map(|(rank, length)| {
            (0..length).step_by(AT_ONCE).map(move |start| (rank, start..length.min(start + AT_ONCE)))
        })
    }

    fn piece(&self, values: &[f32], rank: usize, range: Range<usize>) -> Result<Vec<f32>> {
        let mut to = vec![vec![]; self.ranks.size()];
        if rank == self.ranks.rank() {
            to[0] = bytemuck::cast_slice(&values[range]).to_vec();
        }
        let come = self.ranks.exchange(Sent::Kept, to)?;
        Ok(bytemuck::pod_collect_to_vec(&come[rank]))
    }
}

impl CheckpointStore for SharedStore<'_> {
    fn keep_aggregate(
        &mut self,
        number: usize,
        values: Vec<f32>,
        width: usize,
        key: Option<&RunKey>,
    ) -> Result<Buffer<f32>> {
        let mut pieces = self.pieces(width);
        match self.first.take() {
            first if self.is_whole => {
                self.first = first;
                if let Some(first) = &mut self.first {
                    let mut all = Some(values.clone());
                    first.keep_pieces(number, width, key, &mut || Ok(all.take()))?;
                }
            }
            Some(first) => {
                let next = &mut || match pieces.next() {
                    Some((rank, range)) => self.piece(&values, rank, range).map(Some),
                    None => Ok(None),
                };
                let kept = first.keep_pieces(number, width, key, next);
                self.first = Some(first);
                kept?;
            }
            None => {
                for (rank, range) in pieces {
                    self.piece(&values, rank, range)?;
                }
            }
        }
        // Nothing is made of an answer before it is kept.
        self.ranks.broadcast(Sent::Kept, None)?;
        Ok(values.into())
    }

    fn kept_aggregate(&mut self, number: usize, width: usize) -> Result<Option<Buffer<f32>>> {
        let kept = match &mut self.first {
            Some(first) => first.kept_aggregate(number, width)?,
            None => None,
        };
        let there = self.ranks.broadcast(Sent::Kept, kept.as_ref().map(|_| vec![1]))?;
        if there.is_empty() {
            return Ok(None);
        }
        let of = |rank: usize| match &kept {
            Some(values) if self.is_whole => bytemuck::cast_slice(values).to_vec(),
            Some(values) => {
                bytemuck::cast_slice(&values[self.borders[rank] * width..self.borders[rank + 1] * width])
                    .to_vec()
            }
            None => vec![],
        };
        let come = self.ranks.exchange(Sent::Kept, (0..self.ranks.size()).map(of).collect())?;
        Ok(Some(bytemuck::pod_collect_to_vec::<u8, f32>(&come[0]).into()))
    }

    fn keep_graph(&mut self, _: &Graph, _: Option<&RunKey>) -> Result<()> {
        Err(Error::internal("a noisy graph is made on one machine"))
    }

    fn kept_graph(&mut self) -> Result<Option<Graph>> {
        Err(Error::internal("a noisy graph is made on one machine"))
    }

    fn save(&mut self, state: &State, key: Option<&RunKey>) -> Result<()> {
        self.first.as_mut().map_or(Ok(()), |first| first.save(state, key))
    }

    fn save_if_due(&mut self, state: &State, key: Option<&RunKey>, now: bool) -> Result<()> {
        self.first.as_mut().map_or(Ok(()), |first| first.save_if_due(state, key, now))
    }

    fn interrupted(&self) -> Error {
        Error::interrupted(self.folder.clone())
    }
}

/// Watches for all ranks: they stop together, when the first is told to.
pub(crate) struct SharedObserver<'o> {
    pub ranks: Ranks,
    pub first: &'o mut dyn Observer,
}

impl Observer for SharedObserver<'_> {
    fn epoch(&mut self, progress: &Progress) -> ControlFlow<()> {
        let stops = self.ranks.is_first() && self.first.epoch(progress).is_break();
        match self.ranks.broadcast(Sent::Agreement, stops.then(|| vec![1])) {
            Ok(stop) if stop.is_empty() => ControlFlow::Continue(()),
            // A rank that is gone is found by the next call, which says so.
            Ok(_) | Err(_) => ControlFlow::Break(()),
        }
    }

    fn warning(&mut self, warning: &Warning) {
        self.first.warning(warning);
    }
}
