//! Weights of edges, as the user asks for them: where they stand, and their public maximum.

use clap::Args;
use progap_graph::{EdgeWeights, Problem, Result};
use serde::{Deserialize, Serialize};

/// Weights of edges.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Weights {
    /// Multiply messages with the weights of edges [default: weight]; needs --weight-bound
    ///
    /// They are a column, an attribute or an array of that name, the third column of an edge list, or the entries
    /// of a sparse matrix.
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "weight",
        help_heading = "Data"
    )]
    weights: Option<String>,
    /// Public maximum of the weights: they are divided by it and clamped to 0 to 1
    ///
    /// Declare it without looking at the data, as the largest weight is that of one edge.
    #[arg(long, value_name = "MAX", requires = "weights", help_heading = "Data")]
    weight_bound: Option<f64>,
}

impl Weights {
    /// Whether none are asked for.
    pub fn is_empty(&self) -> bool {
        self.weights.is_none()
    }

    /// The weights with their bound.
    pub fn asked(&self) -> Result<Option<EdgeWeights>> {
        match (&self.weights, self.weight_bound) {
            (None, _) => Ok(None),
            (Some(name), Some(bound)) => EdgeWeights::new(name, bound).map(Some),
            (Some(_), None) => Err(Problem::Invalid(
                "--weights needs a public maximum to divide weights by: give --weight-bound MAX (1 if they are from \
                 0 to 1); larger \
                 weights are clamped to it"
                    .into(),
            )
            .into()),
        }
    }

    /// The flags that ask for the same.
    pub fn as_arguments(&self) -> impl Iterator<Item = String> + '_ {
        let bound = self.weight_bound.map(|bound| format!("--weight-bound={bound}"));
        self.weights.iter().map(|name| format!("--weights={name}")).chain(bound)
    }
}
