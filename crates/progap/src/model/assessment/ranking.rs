//! How well scores put the members of a class before all others: areas, curves and what a threshold finds.

/// How well one class is ranked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranking {
    /// The probability that a member has a larger score than another node, equal scores counted half.
    pub auroc: f64,
    /// The mean over the members of the share of members among the nodes with at least their score.
    pub average_precision: f64,
}

/// A node: its score, whether it is a member, and its position.
type Entry = (f32, bool, u32);

/// Nodes by falling score. Those with equal scores cannot be told apart: they come together.
pub(super) struct Ranked(Vec<Entry>);

impl Ranked {
    /// One score for each node, and whether it is a member of the class.
    pub fn new(nodes: impl Iterator<Item = (f32, bool)>) -> Ranked {
        let mut nodes: Vec<Entry> =
            nodes.zip(0u32..).map(|((score, member), node)| (score, member, node)).collect();
        nodes.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        Ranked(nodes)
    }

    /// The ranking, where each node counts as often as `count` says; `None` if all nodes are members, or none is.
    pub fn ranking(&self, count: impl Fn(u32) -> u32) -> Option<Ranking> {
        let (mut members, mut nodes) = (0u64, 0u64);
        for &(_, member, node) in &self.0 {
            let count = u64::from(count(node));
            (members, nodes) = (members + u64::from(member) * count, nodes + count);
        }
        if members == 0 || members == nodes {
            return None;
        }
        let (members, others) = (members as f64, (nodes - members) as f64);
        let (mut seen, mut found, mut pairs, mut precision) = (0.0, 0.0, 0.0, 0.0);
        for equal in self.0.chunk_by(|one, other| one.0 == other.0) {
            let (mut here, mut all) = (0u64, 0u64);
            for &(_, member, node) in equal {
                let count = u64::from(count(node));
                (here, all) = (here + u64::from(member) * count, all + count);
            }
            let (here, all) = (here as f64, all as f64);
            let below = others - (seen - found) - (all - here);
            pairs += here * below + 0.5 * here * (all - here);
            (seen, found) = (seen + all, found + here);
            // Without a node there is nothing to divide by.
            if here > 0.0 {
                precision += here * found / seen;
            }
        }
        Some(Ranking { auroc: pairs / (members * others), average_precision: precision / members })
    }

    /// What every threshold finds; `None` if all nodes are members, or none is.
    pub fn curve(&self) -> Option<Curve> {
        let (nodes, members) = (self.0.len(), self.0.iter().filter(|(_, member, _)| *member).count());
        let (mut flagged, mut found) = (0, 0);
        let point = |equal: &[Entry]| {
            flagged += equal.len();
            found += equal.iter().filter(|(_, member, _)| *member).count();
            Flagged { threshold: equal[0].0, flagged, found }
        };
        let points = self.0.chunk_by(|one, other| one.0 == other.0).map(point).collect();
        (members > 0 && members < nodes).then_some(Curve { nodes, members, points })
    }
}

/// One class against all others: what is found by flagging the nodes with the largest probabilities of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of those in the class.
    pub members: usize,
    /// Every threshold that tells nodes apart, from the largest.
    pub points: Vec<Flagged>,
}

/// The nodes with at least some probability of the class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flagged {
    /// The probability.
    pub threshold: f32,
    /// The number of nodes.
    pub flagged: usize,
    /// The number of those in the class.
    pub found: usize,
}

impl Flagged {
    /// The share of the flagged nodes that are in the class.
    pub fn precision(&self) -> f64 {
        self.found as f64 / self.flagged as f64
    }
}

impl Curve {
    /// The share of the class that is found.
    pub fn recall(&self, point: &Flagged) -> f64 {
        point.found as f64 / self.members as f64
    }

    /// The share of the nodes that are flagged.
    pub fn share(&self, point: &Flagged) -> f64 {
        point.flagged as f64 / self.nodes as f64
    }

    /// How many times as frequent the class is among the flagged nodes as among all.
    pub fn lift(&self, point: &Flagged) -> f64 {
        point.precision() / self.base_rate()
    }

    /// The share of the class among all nodes: the precision of flagging at random.
    pub fn base_rate(&self) -> f64 {
        self.members as f64 / self.nodes as f64
    }

    /// The largest threshold that flags at least this share of the nodes.
    pub fn flagging(&self, share: f64) -> &Flagged {
        let wanted = (share * self.nodes as f64).ceil() as usize;
        self.first(|point| point.flagged >= wanted)
    }

    /// The largest threshold that finds at least this share of the class.
    pub fn finding(&self, recall: f64) -> &Flagged {
        let wanted = (recall * self.members as f64).ceil() as usize;
        self.first(|point| point.found >= wanted)
    }

    /// The smallest threshold that is at least this probability; `None` if no node has as much.
    pub fn at_least(&self, probability: f32) -> Option<&Flagged> {
        self.points[..self.points.partition_point(|point| point.threshold >= probability)].last()
    }

    /// The threshold with the largest F1, of equals the largest.
    pub fn best_f1(&self) -> &Flagged {
        let f1 = |point: &Flagged| 2.0 * point.found as f64 / (point.flagged + self.members) as f64;
        let mut best = &self.points[0];
        for point in &self.points[1..] {
            if f1(point) > f1(best) {
                best = point;
            }
        }
        best
    }

    /// The first point with enough, which only grows from point to point.
    fn first(&self, enough: impl Fn(&Flagged) -> bool) -> &Flagged {
        let at = self.points.partition_point(|point| !enough(point));
        &self.points[at.min(self.points.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(nodes: &[(f32, bool)]) -> Option<Ranking> {
        Ranked::new(nodes.iter().copied()).ranking(|_| 1)
    }

    #[test]
    fn a_class_without_members_or_without_others_has_no_ranking() {
        for nodes in [&[][..], &[(0.5, true), (0.1, true)], &[(0.5, false)]] {
            assert_eq!(ranking(nodes), None);
            assert_eq!(Ranked::new(nodes.iter().copied()).curve(), None);
        }
    }

    #[test]
    fn equal_scores_say_nothing() {
        let same: Vec<(f32, bool)> = (0..10).map(|node| (0.3, node < 4)).collect();
        let same = ranking(&same).expect("a ranking");
        assert_eq!((same.auroc, same.average_precision), (0.5, 0.4));
        let perfect = ranking(&[(0.9, true), (0.2, false), (0.8, true), (0.1, false)]);
        assert_eq!(perfect, Some(Ranking { auroc: 1.0, average_precision: 1.0 }));
    }

    /// A node that counts twice is as good as two of them, and one that counts zero times as none.
    #[test]
    fn counts_repeat_nodes() {
        let nodes = [(0.9, true), (0.8, false), (0.8, true), (0.4, false), (0.2, true)];
        let counts = [2u32, 1, 0, 3, 1];
        let repeated: Vec<(f32, bool)> =
            nodes.iter().zip(counts).flat_map(|(&node, count)| vec![node; count as usize]).collect();
        let counted = Ranked::new(nodes.into_iter()).ranking(|node| counts[node as usize]);
        assert_eq!(counted, ranking(&repeated));
        assert!(counted.is_some());
    }

    #[test]
    fn thresholds_are_found_by_what_they_flag_and_find() {
        let nodes = [(0.9, true), (0.7, false), (0.7, true), (0.6, false), (0.2, true), (0.1, false)];
        let curve = Ranked::new(nodes.into_iter()).curve().expect("a curve");
        let at = |point: &Flagged| (point.threshold, point.flagged, point.found);
        assert_eq!(at(curve.flagging(0.01)), (0.9, 1, 1));
        assert_eq!(at(curve.flagging(0.3)), (0.7, 3, 2), "equal scores come together");
        assert_eq!(at(curve.finding(1.0)), (0.2, 5, 3));
        assert_eq!(curve.at_least(0.5).map(at), Some((0.6, 4, 2)));
        assert_eq!(curve.at_least(0.95), None);
        assert_eq!(at(curve.best_f1()), (0.2, 5, 3));
        assert_eq!((curve.base_rate(), curve.lift(curve.flagging(0.01))), (0.5, 2.0));
    }
}
