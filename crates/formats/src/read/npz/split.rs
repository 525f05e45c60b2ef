//! Splits: masks, of which there may be several, or lists of nodes.

use std::io::{Read, Seek};

use super::archive::Archive;
use super::layout::ArrayNames;
use crate::{Place, Problem, Remedy, Result, Split, room};

/// The split of an archive, where it has one. `number` chooses one of several; without it, the first is taken.
pub(super) fn read<R: Read + Seek>(
    archive: &mut Archive<R>,
    names: &ArrayNames,
    nodes: u64,
    number: Option<usize>,
) -> Result<Option<Split>> {
    let mut found = Found { any: false, several: false };
    let mut part = |role: &'static str, others: &[&str]| -> Result<Vec<bool>> {
        if let Some(name) = names.get(role) {
            if !archive.has(name) {
                return Err(archive.missing(&format!("array {name:?} ({role})")).remedy(Remedy::Array(role)));
            }
            return read_part(archive, name, nodes, number, &mut found);
        }
        let usual = std::iter::once(role).chain(others.iter().copied());
        let mut keys =
            usual.flat_map(|name| [format!("{name}_mask"), format!("{name}_masks"), format!("{name}_idx")]);
        match keys.find(|key| archive.has(key)) {
            Some(key) => read_part(archive, &key, nodes, number, &mut found),
            None => Ok(room::filled(false, nodes as usize)?),
        }
    };
    let (train, val, test) = (part("train", &[])?, part("val", &["valid"])?, part("test", &[])?);
    if let (Some(number), false) = (number, found.several) {
        let message = format!("split {number} is asked for, and there is one split at most");
        return Err(Problem::Invalid(message).into());
    }
    if found.any { Split::from_masks(&train, &val, &test).map(Some) } else { Ok(None) }
}

struct Found {
    any: bool,
    several: bool,
}

fn read_part<R: Read + Seek>(
    archive: &mut Archive<R>,
    key: &str,
    nodes: u64,
    number: Option<usize>,
    found: &mut Found,
) -> Result<Vec<bool>> {
    found.any = true;
    let array = archive.require(key, "a part of the nodes")?;
    if key.ends_with("_idx") {
        let listed = array.vector("list of nodes", None)?.indices(nodes)?;
        let mut mask = room::filled(false, nodes as usize)?;
        listed.into_iter().for_each(|node| mask[node as usize] = true);
        return Ok(mask);
    }
    match *array.shape() {
        [rows, columns] if columns != 1 && (rows == nodes || columns == nodes) => {
            found.several = true;
            // As many splits as nodes lie as PyTorch Geometric keeps them: a column each.
            let by_column = rows == nodes;
            let splits = if by_column { columns } else { rows };
            let chosen = number.unwrap_or(0) as u64;
            if chosen >= splits {
                let message =
                    format!("there is no split {chosen}: the splits are 0 to {}", splits.saturating_sub(1));
                return Err(Problem::Invalid(message).at(Place::Key(key.into())).remedy(Remedy::Split));
            }
            let flags = array.flags()?;
            let (chosen, splits, nodes) = (chosen as usize, splits as usize, nodes as usize);
            Ok((0..nodes)
                .map(
                    |node| {
                        if by_column { flags[node * splits + chosen] } else { flags[chosen * nodes + node] }
                    },
                )
                .collect())
        }
        _ => array.vector("mask", Some(nodes))?.flags(),
    }
}
