//! A flag for every setting, made of its declaration; and flags and commands in the sentences of the libraries.

use std::io::Write;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::sync::OnceLock;

use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use progap::error::advice;
use progap::settings::{Declaration, Kind, Request, Scope, Settings};
use progap::{Remedy, Vocabulary};
use serde_json::Value;

/// The settings that were given by flags.
#[derive(Clone)]
pub struct Given(Vec<(&'static Declaration, Value)>);

impl Given {
    /// Their names in config.toml; not of what was left to the program all the same.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().filter(|(_, value)| !value.is_null()).map(|(setting, _)| setting.name).collect()
    }
}

/// The settings to start from.
#[derive(Clone, Copy, ValueEnum)]
pub enum Preset {
    /// Tight and provable.
    Default,
    /// The published accounting, sampling and settings; the directed edge as unit, and the published rule for delta.
    Paper,
}

impl Given {
    /// A number that was given; what is given and no finite number is not a number here either.
    pub fn number(&self, name: &str) -> Option<f64> {
        let value = &self.0.iter().find(|(setting, _)| setting.name == name)?.1;
        (!value.is_null()).then(|| value.as_f64().unwrap_or(f64::NAN))
    }

    /// The request of these flags, over a preset.
    pub fn request(&self, preset: Option<Preset>) -> Request {
        let start = match preset {
            Some(Preset::Paper) => Request::published(),
            Some(Preset::Default) | None => Request::default(),
        };
        self.over(start)
    }

    /// Other settings, changed by these.
    pub fn over(&self, request: Request) -> Request {
        self.0.iter().fold(request, |request, (setting, value)| request.with(setting.name, value.clone()))
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        offered().fold(command, |command, setting| command.arg(flag(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let value = |setting: &'static Declaration| match setting.kind {
            Kind::Switch => matches.get_flag(setting.name).then_some(Value::Bool(true)),
            _ => matches.get_one::<Value>(setting.name).cloned(),
        };
        Ok(Given(offered().filter_map(|setting| Some((setting, value(setting)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn offered() -> impl Iterator<Item = &'static Declaration> {
    Settings::declarations().iter().filter(|setting| setting.about.offered)
}

fn flag(setting: &'static Declaration) -> Arg {
    let about = setting.about;
    let mut arg = Arg::new(setting.name)
        .long(setting.name.replace('_', "-"))
        .value_name(match setting.kind {
            Kind::Whole => "N",
            Kind::Number => "X",
            Kind::Switch | Kind::Choice(_) => "NAME",
        })
        .help(match setting.kind {
            Kind::Switch => setting.help.to_string(),
            _ => format!("{} [default: {}]", setting.help, setting.defaults()),
        })
        .long_help(help(setting))
        .help_heading(heading(setting));
    if let Some(short) = about.short {
        arg = arg.short(short);
    }
    if let Some(alias) = about.alias {
        arg = arg.visible_alias(alias);
    }
    match setting.kind {
        Kind::Switch => arg.action(ArgAction::SetTrue),
        Kind::Choice(all) => {
            let names = PossibleValuesParser::new(all().into_iter().map(|(name, _)| name));
            arg.value_parser(ValueParser::new(names.map(Value::from)))
        }
        Kind::Whole | Kind::Number => arg.allow_negative_numbers(true).value_parser(move |text: &str| {
            setting.parse(text).map_err(|_| format!("give {}", setting.expected()))
        }),
    }
}

/// The meaning of a setting, where it counts, and its default.
fn help(setting: &Declaration) -> String {
    let what = match setting.name {
        "method" => format!("{}; `progap methods` describes each", setting.help),
        _ => setting.help.to_string(),
    };
    let what = match setting.scope {
        Scope::Everywhere | Scope::Private => what,
        Scope::Edge => format!("At level edge: {}", uncapitalised(&what)),
        Scope::Node => format!("At level node: {}", uncapitalised(&what)),
    };
    match setting.kind {
        Kind::Switch => what,
        _ if setting.follows_from_facts() => {
            format!("{what} [default: {}; may follow from public sizes]", setting.defaults())
        }
        _ => format!("{what} [default: {}]", setting.defaults()),
    }
}

/// The group under which a setting is listed.
fn heading(setting: &Declaration) -> &'static str {
    match (setting.about.heading, setting.name) {
        (None, "method") | (Some("Training"), _) => "Model",
        (None, _) => "Privacy",
        (Some(heading), _) => heading,
    }
}

fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The same command, where all that print JSON take `--quiet`.
pub fn with_quiet(command: Command) -> Command {
    let has = |name: &str| command.get_arguments().any(|arg| arg.get_id() == name);
    let lacks = has("json") && !has("quiet");
    let command = command.mut_subcommands(with_quiet);
    let quiet = || Arg::new("quiet").long("quiet").short('q').action(ArgAction::SetTrue);
    match lacks {
        true => command.arg(quiet().help("Print nothing but errors, and JSON where it is asked for")),
        false => command,
    }
}

/// Whether the command that runs is to print nothing but errors. JSON that is asked for is printed all the same.
pub fn is_quiet(matches: &ArgMatches) -> bool {
    let leaf =
        std::iter::successors(Some(matches), |matches| matches.subcommand().map(|(_, below)| below)).last();
    let is_set =
        |name: &str| leaf.and_then(|leaf| leaf.try_get_one::<bool>(name).ok().flatten()) == Some(&true);
    is_set("quiet") && !is_set("json")
}

/// Prints what is wrong with arguments. What the standard library says of a text that is no number does not name what
/// is accepted.
pub fn say(error: &clap::Error) -> std::io::Result<()> {
    let accepted = std::error::Error::source(error).and_then(|source| {
        let whole = source.downcast_ref::<ParseIntError>().map(ParseIntError::kind);
        match whole {
            Some(IntErrorKind::Empty | IntErrorKind::InvalidDigit) => Some("give a whole number from 0"),
            _ => source.is::<ParseFloatError>().then_some("give a number, such as 0.5"),
        }
    });
    let Some(accepted) = accepted.filter(|_| error.kind() == clap::error::ErrorKind::ValueValidation) else {
        return error.print();
    };
    let shown = |kind| match error.get(kind) {
        Some(clap::error::ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let (flag, value) =
        (shown(clap::error::ContextKind::InvalidArg), shown(clap::error::ContextKind::InvalidValue));
    writeln!(
        std::io::stderr(),
        "error: invalid value '{}' for '{flag}': {accepted}\n\nFor more information, try '--help'.",
        crate::ui::harmless(value)
    )
}

/// The long flags of the command that runs.
static FLAGS: OnceLock<Vec<String>> = OnceLock::new();

/// Remembers the flags of the command that runs, for [`Flags`].
pub fn remember(command: &Command, matches: &ArgMatches) {
    let (mut command, mut matches) = (command, matches);
    while let Some((name, below)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches) = (found, below);
    }
    let flags = command.get_arguments().filter_map(|arg| arg.get_long().map(String::from)).collect();
    let _ = FLAGS.set(flags);
}

/// An error in the words of the command that runs.
pub fn said(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<progap::Error>() {
        return error.said(&Flags);
    }
    match error.downcast_ref::<progap::ledger::Error>().map(progap::ledger::remedies) {
        Some(remedies) if !remedies.is_empty() => format!("{error}; {}", advice(&remedies, &Flags)),
        _ => error.to_string(),
    }
}

/// Settings and options as flags of the command that runs, and what is to be done as commands.
pub struct Flags;

impl Vocabulary for Flags {
    fn name(&self, name: &str, value: Option<&str>) -> String {
        let flag = name.replace('_', "-");
        let value = value.map(|value| format!(" {value}")).unwrap_or_default();
        match is_offered(&flag) {
            true => format!("--{flag}{value}"),
            false => format!("`{name}{value}`"),
        }
    }

    fn action(&self, remedy: &Remedy) -> Option<String> {
        let said = match remedy {
            Remedy::NewFolder if is_offered("out") => "name another folder with --out",
            Remedy::Replace => "replace it with --force",
            Remedy::Resume if is_offered("resume") => "resume with --resume",
            Remedy::Resume => "resume with `progap train --resume`",
            Remedy::NewKey => "make a new one with `progap key new`",
            Remedy::SecretKey => "give the secret one, of `progap key new`",
            Remedy::CreateLedger => "create one with `progap ledger init`",
            Remedy::CreateBudget { ledger, dataset, unit } => {
                let ledger = ledger.display();
                return Some(format!(
                    "give it one with `progap ledger init {ledger} --data DATASET --name {dataset} --unit {unit} \
                     --epsilon E --delta D`"
                ));
            }
            Remedy::ChangeBudget => "change that budget with `progap ledger set-budget`",
            Remedy::OtherPeople => {
                "state that they are other people in `progap ledger init` with --same-people no --reason WHY"
            }
            Remedy::PublicRows => "state that rows are public, with `progap ledger set-budget --rows public`",
            _ => return None,
        };
        Some(said.into())
    }
}

/// Whether the command that runs has a flag. Exports are made by another command than most of those that miss something
/// in them.
pub fn is_offered(flag: &str) -> bool {
    flag == "with-rows" || FLAGS.get().is_some_and(|flags| flags.iter().any(|known| known == flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line of code of the libraries, with its file.
    fn lines_of_libraries(look: &mut dyn FnMut(&std::path::Path, &str)) {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut folders =
            ["graph", "privacy", "nn", "progap"].map(|name| crates.join(name).join("src")).to_vec();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("sources") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("text");
                // Their tests may say what a command would.
                let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
                let code = code.filter(|line| !line.trim_start().starts_with("//"));
                code.for_each(|line| look(&path, line));
            }
        }
    }

    /// Libraries know neither flags nor commands.
    #[test]
    fn no_library_names_a_flag_or_a_command() {
        let is_word = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase());
        lines_of_libraries(&mut |path, line| {
            let names = ["--", "`progap "].iter().any(|mark| line.split(mark).skip(1).any(is_word));
            assert!(!names, "{}: {line}", path.display());
        });
    }

    /// Nor do their messages name settings: those stand in remedies, which this file turns into flags.
    #[test]
    fn no_message_of_a_library_names_a_setting() {
        let quoted = |name: &str| [format!("`{name}`"), format!("`{name} ")];
        let names: Vec<String> =
            Settings::declarations().iter().flat_map(|setting| quoted(setting.name)).collect();
        lines_of_libraries(&mut |path, line| {
            let named = names.iter().find(|name| line.contains(name.as_str()));
            assert!(named.is_none(), "{}: {line}", path.display());
        });
    }

    /// Every setting that is offered has a flag, and every flag the help and the default of its setting.
    #[test]
    fn every_setting_is_a_flag() {
        let command = Given::augment_args(Command::new("train"));
        for setting in offered() {
            let arg = command.get_arguments().find(|arg| arg.get_id() == setting.name).expect(setting.name);
            let help = arg.get_long_help().expect("help").to_string();
            assert!(help.to_lowercase().contains(&setting.help.to_lowercase()), "{help}");
            let follows = [
                "depth",
                "hidden",
                "learning_rate",
                "batch_size",
                "epochs",
                "scaling",
                "feature_learning",
                "known_weight",
            ];
            assert_eq!(help.contains("public sizes"), follows.contains(&setting.name), "{help}");
        }
        let matches =
            command.get_matches_from(["train", "--learning-rate", "0.5", "--layerwise", "--delta", "auto"]);
        let given = Given::from_arg_matches(&matches).expect("settings");
        let values: Vec<(&str, Value)> =
            given.0.iter().map(|(setting, value)| (setting.name, value.clone())).collect();
        assert_eq!(
            values,
            [("delta", Value::Null), ("layerwise", true.into()), ("learning_rate", 0.5.into())]
        );
        assert_eq!(given.names(), ["layerwise", "learning_rate"]);
    }
}
