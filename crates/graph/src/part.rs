//! A part of a data set: some nodes with their rows and the edges into them, for one of several processes.

use std::ops::Range;

use rayon::prelude::*;

use crate::aggregate::{self, Sum};
use crate::symmetry::{self, PRIME};
use crate::{Error, Features, Graph, Part, Problem, Result, Split};

/// The edges that are held at once while a part is read.
const AT_ONCE: usize = if cfg!(test) { 64 } else { 1 << 21 };

/// The edges into some nodes, without loops and repetitions. Senders are numbered by their place among those that
/// occur.
///
/// Edges are read again for each sum, a block of rows at a time: a process never holds all of its edges.
#[derive(Debug, Clone)]
pub struct PartGraph {
    graph: Graph,
    rows: Range<usize>,
    /// Which edges stay, a bit each in the order in which they are read; nothing where all do.
    stay: Option<Vec<u64>>,
    edges: usize,
    longest: usize,
    senders: Vec<u32>,
}

/// Which edges of each sender stay in a part: all, or those at some places among its edges in the part, by ascending
/// receivers.
#[derive(Debug, Clone, Default)]
pub struct Staying {
    /// Of each sender, where its places begin; nothing where all edges stay.
    starts: Vec<Option<usize>>,
    places: Vec<u32>,
}

impl Staying {
    /// The next sender keeps all of its edges.
    pub fn all(&mut self) {
        self.starts.push(None);
    }

    /// The next sender keeps those at these places, which ascend.
    pub fn only(&mut self, places: &[u32]) {
        self.starts.push(Some(self.places.len()));
        self.places.extend_from_slice(places);
    }

    /// Where the places of each sender are: nothing where all edges stay.
    fn ranges(&self) -> Vec<Option<Range<usize>>> {
        let mut end = self.places.len();
        let mut range = |start: &Option<usize>| start.map(|start| start..std::mem::replace(&mut end, start));
        let mut ranges: Vec<_> = self.starts.iter().rev().map(&mut range).collect();
        ranges.reverse();
        ranges
    }
}

/// The edges into the nodes of a block of rows.
struct Block<'a> {
    /// The rows, counted from the first of the part.
    rows: Range<usize>,
    /// Where the edges of each row begin.
    offsets: &'a [u64],
    senders: &'a mut [u32],
}

impl PartGraph {
    /// The edges into the nodes of a range. No other edge is looked at.
    pub fn new(graph: &Graph, rows: Range<usize>) -> PartGraph {
        PartGraph { graph: graph.clone(), rows, stay: None, edges: 0, longest: 0, senders: vec![] }.scan()
    }

    /// Finds out what follows from all edges of the part.
    fn scan(mut self) -> PartGraph {
        let mut occurs = Occurring::none(self.graph.nodes());
        let (mut edges, mut longest) = (0, 0);
        self.read(|block| {
            block.senders.iter().for_each(|&sender| occurs.insert(sender));
            edges += block.senders.len();
            longest = longest.max(aggregate::longest_row(block.offsets));
        });
        (self.edges, self.longest, self.senders) = (edges, longest, occurs.nodes().collect());
        self
    }

    /// The part with the edges that stay, which are told for each of [`PartGraph::senders`].
    ///
    /// # Errors
    /// Places that no edge has; edges that have changed.
    pub fn keeping(self, staying: &Staying) -> Result<PartGraph> {
        if staying.starts.len() != self.senders.len() {
            return Err(changed());
        }
        let mut left = staying.ranges();
        let (mut seen, mut edge, mut found) = (vec![0u32; self.senders.len()], 0, 0);
        let mut stay = vec![0u64; self.edges.div_ceil(64)];
        self.read_places(|block| {
            for &sender in &*block.senders {
                let place = seen[sender as usize];
                seen[sender as usize] += 1;
                let stays = match &mut left[sender as usize] {
                    None => true,
                    // Receivers ascend, and so do the places.
                    Some(left) => {
                        let here = left.start < left.end && staying.places[left.start] == place;
                        left.start += usize::from(here);
                        found += usize::from(here);
                        here
                    }
                };
                stay[edge / 64] |= u64::from(stays) << (edge % 64);
                edge += 1;
            }
            Ok(())
        })?;
        if found != staying.places.len() {
            return Err(changed());
        }
        Ok(PartGraph { stay: Some(stay), ..self }.scan())
    }

    fn stays(&self, edge: usize) -> bool {
        let is_set = |stay: &Vec<u64>| stay.get(edge / 64).is_some_and(|word| word >> (edge % 64) & 1 == 1);
        self.stay.as_ref().is_none_or(is_set)
    }

    /// Reads all edges of the part, a block of rows after the other.
    fn read(&self, mut each: impl FnMut(Block<'_>)) {
        let (mut offsets, mut senders, mut first) = (vec![0u64], vec![], self.rows.start);
        let mut edge = 0;
        for row in self.rows.clone() {
            let (of_row, mut before) = (self.graph.in_neighbours(row), None);
            let new = |sender: &&u32| **sender as usize != row && before.replace(**sender) != Some(**sender);
            let new = of_row.iter().filter(new);
            match self.stay {
                None => senders.extend(new),
                Some(_) => senders.extend(new.filter(|_| {
                    edge += 1;
                    self.stays(edge - 1)
                })),
            }
            offsets.push(senders.len() as u64);
            crate::store::note_read(size_of_val(of_row));
            if senders.len() >= AT_ONCE || row + 1 == self.rows.end {
                crate::store::release_pages();
                let rows = first - self.rows.start..row + 1 - self.rows.start;
                each(Block { rows, offsets: &offsets, senders: &mut senders });
                first = row + 1;
                offsets.truncate(1);
                senders.clear();
            }
        }
    }

    /// As [`PartGraph::read`], with each sender by its place in [`PartGraph::senders`].
    fn read_places(&self, mut each: impl FnMut(Block<'_>) -> Result<()>) -> Result<()> {
        let mut occurs = Occurring::none(self.graph.nodes());
        self.senders.iter().for_each(|&sender| occurs.insert(sender));
        let places = occurs.places();
        let (mut edges, mut outcome) = (0, Ok(()));
        self.read(|block| {
            if outcome.is_err() {
                return;
            }
            edges += block.senders.len();
            let known = block.senders.par_iter_mut().all(|sender| {
                let known = occurs.contains(*sender);
                *sender = occurs.place(&places, *sender);
                known
            });
            outcome = if known { each(block) } else { Err(changed()) };
        });
        outcome?;
        if edges == self.edges { Ok(()) } else { Err(changed()) }
    }

    /// The nodes that send along these edges, ascending: the order of messages in [`PartGraph::sum`].
    pub fn senders(&self) -> &[u32] {
        &self.senders
    }

    /// How many of these edges each of [`PartGraph::senders`] sends along.
    ///
    /// # Errors
    /// Edges that have changed.
    pub fn sent(&self) -> Result<Vec<u32>> {
        let mut sent = vec![0u32; self.senders.len()];
        self.read_places(|block| {
            block.senders.iter().for_each(|&sender| sent[sender as usize] += 1);
            Ok(())
        })?;
        Ok(sent)
    }

    /// The largest number of edges into one node.
    pub fn max_in_degree(&self) -> usize {
        self.longest
    }

    /// As [`aggregate::wide_sum`]: for every node of the part the sum of what its senders say. `messages` has a row for
    /// each of [`PartGraph::senders`].
    ///
    /// # Errors
    /// Lengths that do not fit; an integer sum that could overflow; edges that have changed. Then `sums` is to be used
    /// no more.
    pub fn sum<M, S>(&self, width: usize, messages: &[M], sums: &mut [S]) -> Result<()>
    where
        M: Copy + Send + Sync,
        S: Sum<M>,
    {
        aggregate::check_length("list of sums", sums.len(), self.rows.len() * width)?;
        aggregate::in_panels(width, messages, sums, |messages, sums| {
            self.read_places(|Block { rows, offsets, senders }| {
                let edges = aggregate::Edges { offsets, senders, messages: self.senders.len() };
                let sums = &mut sums[rows.start * messages.width..rows.end * messages.width];
                aggregate::sum_along(edges, messages, sums)
            })
        })
    }
}

fn changed() -> Error {
    Problem::Invalid("the edges are others than they were before".into()).into()
}

/// Which nodes occur, a bit each.
struct Occurring(Vec<u64>);

impl Occurring {
    fn none(nodes: usize) -> Occurring {
        Occurring(vec![0; nodes.div_ceil(64)])
    }

    fn insert(&mut self, node: u32) {
        self.0[node as usize / 64] |= 1u64 << (node % 64);
    }

    fn contains(&self, node: u32) -> bool {
        self.0[node as usize / 64] >> (node % 64) & 1 == 1
    }

    /// Those that occur, ascending.
    fn nodes(&self) -> impl Iterator<Item = u32> {
        let bits = |(at, &word): (usize, &u64)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| (64 * at + bit) as u32)
        };
        self.0.iter().enumerate().flat_map(bits)
    }

    /// How many occur before each word.
    fn places(&self) -> Vec<u32> {
        let before = self.0.iter().scan(0, |sum, word| {
            let before = *sum;
            *sum += word.count_ones();
            Some(before)
        });
        before.collect()
    }

    /// How many occur before a node.
    fn place(&self, places: &[u32], node: u32) -> u32 {
        let (word, bit) = (node as usize / 64, node % 64);
        places[word] + (self.0[word] & ((1u64 << bit) - 1)).count_ones()
    }
}

/// Symmetry digests of all edges, made of those into each node: see [`Graph::pairs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pairs {
    values: [[u64; 2]; 2],
    distinct: u64,
}

impl Pairs {
    /// Of no edges.
    pub const NONE: Pairs = Pairs { values: [[1; 2]; 2], distinct: 0 };

    /// Of the edges of both.
    #[must_use]
    pub fn and(self, other: Pairs) -> Pairs {
        let values =
            [0, 1].map(|set| [0, 1].map(|k| symmetry::product(self.values[set][k], other.values[set][k])));
        Pairs { values, distinct: self.distinct + other.distinct }
    }

    /// As numbers, to be sent.
    pub fn to_numbers(self) -> [u64; 5] {
        let [[a, b], [c, d]] = self.values;
        [a, b, c, d, self.distinct]
    }

    /// The digests that [`Pairs::to_numbers`] gave.
    pub fn from_numbers([a, b, c, d, distinct]: [u64; 5]) -> Pairs {
        Pairs { values: [[a, b], [c, d]], distinct }
    }
}

impl Graph {
    /// Symmetry digests of the edges into some nodes, at two random points that all processes share, and their number.
    ///
    /// # Errors
    /// A graph too large for it.
    pub fn pairs(&self, rows: Range<usize>, points: [u64; 2]) -> Result<Pairs> {
        if self.nodes() >> symmetry::NODE_BITS > 0 {
            let message = format!("{} nodes are too many for several processes", self.nodes());
            return Err(Problem::TooLarge(message).into());
        }
        let distinct = |row: usize| {
            let row_of = self.in_neighbours(row);
            let first =
                |at: &usize| row_of[*at] as usize != row && (*at == 0 || row_of[*at] != row_of[*at - 1]);
            (0..row_of.len()).filter(first).count() as u64
        };
        let blocks = rows.clone().step_by(1 << 12).map(|start| start..rows.end.min(start + (1 << 12)));
        let of_block = |block: Range<usize>| {
            let values = symmetry::values(self, block.clone(), points.map(|point| point & PRIME));
            let edges = self.offsets()[block.end] - self.offsets()[block.start];
            let distinct = block.map(distinct).sum();
            crate::store::note_read(4 * edges as usize);
            Pairs { values, distinct }
        };
        Ok(blocks.collect::<Vec<_>>().into_par_iter().map(of_block).reduce(|| Pairs::NONE, Pairs::and))
    }

    /// Takes over what was found out about all edges, so that nobody looks at them again.
    pub fn know(&self, all: Pairs) {
        self.cache_counts(all.values[0] == all.values[1], all.distinct as usize);
    }
}

impl Features {
    /// The rows of a range, in place where they lie in a mapped file. Looks at no other row.
    #[must_use]
    pub fn part(&self, rows: Range<usize>) -> Features {
        match self {
            Features::Dense { columns, values } => Features::Dense {
                columns: *columns,
                values: values.part(rows.start * columns..rows.end * columns),
            },
            Features::Half { columns, values } => Features::Half {
                columns: *columns,
                values: values.part(rows.start * columns..rows.end * columns),
            },
            Features::Sparse { columns, offsets, indices, values } => {
                let entries = offsets[rows.start] as usize..offsets[rows.end] as usize;
                let own = offsets[rows.start..=rows.end].iter().map(|&at| at - entries.start as u64);
                Features::Sparse {
                    columns: *columns,
                    offsets: own.collect::<Vec<u64>>().into(),
                    indices: indices.part(entries.clone()),
                    values: values.as_ref().map(|values| values.part(entries)),
                }
            }
        }
    }

    /// How many entries all rows have where they are sparse; 0 where they are dense.
    pub fn all_entries(&self) -> usize {
        match self {
            Features::Dense { .. } | Features::Half { .. } => 0,
            Features::Sparse { indices, .. } => indices.len(),
        }
    }

    /// How many entries a row has where rows are sparse; 0 where they are dense.
    pub fn entries(&self, row: usize) -> usize {
        match self {
            Features::Dense { .. } | Features::Half { .. } => 0,
            Features::Sparse { offsets, .. } => (offsets[row + 1] - offsets[row]) as usize,
        }
    }
}

impl Split {
    /// The parts of the nodes of a range.
    #[must_use]
    pub fn part_of(&self, nodes: Range<usize>) -> Split {
        Split::from_parts(nodes.map(|node| self.part(node)))
    }
}

/// Borders between this many processes: each holds about as many edges and rows as any other. With `chunk`, borders
/// stand only where every `chunk`-th training node does, or at the ends.
pub fn borders(graph: &Graph, split: &Split, processes: usize, chunk: Option<usize>) -> Vec<usize> {
    const ROW_COST: u64 = 16;
    let (nodes, offsets) = (graph.nodes(), graph.offsets());
    let cost = |row: usize| offsets[row] + ROW_COST * row as u64;
    let allowed: Option<Vec<usize>> = chunk.map(|chunk| {
        let starts = split.nodes(Part::Train).step_by(chunk.max(1)).skip(1);
        std::iter::once(0).chain(starts).chain([nodes]).collect()
    });
    let mut borders = vec![0];
    for process in 1..processes as u64 {
        let target = (u128::from(cost(nodes)) * u128::from(process) / processes as u128) as u64;
        let border = match &allowed {
            None => partition_point(nodes, |row| cost(row) < target),
            Some(allowed) => {
                let after = allowed.partition_point(|&row| cost(row) < target).min(allowed.len() - 1);
                let (low, high) = (allowed[after.saturating_sub(1)], allowed[after]);
                if target.saturating_sub(cost(low)) < cost(high).saturating_sub(target) { low } else { high }
            }
        };
        borders.push(border.max(borders[borders.len() - 1]));
    }
    borders.push(nodes);
    borders
}

fn partition_point(rows: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, rows);
    while low < high {
        let middle = (low + high) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph::tests::graph;
    use crate::transform::{deduplicate, remove_self_loops};

    proptest! {
        #[test]
        fn parts_sum_as_the_whole(
            nodes in 1..150u32,
            edges in prop::collection::vec((0..150u32, 0..150u32), 0..600),
            cut in 0..150usize,
        ) {
            let graph = graph(nodes, &edges);
            let clean = deduplicate(remove_self_loops(graph.clone()));
            let (nodes, cut) = (nodes as usize, cut.min(nodes as usize));
            let messages: Vec<i8> = (0..nodes * 3).map(|i| (i * 37 % 201) as i8).collect();
            let mut whole = vec![0i32; nodes * 3];
            aggregate::wide_sum(&clean, 3, &messages, &mut whole).expect("sums");
            let mut sent = vec![0; nodes];
            let mut found = vec![];
            for rows in [0..cut, cut..nodes] {
                let part = PartGraph::new(&graph, rows.clone());
                let own: Vec<i8> = part.senders().iter().flat_map(|&s| messages[s as usize * 3..][..3].to_vec()).collect();
                let mut sums = vec![0i32; rows.len() * 3];
                part.sum(3, &own, &mut sums).expect("sums");
                found.extend(sums);
                part.senders().iter().zip(part.sent().expect("the same edges")).for_each(|(&s, count)| sent[s as usize] += count);
            }
            prop_assert_eq!(found, whole);
            prop_assert_eq!(sent, clean.out_degrees());
            // Of every third sender the edges at odd places among those of the part.
            for rows in [0..cut, cut..nodes] {
                let part = PartGraph::new(&graph, rows.clone());
                let (mut staying, mut expected) = (Staying::default(), vec![0i32; rows.len() * 3]);
                for &sender in part.senders() {
                    let receivers: Vec<usize> =
                        rows.clone().filter(|&row| clean.in_neighbours(row).contains(&sender)).collect();
                    let odd: Vec<u32> = (0..receivers.len() as u32).filter(|place| place % 2 == 1).collect();
                    if sender % 3 == 0 { staying.only(&odd) } else { staying.all() }
                    for (place, receiver) in receivers.into_iter().enumerate() {
                        if sender % 3 != 0 || place % 2 == 1 {
                            let to = &mut expected[(receiver - rows.start) * 3..][..3];
                            to.iter_mut().zip(&messages[sender as usize * 3..]).for_each(|(s, &m)| *s += i32::from(m));
                        }
                    }
                }
                let kept = part.keeping(&staying).expect("places of edges");
                let own: Vec<i8> = kept.senders().iter().flat_map(|&s| messages[s as usize * 3..][..3].to_vec()).collect();
                let mut sums = vec![0i32; rows.len() * 3];
                kept.sum(3, &own, &mut sums).expect("sums");
                prop_assert_eq!(sums, expected);
            }
            let pairs = |rows| graph.pairs(rows, [12345, 67890]).expect("few nodes");
            let all = Pairs::from_numbers(pairs(0..cut).and(pairs(cut..nodes)).to_numbers());
            prop_assert_eq!(all.distinct as usize, graph.distinct_edges());
            prop_assert_eq!(all.values[0] == all.values[1], graph.is_symmetric());
        }

        #[test]
        fn borders_rise_and_stand_where_chunks_begin(
            parts in prop::collection::vec(0..4u8, 1..200), processes in 1..9usize, chunk in 1..40usize,
        ) {
            let nodes = parts.len() as u32;
            let graph = graph(nodes, &[(0, 1), (1, 0), (5, 3)]);
            let names = [Part::Train, Part::Val, Part::Test, Part::Unused];
            let split = Split::from_parts(parts.iter().map(|&code| names[code as usize]));
            for chunk in [None, Some(chunk)] {
                let borders = borders(&graph, &split, processes, chunk);
                prop_assert_eq!((borders.len(), borders[0], borders[processes]), (processes + 1, 0, nodes as usize));
                prop_assert!(borders.is_sorted());
                if let Some(chunk) = chunk {
                    let before = |border: usize| split.nodes(Part::Train).filter(|&node| node < border).count();
                    let all = before(nodes as usize);
                    prop_assert!(borders.iter().all(|&border| before(border) % chunk == 0 || before(border) == all));
                }
            }
        }
    }
}
