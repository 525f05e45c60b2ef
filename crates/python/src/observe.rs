//! Training that can be watched and stopped from Python: the thread that called waits, calls back, and handles Ctrl-C.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use progap::Observer;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use crate::errors::{exception, raised};
use crate::pool::pool;

/// How often Ctrl-C is looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long a thread waits for a callback before it looks for other work.
const BREATH: Duration = Duration::from_millis(2);

/// How far training is.
#[pyclass(frozen, get_all, module = "progap")]
pub struct Progress {
    /// The stage, from 0.
    stage: usize,
    /// The number of stages.
    stages: usize,
    /// Epochs done in this stage.
    epoch: usize,
    /// Epochs in each stage.
    epochs: usize,
    /// The mean loss over the training nodes, where it is known.
    loss: Option<f64>,
    /// The accuracy on the training nodes, where it is known.
    train_accuracy: Option<f64>,
    /// The accuracy on the validation nodes; not a number where there are none.
    val_accuracy: f64,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        let Progress { stage, stages, epoch, epochs, .. } = self;
        format!("Progress(stage {} of {stages}, epoch {epoch} of {epochs})", stage + 1)
    }
}

impl From<&progap::Progress> for Progress {
    fn from(progress: &progap::Progress) -> Progress {
        let progap::Progress { stage, stages, epoch, epochs, loss, train_accuracy, val_accuracy } = *progress;
        Progress { stage, stages, epoch, epochs, loss, train_accuracy, val_accuracy }
    }
}

enum Told<T> {
    Epoch(Progress),
    Warning(String),
    Done(T),
}

/// The observer that training talks to, in a thread of the pool.
struct Reporter<'a, T> {
    tell: Sender<Told<T>>,
    /// One answer for each epoch that was told; none where nobody listens.
    answers: Option<Receiver<()>>,
    stop: &'a AtomicBool,
}

impl<T: Send> Observer for Reporter<'_, T> {
    fn epoch(&mut self, progress: &progap::Progress) -> ControlFlow<()> {
        if let Some(answers) = &self.answers
            && self.tell.send(Told::Epoch(progress.into())).is_ok()
        {
            // The callback has the last word on this epoch; where the caller is gone there is nobody to wait for. What
            // it asks of the pool must not wait for this thread, which may be the only one.
            while let Err(RecvTimeoutError::Timeout) = answers.recv_timeout(BREATH) {
                rayon::yield_now();
            }
        }
        if self.stop.load(Ordering::SeqCst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn warning(&mut self, warning: &progap::ledger::Warning) {
        let _ = self.tell.send(Told::Warning(warning.to_string()));
    }
}

/// Does a job that reports to an observer. The callback is called with each epoch, in the thread that called; it stops
/// the run by returning `False` or by raising, as Ctrl-C does.
pub fn watched<T: Send>(
    py: Python<'_>,
    callback: Option<&Py<PyAny>>,
    job: impl FnOnce(&mut dyn Observer) -> progap::Result<T> + Send,
) -> PyResult<T> {
    let pool = pool(py)?;
    let stop = &AtomicBool::new(false);
    let (outcome, raised_here) = py.detach(|| {
        let (tell, told) = channel();
        let (answer, answers) = channel();
        let mut raised_here = None;
        pool.in_place_scope(|scope| {
            let answers = callback.is_some().then_some(answers);
            scope.spawn(move |_| {
                let done = tell.clone();
                let mut reporter = Reporter { tell, answers, stop };
                let outcome = job(&mut reporter);
                let _ = done.send(Told::Done(outcome));
            });
            loop {
                let heard = match told.recv_timeout(PATIENCE) {
                    Ok(Told::Done(outcome)) => return (Some(outcome), raised_here),
                    Ok(Told::Epoch(progress)) => {
                        let said = Python::attach(|py| call(py, callback, progress));
                        if said.is_err() || matches!(said, Ok(false)) {
                            stop.store(true, Ordering::SeqCst);
                        }
                        let _ = answer.send(());
                        said.map(|_| ())
                    }
                    Ok(Told::Warning(text)) => Python::attach(|py| warn(py, &text)),
                    Err(RecvTimeoutError::Timeout) => Python::attach(signals),
                    // The job panicked, which the scope passes on.
                    Err(RecvTimeoutError::Disconnected) => return (None, raised_here),
                };
                if let Err(error) = heard {
                    stop.store(true, Ordering::SeqCst);
                    raised_here.get_or_insert(error);
                }
            }
        })
    });
    match (outcome, raised_here) {
        (Some(Ok(done)), None) => Ok(done),
        (Some(Err(error)), raised_here) if error.is_interrupted() => {
            let progap::ErrorKind::Interrupted(folder) = error.kind() else { unreachable!() };
            let how = match folder.as_os_str().is_empty() {
                true => {
                    "stopped; what was done in memory is lost, and what it may have spent is not given back"
                        .into()
                }
                false => {
                    format!("stopped; resume with progap.resume(graph, {:?})", folder.display().to_string())
                }
            };
            Err(match raised_here {
                Some(error) => noted(py, error, &how),
                None => exception(py, "Stopped", how),
            })
        }
        (_, Some(error)) => Err(error),
        (Some(Err(error)), None) => Err(raised(py, &error)),
        (None, None) => {
            Err(exception(py, "ProGAPError", "a thread of progap ended without a result; please report it"))
        }
    }
}

/// Handles Ctrl-C, where this is the thread that does.
fn signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Whether to go on.
fn call(py: Python<'_>, callback: Option<&Py<PyAny>>, progress: Progress) -> PyResult<bool> {
    py.check_signals()?;
    let Some(callback) = callback else { return Ok(true) };
    let said = callback.bind(py).call1((progress,))?;
    Ok(!said.extract::<bool>().is_ok_and(|go_on| !go_on))
}

fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = std::ffi::CString::new(text.replace('\0', " ")).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)
}

/// The exception with a note, where the interpreter knows notes (Python 3.11).
fn noted(py: Python<'_>, error: PyErr, note: &str) -> PyErr {
    let _ = error.value(py).call_method1("add_note", (note,));
    error
}
