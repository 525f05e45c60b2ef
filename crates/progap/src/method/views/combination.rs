//! Weights on what several sources say of a class, pulled towards a simple combination as strongly as nodes that judge like best.

use progap_nn::{Design, Evidence, Inputs, Softmax, Start, Task, log_losses, shrunk_temperature};

use super::Folds;
use super::stage::MANY_CLASSES;
use crate::{Error, Result};

/// The most steps of a combination, which goes on from the one before: more of them change no accuracy (docs/views.md).
const STEPS: usize = 30;
/// How strongly a combination is held to a simple one: both views to their product, which is right where they are independent.
const TOWARDS_CENTRE: [f64; 5] = [1.0, 0.1, 0.03, 0.01, 0.001];
/// The same where there are [`MANY_CLASSES`].
const TOWARDS_CENTRE_OF_MANY: [f64; 2] = [0.1, 0.01];

/// Rows of some inputs whose classes are known.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub inputs: &'a Inputs<'a>,
    pub places: &'a [u32],
    pub labels: &'a [u32],
}

/// A combination, with its temperature.
pub(super) struct Combination {
    pub model: Softmax,
    /// The log loss of each node that judges, in the order of [`super::Roles::judges`].
    pub log_losses: Vec<f64>,
}

/// Linear weights that are learnt, and pulled towards given ones as strongly as rows that judge like best. These are rows held out and, where
/// they are few, parts of the rows that teach, each judging what was learnt without it.
pub(super) fn pulled_towards(
    centre: &[f32],
    classes: usize,
    (taught, held_out): (Known<'_>, Known<'_>),
    folds: Folds,
) -> Result<Combination> {
    let mut whole = Fit::new(taught, |_| true)?;
    let mut without = (0..folds.judging)
        .map(|out| Ok((Fit::new(taught, |place| !folds.holds(out, place))?, folds.of(out, taught.places))))
        .collect::<Result<Vec<(Fit, Vec<u32>)>>>()?;
    let own = (0..folds.judging).flat_map(|out| folds.of(out, taught.labels));
    let labels: Vec<u32> = held_out.labels.iter().copied().chain(own).collect();
    let mut best: Option<(f64, Combination)> = None;
    let pulls = if classes < MANY_CLASSES { &TOWARDS_CENTRE[..] } else { &TOWARDS_CENTRE_OF_MANY };
    for &pull in pulls {
        let mut model = whole.pulled(centre, classes, pull)?;
        let mut logits = model.logits(held_out.inputs, held_out.places)?;
        for (fit, places) in &mut without {
            logits.extend(fit.pulled(centre, classes, pull)?.logits(taught.inputs, places)?);
        }
        let (temperature, log_loss) = shrunk_temperature(&logits, &labels, classes);
        if best.as_ref().is_none_or(|(least, _)| log_loss < *least) {
            model.scale_logits(temperature);
            let log_losses = log_losses(&logits, &labels, classes, f64::from(temperature));
            best = Some((log_loss, Combination { model, log_losses }));
        }
    }
    best.map(|(_, best)| best).ok_or(Error::Internal("no combination was tried"))
}

/// Rows that teach, and where their last fit ended: the next goes on from there.
struct Fit {
    design: Design,
    labels: Vec<u32>,
    start: Option<Start>,
}

impl Fit {
    /// The rows whose places in the list are among these.
    fn new(taught: Known<'_>, teaches: impl Fn(usize) -> bool) -> Result<Fit> {
        let chosen = |list: &[u32]| -> Vec<u32> {
            list.iter().enumerate().filter(|(place, _)| teaches(*place)).map(|(_, &value)| value).collect()
        };
        let design = Design::new(taught.inputs, &chosen(taught.places))?;
        Ok(Fit { design, labels: chosen(taught.labels), start: None })
    }

    fn pulled(&mut self, centre: &[f32], classes: usize, decay: f64) -> Result<Softmax> {
        let task = Task {
            evidence: Evidence::Labels(&self.labels),
            classes,
            row_weights: &[],
            hidden: 0,
            decay,
            towards: centre,
            iterations: STEPS,
            tolerance: 1e-6,
            seed: 0,
        };
        let (model, found) = self.design.fit(&task, self.start.as_ref())?;
        self.start = Some(found);
        Ok(model)
    }
}
