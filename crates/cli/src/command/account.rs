//! `progap account`: what privacy costs in noise, and noise in privacy.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, ValueEnum};
use progap::plan::{self, Plan, PublicSizes};
use progap::settings::{Method, Settings};
use progap::units::in_unit;
use progap_privacy::accountant::{Accountant, Best, all};
use progap_privacy::calibrate::{self, Target, Training};
use progap_privacy::event::MAX_JSON_BYTES;
use progap_privacy::noise::tables;
use progap_privacy::{Error, Event, Unit, UnitEvent};
use serde::Serialize;

use super::Outcome;
use crate::plot::{self, Format, Picture};
use crate::report::{Axis, Lines, Plot, Point, Series};
use crate::ui;

/// Show the noise that a privacy target needs, or the epsilon that noise gives, by every accountant
#[derive(Args)]
#[command(
    group = ArgGroup::new("question").required(true).args(["level", "events"]),
    group = ArgGroup::new("given").args(["epsilon", "sigma", "events"]),
    after_help = "\
Sigma at edge level is the standard deviation of the noise on sums of messages of norm 1; at node level it is the \
noise multiplier of aggregations and gradients, that is the noise divided by the sensitivity. The noise is that \
of `progap train` with the same settings, to the last digit.

Examples:
  progap account --level edge --depth 3 --epsilon 1 --delta 1e-7
  progap account --level edge --depth 3 --sigma 8 --delta 1e-7 --plot epsilon.svg
  progap account --level node --depth 2 --epsilon 8 --delta 1e-5 --train-nodes 19804 --batch-size 256 --epochs 10
  progap account --events tree.json --delta 1e-6 --json
  echo '{\"type\": \"gaussian\", \"sigma\": 4, \"sensitivity\": 1}' | progap account --events - --delta 1e-6"
)]
pub struct Account {
    /// What is protected
    #[arg(long, requires = "depth", requires = "given")]
    level: Option<Level>,
    /// The method that asks
    #[arg(long, value_enum, default_value = "progap", conflicts_with = "events")]
    method: MethodName,
    /// Number of noisy aggregations
    #[arg(long, value_name = "K", conflicts_with = "events")]
    depth: Option<u64>,
    /// Find the noise for this epsilon
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// Find the epsilon of this noise
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// The delta at which epsilon holds
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: f64,
    /// Edge level: protect friendships, both directions of an edge together
    #[arg(long, conflicts_with = "events")]
    undirected: bool,
    /// Node level: number of training nodes
    #[arg(long, value_name = "N", conflicts_with = "events")]
    train_nodes: Option<u64>,
    /// Node level: expected size of a batch
    #[arg(long, value_name = "B", conflicts_with = "events")]
    batch_size: Option<u64>,
    /// Node level: epochs per stage
    #[arg(long, conflicts_with = "events")]
    epochs: Option<u64>,
    /// Node level: a sender's squared weights sum to at most this [default: 100, as in training]
    #[arg(long, value_name = "D", conflicts_with = "events")]
    max_degree: Option<u64>,
    /// Node level: norm to which gradients are clipped [default: 1, as in training]
    #[arg(long, value_name = "C", conflicts_with = "events", allow_negative_numbers = true)]
    clip: Option<f64>,
    /// Node level: gradient multiplier over aggregation multiplier [default: as in training, 2 for progap, 1 for gap]
    #[arg(long, value_name = "R", conflicts_with = "events", allow_negative_numbers = true)]
    ratio: Option<f64>,
    /// A tree of events in JSON, with or without its unit; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// The accountant whose answer counts
    #[arg(long, value_name = "NAME", default_value = "best",
          value_parser = PossibleValuesParser::new(["best", "gdp", "pld", "rdp", "theorem"]))]
    accountant: String,
    /// Draw epsilon against delta, as .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Level {
    /// Single edges
    Edge,
    /// Whole nodes
    Node,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum MethodName {
    /// One training run for each aggregation, and one before the first
    Progap,
    /// Two training runs
    Gap,
}

/// A question to the accountants.
struct Question {
    unit: Option<Unit>,
    delta: f64,
    /// The epsilon to calibrate to.
    target: Option<f64>,
    /// The sigma that was given.
    sigma: Option<f64>,
    /// What leads from the number called sigma to an event; nothing if the event is given.
    plan: Option<Planned>,
    /// The event, unless it is to be calibrated.
    event: Option<Event>,
    /// The accountant by which training would choose the noise, once it is known.
    tightest: Option<&'static str>,
}

/// A run described by flags.
struct Planned {
    settings: Settings,
    sizes: PublicSizes,
    level: Level,
    depth: u64,
    sensitivity: f64,
    training: Option<Training>,
    ratio: f64,
}

impl Planned {
    /// The number called sigma over the multiplier of the plan.
    fn sigma_per_multiplier(&self) -> f64 {
        if self.level == Level::Edge { self.sensitivity } else { 1.0 }
    }

    fn event(&self, sigma: f64) -> Result<Event, Box<dyn std::error::Error>> {
        if !(sigma.is_finite() && sigma > 0.0) {
            return Err(Error::invalid("sigma", sigma, "a finite number above 0").into());
        }
        Ok(plan::event(&self.settings, self.sizes, sigma / self.sigma_per_multiplier())?)
    }
}

/// What one accountant says.
struct Opinion {
    name: &'static str,
    /// Noise, epsilon and the event with that noise.
    answer: Result<Answer, String>,
}

struct Answer {
    sigma: Option<f64>,
    epsilon: f64,
    /// Epsilon for one friendship.
    friendship: Option<f64>,
    /// Epsilon for one direction of it.
    directed: Option<f64>,
    event: Event,
    caveat: Option<&'static str>,
}

/// The result as JSON.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<Unit>,
    /// What the number called sigma is.
    sigma_means: &'static str,
    sigma: Option<f64>,
    epsilon: f64,
    delta: f64,
    /// The delta at which accountants were asked: of a run, less what is kept for tables of noise.
    accounted_delta: f64,
    accountant: &'a str,
    /// Name to sigma where noise was asked for, otherwise name to epsilon.
    accountants: BTreeMap<&'a str, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_epsilon: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon_friendship: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon_directed: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitivity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gradient_multiplier: Option<f64>,
    /// Why an accountant is missing, or has no finite answer.
    notes: BTreeMap<&'a str, String>,
    /// The event, with its unit where it is known: what `--events` reads.
    event: serde_json::Value,
}

impl Account {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if let Some(path) = &self.plot {
            Format::of(path)?;
        }
        let mut question = self.question()?;
        let opinions = {
            let _spinner = ui::spinner("accounting".to_owned());
            question.ask()?
        };
        let chosen = self.choose(&question, &opinions)?;
        if let Some(path) = &self.plot {
            let _spinner = ui::spinner("plotting".to_owned());
            draw(&question, chosen.0, chosen.1)?.write(path)?;
        }
        let report = report(&question, &opinions, chosen);
        if self.json {
            return ui::print(&serde_json::to_string_pretty(&report)?);
        }
        ui::print(&show(&question, &opinions, &report))
    }

    fn question(&self) -> Result<Question, Box<dyn std::error::Error>> {
        let delta = Target::new(1.0, self.delta)?.delta;
        if let Some(path) = &self.events {
            let UnitOrNot { unit, event } = read_events(path)?;
            let (event, tightest) = (Some(event), None);
            return Ok(Question { unit, delta, target: None, sigma: None, plan: None, event, tightest });
        }
        let (Some(level), Some(depth)) = (self.level, self.depth) else {
            return Err("give --level and --depth, or --events".into());
        };
        let planned = match level {
            Level::Edge => self.edge_plan(depth)?,
            Level::Node => self.node_plan(depth)?,
        };
        let unit = match level {
            Level::Edge if self.undirected => Unit::EdgeUndirected,
            Level::Edge => Unit::Edge,
            Level::Node => Unit::Node,
        };
        let target = self.epsilon.map(|epsilon| Target::new(epsilon, delta)).transpose()?.map(|t| t.epsilon);
        let event = self.sigma.map(|sigma| planned.event(sigma)).transpose()?;
        let (unit, plan) = (Some(unit), Some(planned));
        Ok(Question { unit, delta, target, sigma: self.sigma, plan, event, tightest: None })
    }

    fn edge_plan(&self, depth: u64) -> Result<Planned, Box<dyn std::error::Error>> {
        let node_only = [
            ("--train-nodes", self.train_nodes.is_some()),
            ("--batch-size", self.batch_size.is_some()),
            ("--epochs", self.epochs.is_some()),
            ("--max-degree", self.max_degree.is_some()),
            ("--clip", self.clip.is_some()),
            ("--ratio", self.ratio.is_some()),
        ];
        if let Some((flag, _)) = node_only.iter().find(|(_, given)| *given) {
            return Err(format!("{flag} says nothing at edge level, where training asks nothing of the edges; leave it out or use --level node").into());
        }
        if depth == 0 {
            return Err(Error::invalid(
                "depth",
                depth,
                "at least 1: without aggregation nothing is asked of the edges",
            )
            .into());
        }
        let settings = Settings { undirected: self.undirected, ..self.settings(progap::Level::Edge, depth) };
        let sensitivity = plan::sensitivity(&settings);
        calibrate::Plan::edge_level(depth, sensitivity)?;
        let (level, sizes) = (Level::Edge, PublicSizes::default());
        Ok(Planned { settings, sizes, level, depth, sensitivity, training: None, ratio: 1.0 })
    }

    /// The settings of the run, as `progap train` would have them.
    fn settings(&self, level: progap::Level, depth: u64) -> Settings {
        let method = match self.method {
            MethodName::Progap => Method::Progap,
            MethodName::Gap => Method::Gap,
        };
        let usual = Settings::of(method, level);
        let epsilon = self.epsilon.or(usual.epsilon);
        Settings { epsilon, delta: Some(self.delta), depth: depth.try_into().unwrap_or(usize::MAX), ..usual }
    }

    fn node_plan(&self, depth: u64) -> Result<Planned, Box<dyn std::error::Error>> {
        if self.undirected {
            return Err("--undirected says nothing at node level; leave it out or use --level edge".into());
        }
        let needed = |name: &str, value: Option<u64>| {
            value.ok_or_else(|| {
                format!("node level needs {name}: the cost depends on how often a node is in a batch")
            })
        };
        let usual = self.settings(progap::Level::Node, depth);
        let training = Training {
            train_nodes: needed("--train-nodes", self.train_nodes)?,
            batch_size: needed("--batch-size", self.batch_size)?,
            epochs: needed("--epochs", self.epochs)?,
            clip: self.clip.unwrap_or(usual.clip),
        };
        let degree = self.max_degree.unwrap_or(usual.max_degree.into());
        let Some(max_degree) = u32::try_from(degree).ok().filter(|&degree| degree > 0) else {
            return Err(Error::invalid("max-degree", degree, "at least 1, and at most 4294967295").into());
        };
        let ratio = self.ratio.unwrap_or(usual.gradient_noise_ratio);
        let settings = Settings {
            max_degree,
            gradient_noise_ratio: ratio,
            clip: training.clip,
            epochs: training.epochs.try_into().unwrap_or(usize::MAX),
            batch_size: training.batch_size.try_into().unwrap_or(usize::MAX),
            ..usual
        };
        let sensitivity = plan::sensitivity(&settings);
        calibrate::Plan::node_level(depth, sensitivity, training)?.with_ratio(ratio)?;
        let sizes = PublicSizes {
            train_nodes: training.train_nodes.try_into().unwrap_or(usize::MAX),
            ..PublicSizes::default()
        };
        let (level, training) = (Level::Node, Some(training));
        Ok(Planned { settings, sizes, level, depth, sensitivity, training, ratio })
    }

    /// The opinion that counts.
    fn choose<'a>(
        &self,
        question: &Question,
        opinions: &'a [Opinion],
    ) -> Result<(&'a str, &'a Answer), Box<dyn std::error::Error>> {
        let answered = opinions.iter().filter_map(|o| Some((o.name, o.answer.as_ref().ok()?)));
        if self.accountant != "best" {
            let asked = opinions.iter().find(|o| o.name == self.accountant);
            return match asked.map(|o| (o.name, &o.answer)) {
                Some((name, Ok(answer))) => Ok((name, answer)),
                Some((_, Err(why))) => Err(why.clone().into()),
                None => {
                    Err(Error::invalid("accountant", &self.accountant, "one of those listed by --help")
                        .into())
                }
            };
        }
        if let Some(name) = question.tightest {
            // The accountant that training asks, whose noise is shown to its last digit.
            if let Some(found) = answered.clone().find(|(other, _)| *other == name) {
                return Ok(found);
            }
        }
        answered.min_by(|a, b| a.1.epsilon.total_cmp(&b.1.epsilon)).ok_or_else(|| {
            match opinions.iter().find_map(|o| o.answer.as_ref().err().filter(|_| o.name == "rdp")) {
                Some(why) => why.clone().into(),
                None => "no accountant handles this tree".into(),
            }
        })
    }
}

impl Question {
    fn ask(&mut self) -> Result<Vec<Opinion>, Box<dyn std::error::Error>> {
        // What training would choose comes first, and stands for the accountant that it asks.
        let mut chosen = None;
        if self.target.is_some()
            && let Ok((name, answer)) = self.ask_one(&Best)?
        {
            (self.tightest, chosen) = (Some(name), Some(answer));
        }
        let mut opinions = Vec::new();
        for accountant in all() {
            let name = accountant.name();
            let answer = match chosen.take_if(|_| self.tightest == Some(name)) {
                Some(answer) => Ok(answer),
                None => self.ask_one(accountant)?.map(|(_, answer)| answer),
            };
            opinions.push(Opinion { name, answer });
        }
        Ok(opinions)
    }

    /// The delta at which accountants are asked. A run keeps a part of it for tables of noise.
    fn accounted_delta(&self) -> f64 {
        if self.plan.is_some() { tables::provable(self.delta) } else { self.delta }
    }

    /// An answer with the name of who gave it, a reason why there is none, or an error that concerns every accountant.
    #[allow(clippy::type_complexity, reason = "a reason is not an error")]
    fn ask_one(
        &self,
        accountant: &dyn Accountant,
    ) -> Result<Result<(&'static str, Answer), String>, Box<dyn std::error::Error>> {
        let delta = self.accounted_delta();
        let event = match (&self.event, &self.plan, self.target) {
            (Some(event), _, _) => Ok((None, event.clone())),
            (None, Some(planned), Some(_)) => planned
                .settings
                .checked()
                .and_then(|settings| Plan::by(accountant, &settings, planned.sizes))
                .map(|plan| (Some(plan.aggregate_multiplier * planned.sigma_per_multiplier()), plan.event)),
            _ => return Err("give an event, or a target and a plan".into()),
        };
        let found = event.and_then(|(sigma, event)| {
            let bound = accountant.epsilon(&event, delta)?;
            Ok((sigma, event, bound))
        });
        let (sigma, event, bound) = match found {
            Ok(found) => found,
            Err(progap::Error::Privacy(why @ (Error::Unsupported(_) | Error::CannotCalibrate { .. }))) => {
                return Ok(Err(why.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        let cost = |event: Option<Event>| -> Result<Option<f64>, Error> {
            event.map(|event| Ok(accountant.epsilon(&event, delta)?.value)).transpose()
        };
        let (friendship, directed) = match (self.unit, &self.plan) {
            (Some(Unit::Edge), Some(_)) => (cost(in_unit(&event, Unit::EdgeUndirected))?, Some(bound.value)),
            (Some(Unit::EdgeUndirected), Some(_)) => (Some(bound.value), cost(in_unit(&event, Unit::Edge))?),
            // Of an arbitrary query no more is known than that each edge moves it by its sensitivity.
            (Some(Unit::Edge), None) => (cost(event.for_two_records())?, Some(bound.value)),
            (Some(Unit::EdgeUndirected), None) => (Some(bound.value), None),
            _ => (None, None),
        };
        let (name, epsilon, caveat) = (bound.accountant, bound.value, bound.caveat);
        let sigma = sigma.or(self.sigma);
        Ok(Ok((name, Answer { sigma, epsilon, friendship, directed, event, caveat })))
    }
}

struct UnitOrNot {
    unit: Option<Unit>,
    event: Event,
}

fn read_events(path: &Path) -> Result<UnitOrNot, Box<dyn std::error::Error>> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    // One byte beyond the limit, so that the parser sees that it is too much.
    let limit = MAX_JSON_BYTES as u64 + 1;
    let read = if path == Path::new("-") {
        std::io::stdin().take(limit).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    read.map_err(|error| format!("{name}: the event tree cannot be read: {error}"))?;
    // A unit and a tree, or a tree alone: only the former has a unit at its top.
    let wrapped = match UnitEvent::from_json(&text) {
        Ok(UnitEvent { unit, event }) => Ok(UnitOrNot { unit: Some(unit), event }),
        Err(wrapped_error) => match Event::from_json(&text) {
            Ok(event) => Ok(UnitOrNot { unit: None, event }),
            Err(_) if has_unit(&text) => Err(wrapped_error),
            Err(error) => Err(error),
        },
    };
    wrapped.map_err(|error| format!("{name}: {error}").into())
}

/// Whether a text is an object with a unit at its top.
fn has_unit(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Top {
        #[allow(dead_code)]
        unit: serde::de::IgnoredAny,
    }
    serde_json::from_str::<Top>(text).is_ok()
}

fn report<'a>(question: &Question, opinions: &'a [Opinion], chosen: (&'a str, &'a Answer)) -> Report<'a> {
    let (accountant, answer) = chosen;
    let mut notes = BTreeMap::new();
    let mut accountants = BTreeMap::new();
    for Opinion { name, answer } in opinions {
        match answer {
            Ok(answer) => {
                let value = if question.target.is_some() { answer.sigma } else { Some(answer.epsilon) };
                accountants.extend(value.map(|value| (*name, value)));
                if answer.epsilon.is_infinite() {
                    notes.insert(*name, "no finite epsilon holds at this delta".to_owned());
                }
                notes.extend(answer.caveat.map(|caveat| (*name, format!("rounded up: {caveat}"))));
            }
            Err(why) => {
                notes.insert(*name, why.clone());
            }
        }
    }
    let planned = question.plan.as_ref();
    let node = planned.filter(|planned| planned.level == Level::Node);
    Report {
        unit: question.unit,
        sigma_means: match planned.map(|planned| planned.level) {
            Some(Level::Edge) => "standard deviation of the noise on sums of messages of norm 1",
            Some(Level::Node) => "noise multiplier: standard deviation over sensitivity",
            None => "not applicable: the event tree holds its own noise",
        },
        sigma: answer.sigma,
        epsilon: answer.epsilon,
        delta: question.delta,
        accounted_delta: question.accounted_delta(),
        accountant,
        accountants,
        target_epsilon: question.target,
        epsilon_friendship: answer.friendship,
        epsilon_directed: answer.directed,
        sensitivity: planned.map(|planned| planned.sensitivity),
        gradient_multiplier: node.and_then(|node| Some(answer.sigma? * node.ratio)),
        notes,
        event: match question.unit {
            Some(unit) => serde_json::json!({ "unit": unit, "event": answer.event }),
            None => serde_json::json!(answer.event),
        },
    }
}

fn show(question: &Question, opinions: &[Opinion], report: &Report<'_>) -> String {
    let mut facts = Vec::new();
    if let Some(unit) = question.unit {
        facts.push(("protects", format!("{} ({unit})", unit.neighbours())));
    } else {
        facts.push(("protects", "what the sensitivities in the tree refer to (it names no unit)".to_owned()));
    }
    if let Some(planned) = &question.plan {
        let depth = planned.depth;
        let many = if depth == 1 { "aggregation" } else { "aggregations" };
        let queries = match planned.training {
            None => format!("{depth} noisy {many} of sensitivity {}", short(planned.sensitivity)),
            Some(training) => format!(
                "{depth} noisy {many} of sensitivity {}, {} training runs of {} steps at sampling rate {}",
                short(planned.sensitivity),
                if planned.settings.method == Method::Gap { 2 } else { depth + 1 },
                training.steps(),
                short(training.rate()),
            ),
        };
        facts.push(("queries", queries));
    }
    if let (Some(sigma), Some(planned)) = (report.sigma, &question.plan) {
        match planned.level {
            Level::Edge => facts.push(("sigma", format!("{} ({})", up(sigma), report.sigma_means))),
            Level::Node => {
                facts.push(("sigma", format!("{} ({})", up(sigma), report.sigma_means)));
                let gradient = planned.training.map_or(1.0, |training| training.clip) * sigma * planned.ratio;
                let text = format!(
                    "{} on aggregations, {} on gradient sums",
                    up(sigma * planned.sensitivity),
                    up(gradient)
                );
                facts.push(("noise", text));
            }
        }
    }
    let best = format!("{} at delta {:e}, by {}", up(report.epsilon), report.delta, report.accountant);
    facts.push(("epsilon", best));
    if let Some(epsilon) = report.epsilon_friendship.filter(|_| question.unit == Some(Unit::Edge)) {
        let how = if question.plan.is_some() {
            "both directions of an edge together: sensitivity times sqrt 2"
        } else {
            "two edges together: sensitivities doubled, as the tree does not say which rows they reach"
        };
        facts.push(("friendship", format!("epsilon {} ({how})", up(epsilon))));
    }

    if let Some(epsilon) = report.epsilon_directed.filter(|_| question.unit == Some(Unit::EdgeUndirected)) {
        facts.push(("one direction", format!("epsilon {} (sensitivity 1)", up(epsilon))));
    }

    let friendship = question.unit == Some(Unit::Edge) && report.epsilon_friendship.is_some();
    let rows = opinions.iter().map(|Opinion { name, answer }| {
        let mark = if *name == report.accountant { " *" } else { "" };
        let cell = |value: Option<f64>| value.map_or("-".to_owned(), up);
        let answer = answer.as_ref().ok();
        [
            format!("{name}{mark}"),
            cell(answer.and_then(|answer| answer.sigma)),
            cell(answer.map(|answer| answer.epsilon)),
            if friendship { cell(answer.and_then(|answer| answer.friendship)) } else { String::new() },
        ]
    });
    let header = ["accountant", "sigma", "epsilon", if friendship { "friendship" } else { "" }];
    let title = match question.target {
        Some(epsilon) => format!("Noise for epsilon {epsilon} at delta {:e}", question.delta),
        None => format!("Epsilon at delta {:e}", question.delta),
    };
    let mut text =
        format!("{}\n\n{}\n\n* the answer above", ui::facts(&title, &facts), ui::table(header, rows));
    for (name, note) in &report.notes {
        text += &format!("\n{name}: {note}");
    }
    text
}

/// Epsilon against delta, for the noise that was found or given.
fn draw(question: &Question, name: &str, answer: &Answer) -> Result<Picture, Error> {
    let first = (question.delta.log10().floor() as i32 - 2).clamp(-300, -12);
    let last = (question.delta.log10().ceil() as i32).clamp(-2, -1);
    let points = 40;
    let deltas: Vec<f64> = (0..=points)
        .map(|k| 10f64.powf(f64::from(first) + f64::from(last - first) * f64::from(k) / f64::from(points)))
        .collect();
    let mut series = Vec::new();
    for accountant in all().into_iter().filter(|accountant| accountant.supports(&answer.event).is_ok()) {
        let curve = accountant.curve(&answer.event, &deltas)?;
        let points = curve.into_iter().map(|point| Point::new(point.delta, point.epsilon)).collect();
        series.push(Series { name: accountant.name().to_owned(), points });
    }
    let name = format!("epsilon {} by {name}", up(answer.epsilon));
    series.push(Series { name, points: vec![Point::new(question.delta, answer.epsilon)] });
    let highest = series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let highest = highest.filter(|epsilon| epsilon.is_finite()).fold(0.0, f64::max);
    let unit = question.unit.map_or(String::new(), |unit| format!(", unit {unit}"));
    let noise = answer.sigma.map_or(String::new(), |sigma| format!(", sigma {}", up(sigma)));
    let lines = Lines {
        x: Axis::log("delta", vec![]),
        y: Axis::linear("epsilon").within(0.0, if highest > 0.0 { 1.05 * highest } else { 1.0 }),
        series,
        references: vec![],
        borders: vec![],
    };
    Ok(plot::draw(&Plot::Lines(lines), &format!("Privacy cost{unit}{noise}"), plot::WIDE))
}

/// A bound to four decimals (four digits where it is small), never rounded down.
fn up(value: f64) -> String {
    if !value.is_finite() {
        return "infinite".into();
    }
    let (text, last_digit) = if value != 0.0 && value < 1e-2 {
        (format!("{value:.3e}"), 10f64.powf(value.log10().floor() - 3.0))
    } else {
        (format!("{value:.4}"), 1e-4)
    };
    if text.parse::<f64>().is_ok_and(|shown| shown < value) { up_from(value + last_digit) } else { text }
}

/// A bound that has been raised by a unit of its last digit, cut there.
fn up_from(raised: f64) -> String {
    if raised < 1e-2 { format!("{raised:.3e}") } else { format!("{raised:.4}") }
}

/// A public constant to a few digits.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
