//! Progress on standard error, shown only where somebody can watch it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use progap::method::Progress;

/// A spinner that says what is being waited for; it goes away when dropped.
pub fn spinner(message: String) -> Spinner {
    let bar = ProgressBar::new_spinner();
    bar.set_style(style("{spinner} {msg} ({elapsed})"));
    bar.set_message(message);
    // Nothing is drawn before the first tick: what is quick stays quiet.
    tick(&bar, Duration::from_millis(200));
    Spinner(bar)
}

/// Draws a bar again and again, where it is seen. That takes a thread, and a machine that starts none must not stop the
/// work.
fn tick(bar: &ProgressBar, every: Duration) {
    if bar.is_hidden() {
        return;
    }
    let bar = bar.downgrade();
    let _ = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(every);
        while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.tick();
            drop(bar);
            std::thread::sleep(every);
        }
    });
}

/// A running [`spinner`].
pub struct Spinner(ProgressBar);

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A bar over the epochs of all stages.
pub struct Training(ProgressBar);

impl Training {
    /// A bar that is drawn only if `visible`, and only on a terminal.
    pub fn new(visible: bool) -> Self {
        let bar = if visible { ProgressBar::no_length() } else { ProgressBar::hidden() };
        bar.set_style(style("{bar:24} {pos}/{len} epochs  {msg}  {eta} left"));
        Training(bar)
    }

    /// An epoch is done.
    pub fn set(&self, progress: &Progress) {
        let Progress { stage, stages, epoch, epochs, loss, train_accuracy, val_accuracy } = *progress;
        self.0.set_length((stages * epochs) as u64);
        self.0.set_position((stage * epochs + epoch) as u64);
        let share = |name: &str, value: Option<f64>| value.map(|v| format!("  {name} {:.1} %", 100.0 * v));
        let mut message = format!("stage {stage} of {}", stages - 1);
        message += &loss.map(|loss| format!("  loss {loss:.3}")).unwrap_or_default();
        message += &share("train", train_accuracy).unwrap_or_default();
        message += &share("val", Some(val_accuracy).filter(|v| v.is_finite())).unwrap_or_default();
        self.0.set_message(message);
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A bar over the runs of an experiment.
pub struct Runs(ProgressBar);

impl Runs {
    /// A bar that is drawn only if `visible`, and only on a terminal.
    pub fn new(visible: bool, done: usize, all: usize) -> Self {
        let bar = if visible { ProgressBar::new(all as u64) } else { ProgressBar::hidden() };
        bar.set_style(style("{bar:24} {pos}/{len} runs  {msg}  ({elapsed})"));
        bar.set_position(done as u64);
        tick(&bar, Duration::from_secs(1));
        Runs(bar)
    }

    /// This many runs are done.
    pub fn set(&self, done: usize, message: String) {
        self.0.set_position(done as u64);
        self.0.set_message(message);
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A time in the unit people would use.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5940.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A bar over bytes, with speed and time left.
pub struct Download(ProgressBar);

impl Download {
    /// A bar for a file of that name.
    pub fn new(name: &str) -> Self {
        let bar = ProgressBar::no_length();
        bar.set_style(style("{msg} {bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left"));
        bar.set_message(name.to_string());
        Download(bar)
    }

    /// So much of the whole is there.
    pub fn set(&self, done: u64, total: Option<u64>) {
        if let Some(total) = total {
            self.0.set_length(total);
        }
        self.0.set_position(done);
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    // A template is a constant of this file: a mistake in it shows as the default style, never as a failure.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
