//! Multinomial logistic regression and its nearest relatives, fitted to the optimum: no learning rate, no epochs, the
//! same bits on any number of threads.
//!
//! ```
//! use progap_nn::{Design, Evidence, Input, Inputs, Task};
//!
//! let values = [0.1, 0.9, 0.2, 0.8, 0.9, 0.2, 0.8, 0.1];
//! let inputs = Inputs::new(vec![Input::Dense { columns: 2, values: &values }])?;
//! let rows = [0, 1, 2, 3];
//! let task = Task {
//!     evidence: Evidence::Labels(&[1, 1, 0, 0]),
//!     classes: 2,
//!     row_weights: &[],
//!     hidden: 0,
//!     decay: 0.01,
//!     towards: &[],
//!     iterations: 50,
//!     tolerance: 1e-6,
//!     seed: 0,
//! };
//! let (model, _) = Design::new(&inputs, &rows)?.fit(&task, None)?;
//! let logits = model.logits(&inputs, &rows)?;
//! assert!(logits[1] > logits[0] && logits[6] > logits[7]);
//! # Ok::<(), progap_nn::Error>(())
//! ```

mod design;
mod fit;
mod lbfgs;
mod loss;
mod model;
mod temperature;

pub(crate) use design::dense_rows;
pub use design::{Design, RowScaling};
pub use fit::{Evidence, Start, Task};
pub use model::{Softmax, SoftmaxShape};
pub use temperature::{best_temperature, cross_entropy, log_losses, shrunk_temperature};
