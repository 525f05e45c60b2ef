//! Which nodes train, validate and test.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::{Buffer, Place, Problem, Result};

/// The part of a node in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Part {
    /// Its label may be learnt from.
    Train = 0,
    /// Its label may choose between models.
    Val = 1,
    /// Its label is only ever compared with the final prediction.
    Test = 2,
    /// It belongs to the graph, but its label is not known or not used.
    Unused = 3,
}

impl Part {
    /// The part's name in files.
    pub fn name(self) -> &'static str {
        match self {
            Part::Train => "train",
            Part::Val => "val",
            Part::Test => "test",
            Part::Unused => "none",
        }
    }

    /// The part of that name, in any of the spellings in use.
    pub fn from_name(name: &str) -> Option<Part> {
        match name.to_ascii_lowercase().as_str() {
            "train" | "training" => Some(Part::Train),
            "val" | "valid" | "validation" | "dev" => Some(Part::Val),
            "test" | "testing" => Some(Part::Test),
            "none" | "unused" | "" => Some(Part::Unused),
            _ => None,
        }
    }

    fn from_code(code: u8) -> Option<Part> {
        [Part::Train, Part::Val, Part::Test, Part::Unused].get(code as usize).copied()
    }
}

/// Shares of a random split; training nodes take what is left.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// The share of validation nodes.
    pub val: f64,
    /// The share of test nodes.
    pub test: f64,
}

impl Default for Ratios {
    /// 75 % training, 10 % validation, 15 % test.
    fn default() -> Self {
        Ratios { val: 0.10, test: 0.15 }
    }
}

/// The part of every node.
#[derive(Debug, Clone, PartialEq)]
pub struct Split(Buffer<u8>);

impl Split {
    /// A split that lists the part of every node.
    pub fn from_parts(parts: impl IntoIterator<Item = Part>) -> Split {
        Split(parts.into_iter().map(|part| part as u8).collect::<Vec<_>>().into())
    }

    /// A split from the codes in our own files.
    pub(crate) fn from_codes(codes: Buffer<u8>) -> Result<Split> {
        match codes.iter().position(|&code| Part::from_code(code).is_none()) {
            None => Ok(Split(codes)),
            Some(node) => {
                let problem = Problem::Corrupt(format!("the code {} is not a part", codes[node]));
                Err(problem.at(Place::Element { key: "split".into(), index: node as u64 }))
            }
        }
    }

    /// A split from masks, as PyTorch Geometric keeps them. A node in none of them is [`Part::Unused`]; a
    /// node in two is an error.
    pub fn from_masks(train: &[bool], val: &[bool], test: &[bool]) -> Result<Split> {
        let nodes = train.len();
        for (what, mask) in [("val_mask", val), ("test_mask", test)] {
            if mask.len() != nodes {
                let (found, expected) = (mask.len() as u64, nodes as u64);
                let problem = Problem::Length { what: "mask".into(), found, expected };
                return Err(problem.at(Place::Key(what.into())));
            }
        }
        let mut parts = Vec::with_capacity(nodes);
        for node in 0..nodes {
            parts.push(match (train[node], val[node], test[node]) {
                (true, false, false) => Part::Train,
                (false, true, false) => Part::Val,
                (false, false, true) => Part::Test,
                (false, false, false) => Part::Unused,
                _ => {
                    let problem = Problem::Invalid("the node is in more than one mask".into());
                    return Err(problem.at(Place::Node(node as u64)));
                }
            });
        }
        Ok(Split::from_parts(parts))
    }

    /// A random split: `round(val * nodes)` validation and `round(test * nodes)` test nodes.
    ///
    /// The seed is for experiments: a split protects nothing and is public.
    pub fn random(nodes: usize, ratios: Ratios, seed: u64) -> Result<Split> {
        let Ratios { val, test } = ratios;
        if !(val >= 0.0 && test >= 0.0 && val + test < 1.0) {
            let message =
                format!("the shares {val} (validation) and {test} (test) do not leave training nodes");
            return Err(Problem::Invalid(message).into());
        }
        let share = |ratio: f64| (ratio * nodes as f64).round() as usize;
        let (val, test) = (share(val), share(test).min(nodes - share(val)));
        let mut parts = vec![Part::Train as u8; nodes];
        parts[..val].fill(Part::Val as u8);
        parts[val..val + test].fill(Part::Test as u8);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for last in (1..nodes).rev() {
            // The bias of the multiplication is below 2^-32 for any graph we can hold.
            let other = ((u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64) as usize;
            parts.swap(last, other);
        }
        Ok(Split(parts.into()))
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The part of a node.
    pub fn part(&self, node: usize) -> Part {
        Part::from_code(self.0[node]).unwrap_or(Part::Unused)
    }

    /// The nodes of a part, ascending.
    pub fn nodes(&self, part: Part) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().filter(move |(_, code)| **code == part as u8).map(|(node, _)| node)
    }

    /// How many nodes a part has.
    pub fn count(&self, part: Part) -> usize {
        self.0.iter().filter(|&&code| code == part as u8).count()
    }

    /// The parts of the nodes that are listed, in that order.
    #[must_use]
    pub fn select(&self, nodes: &[u32]) -> Split {
        Split(nodes.iter().map(|&node| self.0[node as usize]).collect::<Vec<_>>().into())
    }

    /// The same split, with these nodes in no part.
    #[must_use]
    pub(crate) fn without(self, nodes: impl Iterator<Item = usize>) -> Split {
        let used: Vec<usize> = nodes.filter(|&node| self.0[node] != Part::Unused as u8).collect();
        if used.is_empty() {
            return self;
        }
        let mut codes = self.0.to_vec();
        used.into_iter().for_each(|node| codes[node] = Part::Unused as u8);
        Split(codes.into())
    }

    /// The codes, as our own files keep them.
    pub(crate) fn codes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_split_has_the_asked_shares_and_repeats_with_its_seed() {
        let split = Split::random(1000, Ratios::default(), 7).unwrap();
        assert_eq!([Part::Train, Part::Val, Part::Test].map(|p| split.count(p)), [750, 100, 150]);
        assert_eq!(split, Split::random(1000, Ratios::default(), 7).unwrap());
        assert_ne!(split, Split::random(1000, Ratios::default(), 8).unwrap());
        // A shuffle leaves about 75 of the 100 first nodes in training; the chance of fewer than 50 is 1e-7.
        assert!(split.nodes(Part::Train).take_while(|&n| n < 100).count() > 50);
    }

    #[test]
    fn bad_ratios_and_masks_are_refused() {
        for ratios in [
            Ratios { val: 0.5, test: 0.5 },
            Ratios { val: -0.1, test: 0.1 },
            Ratios { val: f64::NAN, test: 0.1 },
        ] {
            assert!(Split::random(10, ratios, 0).is_err(), "{ratios:?}");
        }
        assert!(Split::random(1, Ratios { val: 0.49, test: 0.5 }, 0).is_ok());
        assert!(Split::from_masks(&[true, false], &[false], &[false, true]).is_err());
        assert!(Split::from_masks(&[true], &[true], &[false]).is_err());
        assert_eq!(Split::from_masks(&[false], &[false], &[false]).unwrap().part(0), Part::Unused);
    }
}
