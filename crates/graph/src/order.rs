//! The order of nodes: that of their ids, and whether an order tells edges.

use std::collections::HashMap;
use std::fmt;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use crate::{Graph, NodeIds};

/// The most pairs of consecutive nodes in a window.
const WINDOW: usize = 256;
/// The most windows that are looked at: together they see a whole order, each of them a block in it.
const WINDOWS: usize = 8;
/// Windows of shuffled orders that those of the order are compared with.
const SHUFFLED: usize = 32;
/// Fewer pairs that stand out may be chance.
const FEWEST: usize = 10;
/// Standard deviations above shuffled orders beyond which all windows together tell, and beyond which one of them does.
const BEYOND: (f64, f64) = (6.0, 8.0);
/// Nodes of a shuffled order differ where there are at most this many; among more, two draws are rarely the same.
const DRAWN_ONCE: usize = 1 << 16;

/// The order of ids: of numbers where all are whole numbers, else of bytes. `None` where nodes stand in it already.
pub fn of_ids(ids: &NodeIds, nodes: usize) -> Option<Vec<u32>> {
    fn sorted<K: Ord>(nodes: usize, key: impl Fn(u32) -> K) -> Option<Vec<u32>> {
        if (1..nodes as u32).all(|node| key(node - 1) <= key(node)) {
            return None;
        }
        let mut order: Vec<u32> = (0..nodes as u32).collect();
        order.sort_by_key(|&node| key(node));
        Some(order)
    }
    match ids {
        NodeIds::Position => None,
        NodeIds::Integers(ids) => sorted(nodes, |node| ids[node as usize]),
        NodeIds::Text { bytes, offsets } => {
            let text =
                |node: u32| &bytes[offsets[node as usize] as usize..offsets[node as usize + 1] as usize];
            let number = |node: u32| std::str::from_utf8(text(node)).ok()?.parse::<i64>().ok();
            match (0..nodes as u32).all(|node| number(node).is_some()) {
                // "7" and "07" are two ids.
                true => sorted(nodes, |node| (number(node), text(node))),
                false => sorted(nodes, text),
            }
        }
    }
}

/// How an order of nodes tells edges: what was found in the pairs of consecutive nodes that were looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Telling {
    /// Pairs that were looked at.
    pub pairs: usize,
    /// Pairs with an edge between them, and how many a shuffled order has.
    pub joined: (usize, f64),
    /// Pairs with a common neighbour, and how many a shuffled order has.
    pub sharing: (usize, f64),
}

impl fmt::Display for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Telling { pairs, joined, sharing } = self;
        write!(
            f,
            "of {pairs} pairs of consecutive nodes {} are joined and {} have a common neighbour, where a shuffled \
             order has about {:.0} and {:.0}",
            joined.0, sharing.0, joined.1, sharing.1
        )
    }
}

/// The sums of a window: pairs that are joined, pairs that share a neighbour, and how many they share, in logarithms.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    joined: usize,
    sharing: usize,
    shared: f64,
}

impl Sums {
    fn add(self, other: Sums) -> Sums {
        Sums {
            joined: self.joined + other.joined,
            sharing: self.sharing + other.sharing,
            shared: self.shared + other.shared,
        }
    }
}

/// Whether the order of nodes (their positions, or another order of them) tells edges: whether consecutive nodes are
/// joined, or have common neighbours, more often than in shuffled orders. Of random orders fewer than one in a thousand
/// is said to.
///
/// About 2,000 pairs are looked at, whatever the size of the graph, in windows of consecutive pairs: an order made by
/// listing the ends of edges puts the neighbours of one node beside each other, which a window sees also where the rest
/// of the order is random.
pub fn telling(graph: &Graph, order: Option<&[u32]>) -> Option<Telling> {
    let pairs = graph.nodes().saturating_sub(1);
    if pairs < FEWEST {
        return None;
    }
    let windows = pairs.div_ceil(WINDOW).min(WINDOWS);
    let length = (pairs / windows).min(WINDOW);
    let node = |position: usize| order.map_or(position as u32, |order| order[position]);
    let start = |window: usize| window * (pairs - length) / (windows - 1).max(1);
    let found: Vec<Vec<u32>> =
        (0..windows).map(|w| (start(w)..=start(w) + length).map(node).collect()).collect();
    let shuffled = shuffled(graph.nodes(), length + 1);
    let neighbours = Neighbours::of(graph, found.iter().chain(&shuffled).flatten().copied());
    let sums = |chains: &[Vec<u32>]| -> Vec<Sums> {
        chains.par_iter().map(|chain| neighbours.sums(chain)).collect()
    };
    let (found, shuffled) = (sums(&found), sums(&shuffled));
    let all = found.iter().copied().fold(Sums::default(), Sums::add);
    let joined = Chance::of(shuffled.iter().map(|sums| sums.joined as f64));
    let shared = Chance::of(shuffled.iter().map(|sums| sums.shared));
    let stands_out = |sums: &Sums, windows: usize, beyond: f64| {
        let joins = sums.joined >= FEWEST && joined.deviations(sums.joined as f64, windows) >= beyond;
        joins || sums.sharing >= FEWEST && shared.deviations(sums.shared, windows) >= beyond
    };
    let tells = stands_out(&all, windows, BEYOND.0)
        || found.iter().any(|sums| windows > 1 && stands_out(sums, 1, BEYOND.1));
    let sharing = shuffled.iter().map(|sums| sums.sharing as f64).sum::<f64>() / SHUFFLED as f64;
    tells.then(|| Telling {
        pairs: windows * length,
        joined: (all.joined, windows as f64 * joined.mean),
        sharing: (all.sharing, windows as f64 * sharing),
    })
}

/// Consecutive nodes of shuffled orders. The shuffles are the same in every run: the test is for the data owner.
fn shuffled(nodes: usize, length: usize) -> Vec<Vec<u32>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0x006f_7264_6572);
    let mut below = |limit: usize| ((u128::from(random.next_u64()) * limit as u128) >> 64) as usize;
    let mut all: Vec<u32> = if nodes <= DRAWN_ONCE { (0..nodes as u32).collect() } else { vec![] };
    let mut chain = || match nodes <= DRAWN_ONCE {
        true => {
            for at in 0..length.min(nodes) {
                all.swap(at, at + below(nodes - at));
            }
            all[..length].to_vec()
        }
        false => (0..length).map(|_| below(nodes) as u32).collect(),
    };
    (0..SHUFFLED).map(|_| chain()).collect()
}

/// What a window of a shuffled order has.
struct Chance {
    mean: f64,
    deviation: f64,
}

impl Chance {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Chance {
        let mean = values.clone().sum::<f64>() / SHUFFLED as f64;
        let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / (SHUFFLED - 1) as f64;
        // Rare events vary as much as they occur, also where the few windows that were drawn do not show it.
        Chance { mean, deviation: variance.max(mean).max(f64::MIN_POSITIVE).sqrt() }
    }

    /// How far a sum over some windows is above that of shuffled orders.
    fn deviations(&self, sum: f64, windows: usize) -> f64 {
        let windows = windows as f64;
        let of_both = windows + windows.powi(2) / SHUFFLED as f64;
        (sum - windows * self.mean) / (self.deviation * of_both.sqrt())
    }
}

/// The neighbours of some nodes, whichever way edges lead.
struct Neighbours<'g> {
    graph: &'g Graph,
    /// Where not every edge has an edge back: all neighbours of each node.
    both_ways: Option<HashMap<u32, Vec<u32>>>,
}

impl<'g> Neighbours<'g> {
    fn of(graph: &'g Graph, nodes: impl Iterator<Item = u32>) -> Neighbours<'g> {
        if graph.is_symmetric() {
            return Neighbours { graph, both_ways: None };
        }
        let mut wanted = vec![0u64; graph.nodes().div_ceil(64)];
        let mut lists: HashMap<u32, Vec<u32>> = HashMap::new();
        for node in nodes {
            wanted[node as usize / 64] |= 1 << (node % 64);
            lists.entry(node).or_insert_with(|| graph.in_neighbours(node as usize).to_vec());
        }
        let is_wanted = |node: u32| wanted[node as usize / 64] >> (node % 64) & 1 == 1;
        let sent =
            (0..graph.nodes()).into_par_iter().with_min_len(4096).fold(Vec::new, |mut sent, receiver| {
                let senders =
                    graph.in_neighbours(receiver).iter().copied().filter(|&sender| is_wanted(sender));
                sent.extend(senders.map(|sender| (sender, receiver as u32)));
                sent
            });
        for (sender, receiver) in sent.collect::<Vec<_>>().into_iter().flatten() {
            lists.entry(sender).or_default().push(receiver);
        }
        lists.values_mut().for_each(|list| list.sort_unstable());
        Neighbours { graph, both_ways: Some(lists) }
    }

    fn list(&self, node: u32) -> &[u32] {
        match &self.both_ways {
            None => self.graph.in_neighbours(node as usize),
            Some(lists) => lists.get(&node).map_or(&[], |list| &list[..]),
        }
    }

    fn sums(&self, chain: &[u32]) -> Sums {
        let pair = |pair: &[u32]| {
            let (a, b) = (pair[0], pair[1]);
            if a == b {
                return Sums::default();
            }
            let (short, long) = (self.list(a), self.list(b));
            let joined = short.binary_search(&b).is_ok();
            let common = common(short, long, [a, b]);
            Sums {
                joined: usize::from(joined),
                sharing: usize::from(common > 0),
                shared: (common as f64).ln_1p(),
            }
        };
        chain.windows(2).map(pair).fold(Sums::default(), Sums::add)
    }
}

/// How many nodes two ascending lists have in common, but these; repeated ones count once.
fn common(one: &[u32], other: &[u32], but: [u32; 2]) -> usize {
    let (short, mut long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let mut count = 0;
    for (at, &node) in short.iter().enumerate() {
        // A list that is much longer is searched, any other is walked along.
        let before = match long.len() > 16 * short.len() {
            true => long.partition_point(|&other| other < node),
            false => long.iter().take_while(|&&other| other < node).count(),
        };
        long = &long[before..];
        let repeated = at > 0 && short[at - 1] == node;
        count += usize::from(long.first() == Some(&node) && !repeated && !but.contains(&node));
    }
    count
}
