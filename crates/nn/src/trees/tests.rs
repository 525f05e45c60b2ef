use super::*;
use crate::log_losses;

type State = Vec<(&'static str, Vec<usize>, Vec<f32>)>;

/// Six columns, of which the signs of two tell the class by an exclusive or, or three rings by their distance.
fn table(rows: usize, classes: usize) -> (Vec<f32>, Vec<u32>) {
    let mut state = 7u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    };
    let values: Vec<f32> = (0..rows * 6).map(|_| draw()).collect();
    let class = |row: &[f32]| match classes {
        2 => u32::from((row[1] > 0.0) != (row[4] > 0.0)),
        _ => ((row[1] * row[1] + row[4] * row[4]) * 1.8).min(2.0) as u32,
    };
    let labels = values.chunks_exact(6).map(class).collect();
    (values, labels)
}

const CONFIG: Boosting = Boosting { leaves: 31, min_rows: 20, rate: 0.1, rounds: 100, patience: 10 };

fn fitted(rows: usize, classes: usize) -> (CrossFitted, f64) {
    let (values, labels) = table(rows, classes);
    let found = cross_fitted(
        &Table::new(&values, 6, classes),
        (&labels, classes),
        &vec![0.0; rows * classes],
        5,
        &CONFIG,
    );
    let found = found.expect("fits").expect("trees");
    // Rows that were never seen: those behind.
    let (more, truth) = table(rows + 1000, classes);
    let (new, truth) = (&more[rows * 6..], &truth[rows..]);
    let inputs = Inputs::new(vec![Input::Dense { columns: 6, values: new }]).expect("rows");
    let everyone: Vec<u32> = (0..1000).collect();
    let mut logits = vec![0f32; 1000 * classes];
    found.trees.add_logits(&inputs, &everyone, &mut logits).expect("logits");
    let right = logits.chunks_exact(classes).zip(truth).filter(|(row, label)| {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row[**label as usize] == top
    });
    let share = right.count() as f64 / 1000.0;
    (found, share)
}

#[test]
fn products_and_rings_of_columns_are_found() {
    for (classes, least) in [(2, 0.98), (3, 0.94)] {
        let (found, share) = fitted(3000, classes);
        assert!(share > least, "{classes}: {share}");
        let (_, labels) = table(3000, classes);
        let losses = log_losses(&found.out_of_fold, &labels, classes, 1.0);
        let mean = losses.iter().sum::<f64>() / 3000.0;
        assert!((mean - found.log_loss).abs() < 1e-6, "{mean} {}", found.log_loss);
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| fitted(5000, 3).0.trees)
    };
    let one = on(1);
    assert!(one == on(2) && one == on(5));
}

#[test]
fn noise_grows_no_trees() {
    let (values, _) = table(1000, 2);
    let labels: Vec<u32> = (0..1000u32).map(|row| row.wrapping_mul(2_654_435_761) >> 31).collect();
    let found =
        cross_fitted(&Table::new(&values, 6, 2), (&labels, 2), &[0.0; 2000], 5, &CONFIG).expect("fits");
    assert!(found.is_none_or(|found| found.trees.count() < 4));
    let few = cross_fitted(&Table::new(&values[..60], 6, 2), (&labels[..10], 2), &[0.0; 20], 5, &CONFIG);
    assert!(few.expect("fits").is_none());
}

#[test]
fn trees_are_read_as_they_were_written_and_damaged_ones_refused() {
    let trees = fitted(1000, 3).0.trees;
    let state = trees.state();
    let read = |change: &dyn Fn(&mut State)| {
        let mut state = state.clone();
        change(&mut state);
        let tensors = state.iter().map(|(name, shape, values)| Tensor { name, shape, values });
        Trees::from_state(6, 3, tensors)
    };
    assert_eq!(read(&|_| ()).expect("the same"), trees);
    for place in [f32::NAN, -3.0, 0.5, 1e9] {
        for at in [0, 2] {
            assert!(read(&|state| state[1].2[at] = place).is_err(), "{at} {place}");
        }
        assert!(read(&|state| state[0].2[0] = place).is_err(), "{place}");
    }
    // A node that comes back to itself would never end.
    assert!(read(&|state| state[1].2[2] = 0.0).is_err());
    assert!(read(&|state| state[1].2[1] = f32::INFINITY).is_err(), "a threshold");
    assert!(read(&|state| drop(state.pop())).is_err(), "no values");
}
