//! The ids of a node table, and from an id back to its node.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, Hash, Hasher};

use super::cell::{Cell, Checked, canonical_integer, whole};
use crate::{NodeIds, Problem, room};

/// The id column of a node table while it is read: integers as long as every id is one.
#[derive(Debug)]
pub(super) enum IdColumn {
    Integers(Vec<i64>),
    Text(Texts),
}

/// Texts, one after the other.
#[derive(Debug)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    offsets: Vec<u64>,
}

impl Texts {
    fn push(&mut self, text: &str) -> Checked<()> {
        if self.bytes.capacity() - self.bytes.len() < text.len() {
            room::grow(&mut self.bytes, text.len())?;
        }
        self.bytes.extend_from_slice(text.as_bytes());
        room::push(&mut self.offsets, self.bytes.len() as u64)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.offsets.windows(2).map(|w| &self.bytes[w[0] as usize..w[1] as usize])
    }
}

/// The kinds of ids, as messages state them.
const ID_KINDS: &str = "node ids are integers or text";

impl IdColumn {
    /// A column without rows.
    pub(super) fn new() -> Self {
        IdColumn::Integers(Vec::new())
    }

    /// Adds a row.
    pub(super) fn push(&mut self, cell: Cell) -> Checked<()> {
        match Id::from_cell(cell)? {
            Id::Integer(id) => self.push_integer(id),
            Id::Text(text) => self.push_text(text),
            Id::Unsigned(id) => self.push_text(&id.to_string()),
        }
    }

    fn push_integer(&mut self, id: i64) -> Checked<()> {
        match self {
            IdColumn::Integers(ids) => room::push(ids, id),
            IdColumn::Text(texts) => texts.push(&id.to_string()),
        }
    }

    fn push_text(&mut self, text: &str) -> Checked<()> {
        if let IdColumn::Integers(ids) = self {
            // Every integer was canonical, so it is spelt as it was read.
            let mut texts = Texts { bytes: Vec::new(), offsets: vec![0] };
            ids.iter().try_for_each(|id| texts.push(&id.to_string()))?;
            *self = IdColumn::Text(texts);
        }
        match self {
            IdColumn::Text(texts) => texts.push(text),
            IdColumn::Integers(_) => Ok(()),
        }
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        match self {
            IdColumn::Integers(ids) => ids.len(),
            IdColumn::Text(texts) => texts.offsets.len() - 1,
        }
    }

    /// The way from ids to nodes, or the first node whose id an earlier node has.
    pub(super) fn index(&self) -> Result<NodeIndex<'_>, Duplicate> {
        match self {
            IdColumn::Integers(ids) => index_integers(ids),
            IdColumn::Text(texts) => {
                let mut nodes = HashMap::with_capacity(self.len());
                for (node, text) in texts.iter().enumerate() {
                    insert(&mut nodes, text, node)?;
                }
                Ok(NodeIndex::Text(nodes))
            }
        }
    }

    /// The ids for good.
    pub(super) fn into_ids(self) -> NodeIds {
        match self {
            IdColumn::Integers(ids) => NodeIds::from_integers(ids),
            IdColumn::Text(Texts { bytes, offsets }) => {
                NodeIds::Text { bytes: bytes.into(), offsets: offsets.into() }
            }
        }
    }

    /// The id of a node, as text.
    pub(super) fn name(&self, node: usize) -> String {
        match self {
            IdColumn::Integers(ids) => ids[node].to_string(),
            IdColumn::Text(texts) => texts
                .iter()
                .nth(node)
                .map(|text| String::from_utf8_lossy(text).into_owned())
                .unwrap_or_default(),
        }
    }
}

/// Two nodes with the same id.
#[derive(Debug, PartialEq)]
pub(super) struct Duplicate {
    pub(super) first: usize,
    pub(super) second: usize,
}

fn insert<K: Hash + Eq, S: BuildHasher>(
    nodes: &mut HashMap<K, u32, S>,
    id: K,
    node: usize,
) -> Result<(), Duplicate> {
    match nodes.entry(id) {
        Entry::Vacant(slot) => {
            slot.insert(node as u32);
            Ok(())
        }
        Entry::Occupied(slot) => Err(Duplicate { first: *slot.get() as usize, second: node }),
    }
}

fn index_integers(ids: &[i64]) -> Result<NodeIndex<'_>, Duplicate> {
    let (lowest, highest) =
        ids.iter().fold((i64::MAX, i64::MIN), |(low, high), &id| (low.min(id), high.max(id)));
    let range = highest.checked_sub(lowest).unwrap_or(i64::MAX) as u64;
    if range >= 4 * ids.len() as u64 + 1024 {
        let mut nodes = HashMap::with_capacity_and_hasher(ids.len(), IntegerHash::random());
        for (node, &id) in ids.iter().enumerate() {
            insert(&mut nodes, id, node)?;
        }
        return Ok(NodeIndex::Integers(nodes));
    }
    // Ids that lie close together index a table: no hashing, and usually one read from cache.
    let mut table = vec![FREE; if ids.is_empty() { 0 } else { range as usize + 1 }];
    for (node, &id) in ids.iter().enumerate() {
        let slot = &mut table[(id - lowest) as usize];
        if *slot != FREE {
            return Err(Duplicate { first: *slot as usize, second: node });
        }
        *slot = node as u32;
    }
    Ok(NodeIndex::Table { lowest, table })
}

/// Hashes integers by two multiplications with secret factors: a few times faster than the standard hash, and
/// ids made to collide would have to know the factors.
#[derive(Debug, Clone, Copy)]
pub(super) struct IntegerHash {
    mask: u64,
    factor: u64,
    hash: u64,
}

impl IntegerHash {
    fn random() -> Self {
        let state = RandomState::new();
        IntegerHash { mask: state.hash_one(0u8), factor: state.hash_one(1u8) | 1, hash: 0 }
    }
}

impl BuildHasher for IntegerHash {
    type Hasher = IntegerHash;

    fn build_hasher(&self) -> IntegerHash {
        *self
    }
}

impl Hasher for IntegerHash {
    #[inline]
    fn write_i64(&mut self, value: i64) {
        let fold = |value: u64, factor: u64| {
            let product = u128::from(value) * u128::from(factor);
            product as u64 ^ (product >> 64) as u64
        };
        // One round spreads ids badly that differ in their highest bits alone.
        let first = fold(value as u64 ^ self.mask ^ self.hash, self.factor);
        self.hash = fold(first ^ self.factor, self.mask | 1);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_i64(byte.into()));
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

const FREE: u32 = u32::MAX;

/// From an id to its node.
#[derive(Debug)]
pub(super) enum NodeIndex<'a> {
    Table { lowest: i64, table: Vec<u32> },
    Integers(HashMap<i64, u32, IntegerHash>),
    Text(HashMap<&'a [u8], u32>),
}

impl NodeIndex<'_> {
    /// The node of an id as it stands in a text.
    #[inline]
    pub(super) fn find_text(&self, id: &[u8]) -> Option<u32> {
        match self {
            NodeIndex::Text(nodes) => nodes.get(id).copied(),
            _ => self.find_integer(canonical_integer(id)?),
        }
    }

    /// The node of an integer id.
    #[inline]
    pub(super) fn find_integer(&self, id: i64) -> Option<u32> {
        match self {
            NodeIndex::Table { lowest, table } => {
                let at = usize::try_from(id.checked_sub(*lowest)?).ok()?;
                table.get(at).copied().filter(|&node| node != FREE)
            }
            NodeIndex::Integers(nodes) => nodes.get(&id).copied(),
            NodeIndex::Text(nodes) => nodes.get(id.to_string().as_bytes()).copied(),
        }
    }

    /// The node that a cell names; an empty cell and an unknown id are problems.
    #[inline]
    pub(super) fn find(&self, cell: Cell) -> Checked<u32> {
        let (node, id) = match cell {
            Cell::Integer(id) => (self.find_integer(id), Id::Integer(id)),
            cell => match Id::from_cell(cell)? {
                Id::Integer(id) => (self.find_integer(id), Id::Integer(id)),
                Id::Text(text) => (self.find_text(text.as_bytes()), Id::Text(text)),
                Id::Unsigned(id) => (self.find_text(id.to_string().as_bytes()), Id::Unsigned(id)),
            },
        };
        node.ok_or_else(|| {
            Problem::UnknownNode(match id {
                Id::Integer(id) => id.to_string(),
                Id::Text(text) => text.to_string(),
                Id::Unsigned(id) => id.to_string(),
            })
        })
    }
}

enum Id<'a> {
    Integer(i64),
    Text(&'a str),
    Unsigned(u64),
}

impl<'a> Id<'a> {
    fn from_cell(cell: Cell<'a>) -> Checked<Id<'a>> {
        match cell {
            Cell::Empty | Cell::Untyped("") | Cell::Text("") => Err(Problem::EmptyCell),
            Cell::Number(value) if value.is_nan() => Err(Problem::EmptyCell),
            Cell::Integer(id) => Ok(Id::Integer(id)),
            Cell::Unsigned(id) => Ok(i64::try_from(id).map_or(Id::Unsigned(id), Id::Integer)),
            Cell::Untyped(text) | Cell::Text(text) => {
                Ok(canonical_integer(text.as_bytes()).map_or(Id::Text(text), Id::Integer))
            }
            Cell::Number(value) => match whole(value) {
                Some(id) => Ok(Id::Integer(id)),
                None => Err(Problem::Invalid(format!("the id {value} has a fraction, but {ID_KINDS}"))),
            },
            Cell::Bool(value) => {
                Err(Problem::Invalid(format!("the id {value} is a truth value, but {ID_KINDS}")))
            }
        }
    }
}

/// The id in a cell, as text.
pub(super) fn id_text(cell: Cell) -> Checked<String> {
    Ok(match Id::from_cell(cell)? {
        Id::Integer(id) => id.to_string(),
        Id::Text(text) => text.to_string(),
        Id::Unsigned(id) => id.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(ids: &[&str]) -> IdColumn {
        let mut column = IdColumn::new();
        ids.iter().for_each(|id| column.push(Cell::Untyped(id)).unwrap());
        column
    }

    #[test]
    fn every_kind_of_id_is_found_again() {
        let kinds: [&[&str]; 5] = [
            &["0", "1", "2"],
            &["5", "-3", "4"],
            &["9223372036854775807", "-9223372036854775808", "0"],
            &["7", "007", "x"],
            &["a,b", "", "ü"].map(|id| if id.is_empty() { "18446744073709551615" } else { id }),
        ];
        for ids in kinds {
            let column = column(ids);
            let index = column.index().unwrap();
            for (node, id) in ids.iter().enumerate() {
                assert_eq!(index.find_text(id.as_bytes()), Some(node as u32), "{id}");
                assert_eq!(index.find(Cell::Untyped(id)).unwrap(), node as u32);
                assert_eq!(column.name(node), *id);
                if let Ok(id) = id.parse::<i64>() {
                    assert!(index.find_integer(id).is_some());
                }
            }
            for missing in ["3", "00", "y", "9223372036854775806"] {
                assert_eq!(index.find_text(missing.as_bytes()), None, "{missing} in {ids:?}");
            }
            assert_eq!(index.find_integer(i64::MIN).is_some(), ids.contains(&"-9223372036854775808"));
        }
        let unsigned = column(&["18446744073709551615"]);
        assert_eq!(unsigned.index().unwrap().find(Cell::Unsigned(u64::MAX)).unwrap(), 0);
    }

    #[test]
    fn regular_integers_spread_over_buckets() {
        // 65,536 ids in 65,536 buckets: a random map fills about 41,400 of them.
        for step in [1 << 20, 1 << 40, 1_000_003, 1 << 47] {
            let hash = IntegerHash { mask: 0x9e37_79b9_7f4a_7c15, factor: 0xd1b5_4a32_d192_ed03, hash: 0 };
            let mut buckets = vec![false; 1 << 16];
            for id in 0..1i64 << 16 {
                buckets[hash.hash_one(id.wrapping_mul(step)) as usize & 0xffff] = true;
            }
            let filled = buckets.iter().filter(|&&filled| filled).count();
            assert!(filled > 32_768, "step {step}: {filled}");
        }
    }

    #[test]
    fn the_second_of_two_equal_ids_is_named() {
        for ids in [&["3", "4", "3"], &["1", "1000000", "1"], &["a", "b", "a"]] {
            assert_eq!(column(ids).index().unwrap_err(), Duplicate { first: 0, second: 2 });
        }
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let mut column = IdColumn::new();
        for cell in [Cell::Empty, Cell::Text(""), Cell::Number(0.5), Cell::Number(f64::NAN), Cell::Bool(true)]
        {
            assert!(column.push(cell).is_err(), "{cell:?}");
        }
        column.push(Cell::Number(3.0)).unwrap();
        assert_eq!(column.name(0), "3");
    }
}
