//! The gradient over a whole batch, and one step with it.
//!
//! Without batch normalisation one pass over the rows does. With it, each layer needs the statistics of those below
//! before, and the sums `dβ`, `dγ` of those above for its gradient: a pass for each layer upwards, one for the head,
//! and one for each layer downwards. Traces of a batch that fits in cache are kept between passes; else blocks are
//! computed again, which is cheaper than storing and reading them.

use crate::error::{Error, Result};
use crate::input::Batch;
use crate::layer::batch_norm::{Moments, take_moments};
use crate::network::Network;
use crate::optim::Optimiser;
use crate::pass::PreparedNetwork;
use crate::train::collective::Part;
use crate::train::sink::{Discard, Sums};
use crate::train::totals::Totals;
use crate::train::{EpochStats, Passes, apply};

/// The most values of traces that are kept: what a cache shared by a few cores holds.
const KEPT: usize = 1 << 22;

/// The gradient of the mean loss over a batch.
#[derive(Debug, Clone)]
pub struct Gradient {
    /// With respect to the trained parameters, in the order of [`Network::trained`].
    pub values: Vec<f32>,
    /// Loss and accuracy with the parameters as they are.
    pub stats: EpochStats,
    /// The running statistics after this batch.
    statistics: Vec<f32>,
}

/// One step over a whole batch: gradient, running statistics, optimiser. `seed` is for dropout, and must differ from
/// step to step.
///
/// ```
/// use progap_nn::{Adam, Architecture, Batch, Input, Inputs, Network, Optimiser, epoch};
///
/// let x = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
/// let labels = [0, 1, 1, 0];
/// let inputs = Inputs::new(vec![Input::Dense { columns: 2, values: &x }])?;
/// let batch = Batch::new(&inputs, &labels, &[0, 1, 2, 3], 2)?;
/// let mut network = Network::new(Architecture::new(vec![2], 2), 7)?;
/// let mut adam = Optimiser::adam(Adam { rate: 0.05, ..Adam::default() })?;
/// let first = epoch(&mut network, &mut adam, batch, 0)?;
/// for step in 1..100 {
///     epoch(&mut network, &mut adam, batch, step)?;
/// }
/// let last = epoch(&mut network, &mut adam, batch, 100)?;
/// assert!(last.loss < first.loss && last.accuracy == 1.0);
/// # Ok::<(), progap_nn::Error>(())
/// ```
pub fn epoch(
    network: &mut Network,
    optimiser: &mut Optimiser,
    batch: Batch<'_>,
    seed: u64,
) -> Result<EpochStats> {
    let gradient = gradient(network, batch, seed)?;
    apply(network, optimiser, &gradient.values)?;
    network.values.statistics = gradient.statistics;
    Ok(gradient.stats)
}

/// The gradient over a whole batch, in training mode. Nothing is changed. `seed` is for dropout.
///
/// The same bits on any number of threads.
pub fn gradient(network: &Network, batch: Batch<'_>, seed: u64) -> Result<Gradient> {
    gradient_keeping(network, batch, seed, KEPT)
}

/// As [`gradient`]; traces of at most `most` values are kept between passes.
fn gradient_keeping(network: &Network, batch: Batch<'_>, seed: u64, most: usize) -> Result<Gradient> {
    network.check_inputs(batch.inputs)?;
    let whole = batch.whole();
    if whole == 0 {
        return Err(Error::SmallBatch { rows: 0, why: "a gradient needs at least one row" });
    }
    let synchronised = network.architecture().norm.mixes_rows();
    if synchronised && whole < 2 {
        return Err(Error::SmallBatch { rows: 1, why: "batch normalisation needs two rows in training" });
    }
    let mut statistics = network.values.statistics.clone();
    let mut ready = PreparedNetwork::training(network, Some(seed));
    ready.numbered_from = batch.shared.map_or(0, |shared| shared.numbered_from);
    let layers = ready.layers;
    let mut passes = match synchronised {
        true => Passes::new(network, batch, most),
        false => Passes::single(network, batch),
    };
    let kept = passes.are_kept();
    for layer in 0..layers {
        ready.advance(layer);
        if synchronised {
            take_statistics(&mut ready, &mut passes, layer, &mut statistics)?;
        }
    }
    ready.advance(layers);

    let mut parts = passes.parts(|| Sums::new(network));
    let scale = 1.0 / whole as f32;
    passes.run(&ready, &mut parts, |block, sums| {
        match kept {
            true => block.rejoin(),
            false => block.forward(),
        }
        sums.tally = sums.tally.merge(block.head_backward(batch, scale, sums));
        if !synchronised {
            (0..layers).rev().for_each(|layer| block.layer_backward(layer, sums));
        }
    });
    passes.gather(&mut parts)?;
    let mut totals = Totals::new(network, whole);
    totals.head(&mut ready, &parts);
    for layer in (0..layers).rev() {
        if synchronised {
            passes.run(&ready, &mut parts, |block, sums| {
                match kept {
                    true if block.ready.is_plain(layer) => block.rejoin(),
                    true => {}
                    false => {
                        block.forward();
                        block.head_backward(batch, scale, &mut Discard);
                        (layer + 1..layers).rev().for_each(|above| block.layer_backward(above, &mut Discard));
                    }
                }
                block.layer_backward(layer, sums);
            });
            passes.gather(&mut parts)?;
        }
        totals.layer(&mut ready, &parts, layer);
    }
    let tally =
        parts.iter().fold(Default::default(), |tally: crate::loss::Tally, sums| tally.merge(sums.tally));
    let n = whole as f64;
    let stats = EpochStats { loss: tally.loss / n, accuracy: tally.correct as f64 / n };
    Ok(Gradient { values: network.select_trained(totals.values), stats, statistics })
}

/// Gives the norms after a layer the mean and variance over the batch, for branches in training; where norms stand
/// after the join, those of the joined rows, after the last layer.
fn take_statistics(
    ready: &mut PreparedNetwork<'_>,
    passes: &mut Passes<'_, '_>,
    layer: usize,
    statistics: &mut [f32],
) -> Result<()> {
    let (network, width, kept) = (ready.network, ready.padded_width, passes.are_kept());
    let joined = ready.is_plain(layer);
    let counted: Vec<usize> = match joined {
        true => (0..ready.parts).collect(),
        false => ready.trained().collect(),
    };
    let mut parts = passes.parts(|| vec![Moments::new(width); counted.len()]);
    passes.run(ready, &mut parts, |block, moments| {
        let ready = block.ready;
        for b in (0..ready.branches).filter(|b| kept || joined || counted.contains(b)) {
            for l in if kept { layer } else { 0 }..=layer {
                block.layer_forward(b, l);
            }
        }
        if joined {
            block.join();
        }
        for (&part, moments) in counted.iter().zip(moments) {
            let values = match joined {
                true => block.joined().part(part).values,
                false => block.activations(ready.number(part, layer)),
            };
            moments.add_rows(block.rows.len(), values);
        }
    });
    passes.gather(&mut parts)?;
    for (k, &part) in counted.iter().enumerate() {
        let i = ready.number(part, layer);
        let running = network.values.layout.running(i);
        take_moments(parts.iter().map(|part| &part[k]), &mut ready.norms[i], running, statistics);
    }
    Ok(())
}

impl Part for Vec<Moments> {
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|moments| moments.write(out));
    }

    fn read(&mut self, from: &mut &[u8]) -> Option<()> {
        self.iter_mut().try_for_each(|moments| moments.read(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Architecture, Input, Inputs, Jk, NormPlacement};

    /// A sparse and a dense input of 300 rows.
    fn with_batch(work: impl Fn(Batch<'_>)) {
        let rows = 300;
        let value = |i: usize| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0;
        let dense: Vec<f32> = (0..rows * 5).map(value).collect();
        let offsets: Vec<u64> = (0..=rows as u64).map(|r| 2 * r).collect();
        let indices: Vec<u32> = (0..rows as u32).flat_map(|r| [r % 7, 7 + r * r % 4]).collect();
        let labels: Vec<u32> = (0..rows as u32).map(|r| r * r % 3).collect();
        let all: Vec<u32> = (0..rows as u32).rev().collect();
        let inputs = Inputs::new(vec![
            Input::Sparse { columns: 11, offsets: &offsets, indices: &indices, values: None },
            Input::Dense { columns: 5, values: &dense },
        ])
        .unwrap();
        work(Batch::new(&inputs, &labels, &all, 3).unwrap());
    }

    fn assert_close(a: &Gradient, b: &Gradient, what: &str) {
        assert!((a.stats.loss - b.stats.loss).abs() < 1e-6);
        let largest = a.values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
        for (a, b) in a.values.iter().zip(&b.values) {
            assert!((a - b).abs() < 1e-5 * largest, "{what}: {a} {b}");
        }
    }

    /// Shapes that absorb all norms, some, or none.
    fn shapes() -> impl Iterator<Item = (Architecture, bool)> {
        let arch = Architecture { hidden: 10, ..Architecture::new(vec![11, 5], 3) };
        let layers = [(1, false), (1, true), (3, false), (2, true)];
        let placements = [NormPlacement::PerBranch, NormPlacement::AfterJoin];
        [Jk::Cat, Jk::Max, Jk::Mean].into_iter().flat_map(move |jk| {
            let arch = arch.clone();
            layers.into_iter().flat_map(move |(layers, frozen)| {
                let arch = Architecture { layers, jk, ..arch.clone() };
                placements.map(|norm_placement| (Architecture { norm_placement, ..arch.clone() }, frozen))
            })
        })
    }

    fn network(arch: Architecture, frozen: bool) -> Network {
        let mut network = Network::new(arch, 5).unwrap();
        network.freeze(0, frozen).unwrap();
        network
    }

    #[test]
    fn kept_traces_and_recomputed_blocks_agree() {
        with_batch(|batch| {
            for ((arch, frozen), dropout) in shapes().flat_map(|shape| [(shape.clone(), 0.0), (shape, 0.3)]) {
                let network = network(Architecture { dropout, ..arch }, frozen);
                let [kept, again] =
                    [usize::MAX, 0].map(|most| gradient_keeping(&network, batch, 9, most).unwrap());
                assert_eq!(kept.statistics, again.statistics);
                assert_close(&kept, &again, &format!("{:?}", network.architecture()));
            }
        });
    }

    /// With a dropout that never drops anything, no norm is absorbed.
    #[test]
    fn absorbed_norms_and_written_ones_agree() {
        with_batch(|batch| {
            for ((arch, frozen), normalise) in
                shapes().flat_map(|shape| [(shape.clone(), true), (shape, false)])
            {
                let [absorbed, written] = [0.0, 1e-12].map(|dropout| {
                    let network = network(Architecture { dropout, normalise, ..arch.clone() }, frozen);
                    gradient(&network, batch, 9).unwrap()
                });
                assert_close(&absorbed, &written, &format!("{arch:?}"));
                for (a, b) in absorbed.statistics.iter().zip(&written.statistics) {
                    assert!((a - b).abs() < 1e-6, "{a} {b}");
                }
            }
        });
    }
}
