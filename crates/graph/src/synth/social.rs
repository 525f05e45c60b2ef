//! The parameters of a synthetic social network, and how it is made from them.

use std::path::Path;

use half::f16;
use rayon::prelude::*;

use super::assemble::assemble;
use super::column::{Column, ColumnSampler, one_hot};
use super::dense::DenseRows;
use super::model::{Model, People, Tie};
use super::random::{Purpose, Stream, exp};
use crate::store::{self, MadeRows};
use crate::{Buffer, Dataset, DatasetParts, Features, Graph, Problem, Result, UNLABELLED, room};

/// A class of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// How frequent it is, relative to the other classes.
    pub share: f64,
    /// How many neighbours its nodes have, relative to the other classes.
    pub sociability: f64,
    /// How large a share of their neighbours is of other classes, relative to the other classes.
    pub openness: f64,
}

impl Class {
    /// A class like the others.
    pub fn new(name: impl Into<String>) -> Class {
        Class { name: name.into(), share: 1.0, sociability: 1.0, openness: 1.0 }
    }
}

/// A synthetic social network: a degree-corrected block model with ordered classes, communities and
/// categorical attributes.
///
/// Every undirected edge starts at a node drawn in proportion to its weight (log-normal with a long lower tail, cut
/// off on both sides) and ends, in proportion to weight again, at a node
/// - of the same value of an attribute and the same community ([`Column::tie`]), or else
/// - of a class that depends on the first node's: mostly its own ([`SocialNetwork::homophily`]), neighbouring
///   classes (as years of entry are) more often than distant ones, mostly in the same community
///   ([`SocialNetwork::locality`]).
///
/// A share of the nodes ([`SocialNetwork::drift`]) has its neighbours in a neighbouring class instead of its own,
/// which is why no method predicts every class from the neighbours.
///
/// The same parameters give the same data set, on any machine and any number of threads. Time and memory grow
/// linearly with the edges, which are never held as a list.
///
/// ```
/// use progap_graph::synth::SocialNetwork;
///
/// let network = SocialNetwork::new(2_000).mean_degree(20.0).classes(4).homophily(0.7).seed(3).generate()?;
/// assert_eq!((network.nodes(), network.classes()), (2_000, 4));
/// assert!(network.graph().is_undirected());
/// assert!((network.homophily().unwrap() - 0.7).abs() < 0.03);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SocialNetwork {
    name: String,
    nodes: usize,
    size: Size,
    classes: Vec<Class>,
    communities: usize,
    locality: f64,
    homophily: f64,
    drift: f64,
    spread: f64,
    features: Attributes,
    dense: usize,
    labelled: f64,
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Size {
    Edges(usize),
    MeanDegree(f64),
}

#[derive(Debug, Clone, PartialEq)]
enum Attributes {
    Columns(Vec<Column>),
    Count(usize),
}

impl SocialNetwork {
    /// More nodes than this are refused.
    pub const MAX_NODES: usize = 1 << 28;
    /// More directed edges than this are refused.
    pub const MAX_EDGES: usize = 1 << 33;
    /// More one-hot features than this are refused.
    pub const MAX_FEATURES: usize = 1 << 20;
    /// More classes than this are refused.
    pub const MAX_CLASSES: usize = 1024;

    /// A network of this many nodes; everything else has a default.
    pub fn new(nodes: usize) -> SocialNetwork {
        SocialNetwork {
            name: "synthetic".into(),
            nodes,
            size: Size::MeanDegree(50.0),
            classes: numbered_classes(6),
            communities: 1,
            locality: 0.95,
            homophily: 0.55,
            drift: 0.1,
            spread: 0.8,
            features: Attributes::Count(100),
            dense: 0,
            labelled: 1.0,
            seed: 0,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The mean number of neighbours; 50 by default.
    #[must_use]
    pub fn mean_degree(mut self, degree: f64) -> Self {
        self.size = Size::MeanDegree(degree);
        self
    }

    /// The number of directed edges, two for each undirected edge, instead of the mean degree. The network comes out
    /// within 2 % of it (small networks, of some hundred nodes, within 10 %).
    #[must_use]
    pub fn edges(mut self, edges: usize) -> Self {
        self.size = Size::Edges(edges);
        self
    }

    /// This many classes of the same size, named 0, 1 and so on; 6 by default.
    #[must_use]
    pub fn classes(mut self, classes: usize) -> Self {
        // One more than allowed is enough to be refused: no list of a billion names first.
        self.classes = numbered_classes(classes.min(Self::MAX_CLASSES + 1));
        self
    }

    /// Classes that differ, in their order.
    #[must_use]
    pub fn class_profiles(mut self, classes: Vec<Class>) -> Self {
        self.classes = classes;
        self
    }

    /// The number of communities, such as schools: contiguous ranges of nodes of the same size; 1 by default.
    #[must_use]
    pub fn communities(mut self, communities: usize) -> Self {
        self.communities = communities;
        self
    }

    /// The share of undirected edges that stay in the community (apart from the few that come back by chance);
    /// 0.95 by default.
    #[must_use]
    pub fn locality(mut self, share: f64) -> Self {
        self.locality = share;
        self
    }

    /// The share of undirected edges between nodes of the same class; 0.55 by default.
    #[must_use]
    pub fn homophily(mut self, share: f64) -> Self {
        self.homophily = share;
        self
    }

    /// The share of nodes whose neighbours are those of a neighbouring class (half as many in the first and the last
    /// class, which have one neighbour); 0.1 by default.
    #[must_use]
    pub fn drift(mut self, share: f64) -> Self {
        self.drift = share;
        self
    }

    /// How much degrees differ: the standard deviation of the logarithm of the upper half's weights, from 0 (all
    /// alike) to 2; 0.8, as at Facebook100 schools, by default.
    #[must_use]
    pub fn spread(mut self, spread: f64) -> Self {
        self.spread = spread;
        self
    }

    /// The attributes that become one-hot features.
    #[must_use]
    pub fn columns(mut self, columns: Vec<Column>) -> Self {
        self.features = Attributes::Columns(columns);
        self
    }

    /// This many one-hot features, over three attributes: one linked to the class, one that forms edges, one
    /// that does both; 100 by default.
    #[must_use]
    pub fn feature_count(mut self, features: usize) -> Self {
        self.features = Attributes::Count(features);
        self
    }

    /// This many dense columns in half precision, around a point for each class, instead of one-hot features.
    #[must_use]
    pub fn dense(mut self, columns: usize) -> Self {
        self.dense = columns;
        self
    }

    /// The share of nodes whose class is known; all by default.
    #[must_use]
    pub fn labelled(mut self, share: f64) -> Self {
        self.labelled = share;
        self
    }

    /// The seed; 0 by default. It is for experiments and protects nothing.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Makes the network. Parameters that contradict each other are errors before any work starts; a homophily
    /// or density that the structure cannot reach is one before the edges are drawn.
    pub fn generate(&self) -> Result<Dataset> {
        let (dataset, classes) = self.without_dense_rows()?;
        if self.dense == 0 {
            return Ok(dataset);
        }
        let rows = DenseRows::new(self.seed, self.dense, self.classes.len());
        let mut values = room::filled(f16::ZERO, classes.len() * self.dense)?;
        values.par_chunks_exact_mut(self.dense).enumerate().for_each(|(node, row)| {
            rows.fill(node, classes[node], row);
        });
        let features = Features::half(classes.len(), self.dense, values)?;
        Dataset::new(DatasetParts { features, ..dataset.into_parts() })
    }

    /// Makes the network and writes it as [`store::write`] does what [`SocialNetwork::generate`] makes; dense columns
    /// are never all in memory. Gives the network without them.
    pub fn generate_into(&self, path: &Path) -> Result<Dataset> {
        let (dataset, classes) = self.without_dense_rows()?;
        if self.dense == 0 {
            store::write(&dataset, path)?;
            return Ok(dataset);
        }
        let rows = DenseRows::new(self.seed, self.dense, self.classes.len());
        let make = |node: usize, row: &mut [f16]| rows.fill(node, classes[node], row);
        store::write_with_rows(&dataset, MadeRows { columns: self.dense, make: &make }, path)?;
        Ok(dataset)
    }

    /// All but dense columns, and the class of every node, known or not.
    fn without_dense_rows(&self) -> Result<(Dataset, Buffer<u32>)> {
        let edges = self.check()?;
        let columns = match &self.features {
            _ if self.dense > 0 => vec![],
            Attributes::Columns(columns) => columns.clone(),
            Attributes::Count(features) => {
                usual_columns((*features).min(Self::MAX_FEATURES + 1), self.classes.len())
            }
        };
        self.check_columns(&columns)?;
        let samplers = columns
            .iter()
            .enumerate()
            .map(|(number, column)| column.sampler(number, self.classes.len(), self.seed))
            .collect::<Result<Vec<_>>>()?;

        let labels = self.labels();
        let (features, feature_names) = one_hot(&columns, &samplers, &labels)?;
        let graph = self.graph(edges, &labels, &columns, &samplers)?;
        let classes: Buffer<u32> = labels.into();
        let known = |node: usize| Stream::new(self.seed, Purpose::Known, node as u64).unit() < self.labelled;
        let labels = match self.labelled < 1.0 {
            false => classes.clone(),
            true => {
                let label = |node: usize| if known(node) { classes[node] } else { UNLABELLED };
                (0..self.nodes).into_par_iter().map(label).collect::<Vec<u32>>().into()
            }
        };
        let dataset = Dataset::new(DatasetParts {
            feature_names,
            ..DatasetParts::of(
                self.name.clone(),
                graph,
                features,
                labels,
                self.classes.iter().map(|class| class.name.clone()).collect(),
            )
        })?;
        Ok((dataset, classes))
    }

    fn graph(
        &self,
        edges: usize,
        labels: &[u32],
        columns: &[Column],
        samplers: &[ColumnSampler],
    ) -> Result<Graph> {
        let people = People {
            seed: self.seed,
            weights: self.weights(labels, edges as f64 / self.nodes as f64),
            cohorts: self.cohorts(labels),
            cohort_count: self.classes.len(),
            communities: self.communities,
            locality: self.locality,
        };
        let ties = columns
            .iter()
            .zip(samplers)
            .filter(|(column, _)| column.tie_share() > 0.0)
            .map(|(column, sampler)| {
                let value_of = |node: usize| sampler.value(node, labels[node]);
                Tie::new(&people, column.tie_share(), column.values(), value_of)
            })
            .collect();
        let openness: Vec<f64> = self.classes.iter().map(|class| class.openness).collect();
        let model = Model::calibrated(people, ties, labels, &openness, self.homophily, edges)?;
        assemble(&model)
    }

    /// The number of directed edges, if the parameters make sense.
    fn check(&self) -> Result<usize> {
        let nodes = self.nodes;
        if nodes == 0 {
            return Err(Problem::Empty("nodes").into());
        }
        if nodes > Self::MAX_NODES {
            let message =
                format!("{nodes} nodes are more than the {} that are made at most", Self::MAX_NODES);
            return Err(Problem::TooLarge(message).into());
        }
        let invalid = |message: String| Err(Problem::Invalid(message).into());
        let edges = match self.size {
            Size::Edges(edges) => edges,
            Size::MeanDegree(degree) if degree >= 0.0 && degree.is_finite() => {
                (degree * nodes as f64).round() as usize
            }
            Size::MeanDegree(degree) => {
                return invalid(format!("the mean degree {degree} is not a number of neighbours"));
            }
        };
        super::check_edges(nodes, edges, Self::MAX_EDGES)?;
        let classes = self.classes.len();
        if classes == 0 {
            return Err(Problem::Empty("classes").into());
        }
        if classes > nodes || classes > Self::MAX_CLASSES {
            let limit = nodes.min(Self::MAX_CLASSES);
            return invalid(format!(
                "more than the {limit} classes that {nodes} nodes can have were asked for"
            ));
        }
        if self.communities == 0 || self.communities > nodes {
            return invalid(format!("{} communities of {nodes} nodes are not possible", self.communities));
        }
        for (what, share) in [
            ("locality", self.locality),
            ("homophily", self.homophily),
            ("drift", self.drift),
            ("share of nodes with a label", self.labelled),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return invalid(format!("the {what} {share} is outside 0..1"));
            }
        }
        if !(0.0..=2.0).contains(&self.spread) {
            return invalid(format!("the spread {} of the degrees is outside 0..2", self.spread));
        }
        if self.dense > Self::MAX_FEATURES {
            return invalid(format!("more than {} dense columns were asked for", Self::MAX_FEATURES));
        }
        for Class { name, share, sociability, openness } in &self.classes {
            let positive = |x: f64| (1e-6..=1e6).contains(&x);
            if !(positive(*share) && positive(*sociability) && positive(*openness)) {
                let message = "needs a positive share, sociability and openness (1e-6 to 1e6)";
                return invalid(format!("the class {name:?} {message}"));
            }
        }
        Ok(edges)
    }

    fn check_columns(&self, columns: &[Column]) -> Result<()> {
        let ties: f64 = columns.iter().map(Column::tie_share).sum();
        if ties > 1.0 {
            let message = format!("the ties of the columns add up to {ties}, which is more than 1");
            return Err(Problem::Invalid(message).into());
        }
        let features = columns.iter().map(Column::values).fold(0, usize::saturating_add);
        if features > Self::MAX_FEATURES {
            let message = format!("more than the {} one-hot features were asked for", Self::MAX_FEATURES);
            return Err(Problem::TooLarge(message).into());
        }
        // There is a table for each pair of a community and a class or value: it must not dwarf the nodes.
        const ALWAYS_ALLOWED: usize = 1 << 20;
        let (limit, largest) = (ALWAYS_ALLOWED.max(self.nodes), features.max(self.classes.len()));
        if largest.saturating_mul(self.communities) > limit {
            let message = format!(
                "{} communities with {largest} classes or features each are more than {limit} groups",
                self.communities
            );
            return Err(Problem::TooLarge(message).into());
        }
        Ok(())
    }

    /// The class of each node: exactly the asked shares (at least one node each), shuffled.
    fn labels(&self) -> Vec<u32> {
        let total: f64 = self.classes.iter().map(|class| class.share).sum();
        let spare = (self.nodes - self.classes.len()) as f64;
        let mut labels = Vec::with_capacity(self.nodes);
        let mut cumulative = 0.0;
        for (label, class) in self.classes.iter().enumerate() {
            cumulative += class.share / total;
            let end = (cumulative * spare).round() as usize + label + 1;
            labels.resize(end.min(self.nodes), label as u32);
        }
        labels.resize(self.nodes, self.classes.len() as u32 - 1);
        let mut stream = Stream::new(self.seed, Purpose::Labels, 0);
        for last in (1..self.nodes).rev() {
            labels.swap(last, stream.below(last + 1));
        }
        labels
    }

    /// The class in which each node has its neighbours: its own, or after a drift a neighbouring one.
    fn cohorts(&self, labels: &[u32]) -> Vec<u16> {
        let last = self.classes.len() as u32 - 1;
        let cohort = |(node, &label): (usize, &u32)| {
            let mut stream = Stream::new(self.seed, Purpose::Cohort, node as u64);
            let (drifts, up) = (stream.unit() < self.drift, stream.unit() < 0.5);
            // Where there is no further class, one stays in one's own.
            match (drifts, up) {
                (true, true) if label < last => label as u16 + 1,
                (true, false) if label > 0 => label as u16 - 1,
                _ => label as u16,
            }
        };
        labels.iter().enumerate().map(cohort).collect()
    }

    /// How much each node attracts undirected edges.
    ///
    /// At Facebook100 schools the upper half of the degrees is log-normal, with a deviation of 0.8; the lower
    /// half falls off faster, by half the deviation times the square of the normal variable. Nobody has more
    /// than 16 times the mean, and where there are enough undirected edges, nobody has fewer than two on average.
    fn weights(&self, labels: &[u32], mean_degree: f64) -> Vec<f32> {
        const MOST: f64 = 16.0;
        let mut weights: Vec<f32> = labels
            .iter()
            .enumerate()
            .map(|(node, &label)| {
                let z = Stream::new(self.seed, Purpose::Weight, node as u64).bell();
                let tail = 0.5 * z.min(0.0) * z.min(0.0);
                let weight = exp(self.spread * (z - tail)) * self.classes[label as usize].sociability;
                weight as f32
            })
            .collect();
        let mean = weights.iter().map(|&w| f64::from(w)).sum::<f64>() / weights.len() as f64;
        let least = if mean_degree >= 4.0 { mean * 2.0 / mean_degree } else { 0.0 };
        weights.iter_mut().for_each(|w| *w = w.clamp(least as f32, (mean * MOST) as f32));
        weights
    }
}

fn numbered_classes(classes: usize) -> Vec<Class> {
    (0..classes).map(|class| Class::new(class.to_string())).collect()
}

fn usual_columns(features: usize, classes: usize) -> Vec<Column> {
    let (role, interest) = (features.div_ceil(5), features * 2 / 5);
    let place = features - role - interest;
    let columns = [
        Column::linked("role", role, classes, 0.02, 0.25),
        Column::linked("interest", interest, classes, 0.1, 0.0).tie(0.05),
        Column::linked("place", place, classes, 0.5, 0.2).tie(0.15),
    ];
    columns.into_iter().zip([role, interest, place]).filter(|(_, n)| *n > 0).map(|(c, _)| c).collect()
}
