//! A long statistical test of the noise with fresh operating-system entropy:
//! `cargo run --release -p progap-privacy --example noise_soak [billions of samples, default 5]`.
//!
//! Every comparison fails at six standard deviations, a false-alarm rate of 2e-9 each and below 1e-7 in all, so a
//! failure is worth a look whenever it happens. Exits with 1 on failure.

#[path = "../tests/common/mod.rs"]
mod common;

use std::process::ExitCode;

use common::{Histogram, correlation_deviate, count_deviate, rounded_gaussian_mass, rounded_gaussian_tail};
use progap_privacy::noise::{Purpose, Randomness, RoundedGaussian, Secure};

const LIMIT: f64 = 6.0;
const BLOCK: usize = 1 << 16;

fn main() -> ExitCode {
    let billions: f64 = match std::env::args().nth(1).map(|text| text.parse()) {
        None => 5.0,
        Some(Ok(billions)) if billions > 0.0 && billions <= 1e4 => billions,
        Some(_) => {
            eprintln!("usage: noise_soak [billions of samples, above 0 and at most 10000]");
            return ExitCode::from(2);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let sigmas = [1.0, 17.3, 300.0, 999.5, 2000.0, 50_000.0];
    let blocks = (billions * 1e9 / BLOCK as f64 / sigmas.len() as f64 / threads as f64).ceil() as usize;
    let mut randomness = Randomness::from_os();
    let mut sound = true;
    for sigma in sigmas {
        let gaussian = match RoundedGaussian::new(sigma) {
            Ok(gaussian) => gaussian,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let mut purpose = match randomness.purpose(&format!("sigma {sigma}")) {
            Ok(purpose) => purpose,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let (histogram, cross) = draw(&gaussian, &mut purpose, threads, blocks);
        let mut report = |name: &str, deviate: f64| {
            let fine = deviate.abs() < LIMIT;
            println!("sigma {sigma:>7}  {name:<28} {deviate:>7.2}  {}", if fine { "ok" } else { "FAILED" });
            sound &= fine;
        };
        println!("sigma {sigma:>7}  {:.2e} samples", histogram.total() as f64);
        report("every integer (chi-square)", histogram.deviate(|n| rounded_gaussian_mass(sigma, n)));
        for multiple in [3.0, 4.0, 4.5, 5.0, 5.5, 6.0] {
            let from = (multiple * sigma).ceil() as i64;
            let p = rounded_gaussian_tail(sigma, from);
            if p * histogram.total() as f64 > 40.0 {
                let deviate = count_deviate(histogram.count_beyond(from), histogram.total(), p);
                report(&format!("beyond {multiple} sigma"), deviate);
            }
        }
        let outer = (4.1 * sigma).ceil() as i64;
        report("shape beyond 4.1 sigma", histogram.tail_deviate(outer, |n| rounded_gaussian_mass(sigma, n)));
        for (name, deviate) in cross {
            report(name, deviate);
        }
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Histograms over all threads, and correlations between their streams and along them.
fn draw(
    gaussian: &RoundedGaussian,
    purpose: &mut Purpose<Secure>,
    threads: usize,
    blocks: usize,
) -> (Histogram, Vec<(&'static str, f64)>) {
    let mut pairs: Vec<_> = (0..threads).map(|_| (purpose.stream(), purpose.stream())).collect();
    let results: Vec<(Histogram, f64, f64)> = std::thread::scope(|scope| {
        let handles: Vec<_> = pairs
            .iter_mut()
            .map(|(first, second)| {
                scope.spawn(move || {
                    let mut histogram = Histogram::new(gaussian.reach().into());
                    let (mut a, mut b) = (vec![0; BLOCK], vec![0; BLOCK]);
                    let (mut across, mut along) = (0.0, 0.0);
                    for _ in 0..blocks.div_ceil(2) {
                        gaussian.fill(first, &mut a);
                        gaussian.fill(second, &mut b);
                        a.iter().chain(&b).for_each(|&n| histogram.add(n.into()));
                        across += correlation_deviate(&a, &b, gaussian.sigma());
                        along += correlation_deviate(&a[1..], &a[..BLOCK - 1], gaussian.sigma());
                    }
                    (histogram, across, along)
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("no panic while drawing")).collect()
    });
    let mut histogram = Histogram::new(gaussian.reach().into());
    let (mut across, mut along) = (0.0, 0.0);
    for (part, a, b) in &results {
        histogram.merge(part);
        across += a;
        along += b;
    }
    // At sigma 1 rounding adds 1/12 to the variance of 1, so the deviates of small sigmas are scaled to it.
    let variance = 1.0 + 1.0 / (12.0 * gaussian.sigma().powi(2));
    let root = ((blocks.div_ceil(2) * results.len()) as f64).sqrt() * variance;
    (
        histogram,
        vec![("correlation across streams", across / root), ("correlation along a stream", along / root)],
    )
}
