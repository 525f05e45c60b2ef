//! Ranks on threads of one process: the same lines as over a network, for tests.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::{Ranks, Transport};

/// One end of a channel from and to every rank.
struct Threads {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Mutex<Receiver<Vec<u8>>>>,
}

const GONE: &str = "another rank ended";

impl Transport for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn all_gather(&self, own: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        self.exchange(vec![own; self.size()])
    }

    fn exchange(&self, to: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        for (channel, bytes) in self.to.iter().zip(to) {
            channel.send(bytes).map_err(|_| GONE)?;
        }
        let receive = |from: &Mutex<Receiver<Vec<u8>>>| {
            from.lock().unwrap_or_else(PoisonError::into_inner).recv().map_err(|_| GONE.to_string())
        };
        self.from.iter().map(receive).collect()
    }
}

/// Does some work as each of `size` ranks, and gives what each came to. A rank that ends early ends the others, too.
pub fn on_threads<T: Send>(size: usize, work: impl Fn(Ranks) -> T + Sync) -> Vec<T> {
    let mut ends: Vec<Threads> = (0..size).map(|rank| Threads { rank, to: vec![], from: vec![] }).collect();
    for from in 0..size {
        for to in 0..size {
            let (sender, receiver) = channel();
            ends[from].to.push(sender);
            ends[to].from.push(Mutex::new(receiver));
        }
    }
    // Each with a pool of its own: a rank that waits for another must not keep it from its threads.
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool of two threads");
    let rank = &|end| pool().install(|| work(Ranks::new(end)));
    std::thread::scope(|scope| {
        let threads: Vec<_> = ends.into_iter().map(|end| scope.spawn(move || rank(end))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank does not panic")).collect()
    })
}
