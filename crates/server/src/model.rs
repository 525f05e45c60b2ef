//! A release as it is served: what it says of its own nodes, and of rows that are new to it.

use std::collections::HashMap;
use std::path::Path;

use axum::http::StatusCode;
use progap::release::{Predictions, Used, missing_for_predictions, verify_guarantee};
use progap::{Error, Level, Release, Result};
use progap_export::{PublicKey, signed};
use progap_formats::read::encoding::Encoding;
use progap_formats::read::table::{LaterOptions, LaterTable, Reject, Schema};

use crate::error::Refusal;

/// A release that was opened and verified.
pub(crate) struct Model {
    pub name: String,
    pub release: Release,
    /// The names of classes, as JSON.
    pub classes: Vec<String>,
    own: std::result::Result<Own, String>,
}

/// What it says of its own nodes. That is decided once the release is there, so it is computed once.
struct Own {
    positions: HashMap<String, u32>,
    classes: Vec<u32>,
    probabilities: Vec<f32>,
}

/// The most probable class of a node, and the probability of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer<'a> {
    pub class: u32,
    pub probabilities: &'a [f32],
}

/// What is said of new rows.
pub(crate) struct Scored {
    pub ids: Vec<String>,
    pub predictions: Predictions,
    pub used: Used,
    pub rejects: Vec<Reject>,
}

impl Model {
    /// Opens a release and recomputes its guarantee. What is private is opened where it is needed alone: at node level,
    /// where `opens_private` says that nodes can show who they are.
    pub fn open(name: &str, folder: &Path, opens_private: bool, signer: Option<&PublicKey>) -> Result<Model> {
        let refused =
            |problem: String| Error::unsuitable(format!("{}: it is not served: {problem}", folder.display()));
        if let Some(signer) = signer {
            let (finding, found) = signed(folder, Some(signer))?;
            if !found.asked_for {
                return Err(refused(format!("signature: {}", finding.detail)));
            }
        }
        let mut release = Release::open_public(folder)?;
        let covered = release.covers_predictions();
        if release.level() == Level::Node && covered && opens_private && release.exported.is_none() {
            release = Release::open(folder)?;
        }
        if let Some(wrong) = verify_guarantee(&release)?.into_iter().find(|finding| !finding.ok) {
            return Err(refused(format!("{}: {}", wrong.what, wrong.detail)));
        }
        // Whatever the token, a prediction that the guarantee does not cover would show them rows of others.
        let not_covered = "predictions of this method read rows of other nodes as they are, which the guarantee does \
                           not cover: they are for the data owner alone, and are not served";
        let missing = if covered { missing_for_predictions(&release) } else { Some(not_covered) };
        let own = match missing {
            Some(missing) => Err(missing.to_string()),
            None => Ok(Own::of(&release)?),
        };
        let classes = release
            .nodes()
            .class_names()
            .iter()
            .map(|name| serde_json::Value::from(name.as_str()).to_string());
        Ok(Model { name: name.into(), classes: classes.collect(), own, release })
    }

    /// The release's name among its versions.
    pub fn version(&self) -> &str {
        &self.release.sha256()[..16]
    }

    /// Whether predictions about its own nodes are for their owners alone.
    pub fn is_personal(&self) -> bool {
        self.release.level() == Level::Node
    }

    /// Whether it makes predictions about its own nodes, else why not.
    pub fn knows_nodes(&self) -> std::result::Result<(), &str> {
        self.own.as_ref().map(|_| ()).map_err(String::as_str)
    }

    /// Whether it makes predictions about new rows.
    pub fn knows_columns(&self) -> bool {
        self.release.schema().is_some_and(|schema| !schema.columns().is_empty())
    }

    /// The columns that new rows have, with the type of each.
    pub fn columns(&self) -> Vec<(String, &'static str)> {
        let columns = self.release.schema().into_iter().flat_map(Schema::columns);
        columns
            .map(|column| (column.name().into(), if column.is_number() { "FP64" } else { "BYTES" }))
            .collect()
    }

    /// What it says of a node.
    pub fn node(&self, id: &str) -> std::result::Result<Answer<'_>, Refusal> {
        let own = self.own.as_ref().map_err(|why| Refusal::new(StatusCode::NOT_FOUND, why.as_str()))?;
        let Some(&at) = own.positions.get(id) else {
            let shown: String = id.chars().take(80).collect();
            return Err(Refusal::new(StatusCode::NOT_FOUND, format!("the release has no node {shown:?}")));
        };
        let (at, classes) = (at as usize, self.classes.len());
        Ok(Answer { class: own.classes[at], probabilities: &own.probabilities[at * classes..][..classes] })
    }

    /// What it says of the rows of a table, by their features alone.
    pub fn rows(&self, table: LaterTable<'_>, lenient: bool) -> std::result::Result<Scored, Refusal> {
        let options = LaterOptions { id_column: Some("id"), lenient, encoding: Encoding::from_name("utf-8") };
        let found = self.release.predict_rows(table, &options);
        let found = found.map_err(|error| Refusal::bad(error.to_string()))?;
        let ids = found
            .read
            .rows
            .as_ref()
            .map_or(vec![], |rows| (0..rows.nodes()).map(|at| rows.node_ids().name(at)).collect());
        Ok(Scored { ids, predictions: found.predictions, used: found.used, rejects: found.read.rejects })
    }

    /// What predictions about its own nodes are made of.
    pub fn used(&self) -> Used {
        self.release.used()
    }
}

impl Scored {
    /// What is said of each row that fits.
    pub fn answers(&self, classes: usize) -> impl Iterator<Item = Answer<'_>> + Clone {
        let rows = self.predictions.probabilities.chunks_exact(classes.max(1));
        self.predictions
            .classes
            .iter()
            .zip(rows)
            .map(|(&class, probabilities)| Answer { class, probabilities })
    }
}

impl Own {
    fn of(release: &Release) -> Result<Own> {
        let nodes = release.nodes();
        let everyone: Vec<u32> = (0..nodes.nodes() as u32).collect();
        let (mut classes, mut probabilities) = (vec![], vec![]);
        release.predict_in_blocks(&everyone, |found| {
            classes.extend(found.classes);
            probabilities.extend(found.probabilities);
            Ok::<(), progap::Error>(())
        })?;
        Ok(Own { positions: nodes.node_ids().positions(nodes.nodes()), classes, probabilities })
    }
}
