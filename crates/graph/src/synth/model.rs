//! The block model: whom a node chooses, and how often, so that the asked edges and homophily come out.

use super::assemble::UndirectedEdges;
use super::groups::Groups;
use super::random::{Purpose, Stream, exp};
use crate::{Problem, Result};

/// An undirected edge is drawn anew that often where it leads back to the node itself or into an empty group.
const ATTEMPTS: usize = 32;
/// How fast undirected edges get rarer from one class to the next: a third less with each.
const CLASS_DECAY: f64 = 0.65;
/// The number of undirected edges that are drawn on trial: the edges come out to about 0.3 %, the homophily to
/// about 0.003.
const PILOT_DRAWS: usize = 1 << 15;
/// A structure that needs that many draws for one edge, because most repeat another, is refused.
const MAX_DRAWS_PER_EDGE: f64 = 16.0;

/// The properties of the nodes, before it is known how often they form edges.
pub(super) struct People {
    pub(super) seed: u64,
    /// How much each node attracts undirected edges.
    pub(super) weights: Vec<f32>,
    /// The class in which each node has its neighbours.
    pub(super) cohorts: Vec<u16>,
    /// The number of cohorts.
    pub(super) cohort_count: usize,
    /// The number of communities, which are contiguous ranges of nodes.
    pub(super) communities: usize,
    /// The chance that an undirected edge of a class stays in the community.
    pub(super) locality: f64,
}

impl People {
    pub(super) fn community(&self, node: usize) -> usize {
        node * self.communities / self.cohorts.len()
    }

    fn cohort(&self, node: usize) -> usize {
        self.cohorts[node].into()
    }
}

/// A share of the undirected edges that stays among nodes of the same community and value.
pub(super) struct Tie {
    share: f64,
    groups: Groups,
    group_of: Vec<u32>,
}

impl Tie {
    const NO_GROUP: u32 = u32::MAX;

    /// `value_of` gives a node's value, one of 0..values, if it has one.
    pub(super) fn new(
        people: &People,
        share: f64,
        values: usize,
        value_of: impl Fn(usize) -> Option<u32> + Sync,
    ) -> Tie {
        let group_of: Vec<u32> = (0..people.cohorts.len())
            .map(|node| {
                let group = |value| (people.community(node) * values) as u32 + value;
                value_of(node).map_or(Self::NO_GROUP, group)
            })
            .collect();
        let in_group =
            |node: usize| Some(group_of[node] as usize).filter(|_| group_of[node] != Self::NO_GROUP);
        let groups = Groups::new(people.communities * values, &people.weights, in_group);
        Tie { share, groups, group_of }
    }

    fn group(&self, node: usize) -> Option<usize> {
        let group = self.group_of[node];
        (group != Self::NO_GROUP).then_some(group as usize)
    }
}

/// People, their groups, and how often and with whom they form edges.
pub(super) struct Model {
    people: People,
    ties: Vec<Tie>,
    total_weight: f64,
    /// The nodes by community and cohort.
    members: Groups,
    cohort_volumes: Vec<f64>,
    /// For each cohort the cumulative shares of the communities in its volume.
    community_shares: Vec<Vec<f64>>,
    /// For each cohort the chances of the neighbour's cohort, and the same added up.
    mixing: Vec<Vec<f64>>,
    cumulative_mixing: Vec<Vec<f64>>,
    draws: f64,
}

impl Model {
    /// A model with about this many distinct directed edges, of which the share `homophily` joins equal labels.
    /// `openness` says for each cohort how large its share of neighbours outside is, relative to the others.
    pub(super) fn calibrated(
        people: People,
        ties: Vec<Tie>,
        labels: &[u32],
        openness: &[f64],
        homophily: f64,
        edges: usize,
    ) -> Result<Model> {
        let mut model = Model::new(people, ties);
        let pairs = edges as f64 / 2.0;
        if model.people.cohort_count == 1 || edges == 0 {
            model.set_mixing(openness, 1.0);
            model.draws = model.pilot(labels).draws_for(pairs)?;
            return Ok(model);
        }
        // The homophily is nearly linear in the chance of the own cohort: a few secant steps suffice. The draws
        // on trial are the same in each step, so the steps do not chase noise.
        let mut attempt = |inside: f64| -> Result<f64> {
            model.set_mixing(openness, inside);
            let pilot = model.pilot(labels);
            model.draws = pilot.draws_for(pairs)?;
            Ok(pilot.homophily(model.draws))
        };
        let (mut low, mut high) = ((0.0, attempt(0.0)?), (1.0, attempt(1.0)?));
        const SLACK: f64 = 0.01;
        if !(low.1 - SLACK..=high.1 + SLACK).contains(&homophily) {
            let message = format!(
                "a homophily of {homophily} is out of reach: with these ties, drift and density it lies between \
                 {:.2} and {:.2}",
                low.1, high.1
            );
            return Err(Problem::Invalid(message).into());
        }
        for _ in 0..4 {
            let slope = (high.1 - low.1) / (high.0 - low.0);
            if slope.is_nan() || slope <= 1e-9 {
                break;
            }
            let inside = (low.0 + (homophily - low.1) / slope).clamp(low.0, high.0);
            let reached = (inside, attempt(inside)?);
            if (reached.1 - homophily).abs() < 1e-4 || inside == low.0 || inside == high.0 {
                break;
            }
            if reached.1 < homophily { low = reached } else { high = reached }
        }
        Ok(model)
    }

    fn new(people: People, ties: Vec<Tie>) -> Model {
        let People { communities, cohort_count, .. } = people;
        let group_of = |node: usize| Some(people.community(node) * cohort_count + people.cohort(node));
        let members = Groups::new(communities * cohort_count, &people.weights, group_of);
        let volume = |community: usize, cohort: usize| members.volume(community * cohort_count + cohort);
        let cohort_volumes: Vec<f64> =
            (0..cohort_count).map(|cohort| (0..communities).map(|c| volume(c, cohort)).sum()).collect();
        let community_shares = (0..cohort_count)
            .map(|cohort| cumulate((0..communities).map(|c| volume(c, cohort) / cohort_volumes[cohort])))
            .collect();
        let total_weight = cohort_volumes.iter().sum();
        Model {
            people,
            ties,
            total_weight,
            members,
            cohort_volumes,
            community_shares,
            mixing: Vec::new(),
            cumulative_mixing: Vec::new(),
            draws: 0.0,
        }
    }

    /// Sets the chances of the neighbour's cohort: about `inside` for the own one, the rest so that every cohort
    /// is chosen about as often as it chooses.
    fn set_mixing(&mut self, openness: &[f64], inside: f64) {
        let volumes = &self.cohort_volumes;
        let count = volumes.len();
        let mean_openness: f64 =
            volumes.iter().zip(openness).map(|(v, o)| v * o).sum::<f64>() / self.total_weight;
        let outside: Vec<f64> =
            openness.iter().map(|o| ((1.0 - inside) * o / mean_openness).clamp(0.0, 1.0)).collect();
        let mut by_distance = vec![0.0, 1.0];
        for distance in 2..count {
            by_distance.push(by_distance[distance - 1] * CLASS_DECAY);
        }
        let closeness = |a: usize, b: usize| by_distance[a.abs_diff(b)];
        // Factors of a symmetric matrix whose rows add up to what each cohort has outside; the square root
        // damps the steps, which would swing between two states without it.
        let mut factor: Vec<f64> = volumes.iter().map(|v| v.sqrt()).collect();
        for _ in 0..50 {
            let step: Vec<f64> = (0..count)
                .map(|a| {
                    let sum: f64 = (0..count).map(|b| closeness(a, b) * factor[b]).sum::<f64>() * factor[a];
                    if sum > 0.0 { (volumes[a] * outside[a] / sum).sqrt() } else { 1.0 }
                })
                .collect();
            factor.iter_mut().zip(step).for_each(|(f, s)| *f *= s);
        }
        self.mixing = (0..count)
            .map(|a| {
                let mut row: Vec<f64> = (0..count).map(|b| closeness(a, b) * factor[b]).collect();
                let sum: f64 = row.iter().sum();
                let scale = if sum > 0.0 { outside[a] / sum } else { 0.0 };
                row.iter_mut().for_each(|chance| *chance *= scale);
                row[a] = if sum > 0.0 { 1.0 - outside[a] } else { 1.0 };
                row
            })
            .collect();
        self.cumulative_mixing = self.mixing.iter().map(|row| cumulate(row.iter().copied())).collect();
    }

    /// One attempt to find a neighbour.
    fn neighbour(&self, node: usize, stream: &mut Stream) -> Option<u32> {
        let mut kind = stream.unit();
        for tie in &self.ties {
            if let Some(group) = tie.group(node) {
                if kind < tie.share {
                    return tie.groups.pick(group, stream).filter(|&neighbour| neighbour as usize != node);
                }
                kind -= tie.share;
            }
        }
        let people = &self.people;
        let cohort = stream.choose(&self.cumulative_mixing[people.cohort(node)])?;
        let community = if people.communities == 1 {
            0
        } else if stream.unit() < people.locality {
            people.community(node)
        } else {
            stream.choose(&self.community_shares[cohort])?
        };
        let group = community * people.cohort_count + cohort;
        self.members.pick(group, stream).filter(|&neighbour| neighbour as usize != node)
    }

    fn neighbour_in_the_end(&self, node: usize, stream: &mut Stream) -> Option<u32> {
        (0..ATTEMPTS).find_map(|_| self.neighbour(node, stream))
    }

    /// The chance that an undirected edge that starts at `a` ends at `b`, apart from draws that are repeated.
    fn chance(&self, a: usize, b: usize) -> f64 {
        let people = &self.people;
        let weight = f64::from(people.weights[b]);
        let (mut sum, mut left) = (0.0, 1.0);
        for tie in &self.ties {
            if let Some(group) = tie.group(a) {
                left -= tie.share;
                if tie.group(b) == Some(group) {
                    sum += tie.share * weight / tie.groups.volume(group);
                }
            }
        }
        let (community, cohort) = (people.community(b), people.cohort(b));
        let mut by_class = 0.0;
        if people.communities == 1 || people.community(a) == community {
            let near = if people.communities == 1 { 1.0 } else { people.locality };
            by_class += near * weight / self.members.volume(community * people.cohort_count + cohort);
        }
        if people.communities > 1 {
            by_class += (1.0 - people.locality) * weight / self.cohort_volumes[cohort];
        }
        sum + left.max(0.0) * self.mixing[people.cohort(a)][cohort] * by_class
    }

    /// Draws undirected edges on trial.
    fn pilot(&self, labels: &[u32]) -> Pilot {
        let weights = &self.people.weights;
        let heaviest = weights.iter().copied().fold(0.0, f32::max);
        let mut stream = Stream::new(self.people.seed, Purpose::Pilot, 0);
        let mut found = Vec::with_capacity(PILOT_DRAWS);
        for draw in 0..PILOT_DRAWS {
            let node = loop {
                let node = stream.below(weights.len());
                if stream.unit() * f64::from(heaviest) < f64::from(weights[node]) {
                    break node;
                }
            };
            // A stream for each draw, so that a longer search in one does not change the next.
            let mut own_stream = Stream::new(self.people.seed, Purpose::Pilot, 1 + draw as u64);
            if let Some(neighbour) = self.neighbour_in_the_end(node, &mut own_stream) {
                let neighbour = neighbour as usize;
                let share = |node: usize| f64::from(weights[node]) / self.total_weight;
                let chance = share(node) * self.chance(node, neighbour)
                    + share(neighbour) * self.chance(neighbour, node);
                found.push((chance, labels[node] == labels[neighbour]));
            }
        }
        Pilot { found }
    }
}

impl UndirectedEdges for Model {
    fn nodes(&self) -> usize {
        self.people.weights.len()
    }

    fn list_neighbours(&self, node: u32, neighbours: &mut Vec<u32>) {
        let mut stream = Stream::new(self.people.seed, Purpose::Neighbours, node.into());
        let mean = self.draws * f64::from(self.people.weights[node as usize]) / self.total_weight;
        let draws = (mean + stream.unit()) as u64;
        for _ in 0..draws {
            neighbours.extend(self.neighbour_in_the_end(node as usize, &mut stream));
        }
    }
}

/// Undirected edges drawn on trial: the chance of each to be the result of one draw, and whether it joins equal
/// labels.
struct Pilot {
    found: Vec<(f64, bool)>,
}

impl Pilot {
    /// The number of draws that give this many distinct pairs.
    fn draws_for(&self, pairs: f64) -> Result<f64> {
        let most = pairs * MAX_DRAWS_PER_EDGE;
        let distinct = |draws: f64| {
            let share: f64 = self.found.iter().map(|&(chance, _)| share_distinct(draws * chance)).sum();
            draws * share / PILOT_DRAWS as f64
        };
        solve_draws(pairs, most, distinct)
    }

    /// The share of distinct pairs, among this many draws, that join equal labels.
    fn homophily(&self, draws: f64) -> f64 {
        let (mut same, mut all) = (0.0, 0.0);
        for &(chance, equal) in &self.found {
            let share = share_distinct(draws * chance);
            all += share;
            same += if equal { share } else { 0.0 };
        }
        if all > 0.0 { same / all } else { 0.0 }
    }
}

/// A pair that is drawn `expected` times on average appears with chance `1 - e^-expected`: this over `expected`.
fn share_distinct(expected: f64) -> f64 {
    if expected < 1e-6 { 1.0 - expected / 2.0 } else { (1.0 - exp(-expected)) / expected }
}

/// The draws, up to `most`, after which `distinct` reaches `pairs`.
fn solve_draws(pairs: f64, most: f64, distinct: impl Fn(f64) -> f64) -> Result<f64> {
    if pairs > 0.0 && distinct(most) < pairs {
        let message = format!(
            "{} directed edges are too many for this structure, in which most undirected edges would repeat another",
            pairs * 2.0
        );
        return Err(Problem::TooLarge(message).into());
    }
    // To 1 in 5000, which is less than the chance of the draws themselves leaves open.
    const BISECTIONS: usize = 16;
    let (mut low, mut high) = (pairs, most);
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        if distinct(middle) < pairs { low = middle } else { high = middle }
    }
    Ok(high)
}

/// Undirected edges between any two nodes alike.
pub(super) struct Uniform {
    seed: u64,
    nodes: usize,
    draws_per_node: f64,
}

impl Uniform {
    pub(super) fn new(nodes: usize, edges: usize, seed: u64) -> Result<Uniform> {
        let pairs = edges as f64 / 2.0;
        let all_pairs = nodes as f64 * (nodes as f64 - 1.0) / 2.0;
        let distinct = |draws: f64| draws * share_distinct(draws / all_pairs);
        let draws = solve_draws(pairs, pairs * MAX_DRAWS_PER_EDGE, distinct)?;
        Ok(Uniform { seed, nodes, draws_per_node: draws / nodes as f64 })
    }
}

impl UndirectedEdges for Uniform {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn list_neighbours(&self, node: u32, neighbours: &mut Vec<u32>) {
        let mut stream = Stream::new(self.seed, Purpose::Neighbours, node.into());
        let draws = (self.draws_per_node + stream.unit()) as u64;
        for _ in 0..draws {
            // One of the others: the last one stands in for the node itself.
            let other = stream.below(self.nodes - 1) as u32;
            neighbours.push(if other == node { self.nodes as u32 - 1 } else { other });
        }
    }
}

/// Running sums, the last of which is 1 but for rounding, and then made so.
fn cumulate(shares: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums: Vec<f64> = shares
        .map(|share| {
            sum += share;
            sum
        })
        .collect();
    if let Some(last) = sums.last_mut().filter(|last| (**last - 1.0).abs() < 1e-9) {
        *last = 1.0;
    }
    sums
}
