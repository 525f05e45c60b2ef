//! `progap verify`: recompute everything in a release that can be recomputed.

use std::path::PathBuf;

use clap::Args;
use progap::release::{self, Finding, Verdict};

use super::Outcome;
use crate::ui;

/// Check a release: files, sizes, accuracies, the list of queries, delta by its rule, and epsilon by two accountants
#[derive(Args)]
#[command(after_help = "\
What a release says is recomputed from the release itself, or listed as claimed: nothing in it can show that. A folder from a \
stranger can be checked without harm: nothing outside of it is read, no link is followed, and what no release has is refused.")]
pub struct Verify {
    /// The folder of a release
    release: PathBuf,
    /// Print a JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Runs the command; anything wrong makes it fail.
    pub fn run(self) -> Outcome {
        let findings = release::verify(&self.release)?;
        let ok = findings.iter().all(|finding| finding.ok);
        if self.json {
            ui::print(&serde_json::to_string_pretty(
                &serde_json::json!({ "ok": ok, "findings": findings }),
            )?)?;
        } else {
            // What nobody can recompute stands apart from what was.
            let (claimed, checked): (Vec<&Finding>, Vec<&Finding>) =
                findings.iter().partition(|finding| finding.verdict == Verdict::Claimed);
            let row = |finding: &&Finding| {
                [finding.verdict.to_string(), finding.what.clone(), finding.detail.clone()]
            };
            ui::print(&ui::table(["", "checked", "found"], checked.iter().map(row)))?;
            ui::print(&format!("\n{}", ui::table(["", "not recomputed", "said"], claimed.iter().map(row))))?;
        }
        if ok {
            Ok(())
        } else {
            Err(format!("{}: this release must not be trusted", self.release.display()).into())
        }
    }
}
