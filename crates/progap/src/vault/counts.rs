//! How many training nodes each class has, with Gaussian noise: for class weights where labels are private.

use progap_graph::{Part, UNLABELLED};
use progap_privacy::Event;
use progap_privacy::noise::{Quantiser, RoundedGaussian, choose_scale};

use super::Vault;
use crate::plan::Plan;
use crate::query::Query;
use crate::settings::{ClassWeights, Level, Settings};
use crate::{Error, Result};

/// The name of the query.
pub(crate) const CLASS_COUNTS: &str = "class counts";

/// The noise of counts over that of an aggregation, each divided by its sensitivity: as few counts tell what is needed of a class, they
/// cost a twenty-fifth of an aggregation.
const NOISE: f64 = 5.0;

/// Whether a run asks for counts: class weights where labels are private.
pub(crate) fn asks_for_counts(settings: &Settings) -> bool {
    settings.level == Level::Node && settings.class_weights == ClassWeights::Balanced
}

/// The query with noise as large as [`NOISE`] times its sensitivity.
pub(crate) fn class_count() -> Result<Query> {
    Ok(counts_with(Event::gaussian(NOISE, 1.0)?))
}

fn counts_with(event: Event) -> Query {
    Query::new(CLASS_COUNTS, "training nodes of each class, counted with noise", event)
}

impl Vault {
    /// A noisy count of the training nodes of each class.
    ///
    /// # Proof definition
    /// A record has at most one label, so that adding or removing it moves one count by one at most: the counts, times an integer scale,
    /// have the sensitivity of that scale in L2 norm, exactly. The result is post-processing of the Gaussian mechanism with sensitivity 1
    /// and the noise of the plan's query (docs/privacy.md#class-counts). Which nodes train is public.
    ///
    /// # Errors
    /// A plan that does not pay for it, or a second question.
    pub fn class_counts(&mut self, plan: &Plan) -> Result<NoisyCounts> {
        let Some(Event::Gaussian { sigma, sensitivity }) =
            plan.queries.get(CLASS_COUNTS).map(|query| &query.event)
        else {
            return Err(Error::Internal("the plan does not pay for counts of classes"));
        };
        let (sigma, sensitivity) = (*sigma, *sensitivity);
        self.draw(self.rows.classes, plan)?;
        let quantiser = Quantiser::<i16>::new(choose_scale(sigma, 1.0)?.1)?;
        let scale = i64::from(quantiser.scale().get());
        let mut counts = vec![0i64; self.rows.classes];
        let own = self.part().map(|_| self.rows.nodes(Part::Train));
        for label in own.as_ref().unwrap_or(&self.train).iter().map(|&node| self.rows.labels[node as usize]) {
            if label != UNLABELLED {
                counts[label as usize] += scale;
            }
        }
        if let Some(part) = self.part() {
            counts = part.added_up(&counts)?;
        }
        let query = self.randomness.query(CLASS_COUNTS)?;
        let noise = RoundedGaussian::for_messages(sigma, quantiser.scale())?;
        let noisy = noise.release_owned(counts, quantiser.scale(), query, rayon::current_num_threads());
        self.record(counts_with(Event::gaussian(sigma, sensitivity)?));
        Ok(NoisyCounts { counts: noisy.into_parts().0, sigma })
    }
}

/// Counts that left the vault.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyCounts {
    /// One for each class.
    pub counts: Vec<f32>,
    /// The standard deviation of their noise.
    pub sigma: f64,
}

impl NoisyCounts {
    /// Offsets for the logarithm of each class's odds so that all classes count the same: of a class that is rarer by a factor the
    /// odds are larger by it (Menon et al. 2021, Long-tail learning via logit adjustment). A count below its noise is taken to be
    /// the noise.
    pub fn odds(&self) -> Vec<f32> {
        let least = self.sigma.max(1.0);
        let counts: Vec<f64> = self.counts.iter().map(|&count| f64::from(count).max(least)).collect();
        let share = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
        counts.into_iter().map(|count| (share / count).ln() as f32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SIZES, data};
    use super::*;
    use crate::settings::Method;
    use progap_graph::{Buffer, Dataset};
    use progap_privacy::noise::Randomness;

    fn settings() -> Settings {
        Settings {
            class_weights: ClassWeights::Balanced,
            batch_size: 50,
            ..Settings::of(Method::Progap, Level::Node)
        }
    }

    fn plan() -> Plan {
        Plan::new(&settings().checked().expect("settings"), SIZES).expect("a plan")
    }

    fn counted(dataset: Dataset, seed: u64) -> NoisyCounts {
        let mut vault = Vault::new(dataset, &settings(), Randomness::from_seed(seed)).expect("a vault");
        let counts = vault.class_counts(&plan()).expect("counts");
        assert_eq!(vault.asked().count(CLASS_COUNTS), 1);
        counts
    }

    fn exact() -> Vec<f64> {
        let data = data();
        let mut counts = vec![0.0; 3];
        let train = data.split().expect("a split").nodes(progap_graph::Part::Train);
        train.for_each(|node| counts[data.labels()[node] as usize] += 1.0);
        counts
    }

    #[test]
    fn a_label_moves_one_count_by_one() {
        let mut parts = data().into_parts();
        let node =
            parts.split.as_ref().expect("a split").nodes(progap_graph::Part::Train).next().expect("one");
        let class = parts.labels[node] as usize;
        let mut labels = parts.labels.to_vec();
        labels[node] = UNLABELLED;
        parts.labels = Buffer::from(labels);
        let (with, without) = (counted(data(), 1), counted(Dataset::new(parts).expect("a data set"), 1));
        for (at, (a, b)) in with.counts.iter().zip(&without.counts).enumerate() {
            let expected = if at == class { 1.0 } else { 0.0 };
            assert!((a - b - expected).abs() < 1e-3, "{at}: {a} {b}");
        }
    }

    /// The noise is that of the plan, and the plan pays for it: without it there would be less noise elsewhere.
    #[test]
    fn counts_have_the_noise_that_is_charged() {
        let (plan, exact) = (plan(), exact());
        let sigma = NOISE * plan.aggregate_multiplier;
        let noise: Vec<f64> = (0..400)
            .flat_map(|seed| {
                counted(data(), seed)
                    .counts
                    .into_iter()
                    .zip(&exact)
                    .map(|(a, b)| f64::from(a) - b)
                    .collect::<Vec<_>>()
            })
            .collect();
        let deviation = (noise.iter().map(|v| v * v).sum::<f64>() / noise.len() as f64).sqrt();
        assert!((deviation / sigma - 1.0).abs() < 0.1, "{deviation} {sigma}");
        let query = plan.queries.get(CLASS_COUNTS).expect("planned");
        assert!(
            matches!(query.event, Event::Gaussian { sigma: s, sensitivity } if (s / sigma - 1.0).abs() < 1e-9 && sensitivity == 1.0)
        );
        let without = Settings { class_weights: ClassWeights::Even, ..settings() };
        let without = Plan::new(&without.checked().expect("settings"), SIZES).expect("a plan");
        assert!(plan.aggregate_multiplier > without.aggregate_multiplier);
        assert_eq!(without.queries.count(CLASS_COUNTS), 0);
        let mut vault = Vault::new(data(), &settings(), Randomness::from_seed(1)).expect("a vault");
        assert!(vault.class_counts(&without).is_err(), "not planned");
        vault.class_counts(&plan).expect("once");
        assert!(vault.class_counts(&plan).is_err(), "the same noise twice");
    }

    #[test]
    fn rare_classes_gain_and_noise_does_not_make_them_infinite() {
        let odds = NoisyCounts { counts: vec![90.0, 10.0], sigma: 3.0 }.odds();
        assert!((odds[1] - odds[0] - 9f32.ln()).abs() < 1e-5, "{odds:?}");
        let odds = NoisyCounts { counts: vec![97.0, -4.0], sigma: 3.0 }.odds();
        assert!((odds[1] - odds[0] - (97f32 / 3.0).ln()).abs() < 1e-5, "{odds:?}");
        assert!(NoisyCounts { counts: vec![0.0; 3], sigma: 0.0 }.odds().iter().all(|odds| *odds == 0.0));
    }
}
