//! Whole networks against PyTorch: outputs, losses, gradients, steps, running statistics, per-sample norms.
//! `scripts/oracle/nn.py` writes the numbers.

mod common;

use std::collections::BTreeMap;

use common::{Sparse, Stored, assert_close, norm_named, places};
use progap_nn::{
    Activation, Adam, Architecture, Batch, Input, Inputs, Jk, Network, NormPlacement, Optimiser, Tensor,
    epoch, gradient, logits, sample_norms,
};
use serde::Deserialize;

/// The learning rate of all steps.
const RATE: f32 = 0.05;

#[derive(Deserialize)]
struct Oracle {
    rows: usize,
    inputs: Vec<Vec<f32>>,
    labels: Vec<u32>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    inputs: Vec<usize>,
    hidden: usize,
    layers: usize,
    activation: String,
    norm: String,
    jk: String,
    normalise: bool,
    closing: String,
    classes: usize,
    frozen: Vec<usize>,
    optimiser: String,
    weight_decay: f32,
    state: BTreeMap<String, Stored>,
    logits: Vec<f32>,
    norms: Option<Vec<f32>>,
    gradient: BTreeMap<String, Vec<f32>>,
    losses: Vec<f32>,
    trained: BTreeMap<String, Vec<f32>>,
}

impl Case {
    fn network(&self) -> Network {
        let architecture = Architecture {
            inputs: self.inputs.clone(),
            hidden: self.hidden,
            layers: self.layers,
            activation: match &self.activation[..] {
                "selu" => Activation::Selu,
                "relu" => Activation::Relu,
                _ => Activation::Tanh,
            },
            norm: norm_named(&self.norm),
            dropout: 0.0,
            jk: match &self.jk[..] {
                "cat" => Jk::Cat,
                "sum" => Jk::Sum,
                "mean" => Jk::Mean,
                "max" => Jk::Max,
                other => panic!("{other}"),
            },
            normalise: self.normalise,
            norm_placement: match &self.closing[..] {
                "branch" => NormPlacement::PerBranch,
                _ => NormPlacement::AfterJoin,
            },
            classes: self.classes,
        };
        let state = self.state.iter().map(|(name, t)| Tensor { name, shape: &t.shape, values: &t.values });
        let mut network = Network::from_state(architecture, state).unwrap();
        for &branch in &self.frozen {
            network.freeze(branch, true).unwrap();
        }
        network
    }

    /// One step as PyTorch makes it; of stochastic gradient descent only the oracle knows, so the test does it.
    fn step(
        &self,
        network: &mut Network,
        optimiser: &mut Optimiser,
        momentum: &mut Vec<f32>,
        batch: Batch<'_>,
    ) -> f64 {
        if self.optimiser == "adam" {
            return epoch(network, optimiser, batch, 0).unwrap().loss;
        }
        let values = gradient(network, batch, 0).unwrap().values;
        // Moves the running statistics alone.
        let mut still = Optimiser::adam(Adam { rate: 0.0, ..Adam::default() }).unwrap();
        let loss = epoch(network, &mut still, batch, 0).unwrap().loss;
        momentum.resize(values.len(), 0.0);
        let places: Vec<usize> = network.trained().into_iter().flatten().collect();
        for ((place, g), m) in places.into_iter().zip(values).zip(momentum) {
            let p = &mut network.parameters_mut()[place];
            *m = 0.9 * *m + g + self.weight_decay * *p;
            *p -= RATE * *m;
        }
        loss
    }

    fn label(&self) -> String {
        format!(
            "{} x{} {} {} {} closing {} frozen {:?}",
            self.hidden, self.layers, self.activation, self.norm, self.jk, self.closing, self.frozen
        )
    }
}

fn tensors(network: &Network) -> BTreeMap<&str, &[f32]> {
    network.state().into_iter().map(|t| (t.name, t.values)).collect()
}

#[test]
fn networks_agree_with_pytorch() {
    let oracle: Oracle = serde_json::from_str(include_str!("data/oracle.json")).unwrap();
    // The first input once as it is and once sparse: the same numbers by other code.
    let first = Sparse::new(oracle.inputs[0].len() / oracle.rows, &oracle.inputs[0]);
    let rows: Vec<u32> = (0..oracle.rows as u32).collect();
    assert!(oracle.cases.len() == 21);
    for case in &oracle.cases {
        for sparse in [false, true] {
            let mut inputs: Vec<Input> = oracle
                .inputs
                .iter()
                .zip(&case.inputs)
                .map(|(values, &columns)| Input::Dense { columns, values })
                .collect();
            if sparse {
                inputs[0] = first.input();
            }
            let inputs = Inputs::new(inputs).unwrap();
            let batch = Batch::new(&inputs, &oracle.labels, &rows, case.classes).unwrap();
            check(case, &inputs, batch, &rows);
        }
    }
}

fn check(case: &Case, inputs: &Inputs<'_>, batch: Batch<'_>, rows: &[u32]) {
    let (label, mut network) = (case.label(), case.network());
    assert_close(&format!("{label}: logits"), &logits(&network, inputs, rows).unwrap(), &case.logits, 1e-5);

    let found = gradient(&network, batch, 0).unwrap().values;
    let mut all = vec![f32::NAN; network.parameter_count()];
    let mut at = 0;
    for range in network.trained() {
        all[range.clone()].copy_from_slice(&found[at..at + range.len()]);
        at += range.len();
    }
    let mut seen = 0;
    let largest = case.gradient.values().flatten().fold(0f32, |m, v| m.max(v.abs()));
    for (name, place) in places(&network.state()) {
        let found = &all[place];
        match case.gradient.get(&name) {
            None => assert!(found.iter().all(|v| v.is_nan()), "{label}: {name} is frozen"),
            Some(expected) => {
                for (a, b) in found.iter().zip(expected) {
                    assert!((a - b).abs() <= 1e-5 * largest, "{label}: d {name}: {a}, not {b}");
                }
                seen += 1;
            }
        }
    }
    assert_eq!(seen, case.gradient.len(), "{label}: every gradient was compared");

    if let (Some(norms), true) = (&case.norms, case.frozen.is_empty()) {
        let found: Vec<f32> = sample_norms(&network, batch).unwrap().iter().map(|&n| n as f32).collect();
        assert_close(&format!("{label}: per-sample norms"), &found, norms, 1e-5);
    }

    let adam = Adam { rate: RATE, weight_decay: case.weight_decay, epsilon: 1e-3, ..Adam::default() };
    let (mut optimiser, mut momentum) = (Optimiser::adam(adam).unwrap(), vec![]);
    for (step, &loss) in case.losses.iter().enumerate() {
        let found = case.step(&mut network, &mut optimiser, &mut momentum, batch);
        assert!((found as f32 - loss).abs() < 2e-5 * loss, "{label}: step {step}: {found} {loss}");
    }
    for (name, found) in tensors(&network) {
        assert_close(&format!("{label}: {name} after training"), found, &case.trained[name], 2e-5);
    }
}
