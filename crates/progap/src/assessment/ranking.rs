//! How well scores put the members of a class before all others.

/// How well one class is ranked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranking {
    /// The probability that a member has a larger score than another node, equal scores counted half.
    pub auroc: f64,
    /// The mean over the members of the share of members among the nodes with at least their score.
    pub average_precision: f64,
}

/// The ranking of a class by one score for each node; nothing where all nodes are members, or none is.
pub(super) fn ranking(mut nodes: Vec<(f32, bool)>) -> Option<Ranking> {
    let members = nodes.iter().filter(|(_, member)| *member).count() as f64;
    let others = nodes.len() as f64 - members;
    if members == 0.0 || others == 0.0 {
        return None;
    }
    nodes.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
    let (mut seen, mut found, mut pairs, mut precision) = (0.0, 0.0, 0.0, 0.0);
    // Nodes with equal scores cannot be told apart: they come together.
    for equal in nodes.chunk_by(|one, other| one.0 == other.0) {
        let here = equal.iter().filter(|(_, member)| *member).count() as f64;
        let below = others - (seen - found) - (equal.len() as f64 - here);
        pairs += here * below + 0.5 * here * (equal.len() as f64 - here);
        (seen, found) = (seen + equal.len() as f64, found + here);
        precision += here * found / seen;
    }
    Some(Ranking { auroc: pairs / (members * others), average_precision: precision / members })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_without_members_or_without_others_has_no_ranking() {
        assert_eq!(ranking(vec![]), None);
        assert_eq!(ranking(vec![(0.5, true), (0.1, true)]), None);
        assert_eq!(ranking(vec![(0.5, false)]), None);
    }

    #[test]
    fn equal_scores_say_nothing() {
        let same = ranking((0..10).map(|node| (0.3, node < 4)).collect()).expect("a ranking");
        assert_eq!((same.auroc, same.average_precision), (0.5, 0.4));
        let perfect = ranking(vec![(0.9, true), (0.2, false), (0.8, true), (0.1, false)]);
        assert_eq!(perfect, Some(Ranking { auroc: 1.0, average_precision: 1.0 }));
    }
}
