//! Ranks: processes that train one model together, each on its own rows, and how they talk to each other.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | [`Transport`], which carries bytes; [`Ranks`], which counts them |
//! | `threads.rs` | ranks in one process, for tests |
//! | `open.rs` | a file of which each rank reads its part |
//! | `data.rs` | the rows of a rank, brought to scale by maps that all rows give |
//! | `held.rs` | what a rank holds: its rows, the edges into them, and whom it serves |
//! | `ahead.rs` | steps that are drawn before they are made, so that their rows travel at once |
//! | `rows.rs` | rows that travel, so that each chunk of a batch lies in one rank |
//! | `sample.rs` | which edges stay where each sender keeps some of its own |
//! | `traffic.rs` | what was sent, in which part of the run |
//! | `store.rs` | a run's files, which the first rank keeps for all |
//!
//! Every rank runs the same lines. What they decide by is the same on all of them: settings, public sizes, and what
//! left the vault.

mod ahead;
mod data;
mod held;
mod open;
mod rows;
mod sample;
mod store;
mod threads;
mod traffic;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use ahead::Prefetch;
pub(crate) use data::RankData;
pub(crate) use held::{Partition, look_at_edges};
pub use open::open;
use rows::ReceivedRows;
pub(crate) use rows::{Cut, GatheredBatch, packed_order};
pub(crate) use store::{PieceStore, SharedObserver, SharedStore};
pub use threads::on_threads;
pub use traffic::{Moment, Sent, Traffic};

use crate::{Error, Result};

/// Carries bytes between ranks. Every rank makes the same calls in the same order.
pub trait Transport: Send + Sync {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// The bytes of every rank, in their order.
    ///
    /// # Errors
    /// A rank that is gone, in words.
    fn all_gather(&self, own: Vec<u8>) -> std::result::Result<Vec<Vec<u8>>, String>;

    /// Gives every rank its own bytes: `to[q]` goes to rank `q`, and what comes from rank `q` stands at `q`.
    ///
    /// # Errors
    /// As [`Transport::all_gather`].
    fn exchange(&self, to: Vec<Vec<u8>>) -> std::result::Result<Vec<Vec<u8>>, String>;
}

/// The ranks of a run, as one of them sees them.
#[derive(Clone)]
pub struct Ranks {
    transport: Arc<dyn Transport>,
    /// Bytes that this rank sent to others, and when it sends what comes next.
    traffic: Arc<Mutex<(Moment, Traffic)>>,
}

/// The program, which has to be the same on all ranks.
const PROGRAM: &str = concat!("progap ", env!("CARGO_PKG_VERSION"), " on several ranks");

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.size())
    }
}

impl Ranks {
    /// Ranks that talk by a transport.
    pub fn new(transport: impl Transport + 'static) -> Ranks {
        Ranks { transport: Arc::new(transport), traffic: Arc::default() }
    }

    /// The number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.transport.size()
    }

    /// Whether this is the rank that writes.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Bytes that this rank has sent to others so far.
    pub fn sent(&self) -> Traffic {
        self.traffic().1.clone()
    }

    /// Traffic from now on belongs to this part of the run.
    pub(crate) fn now(&self, moment: Moment) {
        self.traffic().0 = moment;
    }

    fn traffic(&self) -> MutexGuard<'_, (Moment, Traffic)> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, what: Sent, bytes: usize) {
        let (now, traffic) = &mut *self.traffic();
        traffic.add(*now, what, bytes as u64);
    }

    /// The bytes of every rank, in their order.
    pub(crate) fn all_gather(&self, what: Sent, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.count(what, own.len() * (self.size() - 1));
        self.transport.all_gather(own).map_err(Error::rank)
    }

    /// Gives every rank its own bytes.
    pub(crate) fn exchange(&self, what: Sent, to: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let others = to.iter().enumerate().filter(|(rank, _)| *rank != self.rank());
        self.count(what, others.map(|(_, bytes)| bytes.len()).sum());
        self.transport.exchange(to).map_err(Error::rank)
    }

    /// The first rank's bytes, on every rank.
    pub(crate) fn broadcast(&self, what: Sent, bytes: Option<Vec<u8>>) -> Result<Vec<u8>> {
        let mut all = self.all_gather(what, bytes.unwrap_or_default())?;
        Ok(std::mem::take(&mut all[0]))
    }

    /// The first rank's message, on every rank; the others say nothing.
    ///
    /// # Errors
    /// A rank that is gone.
    pub fn told(&self, by_first: Option<Vec<u8>>) -> Result<Vec<u8>> {
        self.broadcast(Sent::Agreement, by_first)
    }

    /// Numbers of all ranks, one list each.
    pub(crate) fn numbers(&self, what: Sent, own: &[u64]) -> Result<Vec<Vec<u64>>> {
        let all = self.all_gather(what, bytemuck::cast_slice(own).to_vec())?;
        Ok(all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect())
    }

    /// Refuses ranks that run another version of the program. To be asked before anything else: what follows may differ
    /// between versions.
    ///
    /// # Errors
    /// The first rank that runs another program than rank 0.
    pub fn same_program(&self) -> Result<()> {
        // Not folded into code, so that a test can make another version of a binary.
        self.agree(&[("version of the program", std::hint::black_box(PROGRAM).into())])
    }

    /// Refuses ranks that do not mean the same. Each item is a word for what is compared, and what this rank has.
    ///
    /// # Errors
    /// The first rank that has something else than rank 0.
    pub fn agree(&self, about: &[(&str, String)]) -> Result<()> {
        let own: Vec<String> =
            about.iter().map(|(_, value)| crate::files::checksum_of(value.as_bytes())).collect();
        let all = self.all_gather(Sent::Agreement, own.join("\n").into_bytes())?;
        for (rank, theirs) in all.iter().enumerate() {
            if *theirs == all[0] {
                continue;
            }
            let theirs = String::from_utf8_lossy(theirs).into_owned();
            let first = String::from_utf8_lossy(&all[0]).into_owned();
            let differs = first.lines().zip(theirs.lines()).position(|(a, b)| a != b);
            let what =
                differs.and_then(|at| about.get(at)).map_or("version of the program", |(what, _)| what);
            return Err(Error::rank(format!(
                "rank {rank} does not have the same {what} as rank 0: start all ranks with the same program, the \
                 same settings and the same data"
            )));
        }
        Ok(())
    }
}

impl progap_nn::Collective for Ranks {
    fn place(&self) -> (usize, usize) {
        (self.rank(), self.size())
    }

    fn all_gather(&self, own: Vec<u8>) -> std::result::Result<Vec<Vec<u8>>, String> {
        Ranks::all_gather(self, Sent::Sums, own).map_err(|error| error.to_string())
    }
}
