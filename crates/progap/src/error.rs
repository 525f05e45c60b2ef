//! Errors: a kind, a place and remedies, all of them values.
//!
//! Displayed, an error is one sentence in neutral words: what, where, what to do. Whoever offers settings and actions
//! under other names, such as a command with flags, says the same sentence in its own [`Vocabulary`].

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error: its kind, its place and its remedies.
#[derive(Debug)]
pub struct Error(Box<Details>);

#[derive(Debug)]
struct Details {
    kind: ErrorKind,
    place: Option<PathBuf>,
    remedies: Vec<Remedy>,
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting out of its range.
    #[error("the {} {value} is out of range; give {expected}", words(.name))]
    OutOfRange {
        /// The setting, by its name in config.toml.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are possible.
        expected: String,
    },
    /// A setting that was asked for and decides nothing.
    #[error("`{name}` has no effect: {why}")]
    NoEffect {
        /// The setting, by its name in config.toml.
        name: &'static str,
        /// Why.
        why: String,
    },
    /// Settings that contradict each other.
    #[error("{0}")]
    Contradiction(Cow<'static, str>),
    /// A mistake in this crate: something that its own code rules out.
    #[error("internal error: {0}; please report it")]
    Internal(&'static str),
    /// The data cannot be trained on.
    #[error("{0}")]
    Unsuitable(Cow<'static, str>),
    /// The data could not be read or written.
    #[error(transparent)]
    Data(progap_graph::Error),
    /// Accounting or noise.
    #[error(transparent)]
    Privacy(progap_privacy::Error),
    /// Networks.
    #[error(transparent)]
    Network(progap_nn::Error),
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(crate::ledger::Error),
    /// Another rank is gone or does not fit, or something runs on one machine only.
    #[error("{0}")]
    Rank(Cow<'static, str>),
    /// Something is wrong with the file or folder of the place.
    #[error("{0}")]
    File(String),
    /// A public format of another version than this program reads.
    #[error("{what} has version {found}, and this program reads version {}", crate::files::FORMAT)]
    Newer {
        /// What has the version.
        what: &'static str,
        /// The version.
        found: u64,
    },
    /// The user asked to stop; the run in the folder can be resumed.
    #[error("stopped; the run in {} can be resumed", .0.display())]
    Interrupted(PathBuf),
}

/// What to do about an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Give a setting or option this value.
    Set(&'static str, Cow<'static, str>),
    /// Give a setting or option.
    Give(&'static str),
    /// Give all of these.
    GiveAll(Vec<&'static str>),
    /// Leave a setting or option out.
    Drop(&'static str),
    /// Raise a setting or option to at least this value.
    Raise(&'static str, String),
    /// Write into another folder.
    NewFolder,
    /// Replace what is there.
    Replace,
    /// Resume the run.
    Resume,
    /// Make a key.
    NewKey,
    /// Use the secret key, not the public one.
    SecretKey,
    /// Create a ledger.
    CreateLedger,
    /// Give data a budget in a ledger.
    CreateBudget {
        /// The ledger's file.
        ledger: PathBuf,
        /// The name of the data set there.
        dataset: String,
        /// The unit that is to be protected.
        unit: progap_privacy::Unit,
    },
    /// Change the budget that is there.
    ChangeBudget,
    /// State in the ledger that these are other people.
    OtherPeople,
    /// State in the ledger that rows are public.
    PublicRows,
    /// Anything that has no name of its own.
    Words(Cow<'static, str>),
}

impl Remedy {
    /// Gives a setting or option this value.
    pub fn set(name: &'static str, value: impl Into<Cow<'static, str>>) -> Remedy {
        Remedy::Set(name, value.into())
    }

    /// In words alone.
    pub fn words(words: impl Into<Cow<'static, str>>) -> Remedy {
        Remedy::Words(words.into())
    }

    /// The verb that remedies of a kind share, and what stands behind it.
    fn phrase(&self, vocabulary: &dyn Vocabulary) -> (&'static str, Cow<'static, str>) {
        if let Some(own) = vocabulary.action(self) {
            return ("", own.into());
        }
        let neutral = match self {
            Remedy::Set(name, value) => return ("use ", vocabulary.name(name, Some(value)).into()),
            Remedy::Give(name) => return ("give ", vocabulary.name(name, None).into()),
            Remedy::GiveAll(names) => {
                let names: Vec<String> = names.iter().map(|name| vocabulary.name(name, None)).collect();
                return ("give ", names.join(" and ").into());
            }
            Remedy::Drop(name) => return ("leave out ", vocabulary.name(name, None).into()),
            Remedy::Raise(name, value) => {
                return ("", format!("raise {} to at least {value}", vocabulary.name(name, None)).into());
            }
            Remedy::NewFolder => "name another folder",
            Remedy::Replace => "replace what is there",
            Remedy::Resume => "resume the run",
            Remedy::NewKey => "make a new key",
            Remedy::SecretKey => "give the secret key",
            Remedy::CreateLedger => "create a ledger first",
            Remedy::CreateBudget { unit, .. } => {
                return ("", format!("give it a budget for the unit {unit}").into());
            }
            Remedy::ChangeBudget => "change that budget",
            Remedy::OtherPeople => "state that they are other people, with a reason",
            Remedy::PublicRows => "state that rows are public",
            Remedy::Words(words) => return ("", words.clone()),
        };
        ("", neutral.into())
    }
}

/// What settings, options and actions are called where an error is shown.
pub trait Vocabulary {
    /// A setting or option, with a value where one is proposed.
    fn name(&self, name: &str, value: Option<&str>) -> String;

    /// What to do, where neutral words do not say how.
    fn action(&self, remedy: &Remedy) -> Option<String>;
}

/// The names of config.toml, in backticks.
struct Neutral;

impl Vocabulary for Neutral {
    fn name(&self, name: &str, value: Option<&str>) -> String {
        value.map_or_else(|| format!("`{name}`"), |value| format!("`{name} {value}`"))
    }

    fn action(&self, _: &Remedy) -> Option<String> {
        None
    }
}

/// Remedies as one clause: those with the same verb share it.
pub fn advice(remedies: &[Remedy], vocabulary: &dyn Vocabulary) -> String {
    let mut groups: Vec<(&str, Vec<Cow<str>>)> = Vec::new();
    for remedy in remedies {
        let (verb, object) = remedy.phrase(vocabulary);
        match groups.last_mut() {
            Some((last, objects)) if !verb.is_empty() && *last == verb => objects.push(object),
            _ => groups.push((verb, vec![object])),
        }
    }
    let clause = |(verb, objects): &(&str, Vec<Cow<str>>)| match objects.split_last() {
        Some((last, [])) => format!("{verb}{last}"),
        Some((last, others)) => {
            let or = if last.contains(" and ") { ", or" } else { " or" };
            format!("{verb}{}{or} {last}", others.join(", "))
        }
        None => String::new(),
    };
    groups.iter().map(clause).collect::<Vec<_>>().join(", or ")
}

/// The name of a setting in a sentence.
fn words(name: &str) -> String {
    crate::settings::Declaration::find(name)
        .map_or_else(|_| name.replace('_', " "), crate::settings::Declaration::words)
}

impl Error {
    /// A setting out of its range.
    pub fn out_of_range(name: &'static str, value: impl ToString, expected: impl Into<String>) -> Error {
        ErrorKind::OutOfRange { name, value: value.to_string(), expected: expected.into() }.into()
    }

    /// A setting that was asked for and decides nothing.
    pub fn no_effect(name: &'static str, why: impl Into<String>) -> Error {
        Error::from(ErrorKind::NoEffect { name, why: why.into() }).remedy(Remedy::Drop(name))
    }

    /// Settings that contradict each other.
    pub fn contradiction(what: impl Into<Cow<'static, str>>) -> Error {
        ErrorKind::Contradiction(what.into()).into()
    }

    /// Data that cannot be trained on.
    pub fn unsuitable(what: impl Into<Cow<'static, str>>) -> Error {
        ErrorKind::Unsuitable(what.into()).into()
    }

    /// A mistake in this crate.
    pub fn internal(what: &'static str) -> Error {
        ErrorKind::Internal(what).into()
    }

    /// Another rank is gone or does not fit, or something runs on one machine only.
    pub fn rank(what: impl Into<Cow<'static, str>>) -> Error {
        ErrorKind::Rank(what.into()).into()
    }

    /// A public format of a newer version.
    pub fn newer(what: &'static str, found: u64) -> Error {
        Error::from(ErrorKind::Newer { what, found }).remedy(Remedy::words("update this program"))
    }

    /// The user asked to stop a run that can be resumed.
    pub fn interrupted(folder: PathBuf) -> Error {
        ErrorKind::Interrupted(folder).into()
    }

    /// A problem with a file.
    pub fn file(file: &Path, problem: impl fmt::Display) -> Error {
        Error::from(ErrorKind::File(problem.to_string())).at(file)
    }

    /// This error, in this file or folder.
    #[must_use]
    pub fn at(mut self, place: &Path) -> Error {
        self.0.place.get_or_insert_with(|| place.to_path_buf());
        self
    }

    /// This error, with another remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Error {
        self.0.remedies.push(remedy);
        self
    }

    /// This error, with this remedy in place of all others.
    #[must_use]
    pub fn instead(mut self, remedy: Remedy) -> Error {
        self.0.remedies = vec![remedy];
        self
    }

    /// What is wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The file or folder, where it is not part of the kind.
    pub fn place(&self) -> Option<&Path> {
        self.0.place.as_deref()
    }

    /// What to do about it, the likeliest first.
    pub fn remedies(&self) -> &[Remedy] {
        &self.0.remedies
    }

    /// Whether a run was stopped that can be resumed.
    pub fn is_interrupted(&self) -> bool {
        matches!(self.kind(), ErrorKind::Interrupted(_))
    }

    /// The sentence in somebody's own vocabulary.
    pub fn said(&self, vocabulary: &dyn Vocabulary) -> String {
        let place = self.place().map(|place| format!("{}: ", place.display())).unwrap_or_default();
        let (what, subject) = match self.kind() {
            ErrorKind::NoEffect { name, why } => {
                (format!("{} has no effect: {why}", vocabulary.name(name, None)), Some(Remedy::Drop(name)))
            }
            kind => (kind.to_string(), None),
        };
        let advice = match self.remedies() {
            [] => return format!("{place}{what}"),
            [only] if Some(only) == subject.as_ref() => "leave it out".into(),
            remedies => advice(remedies, vocabulary),
        };
        format!("{place}{what}; {advice}")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said(&Neutral))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self.kind())
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error(Box::new(Details { kind, place: None, remedies: Vec::new() }))
    }
}

impl From<progap_graph::Error> for Error {
    fn from(error: progap_graph::Error) -> Self {
        ErrorKind::Data(error).into()
    }
}

impl From<progap_privacy::Error> for Error {
    fn from(error: progap_privacy::Error) -> Self {
        ErrorKind::Privacy(error).into()
    }
}

impl From<progap_nn::Error> for Error {
    fn from(error: progap_nn::Error) -> Self {
        ErrorKind::Network(error).into()
    }
}

impl From<crate::ledger::Error> for Error {
    fn from(error: crate::ledger::Error) -> Self {
        let remedies = crate::ledger::remedies(&error);
        Error(Box::new(Details { kind: ErrorKind::Ledger(error), place: None, remedies }))
    }
}

/// Names the file in an error.
pub trait InFile<T> {
    /// The error with this file before it.
    fn in_file(self, file: &Path) -> Result<T>;
}

impl<T, E: fmt::Display> InFile<T> for std::result::Result<T, E> {
    fn in_file(self, file: &Path) -> Result<T> {
        self.map_err(|e| Error::file(file, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Flags;

    impl Vocabulary for Flags {
        fn name(&self, name: &str, value: Option<&str>) -> String {
            format!("--{name}{}", value.map(|value| format!(" {value}")).unwrap_or_default())
        }

        fn action(&self, remedy: &Remedy) -> Option<String> {
            (*remedy == Remedy::Resume).then(|| "go on with the interrupted run".into())
        }
    }

    #[test]
    fn a_sentence_has_place_kind_and_remedies_in_every_vocabulary() {
        let error = Error::contradiction("there is no edge")
            .at(Path::new("runs/a"))
            .remedy(Remedy::Drop("height"))
            .remedy(Remedy::set("shape", "round"))
            .remedy(Remedy::set("shape", "square"))
            .remedy(Remedy::Resume);
        assert_eq!(
            error.to_string(),
            "runs/a: there is no edge; leave out `height`, or use `shape round` or `shape square`, or resume the run"
        );
        assert_eq!(
            error.said(&Flags),
            "runs/a: there is no edge; leave out --height, or use --shape round or --shape square, or go on with \
             the interrupted run"
        );
    }

    #[test]
    fn what_has_no_effect_is_to_be_left_out() {
        let error = Error::no_effect("clip", "it belongs to level node");
        assert_eq!(error.remedies(), [Remedy::Drop("clip")]);
        assert_eq!(error.said(&Flags), "--clip has no effect: it belongs to level node; leave it out");
    }
}
