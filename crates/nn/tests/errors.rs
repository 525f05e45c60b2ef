//! Bad shapes and settings are typed errors, and change nothing.

mod common;

use common::{Data, network};
use progap_nn::{
    Adam, Architecture, Batch, Error, Input, Inputs, Network, Norm, NormPlacement, Optimiser, Tensor, epoch,
    gradient, logits,
};

#[test]
fn impossible_architectures_are_refused() {
    let good = || Architecture::new(vec![5, 3], 4);
    assert!(Network::new(good(), 1).is_ok());
    let bad = [
        Architecture { inputs: vec![], ..good() },
        Architecture { inputs: vec![0], ..good() },
        Architecture { hidden: 0, ..good() },
        Architecture { hidden: 100_000, ..good() },
        Architecture { layers: 0, ..good() },
        Architecture { dropout: 1.0, ..good() },
        Architecture { dropout: f32::NAN, ..good() },
        Architecture { classes: 0, ..good() },
        Architecture { norm: Norm::Group, norm_placement: NormPlacement::AfterJoin, ..good() },
    ];
    for architecture in bad {
        let label = format!("{architecture:?}");
        assert!(matches!(Network::new(architecture, 1), Err(Error::Setting { .. })), "{label}");
    }
}

#[test]
fn broken_inputs_are_refused() {
    let sparse =
        |offsets, indices, values| Inputs::new(vec![Input::Sparse { columns: 3, offsets, indices, values }]);
    assert!(sparse(&[0, 1, 3], &[0, 1, 2], None).is_ok());
    assert!(sparse(&[], &[], None).is_err());
    assert!(sparse(&[1, 1], &[0], None).is_err());
    assert!(sparse(&[0, 2, 1], &[0], None).is_err());
    assert!(sparse(&[0, 2], &[0], None).is_err());
    assert!(sparse(&[0, u64::MAX], &[0], None).is_err());
    assert!(sparse(&[0, 1], &[0], Some(&[])).is_err());
    let dense = |values| Input::Dense { columns: 2, values };
    assert!(Inputs::checked_before(vec![dense(&[1.0; 4]), dense(&[2.0; 4])]).is_ok());
    assert!(Inputs::checked_before(vec![dense(&[1.0; 4]), dense(&[2.0; 6])]).is_err());
    let beyond = sparse(&[0, 1, 3], &[0, 1, 3], None).unwrap_err();
    assert_eq!(
        beyond.to_string(),
        "row 1 of the sparse input 0 is broken: it has an index beyond the last column"
    );
    assert!(Inputs::new(vec![Input::Dense { columns: 3, values: &[0.0; 7] }]).is_err());
    assert!(Inputs::new(vec![Input::Dense { columns: 0, values: &[0.0; 7] }]).is_err());
    let (one, two) =
        (Input::Dense { columns: 3, values: &[0.0; 3] }, Input::Dense { columns: 3, values: &[0.0; 6] });
    assert!(Inputs::new(vec![one, two]).is_err());
}

#[test]
fn batches_that_do_not_fit_are_refused() {
    let data = Data::new(10, [5, 3, 2], 4, 1);
    let inputs = data.inputs();
    assert!(matches!(Batch::new(&inputs, &data.labels[1..], &[0], 4), Err(Error::Length { .. })));
    assert_eq!(Batch::new(&inputs, &data.labels, &[10], 4).unwrap_err(), Error::Row { row: 10, rows: 10 });
    assert!(matches!(
        Batch::new(&inputs, &[4; 10], &[3], 4),
        Err(Error::Label { row: 3, label: 4, classes: 4 })
    ));
    let mut net = network(Architecture::new(data.columns.clone(), 4), 1);
    let other = network(Architecture::new(vec![5, 3], 4), 1);
    let one = Batch::new(&inputs, &data.labels, &[0], 4).unwrap();
    let all: Vec<u32> = data.rows();
    let all = Batch::new(&inputs, &data.labels, &all, 4).unwrap();
    assert!(matches!(gradient(&net, one, 0), Err(Error::SmallBatch { rows: 1, .. })));
    assert!(gradient(&other, all, 0).is_err());
    assert!(logits(&net, &inputs, &[99]).is_err());
    assert!(net.freeze(3, true).is_err());
}

#[test]
fn a_state_that_does_not_fit_changes_nothing() {
    let mut net = network(Architecture::new(vec![5, 3], 4), 1);
    let before = net.parameters().to_vec();
    let other = network(Architecture::new(vec![5, 3], 4), 2);
    let mut state = other.state();
    let last = state.pop().unwrap();
    assert_eq!(net.load_state(state.clone()), Err(Error::MissingTensor(last.name.into())));
    state.push(Tensor { name: "head.wait", ..last });
    assert_eq!(net.load_state(state.clone()), Err(Error::UnknownTensor("head.wait".into())));
    state.pop();
    state.push(Tensor { shape: &[15], ..last });
    assert!(matches!(net.load_state(state.clone()), Err(Error::Shape { .. })));
    state.pop();
    state.push(Tensor { values: &[1.0], ..last });
    assert!(matches!(net.load_state(state.clone()), Err(Error::Length { .. })));
    assert_eq!(net.parameters(), before);
    net.load_state(other.state()).unwrap();
    assert_eq!((net.parameters(), net.statistics()), (other.parameters(), other.statistics()));
    assert_eq!(last.name, "branches.1.layers.0.norm.running_var");
}

#[test]
fn the_next_stage_takes_over_branches_and_frozen_ones_stay() {
    let data = Data::new(50, [5, 3, 2], 4, 1);
    let (inputs, rows) = (data.inputs(), data.rows());
    let before = network(Architecture::new(vec![5, 3], 4), 1);
    let mut next = network(Architecture::new(vec![5, 3, 2], 4), 2);
    next.copy_branches(&before, 2).unwrap();
    let shared = before
        .state()
        .iter()
        .filter(|t| t.name.starts_with("branches."))
        .map(|t| t.values.len())
        .sum::<usize>()
        - before.statistics().len();
    assert_eq!(next.parameters()[..shared], before.parameters()[..shared]);
    assert!(next.copy_branches(&before, 3).is_err());

    for branch in 0..2 {
        next.freeze(branch, true).unwrap();
    }
    assert_eq!(next.trained_count(), next.parameter_count() - shared);
    let batch = Batch::new(&inputs, &data.labels, &rows, 4).unwrap();
    let mut adam = Optimiser::adam(Adam::default()).unwrap();
    epoch(&mut next, &mut adam, batch, 0).unwrap();
    assert_eq!(next.parameters()[..shared], before.parameters()[..shared]);
    assert_eq!(next.statistics()[..64], before.statistics()[..64]);
    assert_ne!(next.statistics()[64..80], [0.0; 16]);
}
