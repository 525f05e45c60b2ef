//! Batches and epochs at node level, where they follow from the number of training nodes.

use super::{Level, Method, Settings};

/// The most steps of a stage that are worth their time: more of them, with smaller batches, gain no accuracy for the same epsilon.
const MOST_STEPS: usize = 1000;

/// The share of few training nodes that is a batch, as one over it, and the smallest batch. With larger ones a stage would have too few
/// steps to learn anything.
const FEW_NODES: usize = 16;
const SMALLEST_BATCH: usize = 16;

/// From so many training nodes on the usual number of epochs is enough; the fewer there are, the more epochs, up to this many.
const MANY_NODES: f64 = 10_000.0;
const MOST_EPOCHS: usize = 60;

/// The fewest epochs: each training node is in so many batches of a stage on average.
const LEAST_EPOCHS: usize = 3;

impl Settings {
    /// The same with batches and epochs that follow from the number of training nodes, once it is known.
    #[must_use]
    pub fn batches_by_sizes(self) -> Settings {
        Settings { batches_from_data: self.level == Level::Node, ..self }
    }

    /// The settings with batches and epochs decided for so many training nodes, which are public.
    ///
    /// A sixteenth of few training nodes, where batches were not given, and more epochs of them. Else as many as the settings say, up to the size at which a
    /// stage has [`MOST_STEPS`] steps. Beyond it batches grow and epochs become fewer,
    /// both with the square root of the size, so that time grows with the square root too; and once there are [`LEAST_EPOCHS`], batches grow with the size
    /// and the number of steps stays (docs/method.md#batches).
    #[must_use]
    pub(crate) fn with_batches_for(mut self, train_nodes: usize) -> Settings {
        if std::mem::take(&mut self.from_sizes.batch_size) {
            self.batch_size = small_batch(self.batch_size, train_nodes);
            if self.batches_from_data && self.method == Method::Progap {
                self.epochs = more_epochs(self.epochs, train_nodes);
            }
        }
        if !self.batches_from_data {
            return self;
        }
        let settled = Settings { batches_from_data: false, ..self };
        let largest = MOST_STEPS * settled.batch_size / settled.epochs.max(1);
        if train_nodes <= largest {
            return settled;
        }
        let growth = train_nodes as f64 / largest as f64;
        let least = LEAST_EPOCHS.min(settled.epochs);
        let epochs = ((settled.epochs as f64 / growth.sqrt()).ceil() as usize).max(least);
        Settings { batch_size: (train_nodes * epochs).div_ceil(MOST_STEPS), epochs, ..settled }
    }
}

/// The usual number of epochs, or more where few training nodes make few steps of each.
fn more_epochs(usual: usize, train_nodes: usize) -> usize {
    let wanted = usual as f64 * (MANY_NODES / train_nodes.max(1) as f64).sqrt();
    if train_nodes == 0 { usual } else { (wanted.round() as usize).clamp(usual, MOST_EPOCHS.max(usual)) }
}

/// The usual batch, or a sixteenth of few training nodes; always fewer than all of them.
fn small_batch(usual: usize, train_nodes: usize) -> usize {
    let few = (train_nodes / FEW_NODES).max(SMALLEST_BATCH).min((train_nodes / 2).max(1));
    if train_nodes == 0 { usual } else { usual.min(few) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(method: Method, train_nodes: usize) -> (usize, usize, usize) {
        let settings = Settings::of(method, Level::Node).batches_by_sizes().with_batches_for(train_nodes);
        assert!(!settings.batches_from_data, "decided");
        (settings.batch_size, settings.epochs, train_nodes * settings.epochs / settings.batch_size)
    }

    #[test]
    fn small_training_sets_have_the_batches_of_the_method_and_large_ones_few_steps() {
        for method in [Method::Progap, Method::Gap, Method::DpGnn] {
            let usual = Settings::of(method, Level::Node);
            let largest = MOST_STEPS * usual.batch_size / usual.epochs;
            for nodes in [0, 1, 14_212, largest] {
                assert_eq!(batches(method, nodes).0, usual.batch_size, "{method}");
                assert_eq!(batches(method, nodes).1, usual.epochs, "{method}");
            }
            // No jump, and nothing falls but the number of epochs.
            let mut before = batches(method, largest);
            for doubling in 0..12 {
                let now = batches(method, (largest << doubling) + 1);
                assert!(now.0 >= before.0 && now.1 <= before.1 && now.1 >= LEAST_EPOCHS, "{method} {now:?}");
                assert!(now.2 <= MOST_STEPS && now.2 > MOST_STEPS * 99 / 100, "{method} {now:?}");
                before = now;
            }
        }
    }

    /// As measured (docs/method.md#few-labels): a sixteenth of the nodes in a batch, and epochs by the root of their number.
    #[test]
    fn few_training_nodes_are_seen_more_often() {
        use crate::settings::Request;
        let open = Request::default().with("level", "node").settings().expect("settings").into_settings();
        let decided = |nodes: usize| {
            let settings = open.clone().with_batches_for(nodes);
            (settings.batch_size, settings.epochs)
        };
        assert_eq!([170, 850, 3400, 12_000].map(decided), [(16, 60), (53, 34), (212, 17), (512, 10)]);
    }

    /// What was asked for stays, however large the training set is.
    #[test]
    fn what_was_asked_for_stays() {
        use crate::settings::Request;
        let at_node = || Request::default().with("level", "node");
        assert!(at_node().settings().expect("settings").batches_from_data);
        for (name, value) in [("batch_size", 512), ("epochs", 10)] {
            let asked = at_node().with(name, value).settings().expect("settings").into_settings();
            assert!(!asked.batches_from_data, "{name}");
            let large = asked.clone().with_batches_for(10_000_000);
            assert_eq!((large.batch_size, large.epochs), (asked.batch_size, asked.epochs), "{name}");
        }
        let published = Request::published().with("level", "node").settings().expect("settings");
        assert!(!published.batches_from_data);
        assert!(!Request::default().settings().expect("settings").batches_from_data, "at edge level");
    }
}
