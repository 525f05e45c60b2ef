//! Changes to a data set between loading and use, in the order in which they are applied.

use std::path::{Path, PathBuf};

use clap::Args;
use progap_graph::{Dataset, Problem, Ratios, Result, transform};
use serde::{Deserialize, Serialize};

/// Changes of the data.
#[derive(Args, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Transforms {
    /// Keep only the nodes listed in this file, one id per line
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_nodes: Option<PathBuf>,
    /// Split at random, even if the data has its own split
    #[arg(long, help_heading = "Data")]
    pub resplit: bool,
    /// Keep classes with at least this many nodes
    #[arg(long, value_name = "N", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_class_count: Option<usize>,
    /// Drop duplicate edges
    #[arg(long, help_heading = "Data")]
    deduplicate: bool,
    /// Remove self-loops
    #[arg(long, help_heading = "Data")]
    remove_self_loops: bool,
    /// The direction that runs kept when turning edges round was a change of the data; now it is a setting.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Direction::is_in")]
    direction: Direction,
    /// Remove nodes without edges
    #[arg(long, help_heading = "Data")]
    remove_isolated: bool,
}

/// Along which edges nodes receive.
#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Direction {
    /// Those that point to them.
    #[default]
    In,
    /// Those that they point to.
    Out,
}

impl Direction {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    fn is_in(&self) -> bool {
        *self == Direction::In
    }
}

impl Transforms {
    /// Nothing changed but, if so, the split.
    #[cfg(feature = "mpi")]
    pub fn only_split(resplit: bool) -> Transforms {
        Transforms { resplit, ..Transforms::default() }
    }

    /// The same, with the last name alone of an absolute path: nobody else needs to know the owner's folders.
    #[must_use]
    pub fn published(&self, name: impl Fn(&Path) -> PathBuf) -> Transforms {
        Transforms { keep_nodes: self.keep_nodes.as_deref().map(name), ..self.clone() }
    }

    /// The file of the nodes to keep.
    pub fn kept_nodes(&self) -> Option<&Path> {
        self.keep_nodes.as_deref()
    }

    /// The switches that are on and change what the data are.
    pub fn switches(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.deduplicate, "--deduplicate"),
            (self.remove_self_loops, "--remove-self-loops"),
            (self.remove_isolated, "--remove-isolated"),
        ];
        all.into_iter().filter_map(|(on, name)| on.then_some(name))
    }

    /// Applies what was asked for.
    pub fn apply(&self, mut dataset: Dataset, ratios: Ratios, seed: u64) -> Result<Dataset> {
        if let Some(file) = &self.keep_nodes {
            dataset = keep_nodes(&dataset, file)?;
        }
        if self.resplit {
            dataset = dataset.with_random_split(ratios, seed)?;
        }
        if let Some(min_count) = self.min_class_count {
            dataset = transform::keep_frequent_classes(&dataset, min_count)?;
        }
        if self.direction == Direction::Out {
            dataset = transform::map_graph(dataset, |graph| graph.transpose())?;
        }
        if self.deduplicate {
            dataset = transform::map_graph(dataset, transform::deduplicate)?;
        }
        if self.remove_self_loops {
            dataset = transform::map_graph(dataset, transform::remove_self_loops)?;
        }
        if self.remove_isolated {
            dataset = transform::remove_isolated_nodes(&dataset)?;
        }
        Ok(dataset)
    }
}

fn keep_nodes(dataset: &Dataset, file: &Path) -> Result<Dataset> {
    let list = std::fs::read_to_string(file).map_err(|e| progap_graph::Error::from(e).in_file(file))?;
    let positions = dataset.node_ids().positions(dataset.nodes());
    let mut nodes = Vec::new();
    for (line, id) in list.lines().enumerate().filter(|(_, id)| !id.trim().is_empty()) {
        let place = progap_graph::Place::Row(line as u64 + 1);
        let unknown = || Problem::UnknownNode(id.trim().into()).at(place).in_file(file);
        nodes.push(*positions.get(id.trim()).ok_or_else(unknown)?);
    }
    // The order of a list is nobody's statement.
    nodes.sort_unstable();
    transform::induced_subgraph(dataset, &nodes).map_err(|e| e.in_file(file))
}
