//! Batches and epochs at node level, where they follow from the numbers of training nodes, feature columns and classes.

use super::{FromSizes, Level, Settings};
use crate::method::Batches;
use crate::plan::PublicSizes;

/// The most steps of a stage that are worth their time: more of them, with smaller batches, gain no accuracy for the same epsilon.
const MOST_STEPS: usize = 1000;

/// The smallest batch of few training nodes, if there are twice as many.
const SMALLEST_BATCH: usize = 16;

/// From this many training nodes on the usual number of epochs is enough; the fewer there are, the more epochs, up to this many.
const MANY_NODES: f64 = 10_000.0;
const MOST_EPOCHS: usize = 60;

/// The fewest epochs: each training node is in this many batches of a stage on average.
const LEAST_EPOCHS: usize = 3;

impl Settings {
    /// The settings with batches and epochs decided for public sizes, as far as they are open.
    ///
    /// A sixteenth of few training nodes, or the share that the method has, and more epochs of them where the method gains by it. Else as many as the method says, up to
    /// the size at which a stage has [`MOST_STEPS`] steps. Beyond it batches grow and epochs become fewer, both with the square root of
    /// the size, so that time grows with the square root too; and once there are [`LEAST_EPOCHS`], batches grow with the size and the
    /// number of steps stays (docs/method.md#batches).
    pub(super) fn with_batches_for(mut self, open: FromSizes, sizes: PublicSizes) -> Settings {
        let train_nodes = sizes.train_nodes;
        if self.level != Level::Node || !open.batch_size || train_nodes == 0 {
            return self;
        }
        let Batches { of_few, largest, epochs } = self.method.recipe().batches(&self, sizes);
        self.batch_size = small_batch(largest, train_nodes / of_few, train_nodes);
        if !open.epochs {
            return self;
        }
        self.epochs = epochs;
        let largest = MOST_STEPS * self.batch_size / self.epochs.max(1);
        if train_nodes <= largest {
            return self;
        }
        let growth = train_nodes as f64 / largest as f64;
        let least = LEAST_EPOCHS.min(self.epochs);
        let epochs = ((self.epochs as f64 / growth.sqrt()).ceil() as usize).max(least);
        Settings { batch_size: (train_nodes * epochs).div_ceil(MOST_STEPS), epochs, ..self }
    }
}

/// The usual number of epochs, or more where few training nodes make few steps of each.
pub(crate) fn more_epochs(usual: usize, train_nodes: usize) -> usize {
    let wanted = usual as f64 * (MANY_NODES / train_nodes.max(1) as f64).sqrt();
    (wanted.round() as usize).clamp(usual, MOST_EPOCHS.max(usual))
}

/// The usual batch, or the share of few training nodes; always fewer than all of them.
fn small_batch(usual: usize, few: usize, train_nodes: usize) -> usize {
    usual.min(few.max(SMALLEST_BATCH).min((train_nodes / 2).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Method;

    fn decided(settings: Settings, train_nodes: usize) -> Settings {
        settings.for_sizes(PublicSizes { train_nodes, ..PublicSizes::default() })
    }

    fn batches(method: Method, train_nodes: usize) -> (usize, usize, usize) {
        let settings = decided(Settings::of(method, Level::Node).by_sizes(), train_nodes);
        assert_eq!(settings.from_sizes, FromSizes::default(), "decided");
        (settings.batch_size, settings.epochs, train_nodes * settings.epochs / settings.batch_size)
    }

    #[test]
    fn small_training_sets_have_the_batches_of_the_method_and_large_ones_few_steps() {
        for method in [Method::Progap, Method::Gap, Method::DpGnn] {
            let usual = Settings::of(method, Level::Node);
            let largest = MOST_STEPS * usual.batch_size / usual.epochs;
            for nodes in [0, largest] {
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
        let batches = |nodes: usize| {
            let settings = decided(open.clone(), nodes);
            (settings.batch_size, settings.epochs)
        };
        assert_eq!([170, 850, 3400, 12_000].map(batches), [(16, 60), (53, 34), (212, 17), (512, 10)]);
    }

    /// Features alone, or rich ones: a quarter of few training nodes, whether the depth was asked for or follows from sizes.
    #[test]
    fn where_features_say_most_batches_are_a_quarter_of_few_nodes() {
        use crate::settings::Request;
        let node = || Request::default().with("level", "node").with("epsilon", 2.0);
        let batches = |request: Request, columns: usize, train_nodes: usize| {
            let sizes = PublicSizes { train_nodes, columns, classes: 7, ..PublicSizes::default() };
            let settings = request.settings().expect("settings").for_sizes(sizes).into_settings();
            (settings.depth, settings.batch_size, settings.epochs)
        };
        assert_eq!(batches(node(), 1433, 1200), (0, 300, 29));
        assert_eq!(batches(node(), 1433, 5738), (0, 512, 20), "at least twice the usual epochs");
        assert_eq!(batches(node(), 1433, 25_600), (0, 512, 20));
        assert_eq!(batches(node(), 1433, 4 * 25_600), (0, 1024, 10));
        assert_eq!(batches(node().with("depth", 0), 200, 1200), (0, 300, 29));
        assert_eq!(batches(node(), 200, 2000), (1, 125, 22), "one aggregation");
        let ample = || node().with("epsilon", 8.0);
        assert_eq!(batches(ample(), 1433, 2000), (1, 500, 22), "one aggregation beside rich features");
        assert_eq!(batches(ample(), 600, 2000).1, 125, "few columns");
        assert_eq!(batches(node().with("batch_size", 75), 1433, 1200).1, 75, "as asked for");
        let mlp = node().with("method", "mlp");
        assert_eq!(batches(mlp, 1433, 1200).1, 75, "another method");
    }

    /// Two classes under much noise: twice as large, a quarter of few training nodes, and at least twice the usual epochs.
    #[test]
    fn two_classes_have_larger_batches_where_the_budget_is_small() {
        use crate::settings::Request;
        let batches =
            |epsilon: f64, depth: Option<usize>, columns: usize, classes: usize, train_nodes: usize| {
                let request = Request::default().with("level", "node").with("epsilon", epsilon);
                let request = depth.iter().fold(request, |request, &depth| request.with("depth", depth));
                let sizes = PublicSizes { train_nodes, columns, classes, ..PublicSizes::default() };
                let settings = request.settings().expect("settings").for_sizes(sizes).into_settings();
                (settings.depth, settings.batch_size, settings.epochs)
            };
        assert_eq!(batches(2.0, None, 200, 2, 6200), (1, 1024, 20));
        assert_eq!(batches(2.0, None, 200, 2, 2000), (1, 500, 22));
        assert_eq!(batches(2.0, None, 200, 3, 6200), (1, 387, 13), "three classes");
        assert_eq!(batches(8.0, None, 200, 2, 6200), (2, 387, 13), "a large budget");
        assert_eq!(batches(2.0, Some(0), 200, 2, 6200), (0, 512, 20), "features alone");
        assert_eq!(batches(2.0, None, 601, 2, 6200), (0, 512, 20), "rich ones");
    }

    /// Values that were asked for stay, however large the training set is.
    #[test]
    fn what_was_asked_for_stays() {
        use crate::settings::Request;
        let at_node = || Request::default().with("level", "node");
        for (name, value) in [("batch_size", 512), ("epochs", 10)] {
            let asked = at_node().with(name, value).settings().expect("settings").into_settings();
            let large = decided(asked.clone(), 10_000_000);
            assert_eq!((large.batch_size, large.epochs), (asked.batch_size, asked.epochs), "{name}");
        }
        let published = Request::published().with("level", "node").settings().expect("settings");
        assert_eq!(published.from_sizes, FromSizes::default());
    }
}
