//! Per-sample clipping: norms against brute force, the bound, and what a sample may depend on.

mod common;

use common::{Data, network, with_threads};
use progap_nn::{
    Activation, Adam, Architecture, Batch, Error, Input, Inputs, Jk, Norm, NormPlacement, Optimiser, apply,
    clipped_sum, gradient, sample_norms,
};
use proptest::prelude::*;

const JK: [Jk; 4] = [Jk::Cat, Jk::Sum, Jk::Mean, Jk::Max];

fn architecture(data: &Data, jk: Jk, norm: Norm, layers: usize) -> Architecture {
    Architecture { hidden: 6, jk, norm, layers, ..Architecture::new(data.columns.clone(), 4) }
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[test]
fn norms_and_sums_match_gradients_of_one_row_batches() {
    let data = Data::new(80, [9, 4, 5], 4, 1);
    let (inputs, rows) = (data.inputs(), data.rows());
    let batch = |rows| Batch::new(&inputs, &data.labels, rows, 4).unwrap();
    for jk in JK {
        for (norm_layer, layers, norm_placement) in [
            (Norm::Group, 1, NormPlacement::PerBranch),
            (Norm::Group, 2, NormPlacement::PerBranch),
            (Norm::None, 2, NormPlacement::PerBranch),
            (Norm::None, 1, NormPlacement::AfterJoin),
            (Norm::None, 2, NormPlacement::AfterJoin),
        ] {
            let shape = Architecture { norm_placement, ..architecture(&data, jk, norm_layer, layers) };
            let mut network = network(shape, 3);
            for frozen in [false, true] {
                network.freeze(0, frozen).unwrap();
                let found = sample_norms(&network, batch(&rows)).unwrap();
                let mut middle = found.clone();
                middle.sort_by(f64::total_cmp);
                // Half of the samples are clipped.
                let clip = middle[40];
                let mut expected = vec![0.0; network.trained_count()];
                for (row, &found) in rows.chunks(1).zip(&found) {
                    let own: Vec<f64> =
                        gradient(&network, batch(row), 0).unwrap().values.iter().map(|&g| g.into()).collect();
                    let exact = norm(&own);
                    assert!((found - exact).abs() < 1e-5 * exact.max(0.1), "{jk:?}: {found} {exact}");
                    for (sum, g) in expected.iter_mut().zip(own) {
                        *sum += g * f64::min(1.0, clip / exact);
                    }
                }
                let sum = clipped_sum(&network, batch(&rows), clip).unwrap();
                let scale = norm(&expected);
                assert!(sum.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5 * scale), "{jk:?}");
            }
        }
    }
}

#[test]
fn a_sample_depends_on_no_other_not_even_in_the_last_bit() {
    let data = Data::new(200, [9, 4, 16], 4, 2);
    let (inputs, rows) = (data.inputs(), data.rows());
    let after_join = |jk| Architecture {
        norm_placement: NormPlacement::AfterJoin,
        ..architecture(&data, jk, Norm::None, 2)
    };
    for (jk, shape) in
        JK.iter().flat_map(|&jk| [architecture(&data, jk, Norm::Group, 2), after_join(jk)].map(|s| (jk, s)))
    {
        let network = network(shape, 4);
        let norms = |rows: &[u32]| {
            sample_norms(&network, Batch::new(&inputs, &data.labels, rows, 4).unwrap()).unwrap()
        };
        let sum = |rows: &[u32]| {
            clipped_sum(&network, Batch::new(&inputs, &data.labels, rows, 4).unwrap(), 0.1).unwrap()
        };
        let together = norms(&rows);
        let reversed: Vec<u32> = rows.iter().rev().copied().collect();
        let mut again = norms(&reversed);
        again.reverse();
        assert_eq!(together, again, "{jk:?}");
        for &row in &[0u32, 1, 2, 63, 64, 199] {
            assert_eq!(norms(&[row])[0], together[row as usize], "{jk:?}");
            // The whole contribution, not only its norm: alone, and next to another.
            let alone = sum(&[row]);
            let pair = sum(&[(row + 1) % 200, row]);
            let other = sum(&[(row + 1) % 200]);
            // One term for each sample, rounded once where it is added: also where a layer was used once per hop.
            let equal = |((a, b), sum): ((&f64, &f64), &f64)| a + b == *sum;
            assert!(other.iter().zip(&alone).zip(&pair).all(equal), "{jk:?}");
        }
    }
}

/// A column that a sparse row lists twice is one column: its values are added up before anything is rounded to a sum.
#[test]
fn a_column_that_is_listed_twice_is_one_term() {
    let (offsets, labels) = ([0, 3, 5], [0, 1]);
    let indices = [1, 0, 1, 0, 1];
    let values = [0.7f32, 0.4, 0.1, 0.3, 0.9];
    let twice = Input::Sparse { columns: 2, offsets: &offsets, indices: &indices, values: Some(&values) };
    let inputs = Inputs::new(vec![twice]).unwrap();
    let network = network(Architecture { norm: Norm::None, ..Architecture::new(vec![2], 2) }, 3);
    let sum =
        |rows: &[u32]| clipped_sum(&network, Batch::new(&inputs, &labels, rows, 2).unwrap(), 1e-3).unwrap();
    let (one, other, both) = (sum(&[1]), sum(&[0]), sum(&[1, 0]));
    assert!(one.iter().zip(&other).zip(&both).all(|((a, b), sum)| a + b == *sum));
}

#[test]
fn samples_that_are_not_finite_contribute_nothing() {
    let data = Data::new(3, [9, 4, 5], 4, 3);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        let mut dense = data.dense[0].clone();
        dense[5] = bad;
        let mut views = data.inputs().as_slice().to_vec();
        views[1] = Input::Dense { columns: 4, values: &dense };
        let inputs = Inputs::new(views).unwrap();
        for activation in [Activation::Selu, Activation::Relu, Activation::Tanh, Activation::Elu] {
            let network =
                network(Architecture { activation, ..architecture(&data, Jk::Cat, Norm::Group, 1) }, 5);
            let with = Batch::new(&inputs, &data.labels, &[0, 1, 2], 4).unwrap();
            let without = Batch::new(&inputs, &data.labels, &[0, 2], 4).unwrap();
            let sum = clipped_sum(&network, with, 1.0).unwrap();
            assert!(sum.iter().all(|g| g.is_finite()));
            if !bad.is_finite() {
                assert_eq!(sum, clipped_sum(&network, without, 1.0).unwrap(), "{bad} {activation:?}");
            }
        }
    }
}

#[test]
fn an_empty_batch_gives_zeros_and_batch_norm_is_refused() {
    let data = Data::new(3, [9, 4, 5], 4, 3);
    let inputs = data.inputs();
    let empty = Batch::new(&inputs, &data.labels, &[], 4).unwrap();
    let mut group = network(architecture(&data, Jk::Cat, Norm::Group, 1), 5);
    let zeros = clipped_sum(&group, empty, 1.0).unwrap();
    assert_eq!(zeros, vec![0.0; group.parameter_count()]);
    let batch_norm = network(architecture(&data, Jk::Cat, Norm::Batch, 1), 5);
    assert_eq!(clipped_sum(&batch_norm, empty, 1.0), Err(Error::BatchNormPerSample));
    for clip in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(clipped_sum(&group, empty, clip), Err(Error::Setting { .. })));
    }
    let mut adam = Optimiser::adam(Adam::default()).unwrap();
    assert!(matches!(apply(&mut group, &mut adam, &[0.0]), Err(Error::Length { .. })));
    assert!(gradient(&group, empty, 0).is_err());
}

#[test]
fn the_sum_has_the_same_bits_on_any_number_of_threads() {
    let data = Data::new(9_001, [30, 16, 16], 4, 4);
    let (inputs, rows) = (data.inputs(), data.rows());
    let network = network(architecture(&data, Jk::Cat, Norm::Group, 1), 6);
    // One chunk, two of the smallest, and many.
    for batch in [300, 700, 9_001] {
        let batch = Batch::new(&inputs, &data.labels, &rows[..batch], 4).unwrap();
        let run = |threads| with_threads(threads, || clipped_sum(&network, batch, 0.5).unwrap());
        let one = run(1);
        assert!(one == run(2) && one == run(3));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One sample's contribution never has a norm above the clip, whatever the sample and the parameters: its
    /// squared norm, summed here with an error far below the slack, is at most the square of the clip.
    #[test]
    fn a_contribution_never_exceeds_the_clip(
        seed: u64,
        scale in prop_oneof![Just(1e-20f32), Just(1e-3), Just(1.0), Just(1e4), Just(1e15), Just(1e30)],
        spread in prop_oneof![Just(0.1f32), Just(1.0), Just(30.0)],
        clip in prop_oneof![Just(1e-6f64), Just(0.1), Just(1.0), Just(1e3)],
        jk in 0usize..4,
        layers in 1usize..3,
        group: bool,
    ) {
        let mut data = Data::new(6, [9, 4, 5], 4, seed);
        for values in &mut data.dense {
            values.iter_mut().for_each(|v| *v *= scale);
        }
        let inputs = data.inputs();
        let norm_layer = if group { Norm::Group } else { Norm::None };
        let mut network = network(architecture(&data, JK[jk], norm_layer, layers), seed);
        network.parameters_mut().iter_mut().for_each(|p| *p *= spread);
        for row in 0..6u32 {
            let rows = [row];
            let batch = Batch::new(&inputs, &data.labels, &rows, 4).unwrap();
            let sum = clipped_sum(&network, batch, clip).unwrap();
            let found = norm(&sum);
            prop_assert!(found <= clip * (1.0 + 1e-12), "{found} {clip}");
            // And it is not clipped for nothing.
            let whole = sample_norms(&network, batch).unwrap()[0];
            if whole.is_finite() {
                prop_assert!((found - f64::min(whole, clip)).abs() <= 1e-8 * clip + 1e-6 * f64::min(whole, clip));
            }
        }
    }
}
