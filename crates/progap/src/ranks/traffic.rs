//! Traffic of a rank to others: how many bytes, of what kind, in which part of a run.

use std::collections::BTreeMap;
use std::fmt;

/// Kinds of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sent {
    /// That all ranks mean the same run, and what follows from all edges.
    Agreement,
    /// Messages of nodes to the ranks that hold their receivers.
    Messages,
    /// Digests and borders of exact sums, for the noise.
    Noise,
    /// Rows of a batch.
    Rows,
    /// Sums over rows: gradients, statistics, accuracies.
    Sums,
    /// Aggregates that the first rank keeps.
    Kept,
    /// Columns in units of their own, to be brought to scale.
    Columns,
    /// Edges of senders that keep some of their own.
    Sample,
}

impl Sent {
    const ALL: [Sent; 8] = [
        Sent::Agreement,
        Sent::Messages,
        Sent::Noise,
        Sent::Rows,
        Sent::Sums,
        Sent::Kept,
        Sent::Columns,
        Sent::Sample,
    ];

    /// The kind of traffic that a number stands for.
    fn from_number(number: u64) -> Option<Sent> {
        Sent::ALL.into_iter().find(|sent| *sent as u64 == number)
    }

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Sent::Agreement => "agreement",
            Sent::Messages => "messages",
            Sent::Noise => "noise",
            Sent::Rows => "rows",
            Sent::Sums => "sums",
            Sent::Kept => "kept",
            Sent::Columns => "columns",
            Sent::Sample => "sample",
        }
    }
}

/// A part of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the first stage.
    #[default]
    Start,
    /// A stage, from 0: what is asked for it, and its training.
    Stage(usize),
    /// After the last stage.
    End,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moment::Start => f.write_str("start"),
            Moment::Stage(stage) => write!(f, "stage {stage}"),
            Moment::End => f.write_str("end"),
        }
    }
}

/// Bytes that a rank sent to others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic(BTreeMap<(Moment, Sent), u64>);

impl Traffic {
    pub(super) fn add(&mut self, moment: Moment, what: Sent, bytes: u64) {
        *self.0.entry((moment, what)).or_default() += bytes;
    }

    /// All bytes.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The bytes of a kind.
    pub fn of(&self, what: Sent) -> u64 {
        self.kinds().get(&what).copied().unwrap_or(0)
    }

    /// The bytes of a kind in a part of the run.
    pub fn at(&self, moment: Moment, what: Sent) -> u64 {
        self.0.get(&(moment, what)).copied().unwrap_or(0)
    }

    /// The bytes of each kind.
    pub fn kinds(&self) -> BTreeMap<Sent, u64> {
        let mut kinds = BTreeMap::new();
        for (&(_, what), bytes) in &self.0 {
            *kinds.entry(what).or_default() += bytes;
        }
        kinds
    }

    /// The bytes of each kind in each part of the run, in their order.
    pub fn moments(&self) -> BTreeMap<Moment, BTreeMap<Sent, u64>> {
        let mut moments: BTreeMap<Moment, BTreeMap<Sent, u64>> = BTreeMap::new();
        for (&(moment, what), &bytes) in &self.0 {
            moments.entry(moment).or_default().insert(what, bytes);
        }
        moments
    }

    /// As numbers, to be sent.
    pub(crate) fn to_numbers(&self) -> Vec<u64> {
        let moment = |moment| match moment {
            Moment::Start => 0,
            Moment::End => 1,
            Moment::Stage(stage) => stage as u64 + 2,
        };
        self.0.iter().flat_map(|(&(at, what), &bytes)| [moment(at), what as u64, bytes]).collect()
    }

    /// From numbers that were sent.
    pub(crate) fn from_numbers(numbers: &[u64]) -> Traffic {
        let mut traffic = Traffic::default();
        for triple in numbers.chunks_exact(3) {
            let moment = match triple[0] {
                0 => Moment::Start,
                1 => Moment::End,
                stage => Moment::Stage(stage as usize - 2),
            };
            if let Some(what) = Sent::from_number(triple[1]) {
                traffic.add(moment, what, triple[2]);
            }
        }
        traffic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_adds_up_and_travels() {
        let mut traffic = Traffic::default();
        traffic.add(Moment::Start, Sent::Agreement, 5);
        traffic.add(Moment::Stage(1), Sent::Sums, 7);
        traffic.add(Moment::Stage(1), Sent::Sums, 1);
        traffic.add(Moment::End, Sent::Sums, 2);
        assert_eq!((traffic.total(), traffic.of(Sent::Sums), traffic.of(Sent::Rows)), (15, 10, 0));
        assert_eq!(traffic.at(Moment::Stage(1), Sent::Sums), 8);
        let names: Vec<String> = traffic.moments().keys().map(ToString::to_string).collect();
        assert_eq!(names, ["start", "stage 1", "end"]);
        assert_eq!(Traffic::from_numbers(&traffic.to_numbers()), traffic);
    }
}
