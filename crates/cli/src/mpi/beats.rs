//! Signs of life. Each rank sends one to the next every few seconds, whatever its run computes meanwhile, so that a
//! rank which is slow is told from one that stands still.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mpi::Tag;
use mpi::request::Request;
use mpi::traits::{Communicator, Destination, Source};

const TAG: Tag = 17;
/// The longest time between two of them.
const EVERY: Duration = Duration::from_secs(5);
const ALIVE: u8 = 0;
/// The last one of a rank whose work is done.
const LAST: u8 = 1;

/// When something was last heard of the other ranks; the thread that waits for them looks at it.
#[derive(Clone)]
pub(super) struct Heard {
    start: Instant,
    at: Arc<AtomicU64>,
}

impl Heard {
    fn note(&self) {
        self.at.store(self.start.elapsed().as_millis() as u64, Relaxed);
    }

    /// How long nothing was heard.
    pub(super) fn silence(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.at.load(Relaxed)))
    }
}

/// The signs of life of one rank, for the thread that talks to MPI.
pub(super) struct Beats<'w, C> {
    world: &'w C,
    next: i32,
    before: i32,
    every: Duration,
    sent: Instant,
    pub(super) heard: Heard,
}

impl<'w, C: Communicator> Beats<'w, C> {
    pub(super) fn new(world: &'w C, patience: Duration) -> Self {
        let (rank, size, now) = (world.rank(), world.size(), Instant::now());
        Beats {
            world,
            next: (rank + 1) % size,
            before: (rank + size - 1) % size,
            every: EVERY.min(patience / 4),
            sent: now,
            heard: Heard { start: now, at: Arc::default() },
        }
    }

    /// How long the thread may do something else before it comes back.
    pub(super) fn every(&self) -> Duration {
        self.every
    }

    /// Sends a sign of life where one is due, and takes in those that came.
    pub(super) fn beat(&mut self) {
        if self.sent.elapsed() < self.every {
            return;
        }
        self.sent = Instant::now();
        self.world.process_at_rank(self.next).send_with_tag(&[ALIVE][..], TAG);
        while self.came().is_some() {}
    }

    /// Another piece of a long message has come: its sender is alive.
    pub(super) fn turn(&mut self) {
        self.beat();
        self.heard.note();
    }

    fn came(&self) -> Option<u8> {
        let (message, _) = self.world.process_at_rank(self.before).immediate_matched_probe_with_tag(TAG)?;
        let mut beat = [ALIVE];
        message.matched_receive_into(&mut beat[..]);
        self.heard.note();
        Some(beat[0])
    }

    /// Waits for all ranks to take part in something, which is a sign of life of each.
    pub(super) fn wait<'a, D: ?Sized, S: mpi::request::Scope<'a>>(&mut self, mut request: Request<'a, D, S>) {
        while let Err(again) = request.test() {
            request = again;
            self.beat();
            std::thread::yield_now();
        }
        self.heard.note();
    }

    /// The work is done: all signs of life are received, as MPI demands of its messages.
    pub(super) fn end(self) {
        self.world.process_at_rank(self.next).send_with_tag(&[LAST][..], TAG);
        while self.came() != Some(LAST) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
