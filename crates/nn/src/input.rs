//! Inputs of networks: views of rows, dense or sparse, checked once.

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::error::{Error, Result, check_length, check_setting};
use crate::loss::arg_max;
use crate::reading;
use crate::train::collective::DistributedBatch;

/// The input of one branch: a view, one row per sample.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// All values, row after row.
    Dense {
        /// The number of columns.
        columns: usize,
        /// `rows * columns` values.
        values: &'a [f32],
    },
    /// All values in half precision, row after row: widened block by block where they are read.
    Half {
        /// The number of columns.
        columns: usize,
        /// `rows * columns` values.
        values: &'a [f16],
    },
    /// Compressed sparse rows. One-hot inputs stay sparse: the layer adds up rows of its weights.
    Sparse {
        /// The number of columns.
        columns: usize,
        /// Where each row starts, and where the last one ends.
        offsets: &'a [u64],
        /// The column of each value.
        indices: &'a [u32],
        /// The values; `None` if all are 1.
        values: Option<&'a [f32]>,
    },
}

impl<'a> Input<'a> {
    /// The number of columns.
    pub fn columns(&self) -> usize {
        match *self {
            Input::Dense { columns, .. } | Input::Half { columns, .. } | Input::Sparse { columns, .. } => {
                columns
            }
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        match *self {
            Input::Dense { columns, values } => values.len() / columns.max(1),
            Input::Half { columns, values } => values.len() / columns.max(1),
            Input::Sparse { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    fn check(&self, input: usize) -> Result<()> {
        match *self {
            Input::Dense { columns, values } => {
                check_length(format_args!("dense input {input}"), values.len(), self.rows() * columns)
            }
            Input::Half { columns, values } => {
                check_length(format_args!("dense input {input}"), values.len(), self.rows() * columns)
            }
            Input::Sparse { columns, offsets, indices, values } => {
                let broken = |row, why| Err(Error::Sparse { input, row, why });
                if offsets.first() != Some(&0) {
                    return broken(0, "the first offset must be 0");
                }
                if let Some(row) = offsets.windows(2).position(|w| w[0] > w[1]) {
                    return broken(row, "it ends before it starts");
                }
                let end = *offsets.last().expect("there is a first") as usize;
                check_length(format_args!("list of indices of sparse input {input}"), indices.len(), end)?;
                if let Some(values) = values {
                    check_length(format_args!("list of values of sparse input {input}"), values.len(), end)?;
                }
                match indices.iter().position(|&i| i as usize >= columns) {
                    None => Ok(()),
                    Some(at) => {
                        let row = offsets.partition_point(|&o| o as usize <= at) - 1;
                        broken(row, "it has an index beyond the last column")
                    }
                }
            }
        }
    }

    /// Brings rows of a dense input together; those of a sparse one are read where they lie.
    pub(crate) fn gather(&self, rows: &[u32], x: &mut [f32]) {
        let at_once = reading::at_once(rows.len());
        for (x, rows) in x.chunks_mut(at_once * self.columns().max(1)).zip(rows.chunks(at_once)) {
            self.tell(rows);
            match *self {
                Input::Dense { columns, values } => crate::layer::linear::gather(values, columns, rows, x),
                Input::Half { columns, values } => {
                    for (x, &row) in x.chunks_exact_mut(columns.max(1)).zip(rows) {
                        values[row as usize * columns..][..columns].convert_to_f32_slice(x);
                    }
                }
                Input::Sparse { .. } => {}
            }
        }
    }

    /// The entries of a sparse row. Empty for a dense input.
    #[inline(always)]
    pub(crate) fn entries(&self, row: u32) -> (&'a [u32], Option<&'a [f32]>) {
        match *self {
            Input::Dense { .. } | Input::Half { .. } => (&[], None),
            Input::Sparse { offsets, indices, values, .. } => {
                let range = offsets[row as usize] as usize..offsets[row as usize + 1] as usize;
                (&indices[range.clone()], values.map(|v| &v[range]))
            }
        }
    }
}

/// The inputs of all branches: checked, and with the same number of rows.
///
/// ```
/// use progap_nn::{Input, Inputs};
///
/// let one_hot = Input::Sparse { columns: 3, offsets: &[0, 1, 2], indices: &[2, 0], values: None };
/// let dense = Input::Dense { columns: 2, values: &[0.5, 1.0, -0.5, 2.0] };
/// assert_eq!(Inputs::new(vec![one_hot, dense])?.rows(), 2);
///
/// let broken = Input::Sparse { columns: 3, offsets: &[0, 1], indices: &[3], values: None };
/// assert!(Inputs::new(vec![broken]).is_err());
/// # Ok::<(), progap_nn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Inputs<'a> {
    inputs: Vec<Input<'a>>,
    rows: usize,
}

impl<'a> Inputs<'a> {
    /// Checks that sparse rows are sound, and that all inputs have the same number of rows.
    pub fn new(inputs: Vec<Input<'a>>) -> Result<Self> {
        for (i, input) in inputs.iter().enumerate() {
            input.check(i)?;
        }
        Inputs::checked_before(inputs)
    }

    /// The same views as were checked by [`Inputs::new`] before, without looking at every entry again: for a caller
    /// that makes them anew for each step. Only lengths are checked; an entry that is not sound is met with a panic
    /// later on.
    pub fn checked_before(inputs: Vec<Input<'a>>) -> Result<Self> {
        let rows = inputs.first().map_or(0, Input::rows);
        for (i, input) in inputs.iter().enumerate() {
            check_length(format_args!("list of rows of input {i}"), input.rows(), rows)?;
        }
        Ok(Inputs { inputs, rows })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The views.
    pub fn as_slice(&self) -> &[Input<'a>] {
        &self.inputs
    }

    /// Some rows of all inputs side by side, as dense rows.
    ///
    /// # Errors
    /// Rows that are not there.
    pub fn dense_rows(&self, rows: &[u32]) -> Result<Vec<f32>> {
        check_rows(self, rows)?;
        let scales = vec![1.0; self.inputs.len()];
        Ok(crate::softmax::dense_rows(&self.inputs, rows, &scales, crate::RowScaling::None, &[]))
    }
}

/// The classes that rows should get: a view, with an item for each row of the inputs.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// One class a row.
    Labels(&'a [u32]),
    /// Class probabilities: `classes` values a row. The loss is the cross-entropy with them.
    Soft(&'a [f32]),
}

/// Rows with targets, to train or to be measured on: checked.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    pub(crate) inputs: &'a Inputs<'a>,
    pub(crate) targets: Targets<'a>,
    pub(crate) weights: Option<&'a [f32]>,
    pub(crate) rows: &'a [u32],
    pub(crate) shared: Option<DistributedBatch<'a>>,
}

impl<'a> Batch<'a> {
    /// The given rows of the inputs, with `labels[row]` the class of a row among `classes`.
    ///
    /// A row may be named more than once. Labels of other rows are not looked at.
    pub fn new(inputs: &'a Inputs<'a>, labels: &'a [u32], rows: &'a [u32], classes: usize) -> Result<Self> {
        Batch::with_targets(inputs, Targets::Labels(labels), rows, classes)
    }

    /// As [`Batch::new`], with targets of either kind. Probabilities of a row must be at least 0 and add up to 1; its
    /// class, for an accuracy, is the most probable one.
    ///
    /// ```
    /// use progap_nn::{Batch, Input, Inputs, Targets};
    ///
    /// let inputs = Inputs::new(vec![Input::Dense { columns: 1, values: &[0.5, 1.0] }])?;
    /// let soft = Targets::Soft(&[0.25, 0.75, 1.0, 0.0]);
    /// let batch = Batch::with_targets(&inputs, soft, &[0, 1], 2)?.weighted(&[1.0, 3.0])?;
    /// assert_eq!(batch.len(), 2);
    /// # Ok::<(), progap_nn::Error>(())
    /// ```
    pub fn with_targets(
        inputs: &'a Inputs<'a>,
        targets: Targets<'a>,
        rows: &'a [u32],
        classes: usize,
    ) -> Result<Self> {
        let batch = Batch { inputs, targets, weights: None, rows, shared: None };
        match targets {
            Targets::Labels(labels) => {
                check_length("list of labels", labels.len(), inputs.rows())?;
                check_rows(inputs, rows)?;
                match rows.iter().find(|&&row| labels[row as usize] as usize >= classes) {
                    Some(&row) => Err(Error::Label { row, label: labels[row as usize], classes }),
                    None => Ok(batch),
                }
            }
            Targets::Soft(values) => {
                check_length("list of class probabilities", values.len(), inputs.rows() * classes)?;
                check_rows(inputs, rows)?;
                let is_sound = |row: &[f32]| {
                    row.iter().all(|&q| q >= 0.0) && (row.iter().sum::<f32>() - 1.0).abs() <= 1e-3
                };
                match rows.iter().find(|&&row| !is_sound(&values[row as usize * classes..][..classes])) {
                    Some(&row) => Err(Error::Probabilities { row }),
                    None => Ok(batch),
                }
            }
        }
    }

    /// Multiplies the loss of every row by its weight, `weights[row]`. A mean stays one over the number of rows.
    pub fn weighted(self, weights: &'a [f32]) -> Result<Self> {
        check_length("list of weights", weights.len(), self.inputs.rows())?;
        let is_sound = |weight: f32| weight.is_finite() && weight >= 0.0;
        for &row in self.rows {
            let weight = weights[row as usize];
            check_setting(is_sound(weight), "a row's weight", weight, "a finite number, at least 0")?;
        }
        Ok(Batch { weights: Some(weights), ..self })
    }

    /// The rows are those of this process alone, whole chunks of a batch ([`chunk_rows`](crate::chunk_rows),
    /// [`sample_chunk_rows`](crate::sample_chunk_rows)); gradients and accuracies are of all of it.
    ///
    /// # Errors
    /// Rows that are not within the batch.
    pub fn shared(self, shared: DistributedBatch<'a>) -> Result<Self> {
        let within = shared.first.checked_add(self.len()).is_some_and(|end| end <= shared.rows);
        check_setting(within, "the place of the rows", shared.first, "within the batch")?;
        Ok(Batch { shared: Some(shared), ..self })
    }

    /// The rows of the batch, those of other processes included.
    pub(crate) fn whole(&self) -> usize {
        self.shared.map_or(self.len(), |shared| shared.rows)
    }

    /// The class of a row among `classes`.
    pub(crate) fn class(&self, row: u32, classes: usize) -> usize {
        match self.targets {
            Targets::Labels(labels) => labels[row as usize] as usize,
            Targets::Soft(values) => arg_max(&values[row as usize * classes..][..classes]),
        }
    }

    /// The number of rows in the batch.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

pub(crate) fn check_rows(inputs: &Inputs<'_>, rows: &[u32]) -> Result<()> {
    match rows.iter().find(|&&row| row as usize >= inputs.rows()) {
        Some(&row) => Err(Error::Row { row, rows: inputs.rows() }),
        None => Ok(()),
    }
}

impl<'a> Inputs<'a> {
    /// The first input, as if it were that of each of `count` branches.
    pub(crate) fn repeated(&self, count: usize) -> Inputs<'a> {
        Inputs { inputs: vec![self.inputs[0]; count], rows: self.rows }
    }
}
