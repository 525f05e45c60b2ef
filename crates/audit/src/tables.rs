//! Canaries for noisy tables: records with a class of their own, so that each moves a row of the table that no other
//! moves.

use progap_graph::{Dataset, Features};
use progap_privacy::noise::{AnySource, Randomness};

use super::AuditTarget;
use super::evidence::{Claim, Evidence, Trial, toss};
use super::mechanism::{classes_of_one, open, unit_vector};
use progap::Result;
use progap::plan::Plan;
use progap::settings::Settings;
use progap::vault::{CLASS_SUMS, ClassSums, LABEL_TABLE, LabelTable};

/// As many canaries as usual.
const CANARIES: usize = 10_000;
/// The columns of a canary's row.
const WIDTH: usize = 8;
/// The length of its features, which the vault has to cut down.
const LENGTH: f32 = 5.0;

/// Canaries whose row in a table is theirs alone.
#[derive(Debug)]
pub struct Tables {
    /// The row of each canary, of length one.
    rows: Vec<f32>,
}

impl Tables {
    /// This many canaries.
    pub fn new(canaries: usize) -> Tables {
        Tables { rows: (0..canaries).flat_map(|node| unit_vector(node, WIDTH)).collect() }
    }

    /// The rows of some canaries, as a table of labels takes them.
    pub fn public_rows(&self, nodes: &[u32]) -> Vec<f32> {
        nodes.iter().flat_map(|&node| self.row(node as usize)).copied().collect()
    }

    fn row(&self, node: usize) -> &[f32] {
        &self.rows[node * WIDTH..][..WIDTH]
    }

    /// The canaries that coins choose, as training records; the others have no label, and none of their rows is read.
    fn dataset(&self, coins: &[bool]) -> Result<Dataset> {
        let nodes = coins.len();
        let features = self.rows.iter().map(|value| value * LENGTH).collect::<Vec<f32>>();
        classes_of_one(coins, Features::dense(nodes, WIDTH, features)?)
    }

    /// The vault's answer.
    ///
    /// # Errors
    /// As the queries of the vault.
    pub fn ask(
        &self,
        kind: TableKind,
        data: Dataset,
        (settings, plan): (&Settings, &Plan),
        randomness: Randomness<AnySource>,
    ) -> Result<Table> {
        let mut vault = open(data, settings, plan, randomness)?;
        if kind == TableKind::ClassSums {
            let sums = vault.ask(ClassSums)?;
            return Ok(Table { values: sums.sums, width: sums.width });
        }
        // Longer than they may be, as the features are.
        let make = |nodes: &[u32]| -> Result<Vec<f32>> {
            Ok(self.public_rows(nodes).into_iter().map(|value| value * LENGTH).collect())
        };
        let (values, _) = vault.ask(LabelTable { label: LABEL_TABLE.into(), width: WIDTH, make: &make })?;
        Ok(Table { values, width: WIDTH })
    }

    /// Asks a mechanism once for a table of the canaries that coins choose: a row for each class, of which the first
    /// columns are read.
    ///
    /// # Errors
    /// Errors of the mechanism.
    pub fn experiment(
        &self,
        coins: Vec<bool>,
        mechanism: &mut dyn FnMut(Dataset) -> Result<Table>,
    ) -> Result<Evidence> {
        let Table { values, width } = mechanism(self.dataset(&coins)?)?;
        let score = |node: usize| {
            let products = values[node * width..].iter().zip(self.row(node));
            products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
        };
        Ok(Evidence { scores: (0..coins.len()).map(score).collect(), coins, threshold: 0.5 })
    }
}

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// Sums of own rows over each class.
    ClassSums,
    /// Sums of public rows over each class.
    Labels,
}

impl TableKind {
    /// Both.
    pub const ALL: [TableKind; 2] = [TableKind::ClassSums, TableKind::Labels];

    fn query(self) -> &'static str {
        match self {
            TableKind::ClassSums => CLASS_SUMS,
            TableKind::Labels => LABEL_TABLE,
        }
    }

    /// What is claimed of it; nothing where a run does not ask for it.
    ///
    /// # Errors
    /// As [`Claim::of`].
    pub fn claim(self, plan: &Plan) -> Result<Option<Claim>> {
        let query = plan.queries.get(self.query());
        query.map(|query| Claim::of(&query.event, plan.delta)).transpose()
    }
}

/// A table as it is attacked.
#[derive(Debug)]
pub struct Table {
    /// A row for each class.
    pub values: Vec<f32>,
    /// The columns of a row.
    pub width: usize,
}

/// Audits the tables of a run, as far as it asks for them.
pub(super) fn audit(target: &AuditTarget<'_>) -> Result<Vec<Trial>> {
    let AuditTarget { settings, plan, canaries, fresh, .. } = *target;
    let mut trials = vec![];
    for (kind, what) in [
        (TableKind::ClassSums, "a record through the sums of classes"),
        (TableKind::Labels, "a record through a table of labels"),
    ] {
        let Some(claim) = kind.claim(plan)? else { continue };
        let coins = toss(&mut fresh(), canaries.unwrap_or(CANARIES).clamp(2, CANARIES))?;
        let tables = Tables::new(coins.len());
        let evidence =
            tables.experiment(coins, &mut |data| tables.ask(kind, data, (settings, plan), fresh()))?;
        trials.push(Trial { what: what.into(), evidence, claim });
    }
    Ok(trials)
}
