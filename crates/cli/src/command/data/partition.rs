//! `progap data partition`: a data set as a folder of parts.

use std::path::PathBuf;

use clap::Args;
use progap_graph::{store, transform};

use super::Outcome;
use crate::output::refuse_releases;
use crate::source::DataSource;
use crate::ui::{self, count};

/// Write a data set as a folder of parts, each with a range of nodes and the edges into them
#[derive(Args)]
// Two names are needed, so that the first cannot be left out.
#[command(mut_arg("dataset", |dataset| dataset.index(1).required(true).default_value(None)))]
#[command(mut_arg("folder", |folder| folder.index(2)))]
#[command(after_help = "\
Examples:
  progap data partition my-graph/ /shared/parts --parts 16
  mpirun -n 4 progap train /shared/parts --method progap-labels

Parts are cut by edges, as ranks are. Any number of ranks reads them, each only the parts that hold its nodes, and \
every command reads \
the folder as one graph.")]
pub struct Partition {
    #[command(flatten)]
    source: DataSource,
    /// A new folder
    #[arg(id = "folder", value_name = "FOLDER")]
    output: PathBuf,
    /// Number of parts
    #[arg(long, value_name = "N")]
    parts: usize,
}

impl Partition {
    pub(super) fn run(self) -> Outcome {
        let name = self.output.display();
        refuse_releases(&self.output)?;
        let is_free =
            std::fs::read_dir(&self.output).map_or(!self.output.exists(), |mut there| there.next().is_none());
        if !is_free {
            return Err(format!("{name}: it already exists: choose another folder").into());
        }
        let dataset = {
            let _spinner = ui::spinner(format!("loading {}", self.source.name()));
            transform::in_order_of_ids(self.source.load()?)?
        };
        {
            let _spinner = ui::spinner(format!("writing {name}"));
            store::write_parts(&dataset, &self.output, self.parts)?;
        }
        let (nodes, edges) = (count(dataset.nodes()), count(dataset.graph().edges()));
        ui::print(&format!("{name}: {nodes} nodes, {edges} directed edges in {} parts", self.parts))
    }
}
