//! Noisy rows as the mean of what they may be: their noise is known, so how much they vary without it can be told.

use crate::addressed::Posterior;
use crate::rows::Aggregate;

/// Variances below this share of the largest one are taken to be this.
const LEAST_VARIANCE: f64 = 1e-3;
/// Rotations of all pairs: far more than symmetric matrices of any size need.
const MOST_SWEEPS: usize = 60;

/// How the rows of an aggregate are read, from those of nodes that do not train: their covariance less that of the
/// noise. `noise` is that of a receiver of weight one.
pub(super) fn of(aggregate: &Aggregate, others: &[u32], noise: f64) -> Posterior {
    let classes = aggregate.width - 1;
    let stride = classes + 1;
    let mut mean = vec![0f64; classes];
    let mut squares = vec![0f64; classes * classes];
    let (mut variance_of_noise, mut count) = (0.0, 0.0);
    for &node in others {
        let row = &aggregate.values[node as usize * stride..][..stride];
        let weight = f64::from(row[classes]);
        if weight <= 0.0 {
            continue;
        }
        count += 1.0;
        variance_of_noise += (noise / weight).powi(2);
        for (class, &value) in row[..classes].iter().enumerate() {
            let value = f64::from(value) / weight;
            mean[class] += value;
            for (other, &with) in row[..=class].iter().enumerate() {
                squares[class * classes + other] += value * f64::from(with) / weight;
            }
        }
    }
    let count: f64 = f64::max(count, 1.0);
    mean.iter_mut().for_each(|value| *value /= count);
    let mut covariance = vec![0f64; classes * classes];
    for class in 0..classes {
        for other in 0..=class {
            let mut value = squares[class * classes + other] / count - mean[class] * mean[other];
            if class == other {
                value -= variance_of_noise / count;
            }
            covariance[class * classes + other] = value;
            covariance[other * classes + class] = value;
        }
    }
    let (variances, basis) = eigen(covariance, classes);
    let largest = variances.iter().copied().fold(0.0, f64::max).max(1e-9);
    let single = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<f32>>();
    let variances: Vec<f64> = variances.iter().map(|&v| v.max(LEAST_VARIANCE * largest)).collect();
    let mut posterior = Posterior {
        mean: single(&mean),
        basis: single(&basis),
        variances: single(&variances),
        noise: noise as f32,
        scale: 1.0,
    };
    let (mut square, mut read) = (0.0, vec![]);
    for &node in others {
        read.clear();
        posterior.read(&aggregate.values[node as usize * stride..][..stride], &mut read);
        square += read.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>();
    }
    let scale = (square / (others.len() * classes).max(1) as f64).sqrt() as f32;
    posterior.scale = if scale > 0.0 && scale.is_finite() { scale } else { 1.0 };
    posterior
}

/// Eigenvalues and eigenvectors (columns) of a symmetric matrix, by cyclic rotations (Jacobi 1846).
fn eigen(mut matrix: Vec<f64>, size: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors = vec![0f64; size * size];
    (0..size).for_each(|at| vectors[at * size + at] = 1.0);
    for _ in 0..MOST_SWEEPS {
        let off: f64 = (0..size)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| matrix[i * size + j].powi(2))
            .sum();
        let on: f64 = (0..size).map(|i| matrix[i * size + i].powi(2)).sum();
        if off <= 1e-24 * on || off == 0.0 {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                rotate(&mut matrix, &mut vectors, size, (p, q));
            }
        }
    }
    ((0..size).map(|at| matrix[at * size + at]).collect(), vectors)
}

/// Makes the entry at `(p, q)` zero.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], size: usize, (p, q): (usize, usize)) {
    let entry = matrix[p * size + q];
    if entry == 0.0 {
        return;
    }
    let theta = (matrix[q * size + q] - matrix[p * size + p]) / (2.0 * entry);
    let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let tangent = if theta == 0.0 { 1.0 } else { tangent };
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    for at in 0..size {
        let (a, b) = (matrix[at * size + p], matrix[at * size + q]);
        (matrix[at * size + p], matrix[at * size + q]) = (cosine * a - sine * b, sine * a + cosine * b);
    }
    for at in 0..size {
        let (a, b) = (matrix[p * size + at], matrix[q * size + at]);
        (matrix[p * size + at], matrix[q * size + at]) = (cosine * a - sine * b, sine * a + cosine * b);
        let (a, b) = (vectors[at * size + p], vectors[at * size + q]);
        (vectors[at * size + p], vectors[at * size + q]) = (cosine * a - sine * b, sine * a + cosine * b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symmetric_matrix_is_the_sum_of_its_directions() {
        let matrix = vec![4.0, 1.0, -2.0, 1.0, 2.0, 0.5, -2.0, 0.5, 3.0];
        let (values, vectors) = eigen(matrix.clone(), 3);
        for i in 0..3 {
            for j in 0..3 {
                let sum: f64 = (0..3).map(|k| values[k] * vectors[i * 3 + k] * vectors[j * 3 + k]).sum();
                assert!((sum - matrix[i * 3 + j]).abs() < 1e-12, "{i} {j}");
                let product: f64 = (0..3).map(|k| vectors[k * 3 + i] * vectors[k * 3 + j]).sum();
                assert!((product - if i == j { 1.0 } else { 0.0 }).abs() < 1e-12);
            }
        }
    }

    /// Rows whose variance is as large as that of their noise keep half of what they say, and rows of half the weight a
    /// fifth.
    #[test]
    fn noise_is_taken_away_by_how_much_of_it_there_is() {
        let mut state = 1u64;
        let mut normal = || {
            // The sum of twelve uniform numbers.
            (0..12)
                .map(|_| {
                    state = crate::mixing::mixed(state.wrapping_add(1));
                    (state >> 11) as f64 / (1u64 << 53) as f64
                })
                .sum::<f64>()
                - 6.0
        };
        let values: Vec<f32> = (0..20_000)
            .flat_map(|_| {
                let value = 5.0 + 2.0 * normal() + 2.0 * normal();
                [value as f32, (normal() * 2.0) as f32, 1.0]
            })
            .collect();
        let nodes: Vec<u32> = (0..20_000).collect();
        let posterior = of(&Aggregate { values: values.into(), width: 3 }, &nodes, 2.0);
        let read = |first: f32, weight: f32| {
            let mut out = vec![];
            posterior.read(&[first * weight, 0.0, weight], &mut out);
            out[0] * posterior.scale
        };
        assert!((read(9.0, 1.0) - 7.0).abs() < 0.1, "{}", read(9.0, 1.0));
        assert!((read(10.0, 0.5) - 6.0).abs() < 0.1, "{}", read(10.0, 0.5));
        assert!((read(0.0, 0.0) - 5.0).abs() < 0.1, "a node that gets nothing is as all are");
    }
}
