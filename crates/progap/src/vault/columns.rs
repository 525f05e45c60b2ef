//! Where the values of number columns lie, in counts with Gaussian noise: for columns whose range nobody declares,
//! where rows are private.

use std::ops::Range;

use progap_graph::{NumberColumn, scale};
use progap_privacy::Event;
use progap_privacy::noise::{MAX_SIGMA, Quantiser, RoundedGaussian, choose_scale};

use super::noise::not_planned;
use super::{Asked, Noise, Private, Vault, VaultQuery};
use crate::mixing::splitmix;
use crate::plan::Plan;
use crate::query::Query;
use crate::ranks::{Partition, Sent};
use crate::rows::Rows;
use crate::scaling::{PLACE_BINS, SPREAD_BINS, Spread, difference_bin, place_bins, value_bin};
use crate::settings::{Level, Scaling, Settings};
use crate::{Error, Result};

/// The name of the query.
pub const COLUMN_COUNTS: &str = "column counts";

/// How often it is asked: how large values are and how far apart, then where they lie.
pub(crate) const COLUMN_ROUNDS: u64 = 2;

/// The noise of counts over that of an aggregation, each divided by its sensitivity: both rounds together cost a
/// fiftieth of an aggregation.
const NOISE: f64 = 10.0;

/// In each round a record is counted this many times in each column.
const COUNTED: usize = 2;

/// Whether a run asks for counts of values.
pub(crate) fn asks_for_columns(settings: &Settings) -> bool {
    settings.level == Level::Node && settings.scaling == Scaling::Noisy
}

/// The query with noise as large as [`NOISE`] times its sensitivity. Counts are divided by the root of how many of them
/// a record is in, so that the sensitivity is one, whatever the number of columns.
pub(crate) fn column_count() -> Result<Query> {
    let purpose = "values of number columns and their differences, counted with noise; over the root of how often a \
        record is counted";
    Ok(Query::new(COLUMN_COUNTS, purpose, Event::gaussian(NOISE, 1.0)?))
}

/// An upper bound on the counts of both rounds, for this many columns of any kind.
pub(crate) fn column_bins(columns: usize) -> u64 {
    (columns as u64).saturating_mul((SPREAD_BINS + PLACE_BINS) as u64)
}

/// The noise of a count, where a record is in this many: never less than what is charged.
fn noise_of_a_count(sigma: f64, columns: usize) -> f64 {
    (sigma * ((COUNTED * columns) as f64).sqrt().next_up()).next_up()
}

/// Refuses counts whose noise has no table, before anything is charged.
///
/// # Errors
/// Too much noise.
pub(crate) fn check_column_noise(plan: &Plan, columns: usize) -> Result<()> {
    match plan.queries.get(COLUMN_COUNTS).map(|query| &query.event) {
        Some(Event::Gaussian { sigma, .. }) if noise_of_a_count(*sigma, columns) >= MAX_SIGMA => {
            Err(Error::out_of_range(
                "scaling",
                format!("noisy, over {columns} number columns with this budget"),
                "single, or public bounds of the columns: noise would drown the counts",
            ))
        }
        _ => Ok(()),
    }
}

/// The first round of noisy counts: how large values of number columns are, and how far apart.
///
/// # Proof definition
/// Two rounds of counts over all nodes. In each, and in each of `c` columns, a record is in two bins at most: in the
/// first round that of its value, and that of the difference to its partner, where both have a value; in the second a
/// coarse and a fine bin of its value. Who is whose partner follows from the number of nodes, and nobody has two. So
/// adding or removing a record moves `2 c` counts by one at most: by `sqrt(2 c)` in L2 norm, times an integer scale
/// exactly. The noise has `sqrt(2 c)` times the deviation of the plan's query, rounded up, and each round is
/// post-processing of the Gaussian mechanism with sensitivity 1 and the noise of the plan's query. The bins of the
/// second round follow from the answers of the first ([proof](progap_privacy::proofs::columns)).
#[derive(Debug, Clone, Copy)]
pub struct ValueSpreads;

/// The second round, where values lie, for what the first one said. Its proof definition is that of [`ValueSpreads`].
#[derive(Debug, Clone, Copy)]
pub struct ValuePlaces<'s> {
    /// A unit for each column.
    pub(crate) spreads: &'s [Spread],
}

impl VaultQuery for ValueSpreads {
    type Answer = ColumnCounts;

    fn spec(&self, private: &Private) -> Result<Asked> {
        counts_of(private, SPREAD_BINS)
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<ColumnCounts> {
        let pairs = partners(private.nodes());
        let others = private.partners_elsewhere(&pairs)?;
        private.count_columns(noise, 1, SPREAD_BINS, |rows, own, numbers, count| {
            let (mut one, mut other, mut others) = (vec![], vec![], others.into_iter());
            let here = |node: Option<u32>| node.filter(|&node| own.contains(&(node as usize)));
            for &[first, second] in &pairs {
                values_of(rows, own.start, numbers, here(first), &mut one);
                values_of(rows, own.start, numbers, here(second), &mut other);
                let values = one.iter().chain(&other).enumerate();
                values.for_each(|(at, value)| {
                    value.iter().for_each(|&value| count(at % numbers.len(), value_bin(value)));
                });
                if here(first).is_some() && second.is_some() && here(second).is_none() {
                    other.clear();
                    other.extend(others.by_ref().take(numbers.len()));
                }
                for (column, (&a, &b)) in one.iter().zip(&other).enumerate() {
                    if let (Some(a), Some(b)) = (a, b) {
                        count(column, difference_bin(a - b));
                    }
                }
            }
        })
    }
}

impl VaultQuery for ValuePlaces<'_> {
    type Answer = ColumnCounts;

    fn spec(&self, private: &Private) -> Result<Asked> {
        counts_of(private, PLACE_BINS)
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<ColumnCounts> {
        private.count_columns(noise, 2, PLACE_BINS, |rows, own, numbers, count| {
            let mut values = vec![];
            for node in own.clone() {
                values_of(rows, own.start, numbers, Some(node as u32), &mut values);
                for (column, (value, spread)) in values.iter().zip(self.spreads).enumerate() {
                    if let (Some(value), Some(unit)) = (value, spread.unit()) {
                        place_bins(*value, unit).into_iter().for_each(|bin| count(column, bin));
                    }
                }
            }
        })
    }
}

/// Noisy counts of a round, as many for each column, one column after the other, and the deviation of their noise.
pub(crate) type ColumnCounts = (Vec<f32>, f64);

fn counts_of(private: &Private, bins: usize) -> Result<Asked> {
    Ok(Asked::new(column_count()?, private.unbounded_numeric_columns.len() * bins))
}

impl Vault {
    /// The maps that bring the number columns to scale of which no range is declared, from noisy counts of their
    /// values.
    ///
    /// # Errors
    /// As [`Vault::ask`].
    pub fn column_maps(&mut self) -> Result<Vec<NumberColumn>> {
        let numbers = self.private.unbounded_numeric_columns.clone();
        let (counts, sigma) = self.ask(ValueSpreads)?;
        let spreads: Vec<Spread> =
            counts.chunks_exact(SPREAD_BINS).map(|counts| Spread::of(counts, sigma)).collect();
        let (counts, sigma) = self.ask(ValuePlaces { spreads: &spreads })?;
        let maps = spreads.iter().zip(counts.chunks_exact(PLACE_BINS));
        let maps = maps.map(|(spread, counts)| spread.map(counts, sigma));
        Ok(numbers
            .into_iter()
            .zip(maps)
            .map(|(number, map)| NumberColumn { map: Some(map), ..number })
            .collect())
    }

    /// From now on the rows hold these columns as the maps bring them to scale. Each row changes by itself, and the
    /// maps left the vault before: this asks nothing.
    ///
    /// # Errors
    /// Maps of other columns than those that have none yet.
    pub fn bring_to_scale(&mut self, maps: &[NumberColumn]) -> Result<()> {
        let open = |number: &NumberColumn| NumberColumn { map: None, ..number.clone() };
        if !maps.iter().map(open).eq(self.private.unbounded_numeric_columns.iter().cloned()) {
            return Err(Error::internal("the maps are of other columns"));
        }
        let Rows { features, labels, split, classes } = self.private.rows.clone();
        let features = scale::apply(features, labels.len(), maps)?;
        self.private.rows = Rows::new(features, labels, split, classes)?;
        self.private.unbounded_numeric_columns.clear();
        Ok(())
    }
}

impl Private {
    /// Where nodes lie in several ranks: what the partners have that lie in others, of the own nodes that come first in
    /// their pair, in the order of the pairs.
    fn partners_elsewhere(&self, pairs: &[[Option<u32>; 2]]) -> Result<Vec<Option<f64>>> {
        let Some(part) = &self.part else { return Ok(vec![]) };
        let (own, me, columns) = (part.own(), part.ranks.rank(), self.unbounded_numeric_columns.len());
        let apart =
            pairs.iter().filter_map(|pair| Some([pair[0]?, pair[1]?])).filter_map(|[first, second]| {
                let ranks = [part.rank_of(first), part.rank_of(second)];
                (ranks[0] != ranks[1] && ranks.contains(&me)).then_some((ranks, second))
            });
        let (mut to, mut from, mut values) = (vec![vec![]; part.ranks.size()], vec![], vec![]);
        for ([first, second], node) in apart {
            if first == me {
                from.push(second);
            } else {
                values_of(&self.rows, own.start, &self.unbounded_numeric_columns, Some(node), &mut values);
                let exact = values.iter().map(|value| value.map_or(f32::NAN, |value| value as f32));
                to[first].extend(exact.flat_map(f32::to_le_bytes));
            }
        }
        let come = part.ranks.exchange(Sent::Columns, to)?;
        let come: Vec<Vec<f32>> = come.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect();
        let mut come: Vec<_> = come.into_iter().map(Vec::into_iter).collect();
        let mut found = Vec::with_capacity(from.len() * columns);
        for rank in from {
            let before = found.len();
            found.extend(come[rank].by_ref().take(columns).map(|v| (!v.is_nan()).then(|| f64::from(v))));
            if found.len() - before != columns {
                return Err(Error::rank("a rank sent values that do not fit"));
            }
        }
        Ok(found)
    }

    /// Noisy counts of a round, this many in each column.
    fn count_columns(
        &self,
        noise: &mut Noise,
        round: u64,
        bins: usize,
        fill: impl FnOnce(&Rows, Range<usize>, &[NumberColumn], &mut dyn FnMut(usize, usize)),
    ) -> Result<ColumnCounts> {
        let (sigma, _) = noise.gaussian()?.ok_or_else(not_planned)?;
        let columns = self.unbounded_numeric_columns.len();
        let sigma = noise_of_a_count(sigma, columns.max(1));
        // Where noise is large, whole counts are fine enough.
        let scale = choose_scale(sigma, 1.0).map_or(1, |(_, scale)| scale);
        let quantiser = Quantiser::<i16>::new(scale)?;
        let mut counts = vec![0i64; columns * bins];
        let own = self.part.as_ref().map_or(0..self.rows.labels().len(), Partition::own);
        fill(&self.rows, own, &self.unbounded_numeric_columns, &mut |column, bin| {
            counts[column * bins + bin] += i64::from(scale);
        });
        if let Some(part) = &self.part {
            counts = part.added_up(&counts)?;
        }
        let query = noise.query(&format!("{COLUMN_COUNTS} {round}"))?;
        let table = RoundedGaussian::for_messages(sigma, quantiser.scale())?;
        let noisy = table.release_owned(counts, quantiser.scale(), query, rayon::current_num_threads());
        Ok((noisy.into_parts().0, sigma))
    }
}

/// All nodes, two by two, in an order that has nothing to do with that of the table; one stays alone where their number
/// is odd.
pub fn partners(nodes: usize) -> Vec<[Option<u32>; 2]> {
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    order.sort_unstable_by_key(|&node| splitmix(node));
    order.chunks(2).map(|pair| [pair.first().copied(), pair.get(1).copied()]).collect()
}

/// A node's value in each of the columns, of rows that begin with some node; nothing where the value is missing, or
/// where there is no node.
fn values_of(
    rows: &Rows,
    first: usize,
    numbers: &[NumberColumn],
    node: Option<u32>,
    values: &mut Vec<Option<f64>>,
) {
    values.clear();
    let Some(node) = node else { return values.resize(numbers.len(), None) };
    values.resize(numbers.len(), Some(0.0));
    let mut missing = vec![];
    for (column, value) in rows.features.row(node as usize - first).filter(|(_, value)| *value != 0.0) {
        match numbers.binary_search_by_key(&(column as u32), |number| number.column) {
            Ok(at) => values[at] = Some(f64::from(value)),
            Err(_) => missing.push(column as u32),
        }
    }
    for (number, value) in numbers.iter().zip(values) {
        if number.missing.is_some_and(|column| missing.binary_search(&column).is_ok()) {
            *value = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use progap_graph::scale::{Curve, Map};
    use progap_graph::{Dataset, DatasetParts, Features};
    use progap_privacy::noise::Randomness;

    use super::super::tests::{SIZES, data, distance};
    use super::*;
    use crate::settings::MethodKind;

    const COLUMNS_HERE: usize = 3;

    fn settings() -> Settings {
        let usual = Settings::of(MethodKind::ProgapLabels, Level::Node);
        Settings { scaling: Scaling::Noisy, batch_size: 50, ..usual }
    }

    fn plan() -> Plan {
        Plan::new(&settings().checked().expect("settings"), SIZES).expect("a plan")
    }

    /// Three number columns, the second with an indicator for missing values; what each node has, or that it has
    /// nothing.
    fn table(row: impl Fn(usize) -> Option<[f32; 3]>) -> Dataset {
        let parts = data().into_parts();
        let nodes = parts.graph.nodes();
        let mut values = Vec::with_capacity(4 * nodes);
        for node in 0..nodes {
            values.extend(row(node).map_or([0.0, 0.0, 1.0, 0.0], |[a, b, c]| [a, b, 0.0, c]));
        }
        let number = |column: usize| NumberColumn::new(column);
        Dataset::new(DatasetParts {
            features: Features::dense(nodes, 4, values).expect("features"),
            feature_names: vec![],
            // Without a value in any column a record is not counted at all.
            numbers: [0, 1, 3].map(|column| NumberColumn { missing: Some(2), ..number(column) }).to_vec(),
            ..parts
        })
        .expect("a data set")
    }

    fn plain(node: usize) -> [f32; 3] {
        let z = (node * 7919 % 300) as f32 / 100.0 - 1.5;
        [40_000.0 + 9_000.0 * z, 1e-6 * z, (2.0 * z).exp()]
    }

    fn vault(dataset: Dataset, plan: Plan, seed: u64) -> Vault {
        Vault::open(dataset, &settings(), plan, Randomness::from_seed(seed)).expect("a vault")
    }

    /// The noise depends on the seed alone here: what differs between two answers is what the record moves.
    #[test]
    fn a_record_moves_the_counts_by_the_root_of_twice_the_columns() {
        let bound = ((COUNTED * COLUMNS_HERE) as f64).sqrt();
        let spreads: Vec<Spread> =
            [7_000.0, 1e-6, 1.0].map(|unit| Spread::Unit { unit, outliers: false }).to_vec();
        for without in [0usize, 7, 150, 299] {
            let round = |present: bool, second: bool| {
                let data = table(|node| (present || node != without).then(|| plain(node)));
                let mut vault = vault(data, plan(), 1);
                let first = vault.ask(ValueSpreads).expect("counts").0;
                let places = ValuePlaces { spreads: &spreads };
                if second { vault.ask(places).expect("counts").0 } else { first }
            };
            for second in [false, true] {
                let moved = distance(&round(true, second), &round(false, second));
                assert!((moved - bound).abs() < 1e-3, "{without} {second}: {moved}, not {bound}");
            }
        }
    }

    /// The noise is that of the plan, times the root of how often a record is counted, and the plan pays for both
    /// rounds.
    #[test]
    fn counts_of_values_have_the_noise_that_is_charged() {
        let plan = plan();
        let query = plan.queries.get(COLUMN_COUNTS).expect("planned");
        let sigma = NOISE * plan.aggregate_multiplier;
        assert_eq!(plan.queries.count(COLUMN_COUNTS), COLUMN_ROUNDS);
        assert!(
            matches!(query.event, Event::Gaussian { sigma: s, sensitivity } if (s / sigma - 1.0).abs() < 1e-9 && sensitivity == 1.0)
        );
        let mut once = vault(table(|_| None), plan.clone(), 2);
        let (first, said) = once.ask(ValueSpreads).expect("counts");
        let spreads = vec![Spread::Unknown; COLUMNS_HERE];
        let (second, also) = once.ask(ValuePlaces { spreads: &spreads }).expect("counts");
        let charged = sigma * ((COUNTED * COLUMNS_HERE) as f64).sqrt();
        assert!(said >= charged && also == said && said < charged * (1.0 + 1e-9));
        for counts in [first, second] {
            // Nobody has a value, so that this is noise alone: thousands of counts.
            let square = counts.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / counts.len() as f64;
            let tolerance = 5.0 / (2.0 * counts.len() as f64).sqrt();
            assert!((square.sqrt() / charged - 1.0).abs() < tolerance, "{} {charged}", square.sqrt());
        }
        assert_eq!(once.asked().count(COLUMN_COUNTS), COLUMN_ROUNDS);
        assert!(once.ask(ValueSpreads).is_err(), "the same noise twice");
        let without = Settings { scaling: Scaling::Single, ..settings() };
        let cheaper = Plan::new(&without.checked().expect("settings"), SIZES).expect("a plan");
        assert!(plan.aggregate_multiplier > cheaper.aggregate_multiplier, "it costs something");
        assert!(plan.aggregate_multiplier < 1.02 * cheaper.aggregate_multiplier, "and not much");
        assert!(vault(table(|_| None), cheaper, 2).ask(ValueSpreads).is_err(), "not planned");
    }

    #[test]
    fn rows_are_brought_to_scale_once_each_by_itself() {
        let plan = Plan { noise_values: u64::MAX, ..plan() };
        let data = table(|node| (node != 3).then(|| plain(node)));
        let mut vault = vault(data, plan, 3);
        let standard =
            |mean, deviation| Map::Standard { curve: Curve::Straight, mean, deviation, bounds: None };
        let maps: Vec<NumberColumn> = vault.column_maps().expect("maps");
        assert!(vault.bring_to_scale(&maps[1..]).is_err(), "of other columns");
        let maps: Vec<NumberColumn> =
            maps.into_iter().map(|number| NumberColumn { map: Some(standard(1.0, 2.0)), ..number }).collect();
        vault.bring_to_scale(&maps).expect("scaled");
        let row =
            |node: usize| vault.private.rows.features.row(node).map(|entry| entry.1).collect::<Vec<f32>>();
        let [a, b, c] = plain(9).map(|value| (value - 1.0) / 2.0);
        assert_eq!(row(9), [a, b, 0.0, c]);
        assert_eq!(row(3), [0.0, 0.0, 1.0, 0.0], "nothing where the value is missing");
        assert!(vault.bring_to_scale(&maps).is_err(), "twice");
    }

    #[test]
    fn everyone_has_one_partner_at_most() {
        for nodes in [0, 1, 2, 301] {
            let mut all: Vec<u32> = partners(nodes).into_iter().flatten().flatten().collect();
            all.sort_unstable();
            assert_eq!(all, (0..nodes as u32).collect::<Vec<_>>());
            assert_eq!(partners(nodes).len(), nodes.div_ceil(2));
        }
    }
}
