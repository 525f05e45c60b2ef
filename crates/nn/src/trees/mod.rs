//! Boosted trees that add to logits: for tables in which classes depend on thresholds and products of columns.
//!
//! A tree asks of a row `x_j <= t` until it stands at a leaf, whose values, one for each class, are added to the row's
//! logits:
//!
//! ```text
//! logits(x) = start(x) + sum over trees of leaf(x)
//! ```
//!
//! Each tree is one Newton step on the cross-entropy from where those before it ended (Friedman 2001, Chen and Guestrin
//! 2016): with the gradients `g` and second derivatives `h` of its rows a leaf has the values `-rate * sum g / (sum h +
//! LAMBDA)`, and it is split where `sum over both sides of (sum g)^2 / (sum h + LAMBDA)` grows most. Columns are cut
//! into bins first ([`Table`]), so that a split is found in sums over bins. Every such sum is made by one thread in the
//! order of the rows: the same bits on any number of threads.
//!
//! [`cross_fitted`] chooses the number of trees by parts of the rows that are left out in turn, and gives what is said of each row by trees that
//! did not see it.

mod boost;
mod grow;
mod table;

use rayon::prelude::*;

pub use boost::{Boosting, CrossFitted, cross_fitted};
pub use table::Table;

use crate::error::{Error, Result, check_length, check_setting};
use crate::input::{Input, Inputs, check_rows};
use crate::network::Tensor;
use crate::softmax::dense_rows;

/// Rows worked on at once.
const BLOCK: usize = 1024;
/// The most nodes of all trees: a file of 32-bit numbers holds their places exactly.
const MAX_NODES: usize = 1 << 22;

/// A node of a tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Node {
    /// The column that is asked; none at a leaf.
    column: Option<u32>,
    /// Rows with at most this go to the left,
    threshold: f32,
    /// which is this node; the right one is the next.
    left: u32,
}

impl Node {
    const LEAF: Node = Node { column: None, threshold: 0.0, left: 0 };
}

/// Trees whose leaves are added to the logits of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Trees {
    columns: usize,
    classes: usize,
    /// The first node of each tree.
    roots: Vec<u32>,
    nodes: Vec<Node>,
    /// A row of classes for each node; zeros where it is no leaf.
    values: Vec<f32>,
}

impl Trees {
    pub(crate) fn new(columns: usize, classes: usize) -> Trees {
        Trees { columns, classes, roots: vec![], nodes: vec![], values: vec![] }
    }

    /// The number of trees.
    pub fn count(&self) -> usize {
        self.roots.len()
    }

    /// The columns of the rows.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Every value times a factor.
    pub fn scale_logits(&mut self, factor: f32) {
        self.values.iter_mut().for_each(|value| *value *= factor);
    }

    /// Adds what the trees say of some rows of the inputs, side by side, to their logits.
    ///
    /// # Errors
    /// Inputs of other widths, and rows that are not there.
    pub fn add_logits(&self, inputs: &Inputs<'_>, rows: &[u32], logits: &mut [f32]) -> Result<()> {
        let views = inputs.as_slice();
        let columns: usize = views.iter().map(Input::columns).sum();
        check_length("row of all inputs", columns, self.columns)?;
        check_length("list of logits", logits.len(), rows.len() * self.classes)?;
        check_rows(inputs, rows)?;
        let classes = self.classes;
        let blocks = logits.par_chunks_mut(BLOCK * classes).zip(rows.par_chunks(BLOCK));
        blocks.for_each(|(logits, rows)| {
            let x = dense_rows(views, rows, &vec![1.0; views.len()], crate::RowScaling::None, &[]);
            for (row, logits) in x.chunks_exact(columns).zip(logits.chunks_exact_mut(classes)) {
                self.add_row(row, logits);
            }
        });
        Ok(())
    }

    fn add_row(&self, row: &[f32], logits: &mut [f32]) {
        for &root in &self.roots {
            let mut at = root as usize;
            while let Node { column: Some(column), threshold, left } = self.nodes[at] {
                at = left as usize + usize::from(row[column as usize] > threshold);
            }
            let leaf = &self.values[at * self.classes..][..self.classes];
            logits.iter_mut().zip(leaf).for_each(|(logit, value)| *logit += value);
        }
    }

    /// All trees as tensors by name: `roots`, the first node of each tree; `nodes`, for each node its column (-1 at a
    /// leaf), its threshold and the place of its left child, before that of the right one; and `values`, the logits of
    /// each leaf.
    pub fn state(&self) -> Vec<(&'static str, Vec<usize>, Vec<f32>)> {
        let column = |node: &Node| node.column.map_or(-1.0, |column| column as f32);
        let nodes = self.nodes.iter().flat_map(|node| [column(node), node.threshold, node.left as f32]);
        vec![
            ("roots", vec![self.roots.len()], self.roots.iter().map(|&root| root as f32).collect()),
            ("nodes", vec![self.nodes.len(), 3], nodes.collect()),
            ("values", vec![self.nodes.len(), self.classes], self.values.clone()),
        ]
    }

    /// Trees with a given state; every tensor must be there, and no other.
    ///
    /// # Errors
    /// Tensors that are no trees for rows of this many columns: every path must end at a leaf.
    pub fn from_state<'a>(
        columns: usize,
        classes: usize,
        state: impl IntoIterator<Item = Tensor<'a>>,
    ) -> Result<Trees> {
        let state: Vec<Tensor<'a>> = state.into_iter().collect();
        let wanted = ["roots", "nodes", "values"];
        if let Some(tensor) = state.iter().find(|tensor| !wanted.contains(&tensor.name)) {
            return Err(Error::UnknownTensor(tensor.name.into()));
        }
        let [roots, nodes, values] = wanted.map(|name| {
            let found = state.iter().find(|tensor| tensor.name == name);
            found.map(|tensor| tensor.values).ok_or_else(|| Error::MissingTensor(name.into()))
        });
        let (roots, nodes, values) = (roots?, nodes?, values?);
        let count = nodes.len() / 3;
        check_length("list of the nodes of trees", nodes.len(), 3 * count)?;
        check_length("list of the values of trees", values.len(), count * classes)?;
        check_setting(count <= MAX_NODES, "the number of nodes of trees", count, "up to 4194304")?;
        let place = |value: f32| {
            (value >= 0.0 && value.fract() == 0.0 && (value as usize) < count).then_some(value as u32)
        };
        let damaged =
            || Error::Shape { name: "nodes".into(), found: vec![count, 3], expected: vec![count, 3] };
        let node = |(at, node): (usize, &[f32; 3])| match *node {
            [-1.0, 0.0, 0.0] => Some(Node::LEAF),
            [column, threshold, left] => {
                let left = place(left).filter(|&left| left as usize > at && left as usize + 1 < count)?;
                let is_column = column >= 0.0 && column.fract() == 0.0 && (column as usize) < columns;
                let column = Some(column as u32).filter(|_| is_column && threshold.is_finite())?;
                Some(Node { column: Some(column), threshold, left })
            }
        };
        let nodes: Option<Vec<Node>> = nodes.as_chunks::<3>().0.iter().enumerate().map(node).collect();
        let roots: Option<Vec<u32>> = roots.iter().map(|&root| place(root)).collect();
        Ok(Trees {
            columns,
            classes,
            roots: roots.ok_or_else(damaged)?,
            nodes: nodes.ok_or_else(damaged)?,
            values: values.to_vec(),
        })
    }

    /// Adds a tree, whose places count from its own first node.
    fn push(&mut self, nodes: &[Node], values: &[f32]) {
        let first = self.nodes.len() as u32;
        self.roots.push(first);
        self.nodes.extend(nodes.iter().map(|node| match node.column {
            Some(_) => Node { left: node.left + first, ..*node },
            None => *node,
        }));
        self.values.extend_from_slice(values);
    }
}

#[cfg(test)]
mod tests;
