//! How many training nodes each class has, with Gaussian noise: for class weights where labels are private.

use progap_graph::{Part, UNLABELLED};
use progap_privacy::Event;
use progap_privacy::noise::{Quantiser, RoundedGaussian, choose_scale};

use super::noise::not_planned;
use super::{Asked, Noise, Private, VaultQuery};
use crate::Result;
use crate::query::Query;
use crate::settings::{ClassWeights, Level, Settings};

/// The name of the query.
pub const CLASS_COUNTS: &str = "class counts";

/// The noise of counts over that of an aggregation, each divided by its sensitivity: as few counts tell what is needed
/// of a class, they cost a twenty-fifth of an aggregation.
const NOISE: f64 = 5.0;

/// Whether a run asks for counts: class weights where labels are private.
pub(crate) fn asks_for_counts(settings: &Settings) -> bool {
    settings.level == Level::Node && settings.class_weights == ClassWeights::Balanced
}

/// The query with noise as large as [`NOISE`] times its sensitivity.
pub(crate) fn class_count() -> Result<Query> {
    let event = Event::gaussian(NOISE, 1.0)?;
    Ok(Query::new(CLASS_COUNTS, "training nodes of each class, counted with noise", event))
}

/// A noisy count of the training nodes of each class.
///
/// # Proof definition
/// A record has at most one label, so that adding or removing it moves one count by one at most: the counts, times an
/// integer scale, have the sensitivity of that scale in L2 norm, exactly. The result is post-processing of the Gaussian
/// mechanism with sensitivity 1 and the noise of the plan's query ([proof](progap_privacy::proofs::class_counts)).
/// Which nodes train is public.
#[derive(Debug, Clone, Copy)]
pub struct ClassCounts;

impl VaultQuery for ClassCounts {
    type Answer = NoisyCounts;

    fn spec(&self, private: &Private) -> Result<Asked> {
        Ok(Asked::new(class_count()?, private.rows.classes))
    }

    fn evaluate(self, private: &Private, noise: &mut Noise) -> Result<NoisyCounts> {
        let (sigma, _) = noise.gaussian()?.ok_or_else(not_planned)?;
        let quantiser = Quantiser::<i16>::new(choose_scale(sigma, 1.0)?.1)?;
        let scale = i64::from(quantiser.scale().get());
        let mut counts = vec![0i64; private.rows.classes];
        let own = private.part().map(|_| private.rows.nodes(Part::Train));
        let train = own.as_ref().unwrap_or(&private.train);
        for label in train.iter().map(|&node| private.rows.labels[node as usize]) {
            if label != UNLABELLED {
                counts[label as usize] += scale;
            }
        }
        if let Some(part) = private.part() {
            counts = part.added_up(&counts)?;
        }
        let query = noise.query(CLASS_COUNTS)?;
        let table = RoundedGaussian::for_messages(sigma, quantiser.scale())?;
        let noisy = table.release_owned(counts, quantiser.scale(), query, rayon::current_num_threads());
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
    /// Offsets for the logarithm of each class's odds so that all classes count the same: of a class that is rarer by a
    /// factor the odds are larger by it (Menon et al. 2021, Long-tail learning via logit adjustment). A count below its
    /// noise is taken to be the noise.
    pub fn odds(&self) -> Vec<f32> {
        let least = self.sigma.max(1.0);
        let counts: Vec<f64> = self.counts.iter().map(|&count| f64::from(count).max(least)).collect();
        let share = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
        counts.into_iter().map(|count| (share / count).ln() as f32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Vault;
    use super::super::tests::{SIZES, data};
    use super::*;
    use crate::plan::Plan;
    use crate::settings::MethodKind;
    use progap_graph::{Buffer, Dataset};
    use progap_privacy::noise::Randomness;

    fn settings() -> Settings {
        Settings {
            class_weights: ClassWeights::Balanced,
            batch_size: 50,
            ..Settings::of(MethodKind::ProgapLabels, Level::Node)
        }
    }

    fn plan() -> Plan {
        Plan::new(&settings().checked().expect("settings"), SIZES).expect("a plan")
    }

    fn vault(dataset: Dataset, plan: Plan, seed: u64) -> Vault {
        Vault::open(dataset, &settings(), plan, Randomness::from_seed(seed)).expect("a vault")
    }

    fn counted(dataset: Dataset, seed: u64) -> NoisyCounts {
        let mut vault = vault(dataset, plan(), seed);
        let counts = vault.ask(ClassCounts).expect("counts");
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
        assert!(vault(data(), without, 1).ask(ClassCounts).is_err(), "not planned");
        let mut vault = vault(data(), plan, 1);
        vault.ask(ClassCounts).expect("once");
        assert!(vault.ask(ClassCounts).is_err(), "the same noise twice");
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
