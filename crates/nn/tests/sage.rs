//! GraphSAGE against PyTorch (`scripts/oracle/sage.py` writes the numbers), finite differences and brute force.

mod common;

use std::collections::BTreeMap;

use common::lists::Lists;
use common::{Data, Sparse, Stored, assert_close, check_gradient, norm_named, places, uniform, with_threads};
use progap_nn::{
    Activation, Adam, Batch, Error, Input, Inputs, Jk, Neighbours, Norm, Optimiser, Sage, SageArchitecture,
    Tensor, sage_clipped_sum, sage_epoch, sage_gradient, sage_sample_norms,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::Deserialize;

#[derive(Deserialize)]
struct Oracle {
    nodes: usize,
    columns: usize,
    classes: usize,
    features: Vec<f32>,
    labels: Vec<u32>,
    rows: Vec<u32>,
    targets: Vec<u32>,
    sources: Vec<u32>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    hidden: usize,
    base_layers: usize,
    convolutions: usize,
    head_layers: usize,
    activation: String,
    norm: String,
    jk: String,
    normalise: bool,
    aggregation: String,
    state: BTreeMap<String, Stored>,
    logits: Vec<f32>,
    norms: Option<Vec<f32>>,
    gradient: BTreeMap<String, Vec<f32>>,
    losses: Vec<f32>,
    trained: BTreeMap<String, Vec<f32>>,
}

impl Case {
    fn sage(&self, oracle: &Oracle) -> Sage {
        let architecture = SageArchitecture {
            hidden: self.hidden,
            base_layers: self.base_layers,
            convolutions: self.convolutions,
            head_layers: self.head_layers,
            activation: if self.activation == "selu" { Activation::Selu } else { Activation::Tanh },
            norm: norm_named(&self.norm),
            jk: match &self.jk[..] {
                "cat" => Jk::Cat,
                "sum" => Jk::Sum,
                "mean" => Jk::Mean,
                _ => Jk::Max,
            },
            normalise: self.normalise,
            ..SageArchitecture::new(oracle.columns, oracle.classes)
        };
        let state = self.state.iter().map(|(name, t)| Tensor { name, shape: &t.shape, values: &t.values });
        Sage::from_state(architecture, state).unwrap()
    }
}

#[test]
fn models_agree_with_pytorch() {
    let oracle: Oracle = serde_json::from_str(include_str!("data/sage.json")).unwrap();
    let dense = Input::Dense { columns: oracle.columns, values: &oracle.features };
    let sparse = Sparse::new(oracle.columns, &oracle.features);
    assert!(oracle.cases.len() >= 9);
    assert!(oracle.cases.iter().filter(|case| case.norms.is_some()).count() >= 2);
    for (i, case) in oracle.cases.iter().enumerate() {
        for input in [dense, sparse.input()] {
            check(&format!("case {i}"), &oracle, case, &Inputs::new(vec![input]).unwrap());
        }
    }
}

fn check(label: &str, oracle: &Oracle, case: &Case, inputs: &Inputs<'_>) {
    let edges = oracle.targets.iter().copied().zip(oracle.sources.iter().copied());
    let graph = Lists::new(oracle.nodes, edges, case.aggregation == "mean");
    let batch = Batch::new(inputs, &oracle.labels, &oracle.rows, oracle.classes).unwrap();
    let mut sage = case.sage(oracle);

    let all: Vec<u32> = (0..oracle.nodes as u32).collect();
    let aggregates = sage.aggregates(inputs, &graph).unwrap();
    let logits = sage.logits(inputs, &aggregates, &all).unwrap();
    assert_close(&format!("{label}: logits"), &logits, &case.logits, 1e-5);

    let found = sage_gradient(&sage, batch, &graph, 0).unwrap().values;
    let largest = case.gradient.values().flatten().fold(0f32, |m, v| m.max(v.abs()));
    let places = places(&sage.state());
    assert_eq!(places.len(), case.gradient.len(), "{label}: every gradient is compared");
    for (name, place) in places {
        for (a, b) in found[place].iter().zip(&case.gradient[&name]) {
            assert!((a - b).abs() <= 2e-5 * largest, "{label}: d {name}: {a}, not {b}");
        }
    }

    if let Some(norms) = &case.norms {
        let found = sage_sample_norms(&sage, batch, graph.neighbours()).unwrap();
        let found: Vec<f32> = found.iter().map(|&n| n as f32).collect();
        assert_close(&format!("{label}: per-sample norms"), &found, norms, 1e-5);
    }

    let settings = Adam { rate: 0.02, epsilon: 1e-3, ..Adam::default() };
    let mut adam = Optimiser::adam(settings).unwrap();
    for (step, &loss) in case.losses.iter().enumerate() {
        let found = sage_epoch(&mut sage, &mut adam, batch, &graph, 0).unwrap().loss as f32;
        assert!((found - loss).abs() < 3e-5 * loss, "{label}: step {step}: {found} {loss}");
    }
    for tensor in sage.state() {
        let what = format!("{label}: {} after training", tensor.name);
        // A bias before batch normalisation has no gradient but rounding, which Adam makes larger.
        assert_close(&what, tensor.values, &case.trained[tensor.name], 1e-4);
    }
}

/// A model with no parameter at a special value.
fn model(architecture: SageArchitecture, seed: u64) -> Sage {
    let mut sage = Sage::new(architecture, seed).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 77);
    for value in sage.parameters_mut() {
        *value += 0.3 * uniform(&mut rng);
    }
    sage
}

fn inputs(data: &Data) -> Inputs<'_> {
    Inputs::new(vec![data.inputs().as_slice()[0]]).unwrap()
}

#[test]
fn dropout_and_every_shape_match_finite_differences() {
    let data = Data::new(90, [9, 4, 5], 4, 3);
    let inputs = inputs(&data);
    let graph = Lists::random(90, true, 4);
    // Rows may repeat, and need not be in order.
    let rows: Vec<u32> = (0..60).map(|i| i * 7 % 90).chain([3, 3, 80]).collect();
    let batch = Batch::new(&inputs, &data.labels, &rows, 4).unwrap();
    let mut seed = 0;
    for norm in [Norm::None, Norm::Batch, Norm::Group] {
        for jk in [Jk::Cat, Jk::Sum, Jk::Mean, Jk::Max] {
            for (base_layers, convolutions, head_layers) in [(1, 2, 1), (2, 1, 2), (1, 3, 2)] {
                seed += 1;
                let architecture = SageArchitecture {
                    hidden: 6,
                    base_layers,
                    convolutions,
                    head_layers,
                    norm,
                    jk,
                    dropout: [0.0, 0.3][seed as usize % 2],
                    activation: [Activation::Selu, Activation::Tanh][seed as usize / 2 % 2],
                    ..SageArchitecture::new(9, 4)
                };
                let label = format!("{architecture:?}");
                let mut sage = model(architecture, seed);
                let exact = sage_gradient(&sage, batch, &graph, 5).unwrap().values;
                let (places, start) = (places(&sage.state()), sage.parameters().to_vec());
                check_gradient(&label, &exact, &places, &start, |parameters| {
                    sage.parameters_mut().copy_from_slice(parameters);
                    sage_gradient(&sage, batch, &graph, 5).unwrap().stats.loss
                });
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let data = Data::new(5000, [9, 4, 5], 4, 8);
    let inputs = inputs(&data);
    let rows = data.rows();
    let batch = Batch::new(&inputs, &data.labels, &rows[..3000], 4).unwrap();
    let (mean, sum) = (Lists::random(5000, true, 9), Lists::random(5000, false, 9));
    let run = |threads| {
        with_threads(threads, || {
            let mut sage =
                Sage::new(SageArchitecture { dropout: 0.2, ..SageArchitecture::new(9, 4) }, 1).unwrap();
            let mut adam = Optimiser::adam(Adam::default()).unwrap();
            for step in 0..3 {
                sage_epoch(&mut sage, &mut adam, batch, &mean, step).unwrap();
            }
            let aggregates = sage.aggregates(&inputs, &mean).unwrap();
            let outputs = sage.probabilities(&inputs, &aggregates, &rows).unwrap();
            let grouped =
                SageArchitecture { norm: Norm::Group, convolutions: 1, ..SageArchitecture::new(9, 4) };
            let clipped = sage_clipped_sum(&model(grouped, 2), batch, sum.neighbours(), 0.1).unwrap();
            (sage.parameters().to_vec(), sage.statistics().to_vec(), outputs, clipped)
        })
    };
    let one = run(1);
    assert!(one == run(2));
    assert!(one == run(5));
}

#[test]
fn a_prediction_needs_its_own_row_of_the_aggregates_only() {
    let data = Data::new(200, [9, 4, 5], 4, 6);
    let inputs = inputs(&data);
    let graph = Lists::random(200, true, 2);
    let sage = model(SageArchitecture { hidden: 7, convolutions: 3, ..SageArchitecture::new(9, 4) }, 4);
    let aggregates = sage.aggregates(&inputs, &graph).unwrap();
    assert_eq!(aggregates.iter().map(Vec::len).collect::<Vec<_>>(), [1400; 3]);
    let together = sage.probabilities(&inputs, &aggregates, &data.rows()).unwrap();
    for row in [0u32, 63, 64, 150, 199] {
        let own = row as usize * 7..(row as usize + 1) * 7;
        let others_forgotten: Vec<Vec<f32>> = aggregates
            .iter()
            .map(|a| {
                a.iter().enumerate().map(|(i, &v)| if own.contains(&i) { v } else { f32::NAN }).collect()
            })
            .collect();
        let alone = sage.probabilities(&inputs, &others_forgotten, &[row]).unwrap();
        assert_eq!(alone, together[row as usize * 4..][..4]);
        assert!((alone.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let batch = Batch::new(&inputs, &data.labels, &[5, 9, 14], 4).unwrap();
    let hits = [5usize, 9, 14].iter().filter(|&&r| {
        let own = &together[r * 4..][..4];
        own[data.labels[r] as usize] == own.iter().fold(0.0, |m: f32, &v| m.max(v))
    });
    let accuracy = hits.count() as f64 / 3.0;
    assert_eq!(sage.accuracy(batch, &aggregates).unwrap(), accuracy);
    assert_eq!(sage.accuracy_along(batch, &graph).unwrap(), accuracy);
}

fn length(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Models whose samples have gradients of their own.
fn per_sample_models() -> impl Iterator<Item = Sage> {
    [(Norm::Group, 1, 1), (Norm::Group, 2, 2), (Norm::None, 2, 1)].into_iter().map(
        |(norm, base_layers, head_layers)| {
            let shape =
                SageArchitecture { hidden: 6, norm, base_layers, head_layers, ..SageArchitecture::new(9, 4) };
            model(SageArchitecture { convolutions: 1, ..shape }, 3)
        },
    )
}

#[test]
fn clipped_sums_match_gradients_of_one_row_batches() {
    let data = Data::new(120, [9, 4, 5], 4, 1);
    let graph = Lists::random(120, false, 7);
    let sparse = inputs(&data);
    let dense_values: Vec<f32> = {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        (0..120 * 9).map(|_| uniform(&mut rng)).collect()
    };
    let dense = Inputs::new(vec![Input::Dense { columns: 9, values: &dense_values }]).unwrap();
    let rows = data.rows();
    for sage in per_sample_models() {
        for inputs in [&sparse, &dense] {
            let batch = |rows| Batch::new(inputs, &data.labels, rows, 4).unwrap();
            let found = sage_sample_norms(&sage, batch(&rows), graph.neighbours()).unwrap();
            let mut sorted = found.clone();
            sorted.sort_by(f64::total_cmp);
            // Half of the samples are clipped.
            let clip = sorted[60];
            let mut expected = vec![0.0; sage.parameter_count()];
            for (row, &found) in rows.chunks(1).zip(&found) {
                let own = sage_gradient(&sage, batch(row), &graph, 0).unwrap().values;
                let own: Vec<f64> = own.iter().map(|&g| g.into()).collect();
                let exact = length(&own);
                assert!((found - exact).abs() < 1e-5 * exact.max(0.1), "{found} {exact}");
                for (sum, g) in expected.iter_mut().zip(own) {
                    *sum += g * f64::min(1.0, clip / exact);
                }
            }
            let sum = sage_clipped_sum(&sage, batch(&rows), graph.neighbours(), clip).unwrap();
            let scale = length(&expected);
            assert!(sum.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5 * scale));
            // Every single contribution is within the bound, with no allowance.
            for row in rows.chunks(1) {
                let one = sage_clipped_sum(&sage, batch(row), graph.neighbours(), 0.01).unwrap();
                assert!(length(&one) <= 0.01);
            }
        }
    }
}

#[test]
fn a_sample_depends_on_no_other_not_even_in_the_last_bit() {
    let data = Data::new(200, [9, 4, 5], 4, 2);
    let inputs = inputs(&data);
    let graph = Lists::random(200, false, 3);
    let rows = data.rows();
    for sage in per_sample_models() {
        let sum = |rows: &[u32]| {
            let batch = Batch::new(&inputs, &data.labels, rows, 4).unwrap();
            sage_clipped_sum(&sage, batch, graph.neighbours(), 0.1).unwrap()
        };
        let norms = |rows: &[u32]| {
            let batch = Batch::new(&inputs, &data.labels, rows, 4).unwrap();
            sage_sample_norms(&sage, batch, graph.neighbours()).unwrap()
        };
        let together = norms(&rows);
        for row in [0u32, 1, 2, 63, 64, 199] {
            assert_eq!(norms(&[row])[0], together[row as usize]);
            let other = (row + 1) % 200;
            let (alone, beside, pair) = (sum(&[row]), sum(&[other]), sum(&[other, row]));
            assert!(pair.iter().zip(alone.iter().zip(&beside)).all(|(pair, (a, b))| *pair == b + a));
        }
        assert!(sum(&[]).iter().all(|&v| v == 0.0));
    }
}

/// The accountant's premise: a record that is gone moves its own term and those of the nodes that read it, and no
/// other term in any bit; each by at most twice the clip.
#[test]
fn a_record_moves_its_own_term_and_those_that_read_it() {
    let data = Data::new(60, [9, 4, 5], 4, 2);
    let Input::Sparse { columns, offsets, indices, values } = data.inputs().as_slice()[0] else { panic!() };
    let graph = Lists::random(60, false, 3);
    let gone = 10u32;
    // The record's row is empty, and nobody reads it.
    let row = offsets[gone as usize] as usize..offsets[gone as usize + 1] as usize;
    let without = |list: &[f32]| [&list[..row.start], &list[row.end..]].concat();
    let mut offsets_without = offsets.to_vec();
    offsets_without[gone as usize + 1..].iter_mut().for_each(|o| *o -= row.len() as u64);
    let indices_without = [&indices[..row.start], &indices[row.end..]].concat();
    let values_without = without(values.unwrap());
    let mut edges = vec![];
    graph.edges(|t, s, _| edges.push((t as u32, s as u32)));
    let readers: Vec<u32> = edges.iter().filter(|e| e.1 == gone).map(|e| e.0).collect();
    assert!(!readers.is_empty());
    let graph_without = Lists::new(60, edges.into_iter().filter(|e| e.1 != gone), false);
    let inputs = inputs(&data);
    let inputs_without = Inputs::new(vec![Input::Sparse {
        columns,
        offsets: &offsets_without,
        indices: &indices_without,
        values: Some(&values_without),
    }])
    .unwrap();
    let clip = 0.05;
    for sage in per_sample_models() {
        for row in data.rows() {
            let term = |inputs: &Inputs<'_>, graph: &Lists| {
                let rows = [row];
                let batch = Batch::new(inputs, &data.labels, &rows, 4).unwrap();
                sage_clipped_sum(&sage, batch, graph.neighbours(), clip).unwrap()
            };
            let (with, without) = (term(&inputs, &graph), term(&inputs_without, &graph_without));
            if row == gone || readers.contains(&row) {
                let moved: Vec<f64> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
                assert!(length(&moved) <= 2.0 * clip);
            } else {
                assert_eq!(with, without, "row {row}");
            }
        }
    }
}

#[test]
fn samples_that_are_not_finite_contribute_nothing() {
    let values = [1.0, 2.0, f32::NAN, 1.0, f32::INFINITY, 0.0, 3.0, -1.0];
    let inputs = Inputs::new(vec![Input::Dense { columns: 2, values: &values }]).unwrap();
    let shape = SageArchitecture { norm: Norm::Group, convolutions: 1, ..SageArchitecture::new(2, 2) };
    let sage = Sage::new(shape, 1).unwrap();
    let labels = [0, 1, 0, 1];
    // Row 0 reads row 1, which is not finite; row 3 reads row 0.
    let lists = Lists::new(4, [(0, 1), (3, 0)].into_iter(), false);
    let sum = |rows: &[u32]| {
        let batch = Batch::new(&inputs, &labels, rows, 2).unwrap();
        sage_clipped_sum(&sage, batch, lists.neighbours(), 0.5).unwrap()
    };
    assert!(sum(&[0, 1, 2]).iter().all(|&v| v == 0.0));
    assert_eq!(sum(&[0, 1, 2, 3]), sum(&[3]));
    assert!(length(&sum(&[3])) > 0.0);
}

#[test]
fn what_cannot_be_done_is_refused() {
    let good = SageArchitecture::new(3, 2);
    for bad in [
        SageArchitecture { inputs: 0, ..good.clone() },
        SageArchitecture { hidden: 0, ..good.clone() },
        SageArchitecture { base_layers: 0, ..good.clone() },
        SageArchitecture { convolutions: 17, ..good.clone() },
        SageArchitecture { head_layers: 0, ..good.clone() },
        SageArchitecture { dropout: 1.0, ..good.clone() },
        SageArchitecture { classes: 0, ..good.clone() },
    ] {
        assert!(matches!(Sage::new(bad, 0), Err(Error::Setting { .. })));
    }
    let x = [0.5; 12];
    let inputs = Inputs::new(vec![Input::Dense { columns: 3, values: &x }]).unwrap();
    let batch = |rows| Batch::new(&inputs, &[0, 1, 0, 1], rows, 2).unwrap();
    let graph = Lists::new(4, [(0, 1)].into_iter(), true);
    let sage = Sage::new(good.clone(), 0).unwrap();
    assert!(sage_gradient(&sage, batch(&[]), &graph, 0).is_err());
    let small = Lists::new(3, [].into_iter(), true);
    assert!(sage_gradient(&sage, batch(&[0]), &small, 0).is_err());
    assert!(sage.aggregates(&inputs, &small).is_err());
    let other = Sage::new(SageArchitecture::new(2, 2), 0).unwrap();
    assert!(sage_gradient(&other, batch(&[0]), &graph, 0).is_err());
    let aggregates = sage.aggregates(&inputs, &graph).unwrap();
    assert!(sage.logits(&inputs, &aggregates[1..], &[0]).is_err());
    assert!(sage.logits(&inputs, &aggregates, &[4]).is_err());
    assert!(sage.logits(&inputs, &[vec![0.0; 5], aggregates[1].clone()], &[0]).is_err());
    assert!(sage.accuracy(batch(&[]), &aggregates).is_err());
    assert!(sage.accuracy_along(batch(&[]), &graph).is_err());
    assert!(sage.accuracy_along(batch(&[0]), &small).is_err());

    let neighbours = graph.neighbours();
    assert_eq!(sage_clipped_sum(&sage, batch(&[0]), neighbours, 1.0), Err(Error::BatchNormPerSample));
    let deep = Sage::new(SageArchitecture { norm: Norm::Group, ..good.clone() }, 0).unwrap();
    assert!(sage_clipped_sum(&deep, batch(&[0]), neighbours, 1.0).is_err());
    let shape = SageArchitecture { norm: Norm::Group, convolutions: 1, ..good.clone() };
    let flat = Sage::new(shape, 0).unwrap();
    assert!(sage_clipped_sum(&flat, batch(&[0]), neighbours, 0.0).is_err());
    assert!(sage_clipped_sum(&flat, batch(&[0]), small.neighbours(), 1.0).is_err());
    for (offsets, ids) in [
        (&[0u64, 1, 1][..], &[0u32][..]),
        (&[1, 1, 1, 1], &[0]),
        (&[0, 1, 0, 1], &[0]),
        (&[0, 1, 1, 2], &[0]),
        (&[0, 1, 1, 1], &[3]),
    ] {
        assert!(Neighbours::new(3, offsets, ids).is_err());
    }

    let (name, values) = ("joint.bias", [0.0; 15]);
    let mut state = sage.state();
    assert!(Sage::from_state(good.clone(), state.clone()).unwrap().parameters() == sage.parameters());
    state.pop();
    assert!(matches!(Sage::from_state(good.clone(), state.clone()), Err(Error::MissingTensor(_))));
    state.push(Tensor { name, shape: &[15], values: &values });
    assert!(matches!(Sage::from_state(good.clone(), state.clone()), Err(Error::Shape { .. })));
    state.pop();
    state.push(Tensor { name: "other", shape: &[15], values: &values });
    assert!(matches!(Sage::from_state(good, state), Err(Error::UnknownTensor(_))));
}
