//! Which methods there are, what each protects, and where it comes from.

use serde::Serialize;

use super::Method;
use crate::model::Shape;
use crate::settings::{Level, Settings};

/// A method as a reader wants to know it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Entry {
    /// The method.
    pub method: Method,
    /// The levels it has.
    pub levels: &'static [Level],
    /// The method in one line.
    pub what: &'static str,
    /// The extent of its guarantee.
    pub protects: &'static str,
    /// The paper it is from.
    pub paper: &'static str,
}

/// Every method.
pub fn methods() -> impl Iterator<Item = &'static Entry> {
    Method::ALL.iter().map(|&method| entry(method))
}

/// The entry of a method.
pub fn entry(method: Method) -> &'static Entry {
    method.entry()
}

/// The level that a method has where none is asked for: edges, if it can protect them.
pub fn default_level(method: Method) -> Level {
    let levels = entry(method).levels;
    if levels.contains(&Level::Edge) { Level::Edge } else { levels[0] }
}

/// The published method, whose networks have the most settings.
pub(crate) const PUBLISHED: Method = Method::Progap;

/// The recommended method at a level: two views where rows are public, ProGAP's stages where they are private.
pub fn default_method(level: Level) -> Method {
    match level {
        Level::None | Level::Edge => Method::Views,
        Level::Node => PUBLISHED,
    }
}

/// The method where none is asked for: the recommended one, or the published one where a setting is asked for, by name, that only its
/// networks have.
pub(crate) fn method_for(level: Level, asked: &[&str]) -> Method {
    let usual = default_method(level);
    let foreign = |name: &&str| {
        usual.recipe().ignored_settings().contains(name)
            || (PUBLISHED.recipe().own_settings().contains(name)
                && !usual.recipe().own_settings().contains(name))
    };
    if asked.iter().any(foreign) { PUBLISHED } else { usual }
}

/// What nodes learn of their neighbours in a run with these settings, in words.
pub fn summed(settings: &Settings) -> &'static str {
    settings.method.recipe().summed(settings)
}

/// The other methods of this level that use the graph.
pub fn alternatives(settings: &Settings) -> impl Iterator<Item = Method> {
    let (method, level) = (settings.method, settings.level);
    methods()
        .filter(move |entry| entry.method != method && entry.levels.contains(&level))
        .map(|entry| entry.method)
        .filter(move |&method| Settings::of(method, level).edges_without_effect().is_none())
}

/// Whether the guarantee of a method covers predictions as well as training.
pub fn covers_predictions(method: Method) -> bool {
    method.recipe().aggregates_are_protected()
}

/// The methods that have a level, by name.
pub(crate) fn with_level(level: Level) -> String {
    names(|method| entry(method).levels.contains(&level))
}

/// Whether the models of a method mix rows with those of neighbours.
pub(crate) fn mixes_rows(method: Method) -> bool {
    let settings = Settings::of(method, default_level(method));
    matches!(super::shape(&settings, (1, 2), 0, None), Shape::Sage(_))
}

/// The methods of which something is true, by name.
pub(crate) fn names(of: impl Fn(Method) -> bool) -> String {
    let names: Vec<&str> =
        Method::ALL.iter().filter(|&&method| of(method)).map(|method| method.name()).collect();
    names.join(", ")
}
