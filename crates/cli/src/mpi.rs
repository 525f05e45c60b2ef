//! MPI: the ranks of `mpirun`, `srun` or an operator. The main thread alone talks to MPI; the run asks it for what it
//! needs.

mod beats;

use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use beats::{Beats, Heard};
use mpi::datatype::{Partition, PartitionMut};
use mpi::request::scope;
use mpi::traits::{Communicator, CommunicatorCollectives};
use progap::ranks::{Ranks, Transport};

use crate::command::Outcome;
use crate::{flags, launch, print_error};

/// Bytes that travel at a time: MPI counts in 32 bits, and buffers cost memory.
const AT_ONCE: usize = 64 << 20;
/// How long a rank waits for a sign of life of another, in seconds, where the environment does not say.
const PATIENCE: u64 = 60;
const PATIENCE_VARIABLE: &str = "PROGAP_MPI_TIMEOUT";

type Bytes = Vec<Vec<u8>>;

enum Request {
    AllGather(Vec<u8>),
    Exchange(Bytes),
}

/// The run's end of the channels to the thread that talks to MPI.
struct MpiTransport {
    rank: usize,
    size: usize,
    patience: Duration,
    heard: Heard,
    requests: Sender<Request>,
    replies: Mutex<Receiver<Bytes>>,
}

impl MpiTransport {
    fn ask(&self, request: Request) -> Result<Bytes, String> {
        let replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        self.requests.send(request).map_err(|_| "MPI has ended")?;
        loop {
            match replies.recv_timeout(Duration::from_millis(500)) {
                Ok(bytes) => return Ok(bytes),
                Err(RecvTimeoutError::Disconnected) => return Err("MPI has ended".into()),
                Err(RecvTimeoutError::Timeout) if self.heard.silence() < self.patience => {}
                Err(RecvTimeoutError::Timeout) => {
                    // The thread that talks to MPI waits for somebody who does not come: nothing can be asked of it
                    // any more.
                    print_error(&format!(
                        "error: rank {} had no sign of life of another rank for {} seconds (see \
                         {PATIENCE_VARIABLE}); see to the \
                         machines, then resume with `progap train --resume`",
                        self.rank,
                        self.patience.as_secs()
                    ));
                    std::process::exit(1);
                }
            }
        }
    }
}

impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&self, own: Vec<u8>) -> Result<Bytes, String> {
        self.ask(Request::AllGather(own))
    }

    fn exchange(&self, to: Bytes) -> Result<Bytes, String> {
        self.ask(Request::Exchange(to))
    }
}

/// Does some work as one of several ranks; alone where there is only one. An error of one rank ends all of them.
pub fn run(work: impl FnOnce(Option<&Ranks>) -> Outcome + Send) -> Outcome {
    let Some((universe, _)) = mpi::initialize_with_threading(mpi::Threading::Funneled) else {
        return Err(
            "MPI does not start: start progap with mpirun or srun, or without them on one machine".into()
        );
    };
    let world = universe.world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    if size == 1 {
        return match launch::ranks() {
            // Each of them would train the whole, and charge a budget.
            Some(started) if started > 1 => Err(format!(
                "this is one of {started} ranks, and MPI finds no other: start them with the mpirun of the MPI that \
                 progap was built \
                 with, or with the `srun --mpi` that it knows (`srun --mpi=list`)"
            )
            .into()),
            _ => work(None),
        };
    }
    let failed = match patience() {
        Ok(patience) => talk(&world, patience, work).err(),
        Err(error) => Some(error),
    };
    let Some(error) = failed else { return Ok(()) };
    if rank > 0 {
        // Where the first rank has the same to say, it ends all of them meanwhile.
        std::thread::sleep(Duration::from_secs(1));
    }
    print_error(&format!(
        "error: {}{error}",
        if rank > 0 { format!("rank {rank}: ") } else { String::new() }
    ));
    world.abort(1)
}

/// How long a rank waits for the others.
fn patience() -> Result<Duration, String> {
    let Some(written) = std::env::var_os(PATIENCE_VARIABLE) else { return Ok(Duration::from_secs(PATIENCE)) };
    let seconds = written.to_str().and_then(|seconds| seconds.parse().ok()).filter(|&seconds| seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| {
        format!("{PATIENCE_VARIABLE} is {written:?}: give whole seconds, at least 1, or leave it out")
    })
}

/// Does some work, and asks MPI for what it needs, until it ends.
fn talk<C: CommunicatorCollectives>(
    world: &C,
    patience: Duration,
    work: impl FnOnce(Option<&Ranks>) -> Outcome + Send,
) -> Result<(), String> {
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    let (requests, asked) = channel();
    let (reply, replies) = channel();
    let mut beats = Beats::new(world, patience);
    let (heard, replies) = (beats.heard.clone(), Mutex::new(replies));
    let ranks = Ranks::new(MpiTransport { rank, size, patience, heard, requests, replies });
    std::thread::scope(|scope| {
        let run = scope.spawn(move || work(Some(&ranks)).map_err(|error| flags::said(error.as_ref())));
        let mut pace = Pace::default();
        loop {
            let request = match asked.recv_timeout(beats.every()) {
                Ok(request) => request,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    beats.beat();
                    continue;
                }
            };
            let bytes = match request {
                Request::AllGather(own) => all_gather(world, &own, &mut pace, &mut beats),
                Request::Exchange(to) => exchange(world, &to, &mut beats),
            };
            if reply.send(bytes).is_err() {
                break;
            }
        }
        let outcome = run.join().unwrap_or_else(|_| Err("a mistake in progap itself".into()));
        if outcome.is_ok() {
            beats.end();
        }
        outcome
    })
}

/// How many bytes of each rank travel in a turn.
fn turn_size(size: usize) -> usize {
    (AT_ONCE / size).max(1 << 16)
}

fn places(counts: &[i32]) -> Vec<i32> {
    let before = |sum: &mut i32, count: &i32| {
        let before = *sum;
        *sum += count;
        Some(before)
    };
    counts.iter().scan(0, before).collect()
}

fn total(counts: &[i32]) -> usize {
    counts.iter().map(|&count| count as usize).sum()
}

/// Some bytes one after the other, with room for one more: a buffer without any room has no address of its own, and MPI
/// would take it for the mark that means "in place".
fn room(pieces: &[&[u8]]) -> Vec<u8> {
    let mut all = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum::<usize>() + 1);
    pieces.iter().for_each(|piece| all.extend_from_slice(piece));
    all
}

/// The bytes of `length` that are left for a turn.
fn left(length: u64, turn: usize, size: usize) -> i32 {
    (length.saturating_sub((turn * turn_size(size)) as u64)).min(turn_size(size) as u64) as i32
}

/// How long the longest part of the last gatherings was, and how many in a row were as long: the same on all ranks.
#[derive(Default)]
struct Pace {
    longest: usize,
    times: usize,
}

impl Pace {
    /// Bytes that travel beside the lengths. Where gatherings are of one size again and again, as sums over batches
    /// are, one call does.
    fn room(&self) -> usize {
        const STEADY: usize = 4;
        const MOST: usize = 1 << 20;
        if self.times >= STEADY && self.longest <= MOST { self.longest } else { 0 }
    }

    fn note(&mut self, longest: usize) {
        self.times = if longest == self.longest { self.times + 1 } else { 1 };
        self.longest = longest;
    }
}

fn all_gather<C: CommunicatorCollectives>(
    world: &C,
    own: &[u8],
    pace: &mut Pace,
    beats: &mut Beats<'_, C>,
) -> Bytes {
    const LENGTH: usize = size_of::<u64>();
    let (size, room_beside) = (world.size() as usize, pace.room());
    let (start, own) = own.split_at(own.len().min(room_beside));
    let mut told = vec![0u8; LENGTH + room_beside];
    told[..LENGTH].copy_from_slice(&((start.len() + own.len()) as u64).to_le_bytes());
    told[LENGTH..][..start.len()].copy_from_slice(start);
    let mut heard = vec![0u8; size * told.len()];
    // Once all have taken part in this, nobody is waited for but the network.
    scope(|scope| beats.wait(world.immediate_all_gather_into(scope, &told[..], &mut heard[..])));
    let (mut all, mut lengths): (Bytes, Vec<u64>) = (vec![], vec![]);
    for heard in heard.chunks_exact(told.len()) {
        let (length, start) = heard.split_at(LENGTH);
        let length = u64::from_le_bytes(std::array::from_fn(|at| length[at]));
        let mut bytes = Vec::with_capacity(length as usize);
        bytes.extend_from_slice(&start[..room_beside.min(length as usize)]);
        all.push(bytes);
        lengths.push(length);
    }
    pace.note(lengths.iter().copied().max().unwrap_or(0) as usize);
    lengths.iter_mut().for_each(|length| *length = length.saturating_sub(room_beside as u64));
    let most = lengths.iter().copied().max().unwrap_or(0) as usize;
    for turn in 0..most.div_ceil(turn_size(size)) {
        beats.turn();
        let counts: Vec<i32> = lengths.iter().map(|&length| left(length, turn, size)).collect();
        let start = own.len().min(turn * turn_size(size));
        let end = own.len().min(start + turn_size(size));
        let (send, mut buffer) = (room(&[&own[start..end]]), vec![0u8; total(&counts) + 1]);
        world.all_gather_varcount_into(
            &send[..],
            &mut PartitionMut::new(&mut buffer[..total(&counts)], &counts[..], &places(&counts)[..]),
        );
        for ((all, &count), place) in all.iter_mut().zip(&counts).zip(places(&counts)) {
            all.extend_from_slice(&buffer[place as usize..][..count as usize]);
        }
    }
    all
}

fn exchange<C: CommunicatorCollectives>(world: &C, to: &Bytes, beats: &mut Beats<'_, C>) -> Bytes {
    let size = world.size() as usize;
    let outgoing: Vec<u64> = to.iter().map(|bytes| bytes.len() as u64).collect();
    // Each rank tells how much it sends to this one, and the most that it sends to any: so all know how many turns it
    // takes.
    let longest = outgoing.iter().copied().max().unwrap_or(0);
    let told: Vec<u64> = outgoing.iter().flat_map(|&length| [length, longest]).collect();
    let mut heard = vec![0u64; 2 * size];
    scope(|scope| beats.wait(world.immediate_all_to_all_into(scope, &told[..], &mut heard[..])));
    let incoming: Vec<u64> = heard.iter().copied().step_by(2).collect();
    let most = heard.iter().copied().skip(1).step_by(2).max().unwrap_or(0);
    let mut all: Bytes = incoming.iter().map(|&length| Vec::with_capacity(length as usize)).collect();
    for turn in 0..(most as usize).div_ceil(turn_size(size)) {
        beats.turn();
        let of =
            |lengths: &[u64]| lengths.iter().map(|&length| left(length, turn, size)).collect::<Vec<i32>>();
        let (sent, received) = (of(&outgoing), of(&incoming));
        let piece = |(bytes, &count): (&Vec<u8>, &i32)| -> Range<usize> {
            let start = bytes.len().min(turn * turn_size(size));
            start..start + count as usize
        };
        let pieces: Vec<&[u8]> = to.iter().zip(&sent).map(|pair| &pair.0[piece(pair)]).collect();
        let (send, mut buffer) = (room(&pieces), vec![0u8; total(&received) + 1]);
        world.all_to_all_varcount_into(
            &Partition::new(&send[..], &sent[..], &places(&sent)[..]),
            &mut PartitionMut::new(&mut buffer[..total(&received)], &received[..], &places(&received)[..]),
        );
        for ((all, &count), place) in all.iter_mut().zip(&received).zip(places(&received)) {
            all.extend_from_slice(&buffer[place as usize..][..count as usize]);
        }
    }
    all
}
