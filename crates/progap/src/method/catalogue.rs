//! Which methods there are, what each protects, and where it comes from.

use super::{MethodKind, MethodSpec, QueryKind};
use crate::settings::{Level, Settings};

/// Every method.
pub fn methods() -> impl Iterator<Item = &'static MethodSpec> {
    MethodKind::ALL.iter().map(|&method| entry(method))
}

/// What a method is.
pub fn entry(method: MethodKind) -> &'static MethodSpec {
    method.spec()
}

/// The level that a method has where none is asked for: edges, if it can protect them.
pub fn default_level(method: MethodKind) -> Level {
    let levels = entry(method).levels;
    if levels.contains(&Level::Edge) { Level::Edge } else { levels[0] }
}

/// The published method.
pub const PUBLISHED: MethodKind = MethodKind::Progap;
/// The method whose networks have the most settings.
const STAGES: MethodKind = MethodKind::ProgapLabels;

/// The recommended method, at every level: two views.
pub const RECOMMENDED: MethodKind = MethodKind::ProgapViews;

/// Settings at node level of networks that are trained in batches.
pub const OF_BATCHES: [&str; 4] = ["hidden", "batch_size", "clip", "gradient_noise_ratio"];

/// The method where none is asked for: the recommended one, or that with label messages where a setting is asked for,
/// by name, that only its networks have.
pub fn method_for(asked: &[&str]) -> MethodKind {
    let foreign = |name: &&str| {
        RECOMMENDED.spec().ignored.contains(name)
            || (STAGES.spec().own.contains(name) && !RECOMMENDED.spec().own.contains(name))
    };
    if asked.iter().any(foreign) { STAGES } else { RECOMMENDED }
}

/// What nodes learn of their neighbours in a run with these settings, in words.
pub fn summed(settings: &Settings) -> String {
    let outline = super::outline(settings);
    match outline.sums().next() {
        None => "sums over neighbours".into(),
        Some(query) if query.kind == QueryKind::Votes => format!("counts of neighbours' {}", query.of),
        Some(query) => format!("sums of neighbours' {}", query.of),
    }
}

/// The other methods of this level that use the graph.
pub fn alternatives(settings: &Settings) -> impl Iterator<Item = MethodKind> {
    let (method, level) = (settings.method, settings.level);
    methods()
        .filter(move |entry| entry.method != method && entry.levels.contains(&level))
        .map(|entry| entry.method)
        .filter(move |&method| Settings::of(method, level).edges_without_effect().is_none())
}

/// Whether the guarantee of a method covers predictions as well as training.
pub fn covers_predictions(method: MethodKind) -> bool {
    method.can().protects_predictions
}

/// Whether there are settings of a paper beside the recommended ones.
pub fn is_published(method: MethodKind) -> bool {
    method.method().defaults(default_level(method)).published.is_some()
}

/// Whether its settings can be chosen under a guarantee.
pub fn tunes_privately(method: MethodKind) -> bool {
    !method.can().is_pure && method.can().protects_predictions
}

/// The methods that have a level, by name.
pub fn with_level(level: Level) -> String {
    names(|method| entry(method).levels.contains(&level))
}

/// Whether the models of a method mix rows with those of neighbours.
pub fn mixes_rows(method: MethodKind) -> bool {
    method.can().mixes_rows
}

/// The methods of which something is true, by name.
pub fn names(of: impl Fn(MethodKind) -> bool) -> String {
    let names: Vec<&str> =
        MethodKind::ALL.iter().filter(|&&method| of(method)).map(|method| method.name()).collect();
    names.join(", ")
}
