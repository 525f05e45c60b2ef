//! Progress, a stop after some epochs, and the same run to its end: nothing is asked or charged twice.

use std::ops::ControlFlow;

use progap::{Edge, Messages, Progress};

fn main() -> progap::Result<()> {
    let data = progap::load("demo")?;
    let asked = Edge::epsilon(1.0).messages(Messages::Labels).epochs(20).learning_rate(0.02);

    let mut stop = |progress: &Progress| {
        println!("stage {}, epoch {}: {:.3}", progress.stage, progress.epoch, progress.val_accuracy);
        if progress.stage == 1 && progress.epoch == 10 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    match progap::train(&data, asked).observer(&mut stop).into_folder("observed-release") {
        Err(error) if error.is_interrupted() => println!("{error}"),
        other => {
            other?;
        }
    }

    let mut epochs = 0;
    let mut count = |_: &Progress| {
        epochs += 1;
        ControlFlow::Continue(())
    };
    let release = progap::resume(&data, "observed-release", &mut count)?;
    println!("{epochs} epochs were left; {}", release.guarantee());
    Ok(())
}
