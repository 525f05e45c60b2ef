//! Readers: one loader that recognises what it is given.

use std::path::Path;

pub mod table;

use crate::error::InFile;
use crate::{Dataset, Problem, Result, transform};

/// What the user knows about the files and the files do not say.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The name of the id column of a node table; `id` if not given.
    pub id_column: Option<String>,
    /// The name of the label column of a node table; `label` if not given.
    pub label_column: Option<String>,
    /// The name of the split column of a node table; `split` (which may be absent) if not given.
    pub split_column: Option<String>,
    /// The name of the source column of an edge table; `source` if not given.
    pub source_column: Option<String>,
    /// The name of the target column of an edge table; `target` if not given.
    pub target_column: Option<String>,
    /// Number columns of a node table that are categories all the same.
    pub categorical: Vec<String>,
    /// What the user says about directions.
    pub direction: Direction,
    /// The seed of the split of data sets that are split while they are prepared.
    pub seed: u64,
}

/// What the user says about the direction of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Edges are as the files have them.
    #[default]
    AsStored,
    /// The graph is undirected: the files list every edge in both directions, or every edge once. Anything in
    /// between contradicts the claim and is an error.
    Undirected,
    /// Every edge gets its edge back where it is missing.
    Symmetrise,
}

/// Loads a data set from a file or folder of any known format.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Dataset> {
    let dataset = read(path, options)?;
    let named = if dataset.name().is_empty() { dataset.named(name_of(path)) } else { dataset };
    match options.direction {
        Direction::AsStored => Ok(named),
        Direction::Undirected => {
            let mut parts = named.into_parts();
            parts.graph = transform::declare_undirected(parts.graph).in_file(path)?;
            Dataset::new(parts)
        }
        Direction::Symmetrise => transform::map_graph(named, transform::symmetrise),
    }
}

fn read(path: &Path, options: &LoadOptions) -> Result<Dataset> {
    let metadata = std::fs::metadata(path).in_file(path)?;
    if metadata.is_dir() && table::is_table_folder(path) {
        return table::read_folder(path, options);
    }
    Err(Problem::NotRecognised("unknown ending".into()).in_file(path))
}

/// The name that a path suggests: the file's name without its endings.
fn name_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(&name).to_string()
}
