//! Gradients against finite differences, in every combination of layers; bits against the number of threads.

mod common;

use common::{Data, check_gradient, network, places, with_threads};
use progap_nn::{
    Activation, Adam, Architecture, Batch, Input, Inputs, Jk, Norm, NormPlacement, Optimiser, Targets,
    accuracy, clipped_sum, embed, epoch, gradient, logits, probabilities, sample_norms,
};

const JK: [Jk; 4] = [Jk::Cat, Jk::Sum, Jk::Mean, Jk::Max];

fn architecture(data: &Data) -> Architecture {
    Architecture { hidden: 6, ..Architecture::new(data.columns.clone(), 4) }
}

fn check(architecture: Architecture, data: &Data, seed: u64) {
    let (inputs, rows) = (data.inputs(), data.rows());
    let batch = Batch::new(&inputs, &data.labels, &rows, 4).unwrap();
    let label = format!("{architecture:?}");
    let mut network = network(architecture, seed);
    let exact = gradient(&network, batch, 5).unwrap().values;
    let (places, start) = (places(&network.state()), network.parameters().to_vec());
    check_gradient(&label, &exact, &places, &start, |parameters| {
        network.parameters_mut().copy_from_slice(parameters);
        gradient(&network, batch, 5).unwrap().stats.loss
    });
}

#[test]
fn every_combination_of_layers_matches_finite_differences() {
    let data = Data::new(90, [9, 4, 5], 4, 3);
    let mut seed = 0;
    for jk in JK {
        for norm in [Norm::None, Norm::Batch, Norm::Group] {
            for layers in [1, 2] {
                for (normalise, norm_placement) in [
                    (false, NormPlacement::PerBranch),
                    (true, NormPlacement::PerBranch),
                    (false, NormPlacement::AfterJoin),
                    (true, NormPlacement::AfterJoin),
                ] {
                    if norm == Norm::Group && norm_placement == NormPlacement::AfterJoin {
                        continue;
                    }
                    seed += 1;
                    let activation = [Activation::Selu, Activation::Tanh][seed as usize % 2];
                    let dropout = [0.0, 0.3][(seed / 2) as usize % 2];
                    let architecture = Architecture {
                        jk,
                        norm,
                        layers,
                        normalise,
                        norm_placement,
                        activation,
                        dropout,
                        ..architecture(&data)
                    };
                    check(architecture, &data, seed);
                }
            }
        }
    }
}

#[test]
fn soft_targets_with_weights_match_finite_differences_and_clip_per_sample() {
    let data = Data::new(90, [9, 4, 5], 4, 3);
    let (inputs, rows) = (data.inputs(), data.rows());
    let mut soft: Vec<f32> = (0..90 * 4).map(|i| 0.1 + (i * 7 % 11) as f32).collect();
    for row in soft.chunks_mut(4) {
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|q| *q /= sum);
    }
    let weights: Vec<f32> = (0..90).map(|r| [0.0, 0.5, 1.0, 3.0][r % 4]).collect();
    let targets = Targets::Soft(&soft);
    let batch = Batch::with_targets(&inputs, targets, &rows, 4).unwrap().weighted(&weights).unwrap();
    for norm in [Norm::None, Norm::Batch, Norm::Group] {
        let mut network = network(Architecture { norm, ..architecture(&data) }, 11);
        let exact = gradient(&network, batch, 0).unwrap().values;
        if norm != Norm::Batch {
            // With a clip that no sample reaches, the sum over samples is the gradient.
            let sum = clipped_sum(&network, batch, 1e6).unwrap();
            assert!(sum.iter().zip(&exact).all(|(sum, g)| (*sum as f32 / 90.0 - g).abs() < 1e-6));
            let norms = sample_norms(&network, batch).unwrap();
            assert!(norms.iter().zip(&weights).all(|(norm, weight)| (*norm > 0.0) == (*weight > 0.0)));
        }
        let (places, start) = (places(&network.state()), network.parameters().to_vec());
        check_gradient(&format!("{norm:?}"), &exact, &places, &start, |parameters| {
            network.parameters_mut().copy_from_slice(parameters);
            gradient(&network, batch, 0).unwrap().stats.loss
        });
    }
    let broken: Vec<f32> = soft.iter().map(|q| 2.0 * q).collect();
    for bad in [&broken[..], &soft[1..]] {
        assert!(Batch::with_targets(&inputs, Targets::Soft(bad), &rows, 4).is_err());
    }
    assert!(batch.weighted(&[f32::NAN; 90]).is_err() && batch.weighted(&weights[1..]).is_err());
}

#[test]
fn training_gives_the_same_bits_on_any_number_of_threads() {
    // More than two chunks, the last block not full.
    let data = Data::new(9_001, [30, 16, 16], 4, 4);
    let (inputs, rows) = (data.inputs(), data.rows());
    let batch = Batch::new(&inputs, &data.labels, &rows, 4).unwrap();
    for (norm, layers, jk, dropout, norm_placement) in [
        (Norm::Batch, 2, Jk::Cat, 0.1, NormPlacement::PerBranch),
        (Norm::Group, 1, Jk::Cat, 0.1, NormPlacement::PerBranch),
        (Norm::Batch, 1, Jk::Mean, 0.1, NormPlacement::PerBranch),
        (Norm::Batch, 2, Jk::Cat, 0.0, NormPlacement::PerBranch),
        (Norm::Batch, 2, Jk::Cat, 0.0, NormPlacement::AfterJoin),
        (Norm::Batch, 1, Jk::Max, 0.1, NormPlacement::AfterJoin),
    ] {
        let run = |threads| {
            with_threads(threads, || {
                let architecture = Architecture {
                    norm,
                    layers,
                    jk,
                    hidden: 16,
                    dropout,
                    norm_placement,
                    ..architecture(&data)
                };
                let mut network = network(architecture, 9);
                let mut adam = Optimiser::adam(Adam::default()).unwrap();
                let mut stats = vec![];
                for step in 0..2 {
                    stats.push(epoch(&mut network, &mut adam, batch, step).unwrap());
                }
                let logits = logits(&network, &inputs, &rows).unwrap();
                (stats, network.parameters().to_vec(), network.statistics().to_vec(), logits)
            })
        };
        let one = run(1);
        assert!(one == run(2) && one == run(3), "{norm:?} {layers} {jk:?} {norm_placement:?}");
    }
}

#[test]
fn training_learns_and_evaluation_agrees_with_itself() {
    let mut data = Data::new(600, [9, 4, 5], 4, 5);
    for (label, x) in data.labels.iter_mut().zip(data.dense[0].chunks(4)) {
        *label = u32::from(x[0] > 0.0) + 2 * u32::from(x[1] + x[2] > 0.0);
    }
    let (inputs, rows) = (data.inputs(), data.rows());
    let batch = |rows| Batch::new(&inputs, &data.labels, rows, 4).unwrap();
    let (train, test) = rows.split_at(400);
    for norm in [Norm::None, Norm::Batch, Norm::Group] {
        let mut network = network(Architecture { norm, hidden: 16, ..architecture(&data) }, 2);
        let mut adam = Optimiser::adam(Adam { rate: 0.02, ..Adam::default() }).unwrap();
        for step in 0..150 {
            epoch(&mut network, &mut adam, batch(train), step).unwrap();
        }
        let found = accuracy(&network, batch(test)).unwrap();
        assert!(found > 0.85, "{norm:?}: {found}");
        let p = probabilities(&network, &inputs, test).unwrap();
        assert!(p.chunks(4).all(|p| (p.iter().sum::<f32>() - 1.0).abs() < 1e-5));
        let best = |p: &[f32]| (0..4).max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap() as u32;
        let hits = p.chunks(4).zip(test).filter(|(p, row)| best(p) == data.labels[**row as usize]).count();
        assert_eq!(hits as f64 / test.len() as f64, found);
    }
}

#[test]
fn an_embedding_is_what_the_branch_gives_in_evaluation() {
    let data = Data::new(200, [9, 4, 5], 4, 6);
    let inputs = data.inputs();
    // One branch, no head to speak of: logits are the branch's values if the head is the identity.
    let input = Input::Dense { columns: 4, values: &data.dense[0] };
    let architecture = Architecture { inputs: vec![4], classes: 6, normalise: false, ..architecture(&data) };
    let mut network = network(architecture, 8);
    let at = network.parameter_count() - 6 * 7;
    for (i, value) in network.parameters_mut()[at..].iter_mut().enumerate() {
        *value = if i < 36 && i % 7 == 0 { 1.0 } else { 0.0 };
    }
    let alone = Inputs::new(vec![input]).unwrap();
    let rows: Vec<u32> = (0..200).collect();
    let (embedded, logits) = (embed(&network, 0, input).unwrap(), logits(&network, &alone, &rows).unwrap());
    assert_eq!(embedded.len(), logits.len());
    // The head reads the norm folded into its weights, which rounds otherwise.
    assert!(embedded.iter().zip(&logits).all(|(a, b)| (a - b).abs() < 1e-6));
    assert!(embed(&network, 1, input).is_err());
    assert!(embed(&network, 0, inputs.as_slice()[0]).is_err());
}
