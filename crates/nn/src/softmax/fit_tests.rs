use super::*;
use crate::RowScaling;
use crate::input::{Input, Inputs};

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..count).map(|_| (rng.next_u64() >> 40) as f32 / (1u64 << 23) as f32 - 1.0).collect()
}

fn task(evidence: Evidence<'_>, hidden: usize) -> Task<'_> {
    Task {
        evidence,
        classes: 3,
        row_weights: &[],
        hidden,
        decay: 0.01,
        towards: &[],
        iterations: 100,
        tolerance: 1e-6,
        seed: 1,
    }
}

/// The gradient is the change of the value, for every kind of problem.
#[test]
fn gradients_are_finite_differences() {
    let (rows, values, second) = (40, numbers(40 * 5, 1), numbers(40 * 2, 2));
    let labels: Vec<u32> = (0..rows as u32).map(|row| row % 3).collect();
    let likelihoods: Vec<f32> = numbers(rows * 3, 3).iter().map(|value| value.abs()).collect();
    let (weights, towards) =
        (numbers(rows, 4).iter().map(|v| v.abs()).collect::<Vec<_>>(), numbers(7 * 3, 5));
    let inputs = Inputs::new(vec![
        Input::Dense { columns: 5, values: &values },
        Input::Dense { columns: 2, values: &second },
    ])
    .unwrap();
    let everyone: Vec<u32> = (0..rows as u32).collect();
    let design = Design::scaled(&inputs, &everyone, &[2.0, 0.5], RowScaling::None, &[]).unwrap();
    for hidden in [0, 4] {
        for evidence in [Evidence::Labels(&labels), Evidence::Likelihoods(&likelihoods)] {
            let task = Task { row_weights: &weights, towards: &towards, ..task(evidence, hidden) };
            let problem = Problem::new(&design, &task).unwrap();
            let at: Vec<f64> =
                numbers(problem.parameter_count(), 6).iter().map(|&value| f64::from(value)).collect();
            let mut gradient = vec![0.0; at.len()];
            problem.value(&at, &mut gradient).unwrap();
            let mut ignored = gradient.clone();
            for place in 0..at.len() {
                let mut moved = |by: f64| {
                    let mut at = at.clone();
                    at[place] += by;
                    problem.value(&at, &mut ignored).unwrap()
                };
                let slope = (moved(4e-3) - moved(-4e-3)) / 8e-3;
                assert!((slope - gradient[place]).abs() < 1e-4, "{place}: {slope} {}", gradient[place]);
            }
        }
    }
}

/// Sparse rows and the same rows written out give the same model.
#[test]
fn sparse_and_dense_rows_are_the_same_to_a_fit() {
    let indices: Vec<u32> = (0..300u32).flat_map(|row| [row % 4, 4 + row % 3]).collect();
    let offsets: Vec<u64> = (0..=300).map(|row| 2 * row).collect();
    let mut values = vec![0f32; 300 * 7];
    (0..300).for_each(|row| indices[2 * row..][..2].iter().for_each(|&i| values[row * 7 + i as usize] = 1.0));
    let labels: Vec<u32> = (0..300u32).map(|row| (row * row / 7) % 3).collect();
    let everyone: Vec<u32> = (0..300).collect();
    let sparse = Input::Sparse { columns: 7, offsets: &offsets, indices: &indices, values: None };
    let inputs = [sparse, Input::Dense { columns: 7, values: &values }];
    for scaling in [RowScaling::None, RowScaling::WeightedUnit] {
        let columns = if scaling == RowScaling::None { vec![] } else { vec![0.5; 7] };
        let logits = inputs.map(|input| {
            let inputs = Inputs::new(vec![input]).unwrap();
            let design = Design::scaled(&inputs, &everyone, &[1.5], scaling, &columns).unwrap();
            let (model, _) = design.fit(&task(Evidence::Labels(&labels), 0), None).unwrap();
            model.logits(&inputs, &everyone).unwrap()
        });
        for (a, b) in logits[0].iter().zip(&logits[1]) {
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
    }
}

/// A second view that is right two times of three still teaches which class it is.
#[test]
fn a_view_that_confuses_classes_teaches_them_all_the_same() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let rows = 6000;
    let (mut values, mut likelihoods, mut truth) = (vec![], vec![], vec![]);
    for _ in 0..rows {
        let class = (rng.next_u64() % 3) as usize;
        let guess = if rng.next_u64() % 3 < 2 { class } else { (rng.next_u64() % 3) as usize };
        let noise = (rng.next_u64() >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
        values.extend((0..3).map(|c| if c == class { 1.0 } else { 0.0 } + 0.2 * noise));
        likelihoods.extend((0..3).map(|c| if c == guess { 7f32 / 9.0 } else { 1.0 / 9.0 }));
        truth.push(class as u32);
    }
    let inputs = Inputs::new(vec![Input::Dense { columns: 3, values: &values }]).unwrap();
    let everyone: Vec<u32> = (0..rows as u32).collect();
    let design = Design::new(&inputs, &everyone).unwrap();
    let task = Task { decay: 1e-5, ..task(Evidence::Likelihoods(&likelihoods), 0) };
    let (model, _) = design.fit(&task, None).unwrap();
    let logits = model.logits(&inputs, &everyone).unwrap();
    let sure = |row: usize| {
        let logits = &logits[3 * row..][..3];
        let sum: f32 = logits.iter().map(|logit| logit.exp()).sum();
        logits[truth[row] as usize].exp() / sum
    };
    let mean = (0..rows).map(|row| f64::from(sure(row))).sum::<f64>() / rows as f64;
    assert!(mean > 0.95, "sure of the class itself, not of the guess: {mean}");
}

/// Processes on threads: each round, everyone lays down its bytes and takes everyone's.
#[derive(Debug)]
struct Round {
    barrier: std::sync::Barrier,
    bytes: std::sync::Mutex<Vec<Vec<u8>>>,
}

#[derive(Debug)]
struct OnThread<'r>(&'r Round, usize, usize);

impl Collective for OnThread<'_> {
    fn place(&self) -> (usize, usize) {
        (self.1, self.2)
    }

    fn all_gather(&self, own: Vec<u8>) -> std::result::Result<Vec<Vec<u8>>, String> {
        self.0.bytes.lock().unwrap()[self.1] = own;
        self.0.barrier.wait();
        let all = self.0.bytes.lock().unwrap().clone();
        self.0.barrier.wait();
        Ok(all)
    }
}

/// However many processes share a fit, the model has the bits of one; the loss of one of them is an error of all.
#[test]
fn fits_of_several_processes_are_those_of_one() {
    let rows = 5000;
    let dense = numbers(rows * 6, 1);
    let indices: Vec<u32> = (0..rows as u32).flat_map(|row| [row % 4, 4 + row % 3]).collect();
    let offsets: Vec<u64> = (0..=rows as u64).map(|row| 2 * row).collect();
    let labels: Vec<u32> = (0..rows as u32).map(|row| (row * row / 7) % 3).collect();
    let everyone: Vec<u32> = (0..rows as u32).collect();
    let sparse = Input::Sparse { columns: 7, offsets: &offsets, indices: &indices, values: None };
    for (input, hidden) in [(Input::Dense { columns: 6, values: &dense }, 4), (sparse, 0)] {
        let design = Design::new(&Inputs::new(vec![input]).unwrap(), &everyone).unwrap();
        let task = task(Evidence::Labels(&labels), hidden);
        let alone = design.fit(&task, None).unwrap().0;
        for size in [1, 2, 3, 7] {
            let round = Round {
                barrier: std::sync::Barrier::new(size),
                bytes: std::sync::Mutex::new(vec![vec![]; size]),
            };
            std::thread::scope(|scope| {
                let fit = |rank: usize| {
                    let (round, design, task) = (&round, &design, &task);
                    scope.spawn(move || design.fit_together(task, None, Some(&OnThread(round, rank, size))))
                };
                for thread in (0..size).map(fit).collect::<Vec<_>>() {
                    assert_eq!(thread.join().unwrap().unwrap().0, alone, "{size}");
                }
            });
        }
    }
    #[derive(Debug)]
    struct Gone;
    impl Collective for Gone {
        fn place(&self) -> (usize, usize) {
            (0, 2)
        }
        fn all_gather(&self, _: Vec<u8>) -> std::result::Result<Vec<Vec<u8>>, String> {
            Err("another process ended".into())
        }
    }
    let inputs = Inputs::new(vec![sparse]).unwrap();
    let design = Design::new(&inputs, &everyone).unwrap();
    let error = design.fit_together(&task(Evidence::Labels(&labels), 0), None, Some(&Gone)).unwrap_err();
    assert!(error.to_string().contains("ended"), "{error}");
}
