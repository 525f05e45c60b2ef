//! The tables of a folder, by their names.

use std::path::{Path, PathBuf};

use super::{ENDINGS, Format};
use crate::{InFile, Problem, Result, file};

/// The tables of a folder: `nodes` and `edges`; or `target` and `edges`, perhaps beside `features`, as karateclub and
/// MUSAE publish them, there with the name of the graph in front (`lastfm_asia_edges.csv`).
#[derive(Debug, PartialEq)]
pub(super) struct Tables {
    pub(super) nodes: PathBuf,
    pub(super) edges: PathBuf,
    /// A list of the features of each node.
    pub(super) features: Option<PathBuf>,
}

impl Tables {
    pub(super) fn of(folder: &Path) -> Result<Tables> {
        let edges = required(folder, "edges", &["edges"])?;
        let nodes = required(folder, "nodes", &["nodes", "target"])?;
        let is_nodes = stem_is(&nodes, "nodes");
        let features = if is_nodes { None } else { one(folder, "features", &["features"])? };
        Ok(Tables { nodes, edges, features })
    }
}

/// Whether a folder holds a table of nodes or of edges.
pub(in crate::read) fn is_table_folder(folder: &Path) -> bool {
    let holds = |stem: &str| tables_called(folder, stem).is_ok_and(|tables| !tables.is_empty());
    let named = |stem: &str| named_after_a_graph(folder, stem).is_ok_and(|tables| !tables.is_empty());
    holds("nodes") || holds("edges") || named("edges") && (named("target") || named("nodes"))
}

/// The tables in a folder that are called `stem`, by name.
pub(crate) fn tables_called(folder: &Path, stem: &str) -> Result<Vec<PathBuf>> {
    files(folder, &|path, name| {
        let ending = name.strip_prefix(stem);
        let is_parts = || ending == Some("") && path.is_dir() && parquet_parts(path).is_ok();
        is_ending(ending) || stem == "features" && ending == Some(".json") || is_parts()
    })
}

/// The tables in a folder that are called `stem` behind the name of a graph, by name.
fn named_after_a_graph(folder: &Path, stem: &str) -> Result<Vec<PathBuf>> {
    files(folder, &|_, name| {
        let ending = ["_", "-"].iter().find_map(|mark| Some(name.rsplit_once(&format!("{mark}{stem}"))?.1));
        is_ending(ending) || stem == "features" && ending == Some(".json")
    })
}

fn is_ending(ending: Option<&str>) -> bool {
    ENDINGS.iter().any(|(known, _)| ending == Some(known))
}

fn stem_is(path: &Path, stem: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    name.split('.').next().is_some_and(|name| name.ends_with(stem))
}

/// The files and folders of a folder, by path and name in small letters.
fn files(folder: &Path, wanted: &dyn Fn(&Path, &str) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).in_file(folder)? {
        let path = entry.in_file(folder)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if wanted(&path, &name) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The Parquet files of a folder that is one table, by name. What others leave beside them, such as `_SUCCESS`, is no
/// part.
pub(super) fn parquet_parts(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(folder).in_file(folder)? {
        let path = entry.in_file(folder)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match name {
            _ if name.starts_with(['_', '.']) => {}
            _ if path.is_dir() => {
                let message = format!("the folder is a table in parts, and holds another folder, {name}");
                return Err(Problem::Unsupported(message).in_file(folder));
            }
            _ if Format::of(&path).is_ok_and(|format| format == Format::Parquet) => {
                parts.push(file::within(folder, path)?);
            }
            _ => {}
        }
    }
    parts.sort();
    match parts.is_empty() {
        false => Ok(parts),
        true => {
            let message = "a folder that is a table holds files that end in .parquet".to_string();
            Err(Problem::NotRecognised(message).in_file(folder))
        }
    }
}

/// The table under the first of these names that there is, if there is one.
fn one(folder: &Path, what: &str, stems: &[&str]) -> Result<Option<PathBuf>> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for find in [tables_called, named_after_a_graph] {
        for stem in stems {
            let mut tables = find(folder, stem)?;
            if tables.len() > 1 {
                let both = tables.iter().map(name).collect::<Vec<_>>().join(" and ");
                let message =
                    format!("the folder holds {both}, and only one of them can be its table of {what}");
                return Err(Problem::Invalid(message).in_file(folder));
            }
            if let Some(table) = tables.pop() {
                return Ok(Some(file::within(folder, table)?));
            }
        }
    }
    Ok(None)
}

fn required(folder: &Path, what: &str, stems: &[&str]) -> Result<PathBuf> {
    if let Some(table) = one(folder, what, stems)? {
        return Ok(table);
    }
    let mut names: Vec<String> = files(folder, &|_, _| true)?
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.truncate(12);
    let found = if names.is_empty() { "nothing".into() } else { names.join(", ") };
    let what = format!(
        "{what} table ({what}.csv, {what}.csv.gz, {what}.csv.zst, {what}.parquet or a folder {what} of .parquet files)"
    );
    Err(Problem::Missing { what, found }.in_file(folder))
}
