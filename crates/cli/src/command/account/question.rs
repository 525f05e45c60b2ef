//! A question to the accountants, and what each of them answers.

use progap::query::Queries;
use progap::settings::Level;
use progap::units::in_unit;
use progap::{ErrorKind, ResolvedRun, Settings};
use progap_privacy::accountant::{Accountant, Best, all};
use progap_privacy::noise::tables;
use progap_privacy::{Error, Event, Unit};

use super::Failure;

/// A run described by flags, and what it asks with noise as large as the sensitivities.
pub struct Planned {
    run: ResolvedRun,
    asked: Queries,
    /// Whether nobody said how many number columns there are, on which the run may depend.
    pub assumes_no_numbers: bool,
}

/// The meaning of the number called sigma.
pub struct Sigma {
    /// Sigma over the multiplier of the plan.
    pub per_multiplier: f64,
    pub means: &'static str,
}

impl Planned {
    pub fn new(run: ResolvedRun, assumes_no_numbers: bool) -> Result<Planned, Failure> {
        let asked = run.asked()?;
        Ok(Planned { run, asked, assumes_no_numbers })
    }

    pub fn settings(&self) -> &Settings {
        &self.run.settings
    }

    /// Nothing where noise is no number to be multiplied, or where nothing is asked.
    pub fn sigma(&self) -> Option<Sigma> {
        let (first, _) = self.asked.iter().next()?;
        self.asked.map(|query| query.event.with_noise_times(1.0))?;
        let (per_multiplier, means) = match (self.settings().level, &first.event) {
            (Level::Edge, Event::Gaussian { sigma, .. }) => {
                (*sigma, "standard deviation of the noise on sums of messages of norm 1")
            }
            (Level::Edge, Event::Laplace { scale, .. }) => {
                (*scale, "scale of the Laplace noise on every entry")
            }
            _ => (1.0, "noise multiplier: standard deviation over sensitivity"),
        };
        Some(Sigma { per_multiplier, means })
    }

    /// The queries with a given sigma.
    fn with_sigma(&self, sigma: f64) -> Result<Queries, Failure> {
        if !(sigma.is_finite() && sigma > 0.0) {
            return Err(Error::invalid("sigma", sigma, "a finite number above 0").into());
        }
        let Some(unit) = self.sigma() else {
            return Err(format!(
                "the noise of the method {} is not one number: give --epsilon instead of --sigma",
                self.settings().method
            )
            .into());
        };
        let factor = sigma / unit.per_multiplier;
        let queries = self.asked.map(|query| query.event.with_noise_times(factor));
        queries.ok_or_else(|| "the noise of these queries is no number to be multiplied".into())
    }
}

/// A question to the accountants.
pub struct Question {
    pub unit: Option<Unit>,
    /// The delta; none where it is zero.
    pub delta: Option<f64>,
    /// The epsilon to find noise for.
    pub target: Option<f64>,
    pub planned: Option<Planned>,
    /// The event and its queries, unless their noise is to be found.
    given: Option<Given>,
}

struct Given {
    sigma: Option<f64>,
    queries: Option<Queries>,
    event: Event,
}

/// The answer of one accountant.
pub struct Opinion {
    pub name: &'static str,
    pub answer: Result<Answer, String>,
}

/// Noise, its cost, and what is asked with it.
pub struct Answer {
    pub sigma: Option<f64>,
    pub epsilon: f64,
    /// Epsilon for one undirected edge.
    pub undirected: Option<f64>,
    /// Epsilon for one direction of it.
    pub directed: Option<f64>,
    pub event: Event,
    pub queries: Option<Queries>,
    pub gradient_multiplier: Option<f64>,
    pub caveat: Option<&'static str>,
}

/// The answers of all accountants.
pub struct Answers {
    pub opinions: Vec<Opinion>,
    /// The accountant by which training would choose the noise, where it is known.
    tightest: Option<&'static str>,
}

/// The answer that counts, with the name of who gave it.
pub type Chosen<'a> = (&'static str, &'a Answer);

const PURE: &str = "pure";

impl Question {
    /// The cost of a tree.
    pub fn of_event(unit: Option<Unit>, event: Event, delta: Option<f64>) -> Question {
        let given = Some(Given { sigma: None, queries: None, event });
        Question { unit, delta, target: None, planned: None, given }
    }

    /// The cost of a run with a given sigma, or the noise that it needs.
    pub fn of_run(
        unit: Unit,
        planned: Planned,
        target: Option<f64>,
        sigma: Option<f64>,
    ) -> Result<Question, Failure> {
        let given = match sigma {
            None => None,
            Some(sigma) => {
                let queries = planned.with_sigma(sigma)?;
                Some(Given { sigma: Some(sigma), event: queries.event()?, queries: Some(queries) })
            }
        };
        let delta = planned.settings().delta;
        Ok(Question { unit: Some(unit), delta, target, planned: Some(planned), given })
    }

    /// The delta at which accountants are asked. A run keeps a part of it for tables of noise.
    pub fn accounted_delta(&self) -> f64 {
        let delta = self.delta.unwrap_or(0.0);
        if self.planned.is_some() && delta > 0.0 { tables::provable(delta) } else { delta }
    }

    /// The accountant whose answer counts where nobody says so: that of the settings.
    pub fn accountant(&self) -> Result<&'static str, Failure> {
        Ok(match &self.planned {
            _ if self.delta.is_none() => PURE,
            Some(planned) => planned.run.accountant()?.name(),
            None => Best.name(),
        })
    }

    /// Asks every accountant, and for the best of them what training asks; where delta is zero there is one way to
    /// account.
    pub fn ask(&self, accountant: &str) -> Result<Answers, Failure> {
        if self.delta.is_none() {
            let answer = match self.noise(&Best)? {
                Ok(found) => self.answer(found, &mut |event| Ok(event.pure_epsilon()))?,
                Err(why) => Err(why),
            };
            let answer =
                answer.map_err(|_| "no epsilon holds here with a delta of zero: give --delta".to_string());
            return Ok(Answers { opinions: vec![Opinion { name: PURE, answer }], tightest: Some(PURE) });
        }
        // The answer that training would choose comes first, and stands for the accountant that it asks.
        let mut best = match self.target {
            Some(_) if accountant == Best.name() => self.ask_one(&Best)?.ok(),
            _ => None,
        };
        let tightest = best.as_ref().map(|(name, _)| *name);
        let mut opinions = Vec::new();
        for accountant in all() {
            let name = accountant.name();
            let answer = match best.take_if(|_| tightest == Some(name)) {
                Some((_, answer)) => Ok(answer),
                None => self.ask_one(accountant)?.map(|(_, answer)| answer),
            };
            opinions.push(Opinion { name, answer });
        }
        Ok(Answers { opinions, tightest })
    }

    /// An answer with the name of who gave it, a reason why there is none, or an error that concerns every accountant.
    #[allow(clippy::type_complexity, reason = "a reason is not an error")]
    fn ask_one(
        &self,
        accountant: &dyn Accountant,
    ) -> Result<Result<(&'static str, Answer), String>, Failure> {
        let found = match self.noise(accountant)? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        let (mut name, mut caveat) = (accountant.name(), None);
        let answer = self.answer(found, &mut |event| {
            let bound = accountant.epsilon(event, self.accounted_delta())?;
            (name, caveat) = (bound.accountant, caveat.or(bound.caveat));
            Ok(Some(bound.value))
        })?;
        Ok(answer.map(|answer| (name, Answer { caveat, ..answer })))
    }

    /// The event and its queries, with the noise that was given or that the budget needs.
    fn noise(&self, accountant: &dyn Accountant) -> Result<Result<Asked, String>, Failure> {
        match (&self.given, &self.planned) {
            (Some(Given { sigma, queries, event }), _) => {
                let (queries, event) = (queries.clone(), event.clone());
                let gradient_multiplier = queries.as_ref().and_then(gradient_multiplier);
                Ok(Ok(Asked { sigma: *sigma, queries, event, gradient_multiplier }))
            }
            (None, Some(planned)) => match planned.run.plan_by(accountant) {
                Ok(plan) => {
                    let sigma = planned.sigma().map(|sigma| plan.multiplier * sigma.per_multiplier);
                    let gradient = plan.gradient_multiplier;
                    let gradient_multiplier = (gradient > 0.0).then_some(gradient);
                    Ok(Ok(Asked {
                        sigma,
                        queries: Some(plan.queries),
                        event: plan.event,
                        gradient_multiplier,
                    }))
                }
                Err(error) => match error.kind() {
                    ErrorKind::Privacy(why @ (Error::Unsupported(_) | Error::CannotCalibrate { .. })) => {
                        Ok(Err(why.to_string()))
                    }
                    _ => Err(error.into()),
                },
            },
            (None, None) => Err("give an event, or a target and a plan".into()),
        }
    }

    /// The cost, in both units of an edge.
    fn answer(
        &self,
        found: Asked,
        cost: &mut dyn FnMut(&Event) -> Result<Option<f64>, Error>,
    ) -> Result<Result<Answer, String>, Failure> {
        let Asked { sigma, queries, event, gradient_multiplier } = found;
        let epsilon = match cost(&event) {
            Ok(Some(epsilon)) => epsilon,
            Ok(None) => return Ok(Err("there is no such bound".into())),
            Err(why @ (Error::Unsupported(_) | Error::CannotCalibrate { .. })) => {
                return Ok(Err(why.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        let mut of = |event: Option<Event>| event.map_or(Ok(None), |event| cost(&event));
        let other = |unit: Unit| match (&queries, &self.planned) {
            (Some(queries), Some(planned)) => in_unit(queries, planned.settings(), unit),
            _ => Ok(None),
        };
        let (undirected, directed) = match (self.unit, &queries) {
            (Some(Unit::Edge), Some(_)) => (of(other(Unit::EdgeUndirected)?)?, Some(epsilon)),
            (Some(Unit::EdgeUndirected), Some(_)) => (Some(epsilon), of(other(Unit::Edge)?)?),
            // Of an arbitrary query no more is known than that each edge moves it by its sensitivity.
            (Some(Unit::Edge), None) => (of(event.for_two_records())?, Some(epsilon)),
            (Some(Unit::EdgeUndirected), None) => (Some(epsilon), None),
            _ => (None, None),
        };
        Ok(Ok(Answer {
            sigma,
            epsilon,
            undirected,
            directed,
            event,
            queries,
            gradient_multiplier,
            caveat: None,
        }))
    }
}

/// An event and its queries, with their noise.
struct Asked {
    sigma: Option<f64>,
    queries: Option<Queries>,
    event: Event,
    gradient_multiplier: Option<f64>,
}

/// The multiplier of what is asked of batches.
fn gradient_multiplier(queries: &Queries) -> Option<f64> {
    let sampled =
        queries.iter().filter_map(|(query, _)| query.noise()).find(|noise| noise.sampling_rate < 1.0);
    sampled.map(|noise| noise.multiplier())
}

impl Answers {
    /// The opinion that counts.
    pub fn choose(&self, accountant: &str) -> Result<Chosen<'_>, Failure> {
        let answered = self.opinions.iter().filter_map(|o| Some((o.name, o.answer.as_ref().ok()?)));
        if accountant != Best.name() {
            let asked = self.opinions.iter().find(|o| o.name == accountant);
            return match asked.map(|o| (o.name, &o.answer)) {
                Some((name, Ok(answer))) => Ok((name, answer)),
                Some((_, Err(why))) => Err(why.clone().into()),
                None => Err("where delta is zero there is one way to account: leave --accountant out".into()),
            };
        }
        if let Some(name) = self.tightest {
            // The accountant that training asks, whose noise is shown to its last digit.
            if let Some(found) = answered.clone().find(|(other, _)| *other == name) {
                return Ok(found);
            }
        }
        answered.min_by(|a, b| a.1.epsilon.total_cmp(&b.1.epsilon)).ok_or_else(|| {
            let why =
                |o: &Opinion| o.answer.as_ref().err().filter(|_| ["rdp", PURE].contains(&o.name)).cloned();
            match self.opinions.iter().find_map(why) {
                Some(why) => why.into(),
                None => "no accountant handles this tree".into(),
            }
        })
    }
}
