//! The delta of a guarantee: chosen where none is given, and refused where it would mean nothing.
//!
//! A delta of one over the number of records allows a release that shows one record as it is. The rule is a tenth of
//! that at most. The number of edges is private: it is read only as the power of ten that it is rounded up to, so that
//! neither a delta that was chosen nor a refusal tells more of it than this order of magnitude, which the statement
//! lists as public ([proof](progap_privacy::proofs::delta)). The number of nodes is public: there delta has one digit, which at a small
//! epsilon is worth up to a point of accuracy.

use crate::plan::{PublicFacts, automatic_delta};
use crate::settings::{DeltaRule, Level, Settings};
use crate::{Error, Result};

/// A delta as people write it.
///
/// ```
/// assert_eq!(progap::delta::written(1e-7), "1e-7");
/// assert_eq!(progap::delta::written(0.0), "0");
/// ```
pub fn written(delta: f64) -> String {
    if delta == 0.0 { "0".into() } else { format!("{delta:e}") }
}

/// How many zeros has the smallest power of ten that is not below the number of records.
fn zeros(records: usize) -> usize {
    if records <= 1 { 0 } else { (records - 1).to_string().len() }
}

/// The number that is written with this many zeros after the point: the nearest to it that there is.
fn negative_power(zeros: usize) -> f64 {
    format!("1e-{zeros}").parse().unwrap_or(0.0)
}

/// The largest delta that is accepted for this many records: one over their number, rounded down to a power of ten.
///
/// ```
/// use progap::delta;
///
/// assert_eq!([delta::largest(13_000), delta::largest(10_000)], [1e-5, 1e-4]);
/// ```
pub fn largest(records: usize) -> f64 {
    negative_power(zeros(records))
}

/// The usual delta for this many records: a tenth of one over their number, rounded down to one digit where that
/// number is public, at node level, and to a power of ten elsewhere.
///
/// ```
/// use progap::delta;
/// use progap::settings::Level;
///
/// assert_eq!([13_000, 10_000].map(|records| delta::usual(Level::Edge, records)), [1e-6, 1e-5]);
/// assert_eq!([13_000, 10_000].map(|records| delta::usual(Level::Node, records)), [7e-6, 1e-5]);
/// ```
pub fn usual(level: Level, records: usize) -> f64 {
    let zeros = zeros(records);
    with_digit(if level == Level::Node { digit(zeros, records) } else { 1 }, zeros + 1)
}

/// How many times `10^-zeros` goes into one over the number of records: from 1 to 9, as these are at most `10^zeros`
/// and more than a tenth of it.
fn digit(zeros: usize, records: usize) -> u128 {
    10u128.saturating_pow(zeros as u32) / records.max(1) as u128
}

/// The number that is written with this digit and exponent: the nearest to it that there is.
fn with_digit(digit: u128, zeros: usize) -> f64 {
    format!("{digit}e-{zeros}").parse().unwrap_or(0.0)
}

/// The number of records that a run protects: undirected edges, directed edges, or all nodes.
pub fn records(settings: &Settings, sizes: PublicFacts) -> usize {
    match settings.level {
        Level::None => 0,
        Level::Edge if settings.undirected => sizes.edges.div_ceil(2),
        Level::Edge => sizes.edges,
        Level::Node => sizes.nodes,
    }
}

/// At edge level the number of records is private and the number of nodes is not. At least this many records are
/// counted, however few there are, so that whoever has a release alone can tell a delta that no run would have: one
/// record for ten nodes.
fn least_records(settings: &Settings, sizes: PublicFacts) -> usize {
    if settings.level == Level::Edge { sizes.nodes.div_ceil(10) } else { 0 }
}

/// The number of records by which delta is judged.
fn counted(settings: &Settings, sizes: PublicFacts) -> usize {
    records(settings, sizes).max(least_records(settings, sizes))
}

/// The deltas that a release can have by what is public in it: the smallest and the largest. At node level the number
/// of records is public, so that a delta that was not given has one value; at edge level it is between the fewest
/// records that are counted and an edge between every two nodes.
pub(crate) fn range(settings: &Settings, sizes: PublicFacts) -> (f64, f64) {
    let fewest = PublicFacts { edges: 0, ..sizes };
    let most = PublicFacts { edges: sizes.nodes.saturating_mul(sizes.nodes.saturating_sub(1)), ..sizes };
    match settings.delta {
        Some(delta) if !matters(settings) => (delta, delta),
        Some(_) => (0.0, largest(counted(settings, fewest))),
        None => (of(settings, most), of(settings, fewest)),
    }
}

/// The largest number of records for which the rule gives a delta, where the rule gives it at all.
pub(crate) fn implied(delta: f64, settings: &Settings) -> Option<u64> {
    let zeros = match (settings.delta, settings.delta_rule) {
        // Above one over the records none is accepted.
        (Some(_), _) => return Some((1.0 / delta) as u64),
        (None, DeltaRule::Records) => {
            let digits = if settings.level == Level::Node { 1..=9 } else { 1..=1 };
            let mut written = (1..=20).flat_map(|zeros| digits.clone().map(move |digit| (digit, zeros)));
            let (digit, zeros) = written.find(|&(digit, zeros)| with_digit(digit, zeros) == delta)?;
            return 10u64.checked_pow(zeros as u32 - 1).map(|records| records / digit as u64);
        }
        (None, DeltaRule::Published) => (1..=20).find(|&zeros| 10f64.powi(-zeros) == delta)? as usize,
    };
    10u64.checked_pow(zeros as u32)
}

/// The name of the records.
pub fn records_are(settings: &Settings) -> &'static str {
    match settings.level {
        Level::Edge if settings.undirected => "undirected edges",
        Level::None | Level::Edge => "directed edges",
        Level::Node => "nodes",
    }
}

/// The delta of a run: as given, or by the settings' rule. Zero where nothing with a delta is asked.
pub fn of(settings: &Settings, sizes: PublicFacts) -> f64 {
    match (settings.delta, settings.delta_rule, settings.level) {
        _ if !matters(settings) => settings.delta.unwrap_or(0.0),
        (Some(delta), _, _) => delta,
        (None, DeltaRule::Records, level) => usual(level, counted(settings, sizes)),
        (None, DeltaRule::Published, Level::Node) => automatic_delta(sizes.train_nodes),
        (None, DeltaRule::Published, _) => automatic_delta(sizes.edges.max(least_records(settings, sizes))),
    }
}

/// Whether anything is asked whose guarantee has a delta.
pub fn matters(settings: &Settings) -> bool {
    match settings.level {
        Level::None => false,
        Level::Edge => !settings.method.can().is_pure && settings.touches_edges(),
        Level::Node => true,
    }
}

/// Refuses a given delta above one over the number of records. The published rule is kept as it is, and said.
///
/// # Errors
/// Such a delta.
pub fn check(settings: &Settings, sizes: PublicFacts) -> Result<()> {
    let most = largest(counted(settings, sizes));
    match settings.delta.filter(|&delta| matters(settings) && delta > most) {
        None => Ok(()),
        Some(delta) => Err(Error::out_of_range(
            "delta",
            format!("{delta:e}"),
            format!(
                "at most {most:e}, that is one over the number of {} rounded up to a power of ten: above that \
                 nothing would be guaranteed",
                records_are(settings)
            ),
        )),
    }
}

/// A remark on a delta that is accepted but above the usual one.
pub fn caution(settings: &Settings, sizes: PublicFacts) -> Option<String> {
    let (delta, count) = (of(settings, sizes), counted(settings, sizes));
    let (usual, most) = (usual(settings.level, count), largest(count));
    if !matters(settings) || delta <= usual {
        return None;
    }
    let what = records_are(settings);
    let how = if delta > most { "above" } else { "near" };
    let why = match (settings.delta, settings.delta_rule) {
        (None, DeltaRule::Published) => " (the published rule, which counts training nodes or digits)",
        _ => "",
    };
    Some(format!(
        "delta {delta:e} is {how} one over the number of {what}{why}: a guarantee that fails for one record in so \
         many is \
         weak; {usual:e} is the usual one"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::MethodKind;

    #[test]
    fn the_usual_delta_is_at_most_a_tenth_of_one_over_the_records_and_a_power_of_ten() {
        for records in [1usize, 2, 9, 10, 11, 99, 100, 101, 9_750, 13_000, 999_999, 1_000_000, 1_000_001] {
            let (usual, most) = (usual(Level::Edge, records), largest(records));
            assert!(usual * records as f64 <= 0.1 * (1.0 + 1e-12), "{records}: {usual:e}");
            assert!(
                usual * records as f64 > 0.01 * (1.0 - 1e-12),
                "not smaller than it has to be: {records}"
            );
            assert!(most * records as f64 <= 1.0 + 1e-12 && (most / usual - 10.0).abs() < 1e-9, "{records}");
            assert!(format!("{usual:e}").starts_with("1e-"), "{usual:e}");
        }
    }

    /// Where the number of records is public, one digit more of it is used, and nothing above a tenth of one over it.
    #[test]
    fn at_node_level_delta_has_one_digit_and_is_the_largest_such() {
        for records in [1usize, 2, 3, 9, 10, 11, 99, 101, 2_708, 9_750, 13_000, 22_900, 999_999, 1_000_001] {
            let chosen = usual(Level::Node, records);
            let (mantissa, exponent) =
                format!("{chosen:e}").split_once('e').map(|(m, e)| (m.to_owned(), e.to_owned())).expect("e");
            let digit: u128 = mantissa.parse().expect("one digit");
            let zeros: u32 = exponent.trim_start_matches('-').parse().expect("zeros");
            let fits = |digit: u128| 10 * records as u128 * digit <= 10u128.pow(zeros);
            assert!((1..=9).contains(&digit) && fits(digit), "{records}: {chosen:e}");
            assert!(!fits(digit + 1), "{records}: {chosen:e} is not the largest");
            let settings = Settings::of(MethodKind::ProgapViews, Level::Node);
            let most = implied(chosen, &settings).expect("by the rule") as usize;
            assert!(most >= records && usual(Level::Node, most) == chosen, "{records}: {most}");
        }
        let settings = Settings::of(MethodKind::ProgapViews, Level::Node);
        assert_eq!(implied(1.5e-6, &settings), None, "of two digits");
    }

    /// 13,000 nodes of which 9,750 train: the published rule gives a delta above one over the records.
    #[test]
    fn every_node_is_a_record_at_node_level() {
        let sizes = PublicFacts { train_nodes: 9_750, nodes: 13_000, ..PublicFacts::default() };
        for method in [MethodKind::ProgapLabels, MethodKind::Gap, MethodKind::Mlp, MethodKind::DpGnn] {
            let settings = Settings::of(method, Level::Node);
            assert_eq!(of(&settings, sizes), 7e-6, "{method}");
            assert_eq!(of(&settings.clone().with_published_guarantee(), sizes), 1e-4, "{method}");
            let given = |delta| Settings { delta: Some(delta), ..settings.clone() };
            assert!(caution(&given(7e-6), sizes).is_none() && caution(&given(8e-6), sizes).is_some());
            check(&given(1e-5), sizes).expect("accepted");
            let refusal = check(&given(1.1e-5), sizes).expect_err("refused").to_string();
            assert!(refusal.contains("at most 1e-5") && refusal.contains("nodes"), "{refusal}");
        }
    }

    /// Whoever has a release alone knows its nodes and not its edges.
    #[test]
    fn what_is_public_bounds_every_delta_that_a_run_can_have() {
        for (nodes, edges) in
            [(2, 1), (5, 0), (300, 3_000), (300, 4), (15_000, 9_000), (1_000_000, 17), (2_000, 1_000_000)]
        {
            for undirected in [false, true] {
                for rule in [DeltaRule::Records, DeltaRule::Published] {
                    let sizes = PublicFacts { nodes, edges, ..PublicFacts::default() };
                    let settings = Settings {
                        undirected,
                        delta_rule: rule,
                        ..Settings::of(crate::MethodKind::ProgapLabels, Level::Edge)
                    };
                    let (least, most) = range(&settings, PublicFacts { edges: 1, ..sizes });
                    let chosen = of(&settings, sizes);
                    assert!((least..=most).contains(&chosen), "{nodes} {edges} {rule:?}: {chosen:e}");
                    let records = implied(chosen, &settings).expect("a power of ten");
                    assert!(records >= records_of(&settings, sizes), "{nodes} {edges} {rule:?}: {records}");
                    let given = Settings { delta: Some(largest(counted(&settings, sizes))), ..settings };
                    check(&given, sizes).expect("accepted");
                    assert!(given.delta <= Some(range(&given, PublicFacts { edges: 1, ..sizes }).1));
                }
            }
        }
        let sizes = PublicFacts { nodes: 2_000, edges: 1, ..PublicFacts::default() };
        assert_eq!(range(&Settings::of(crate::MethodKind::ProgapLabels, Level::Edge), sizes).1, 1e-4);
        assert_eq!(implied(0.99, &Settings::of(crate::MethodKind::ProgapLabels, Level::Edge)), None);
    }

    fn records_of(settings: &Settings, sizes: PublicFacts) -> u64 {
        records(settings, sizes) as u64
    }

    /// A refusal depends on the number of edges through its order of magnitude alone, as the default does.
    #[test]
    fn one_edge_more_or_less_changes_no_refusal_within_an_order_of_magnitude() {
        for undirected in [false, true] {
            let settings = Settings {
                undirected,
                delta: Some(1e-4),
                ..Settings::of(crate::MethodKind::ProgapLabels, Level::Edge)
            };
            let twice = if undirected { 2 } else { 1 };
            let outcomes: Vec<bool> = [1_001, 3_000, 9_999, 10_000, 10_001]
                .iter()
                .map(|edges| {
                    let sizes = PublicFacts { edges: twice * edges, ..PublicFacts::default() };
                    check(&settings, sizes).is_ok()
                })
                .collect();
            assert_eq!(outcomes, [true, true, true, true, false]);
        }
    }
}
