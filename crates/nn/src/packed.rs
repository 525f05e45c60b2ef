//! Rows brought together once, for batches that are read in every epoch.

use crate::aligned::Aligned;
use crate::error::Result;
use crate::input::{Batch, Input, Inputs, Targets};

/// The most values that are copied: above, time is spent on arithmetic and memory is worth more.
const MOST: usize = 1 << 25;

/// Labelled rows of some inputs, one after the other.
///
/// ```
/// use progap_nn::{Input, Inputs, Packed};
///
/// let dense = Input::Dense { columns: 1, values: &[0.5, 1.0, -0.5] };
/// let inputs = Inputs::new(vec![dense])?;
/// let packed = Packed::new(&inputs, &[0, 1, 1], &[2, 0]).expect("few rows");
/// let inputs = packed.inputs()?;
/// assert_eq!(packed.batch(&inputs, 2)?.len(), 2);
/// # Ok::<(), progap_nn::Error>(())
/// ```
#[derive(Debug)]
pub struct Packed {
    inputs: Vec<Copied>,
    labels: Vec<u32>,
    rows: Vec<u32>,
    /// One more than the largest label: labels below are checked by it alone.
    classes: usize,
}

#[derive(Debug)]
enum Copied {
    Dense { columns: usize, values: Aligned },
    Sparse { columns: usize, offsets: Vec<u64>, indices: Vec<u32>, values: Option<Vec<f32>> },
}

impl Copied {
    fn new(input: &Input<'_>, rows: &[u32]) -> Self {
        match *input {
            Input::Dense { columns, .. } | Input::Half { columns, .. } => {
                let mut copy = Aligned::zeros(rows.len() * columns);
                input.gather(rows, &mut copy);
                Copied::Dense { columns, values: copy }
            }
            Input::Sparse { columns, values, .. } => {
                let (mut offsets, mut indices, mut copies) = (vec![0], vec![], values.map(|_| vec![]));
                for &row in rows {
                    input.tell(&[row]);
                    let (entries, values) = input.entries(row);
                    indices.extend_from_slice(entries);
                    if let (Some(copies), Some(values)) = (&mut copies, values) {
                        copies.extend_from_slice(values);
                    }
                    offsets.push(indices.len() as u64);
                }
                Copied::Sparse { columns, offsets, indices, values: copies }
            }
        }
    }

    fn view(&self) -> Input<'_> {
        match self {
            Copied::Dense { columns, values } => Input::Dense { columns: *columns, values },
            Copied::Sparse { columns, offsets, indices, values } => {
                Input::Sparse { columns: *columns, offsets, indices, values: values.as_deref() }
            }
        }
    }
}

impl Packed {
    /// Copies rows and their labels, unless that takes too much memory. All rows must be there. Those with as many
    /// entries come one after the other: loops over entries then end where the processor expects it.
    pub fn new(inputs: &Inputs<'_>, labels: &[u32], rows: &[u32]) -> Option<Packed> {
        Packed::within(MOST, inputs, labels, rows)
    }

    /// As [`Packed::new`], unless there are more than this many values.
    pub fn within(most: usize, inputs: &Inputs<'_>, labels: &[u32], rows: &[u32]) -> Option<Packed> {
        let values = |input: &Input<'_>| match *input {
            Input::Dense { columns, .. } | Input::Half { columns, .. } => rows.len() * columns,
            Input::Sparse { indices, .. } => 2 * indices.len(),
        };
        if inputs.as_slice().iter().map(values).sum::<usize>() > most {
            return None;
        }
        let entries =
            |row: u32| inputs.as_slice().iter().map(|input| input.entries(row).0.len()).sum::<usize>();
        let mut rows = rows.to_vec();
        rows.sort_by_cached_key(|&row| entries(row));
        let rows = &rows[..];
        let labels: Vec<u32> = rows.iter().map(|&row| labels[row as usize]).collect();
        Some(Packed {
            inputs: inputs.as_slice().iter().map(|input| Copied::new(input, rows)).collect(),
            classes: labels.iter().max().map_or(0, |&largest| largest as usize + 1),
            labels,
            rows: (0..rows.len() as u32).collect(),
        })
    }

    /// Whether this many values are copied: those of all rows of dense inputs, and two for each entry of sparse ones.
    pub fn are_few(values: usize) -> bool {
        values <= MOST
    }

    /// Views of the copies.
    pub fn inputs(&self) -> Result<Inputs<'_>> {
        Inputs::checked_before(self.inputs.iter().map(Copied::view).collect())
    }

    /// The label of each row, in the order of [`Packed::inputs`].
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// All rows, of [`Packed::inputs`].
    pub fn batch<'a>(&'a self, inputs: &'a Inputs<'a>, classes: usize) -> Result<Batch<'a>> {
        if self.classes > classes || inputs.rows() != self.rows.len() {
            return Batch::new(inputs, &self.labels, &self.rows, classes);
        }
        let targets = Targets::Labels(&self.labels);
        Ok(Batch { inputs, targets, weights: None, rows: &self.rows, shared: None })
    }
}

/// The row with which a run of consecutive rows begins, if they are one.
pub(crate) fn run(rows: &[u32]) -> Option<usize> {
    let first = *rows.first()?;
    let ordered = rows.iter().zip(first..).fold(true, |all, (&row, next)| all & (row == next));
    ordered.then_some(first as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Adam, Architecture, Network, Optimiser, epoch};

    #[test]
    fn rows_come_by_the_number_of_their_entries_with_their_labels() {
        let offsets = [0, 2, 2, 3, 5, 6];
        let sparse =
            Input::Sparse { columns: 9, offsets: &offsets, indices: &[0, 1, 2, 3, 4, 5], values: None };
        let dense: Vec<f32> = (0..5).map(|row| row as f32).collect();
        let inputs = Inputs::new(vec![sparse, Input::Dense { columns: 1, values: &dense }]).expect("sound");
        let packed = Packed::new(&inputs, &[0, 1, 2, 3, 4], &[0, 1, 3, 4]).expect("few rows");
        assert_eq!(packed.labels, [1, 4, 0, 3], "no entry, one, and two, each in the order given");
        let views = packed.inputs().expect("sound");
        let [sparse, Input::Dense { values, .. }] = views.as_slice() else { panic!("two inputs") };
        assert_eq!(values, &[1.0, 4.0, 0.0, 3.0]);
        assert_eq!([0, 1, 2, 3].map(|row| sparse.entries(row).0), [&[][..], &[5], &[0, 1], &[3, 4]]);
    }

    /// Where all rows have as many entries, which keep their order.
    #[test]
    fn an_epoch_on_copies_is_the_same_to_the_bit() {
        let dense: Vec<f32> = (0..300 * 16).map(|i| (i as f32 * 0.37).sin()).collect();
        let offsets: Vec<u64> = (0..=300).map(|row| 2 * row).collect();
        let indices: Vec<u32> = (0..600).map(|i| i * 7 % 11).collect();
        let values: Vec<f32> = (0..600).map(|i| 0.5 + (i % 3) as f32).collect();
        let labels: Vec<u32> = (0..300).map(|row| row * row % 3).collect();
        let rows: Vec<u32> = (0..300).filter(|row| row % 4 != 1).collect();
        for values in [None, Some(&values[..])] {
            let sparse = Input::Sparse { columns: 11, offsets: &offsets, indices: &indices, values };
            let inputs =
                Inputs::new(vec![sparse, Input::Dense { columns: 16, values: &dense }]).expect("sound");
            let packed = Packed::new(&inputs, &labels, &rows).expect("few rows");
            let views = packed.inputs().expect("sound");
            let batches = [
                Batch::new(&inputs, &labels, &rows, 3).expect("a batch"),
                packed.batch(&views, 3).expect("a batch"),
            ];
            let [left, right] = batches.map(|batch| {
                let mut network = Network::new(Architecture::new(vec![11, 16], 3), 1).expect("a network");
                let mut adam = Optimiser::adam(Adam::default()).expect("an optimiser");
                let stats: Vec<_> = (0..3)
                    .map(|step| epoch(&mut network, &mut adam, batch, step).expect("an epoch").loss)
                    .collect();
                (stats, network.parameters().to_vec())
            });
            assert!(left == right);
        }
    }

    #[test]
    fn a_batch_of_copies_is_checked_as_any_other() {
        let inputs = Inputs::new(vec![Input::Dense { columns: 1, values: &[0.5, 1.0] }]).expect("sound");
        let packed = Packed::new(&inputs, &[0, 2], &[0, 1]).expect("few rows");
        let views = packed.inputs().expect("sound");
        assert!(packed.batch(&views, 3).is_ok());
        assert!(matches!(packed.batch(&views, 2), Err(crate::Error::Label { row: 1, label: 2, classes: 2 })));
        let other = Inputs::new(vec![Input::Dense { columns: 1, values: &[0.5] }]).expect("sound");
        assert!(packed.batch(&other, 3).is_err());
    }

    #[test]
    fn runs_are_consecutive() {
        assert_eq!(run(&[4, 5, 6]), Some(4));
        assert_eq!([run(&[4, 6]), run(&[5, 4]), run(&[])], [None; 3]);
    }
}
