//! Noise samplers side by side: `cargo bench -p progap-privacy --bench noise`.
//!
//! Machines are noisy, so the samplers take turns in rounds of some milliseconds and the best round of each counts;
//! compare the figures of one run with each other.

use std::hint::black_box;
use std::time::Instant;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use progap_privacy::noise::{
    Bernoulli, PoissonSample, Quantiser, Randomness, RoundedGaussian, RoundedLaplace, Scale, SenderBound,
};
use rand_distr::{Distribution, Normal, StandardNormal};

const BATCH: usize = 1 << 16;
const ROUNDS: usize = 60;

struct Contender<'a> {
    name: String,
    samples: usize,
    run: Box<dyn FnMut() + 'a>,
    best: f64,
}

fn contender<'a>(name: impl Into<String>, samples: usize, run: impl FnMut() + 'a) -> Contender<'a> {
    Contender { name: name.into(), samples, run: Box::new(run), best: f64::INFINITY }
}

fn main() {
    let mut randomness = Randomness::from_os();
    let mut purpose = randomness.purpose("benchmark").expect("entropy");
    let mut contenders = Vec::new();

    for sigma in [300.0, 1000.0, 2000.0, 16_384.0, 131_072.0] {
        let gaussian = RoundedGaussian::new(sigma).expect("a valid sigma");
        let build = || {
            let start = Instant::now();
            black_box(RoundedGaussian::new(black_box(sigma)).expect("a valid sigma"));
            start.elapsed()
        };
        let built = (0..5).map(|_| build()).min().unwrap_or_default();
        println!(
            "table for sigma {sigma}: built in {built:.1?}, distance {:.1e}",
            gaussian.total_variation()
        );
        let mut stream = purpose.stream();
        let mut out = vec![0_i32; BATCH];
        contenders.push(contender(format!("rounded Gaussian, sigma {sigma}"), BATCH, move || {
            gaussian.fill(&mut stream, black_box(&mut out));
        }));
    }

    let normal = Normal::new(0.0_f64, 2000.0).expect("a valid normal");
    let mut generator = ChaCha20Rng::from_seed([7; 32]);
    let mut out = vec![0_f64; BATCH];
    contenders.push(contender("rand_distr Normal f64 over ChaCha20", BATCH, move || {
        black_box(&mut out).iter_mut().for_each(|x| *x = normal.sample(&mut generator));
    }));
    let mut generator = ChaCha20Rng::from_seed([8; 32]);
    let mut out = vec![0_f32; BATCH];
    contenders.push(contender("rand_distr StandardNormal f32 over ChaCha20", BATCH, move || {
        black_box(&mut out).iter_mut().for_each(|x| *x = StandardNormal.sample(&mut generator));
    }));
    let mut generator = ChaCha20Rng::from_seed([9; 32]);
    let mut out = vec![0_u8; 4 * BATCH];
    contenders.push(contender("ChaCha20 alone, 4 bytes", BATCH, move || {
        generator.fill_bytes(black_box(&mut out));
    }));

    let laplace = RoundedLaplace::new(Scale::at_least(20.0).expect("a valid scale"));
    let mut stream = purpose.stream();
    contenders.push(contender("rounded Laplace, scale 20", BATCH / 16, move || {
        (0..BATCH / 16).for_each(|_| {
            black_box(laplace.sample(&mut stream));
        });
    }));
    let coin = Bernoulli::new(0.27).expect("a valid probability");
    let mut stream = purpose.stream();
    contenders.push(contender("Bernoulli", BATCH, move || {
        black_box((0..BATCH).filter(|_| coin.sample(&mut stream)).count());
    }));
    for rate in [0.018, 512.0 / 825_000.0] {
        let sample = PoissonSample::new(rate).expect("a valid rate");
        let records = (0..(BATCH as f64 / rate) as u32).collect::<Vec<_>>();
        let mut stream = purpose.stream();
        contenders.push(contender(format!("record of a batch, rate {rate:.1e}"), BATCH, move || {
            black_box(sample.choose(&mut stream, &records));
        }));
    }

    let quantiser = Quantiser::<i16>::new(1000).expect("a valid scale");
    let rows = BATCH / 16;
    let budgets: Vec<_> = (1..=rows as u32)
        .map(|degree| quantiser.budget(SenderBound::Weight { bound: 1.0 }, degree).expect("fits"))
        .collect();
    let messages: Vec<f32> = (0..BATCH).map(|i| (i as f32).sin()).collect();
    let mut out = vec![0_i16; BATCH];
    contenders.push(contender("message entry to i16, width 16", BATCH, move || {
        quantiser.rows(&messages, 16, &budgets, black_box(&mut out)).expect("lengths fit");
    }));

    for _ in 0..ROUNDS {
        for Contender { samples, run, best, .. } in &mut contenders {
            let start = Instant::now();
            run();
            *best = best.min(start.elapsed().as_secs_f64() / *samples as f64);
        }
    }
    println!("{:<46} {:>10} {:>12}", "", "ns each", "M/s per core");
    for Contender { name, best, .. } in &contenders {
        println!("{name:<46} {:>10.2} {:>12.0}", best * 1e9, 1e-6 / best);
    }
}
