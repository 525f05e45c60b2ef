//! Statistics shared by the sampler tests and the soak.

#![allow(dead_code, reason = "every test binary uses a part of it")]

/// `P(n)` of the rounded Gaussian in double precision, by the error function: independent of the tables.
pub fn rounded_gaussian_mass(sigma: f64, n: i64) -> f64 {
    let tail = |x: f64| 0.5 * libm::erfc(x / sigma / std::f64::consts::SQRT_2);
    let n = n.unsigned_abs() as f64;
    if n == 0.0 { 1.0 - 2.0 * tail(0.5) } else { tail(n - 0.5) - tail(n + 0.5) }
}

/// `P(|n| >= from)`.
pub fn rounded_gaussian_tail(sigma: f64, from: i64) -> f64 {
    libm::erfc((from as f64 - 0.5) / sigma / std::f64::consts::SQRT_2)
}

/// A chi-square statistic as a standard normal deviate (Wilson and Hilferty), over cells of expected count 40 or
/// more; rarer neighbours are merged. 5 has a false-alarm rate of 3e-7, 6 of 1e-9.
pub fn chi_square_deviate(cells: impl IntoIterator<Item = (u64, f64)>) -> f64 {
    let (mut chi, mut merged) = (0.0, 0_u32);
    let (mut observed, mut expected) = (0_u64, 0.0);
    let mut add = |observed: u64, expected: f64| {
        chi += (observed as f64 - expected).powi(2) / expected;
        merged += 1;
    };
    let mut pending: Option<(u64, f64)> = None;
    for (count, mean) in cells {
        observed += count;
        expected += mean;
        if expected >= 40.0 {
            if let Some((o, e)) = pending.replace((observed, expected)) {
                add(o, e);
            }
            (observed, expected) = (0, 0.0);
        }
    }
    if let Some((o, e)) = pending {
        add(o + observed, e + expected);
    }
    let degrees = f64::from(merged.max(2) - 1);
    let spread = 2.0 / (9.0 * degrees);
    ((chi / degrees).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// Counts of integers in `-reach..=reach`.
pub struct Histogram {
    reach: i64,
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    pub fn new(reach: i64) -> Self {
        Self { reach, counts: vec![0; 2 * reach as usize + 1], total: 0 }
    }

    pub fn add(&mut self, value: i64) {
        self.counts[(value + self.reach) as usize] += 1;
        self.total += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn count(&self, value: i64) -> u64 {
        self.counts[(value + self.reach) as usize]
    }

    pub fn count_beyond(&self, from: i64) -> u64 {
        (from..=self.reach).map(|n| self.count(n) + self.count(-n)).sum()
    }

    /// Chi-square over every integer against a probability mass function.
    pub fn deviate(&self, mass: impl Fn(i64) -> f64) -> f64 {
        let total = self.total as f64;
        chi_square_deviate((-self.reach..=self.reach).map(|n| (self.count(n), total * mass(n))))
    }

    /// Chi-square over the magnitudes from `from` on, given that they were reached.
    pub fn tail_deviate(&self, from: i64, mass: impl Fn(i64) -> f64) -> f64 {
        let beyond = self.count_beyond(from) as f64;
        let norm: f64 = (from..=self.reach).map(|n| 2.0 * mass(n)).sum();
        chi_square_deviate(
            (from..=self.reach).map(|n| (self.count(n) + self.count(-n), beyond * 2.0 * mass(n) / norm)),
        )
    }
}

/// How far a count of events of probability `p` is from its mean, in standard deviations.
pub fn count_deviate(count: u64, trials: u64, p: f64) -> f64 {
    let mean = trials as f64 * p;
    (count as f64 - mean) / (mean * (1.0 - p)).sqrt()
}

/// Sample correlation times the root of the sample size: standard normal for independent samples.
pub fn correlation_deviate(a: &[i32], b: &[i32], sigma: f64) -> f64 {
    let sum: f64 = a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
    sum / (sigma * sigma * (a.len().min(b.len()) as f64).sqrt())
}
