//! `progap verify`: recompute everything in a release that can be recomputed.

use std::path::PathBuf;

use clap::Args;
use progap::release::{self, Finding, Verdict};
use progap_export::PublicKey;
use progap_export::Signed;

use super::Outcome;
use crate::ui;

/// Check a release: files, sizes, accuracies, the list of queries, delta by its rule, epsilon by two accountants, and
/// who signed it
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap verify releases/demo-edge-1
  progap verify for-others --signer me.pub        # refused unless this key signed it
  progap verify for-others --json | jq .signature
  progap verify predictions.csv --signer me.pub   # of `progap predict --sign`
  progap verify predictions.csv           # of `progap predict --new`: what new edges pay

What a release says is recomputed from the release itself, or listed as claimed: nothing in it can show that. A \
 folder from a \
stranger can be checked without harm: nothing outside of it is read, no link is followed, and what no release has is \
refused.

Checksums show that nothing was damaged. Who made a release only a signature can show (`progap export --sign`), by \
 a public \
key that you have from its owner; that training was run as described is not verifiable: it is asserted by the signer.")]
pub struct Verify {
    /// The folder of a release, or a file of signed predictions
    release: PathBuf,
    /// The public key of the expected signer
    #[arg(long, value_name = "PUBLIC")]
    signer: Option<PathBuf>,
    #[command(flatten)]
    pub memory: crate::machine::Memory,
    /// Print a JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Runs the command; anything wrong makes it fail.
    pub fn run(self) -> Outcome {
        let signer = self.signer.as_deref().map(PublicKey::read).transpose()?;
        if self.release.is_file() {
            let mut findings = release::verify_new(&self.release)?;
            let unsigned = signer.is_none() && !progap_export::signature_of(&self.release).is_file();
            let signed = match findings.is_empty() || !unsigned {
                true => {
                    let (more, signed) = progap_export::verify_predictions(&self.release, signer.as_ref())?;
                    findings.extend(more);
                    signed
                }
                false => Signed { fingerprint: None, asked_for: false },
            };
            return self.show(&findings, &signed, "these predictions");
        }
        let (signature, signed) = progap_export::signed(&self.release, signer.as_ref())?;
        // A release without a valid signature by the named signer is not opened at all.
        let stranger = signer.is_some() && !signature.ok;
        let mut findings = if stranger { vec![] } else { release::verify(&self.release)? };
        findings.push(signature);
        self.show(&findings, &signed, "this release")
    }

    /// Prints what was found; anything wrong is an error.
    fn show(&self, findings: &[Finding], signed: &Signed, what: &str) -> Outcome {
        let ok = findings.iter().all(|finding| finding.ok);
        if self.json {
            ui::print(&serde_json::to_string_pretty(
                &serde_json::json!({ "ok": ok, "signature": signed, "findings": findings }),
            )?)?;
        } else {
            // Findings that nobody can recompute stand apart from those that were recomputed.
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
            Err(format!("{}: {what} must not be trusted", self.release.display()).into())
        }
    }
}
