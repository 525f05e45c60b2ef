//! `progap methods`: which methods there are.

use clap::Args;
use progap::method::catalogue::methods;

use super::Outcome;
use crate::ui;

/// List the methods: levels, what each protects, and the paper it is from
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap methods
  progap methods --json
  progap train --method gap --level node")]
pub struct Methods {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Methods {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&methods().collect::<Vec<_>>())?);
        }
        let levels =
            |levels: &[progap::Level]| levels.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        for entry in methods() {
            let rows = [
                ("levels", levels(entry.levels)),
                ("what", ui::wrap(entry.what, 100, 16)),
                ("protects", ui::wrap(entry.protects, 100, 16)),
                ("from", entry.paper.to_string()),
            ];
            ui::print(&ui::facts(&entry.method.to_string(), &rows))?;
        }
        Ok(())
    }
}
