//! `progap export`: a copy of a release that may be shared.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use progap::release::{self, Date, Export as Made, Exported};
use progap::{Level, Release};
use progap_export::Form;
use progap_export::SecretKey;

use super::Outcome;
use crate::output::refuse_releases;
use crate::{report, ui};

/// Make a copy of a release that may be shared: dated, with the statement, the public page and a hash
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap export release/ for-others               # without features and labels
  progap export release/ for-others --with-rows   # with them, at edge level: it predicts
  progap export release/ for-others --date 2026-01-31
  progap export release/ for-others --sign me.key # a key of `progap key new me`
  progap export release/ model.onnx --to onnx     # for ONNX Runtime

An export is a release of its own, which `verify`, `inspect` and `report` read. Where the rows of the nodes are left \
out, it makes no predictions. Anyone with the hash, or your public key and \
a signed export, from you can tell that it is yours.")]
pub struct Export {
    /// The folder of a release
    release: PathBuf,
    /// The folder (or file) to make; it must not exist
    out: PathBuf,
    /// Write a form that other tools load: onnx, safetensors, hf or mlflow
    ///
    /// onnx and safetensors are files, hf (with a model card) and mlflow folders.
    #[arg(long, value_name = "FORM", value_parser = PossibleValuesParser::new(Form::ALL.map(|(name, _)| name)),
          conflicts_with_all = ["with_rows", "date", "sign"])]
    to: Option<String>,
    /// With the features and labels of all nodes in the clear; not at node level, where they are private
    #[arg(long)]
    with_rows: bool,
    /// The day that the export bears, as 2026-01-31 [default: today at Greenwich]
    #[arg(long, value_name = "DAY")]
    date: Option<Date>,
    /// Sign the manifest, and with it every file, with a secret key of `progap key new`
    #[arg(long, value_name = "KEY")]
    sign: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Export {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if let Some(form) = self.form() {
            refuse_releases(&self.out)?;
            return self.package(form);
        }
        let exported = Exported { date: self.date.unwrap_or_else(Date::today), rows: self.with_rows };
        // A key that cannot be used is found before anything is written.
        let key = self.sign.as_deref().map(SecretKey::read).transpose()?;
        let made = make(&self.release, &self.out, exported.clone(), key.as_ref())?;
        let signer = key.map(|key| key.public().fingerprint());
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&serde_json::json!({
                "export": self.out,
                "date": exported.date,
                "rows": exported.rows,
                "files": made.files,
                "sha256": made.sha256,
                "signed_by": signer,
            }))?);
        }
        let mut rows = vec![
            ("date", exported.date.to_string()),
            ("guarantee", ui::wrap(&made.release.statement.in_words, 100, 12)),
            ("files", ui::wrap(&made.files.join(", "), 100, 12)),
        ];
        rows.push(("left out", ui::wrap(&left_out(&made), 100, 12)));
        rows.extend(
            release::missing_for_predictions(&made.release).map(|why| ("no predict", ui::wrap(why, 100, 12))),
        );
        rows.push(("SHA-256", made.sha256.clone()));
        rows.extend(signer.as_ref().map(|signer| ("signed by", format!("key {signer}"))));
        let asked = if signer.is_some() { " --signer PUBLIC" } else { "" };
        rows.push(("next", format!("progap verify {}{asked}", self.out.display())));
        ui::print(&ui::facts(&format!("export {}", self.out.display()), &rows))
    }
}

/// Makes a copy of a release that may be shared.
pub fn make(
    release: &Path,
    out: &Path,
    exported: Exported,
    key: Option<&SecretKey>,
) -> Result<Made, Box<dyn std::error::Error>> {
    refuse_releases(out)?;
    let mut page = |release: &Release| Ok(report::html(&report::public(release)?));
    Ok(progap_export::export(release, out, exported, &mut page, key)?)
}

impl Export {
    fn form(&self) -> Option<Form> {
        let name = self.to.as_deref()?;
        Form::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, form)| form)
    }

    fn package(self, form: Form) -> Outcome {
        let release = Release::open(&self.release)?;
        let files = progap_export::package(&release, form, &self.out)?;
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&serde_json::json!({
                "export": self.out,
                "form": self.to,
                "files": files,
                "guarantee": release.guarantee().to_string(),
            }))?);
        }
        let rows = [
            ("guarantee", ui::wrap(&release.statement.in_words, 100, 12)),
            ("files", ui::wrap(&files.join(", "), 100, 12)),
        ];
        ui::print(&ui::facts(&format!("export {}", self.out.display()), &rows))
    }
}

fn left_out(made: &Made) -> String {
    let rows = match (made.release.level(), made.release.has_features()) {
        (Level::Node, _) => ", which holds what is made of private rows and labels",
        (_, false) => ", and the features and labels of all nodes",
        (_, true) => "; features and labels of all nodes are in nodes.progap, in the clear",
    };
    format!("the folder private{rows}")
}
