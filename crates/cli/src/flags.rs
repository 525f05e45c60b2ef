//! A flag for every setting, made of its declaration; and the way back, from the names in a library's messages to flags.

use std::io::Write;
use std::sync::OnceLock;

use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use progap::settings::{Declaration, Kind, Request, Scope, Settings};
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
        .value_name(setting.name.to_uppercase())
        .help(help(setting));
    if let Some(short) = about.short {
        arg = arg.short(short);
    }
    if let Some(alias) = about.alias {
        arg = arg.visible_alias(alias);
    }
    if let Some(heading) = about.heading {
        arg = arg.help_heading(heading);
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
        _ if setting.follows_from_sizes() => {
            format!("{what} [default: {}; may follow from public sizes]", setting.defaults())
        }
        _ => format!("{what} [default: {}]", setting.defaults()),
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
    let accepted = std::error::Error::source(error).and_then(|source| match source.to_string().as_str() {
        "invalid float literal" | "cannot parse float from empty string" => {
            Some("give a number, such as 0.5")
        }
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            Some("give a whole number from 0")
        }
        _ => None,
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

/// Remembers the flags of the command that runs, for [`in_flags`].
pub fn remember(command: &Command, matches: &ArgMatches) {
    let (mut command, mut matches) = (command, matches);
    while let Some((name, below)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches) = (found, below);
    }
    let flags = command.get_arguments().filter_map(|arg| arg.get_long().map(String::from)).collect();
    let _ = FLAGS.set(flags);
}

/// Whether the command that runs has every flag that a text names.
pub fn are_offered(text: &str) -> bool {
    named(text).all(|flag| FLAGS.get().is_some_and(|flags| flags.iter().any(|known| known == flag)))
}

/// The flags that a text names.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let end = |flag: &str| flag.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(flag.len());
    text.split("--").skip(1).map(move |rest| &rest[..end(rest)])
}

/// Proposals of a library that does not know of flags: words, the flag that does it, and the words with that flag.
const PROPOSALS: [(&str, &str, &str); 4] = [
    ("name another folder", "out", "name another folder with --out"),
    ("resume the run in it", "resume", "go on with --resume"),
    ("draw another split", "resplit", "draw another one (--resplit --ratios 0.10,0.15)"),
    ("the published settings", "preset", "--preset paper"),
];

/// Proposals of a library that does not know of commands: words, and the words with the command that does it.
const COMMANDS: [(&str, &str); 8] = [
    ("the name of a known data set", "a name from `progap data list`"),
    ("create one first", "create one with `progap ledger init`"),
    ("change that budget", "change that budget with `progap ledger set-budget`"),
    (
        "if they are other people, state that, with a reason",
        "if they are other people, state that in `progap ledger init` with --same-people no --reason WHY",
    ),
    (
        "state that rows are public",
        "state that rows are public, with `progap ledger set-budget --rows public`",
    ),
    ("a signature needs the secret one", "a signature needs the secret one, of `progap key new`"),
    ("or it is damaged: make a new one", "or it is damaged: make a new one with `progap key new`"),
    ("this is no release yet; resume it", "this is no release yet; go on with `progap train --resume`"),
];

/// A message of a library as this command says it: settings and options that stand in backticks become flags, and what is proposed
/// comes with the command that does it.
///
/// Names of fields that a parser found, or did not find, in a file are not meant.
pub fn in_flags(text: &str) -> String {
    translated(text, FLAGS.get().map_or(&[], Vec::as_slice))
}

fn translated(text: &str, flags: &[String]) -> String {
    if text.contains(" field `") || text.contains(" variant `") {
        return text.to_string();
    }
    // Exports are made by another command than most of those that miss something in them.
    let is_flag = |name: &str| name == "with-rows" || flags.iter().any(|flag| flag == name);
    let mut said = String::new();
    for (at, part) in text.split('`').enumerate() {
        let (name, rest) = part.split_at(part.find(' ').unwrap_or(part.len()));
        let flag = name.replace('_', "-");
        match at % 2 {
            0 => said += part,
            _ if is_flag(&flag) => said += &format!("--{flag}{rest}"),
            _ => said += &format!("`{part}`"),
        }
    }
    for (words, flag, with_flag) in PROPOSALS {
        if is_flag(flag) {
            said = said.replace(words, with_flag);
        }
    }
    COMMANDS.into_iter().fold(said, |said, (words, with_command)| said.replace(words, with_command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_in_messages_become_flags_of_the_command() {
        let flags = ["level", "max-degree", "out"].map(String::from);
        let says = |text: &str| translated(text, &flags);
        assert_eq!(says("`max_degree` belongs to `level node`"), "--max-degree belongs to --level node");
        assert_eq!(says("`clip` is no flag here, nor `a b`"), "`clip` is no flag here, nor `a b`");
        assert_eq!(says("unknown field `level`"), "unknown field `level`");
        assert_eq!(says("name another folder"), "name another folder with --out");
        assert_eq!(says("made with `with_rows`"), "made with --with-rows");
        assert_eq!(says("no ledger: create one first"), "no ledger: create one with `progap ledger init`");
    }

    #[test]
    fn a_text_names_flags() {
        let text = "--drop age, --text age:64 or the file of --columns; `progap data fetch`";
        assert_eq!(named(text).collect::<Vec<_>>(), ["drop", "text", "columns"]);
        assert_eq!(named("no flag - none").count(), 0);
    }

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
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                code.for_each(|line| look(&path, line));
            }
        }
    }

    /// Libraries know neither flags nor commands: their messages name settings and options, and this file makes flags and commands
    /// of them.
    #[test]
    fn no_library_names_a_flag_or_a_command() {
        let is_word = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase());
        lines_of_libraries(&mut |path, line| {
            let names = ["--", "`progap "].iter().any(|mark| line.split(mark).skip(1).any(is_word));
            assert!(!names, "{}: {line}", path.display());
        });
    }

    /// A value that is also called as a flag is, such as `labels`, stands behind the name of its setting: alone it would become that flag.
    #[test]
    fn no_message_names_a_value_that_is_a_flag() {
        let command = <crate::Arguments as clap::CommandFactory>::command();
        let flags: Vec<&str> = command
            .get_subcommands()
            .flat_map(|command| command.get_arguments().filter_map(Arg::get_long))
            .collect();
        let values: Vec<String> = Settings::declarations()
            .iter()
            .filter_map(|setting| if let Kind::Choice(all) = setting.kind { Some(all()) } else { None })
            .flatten()
            .filter(|(value, _)| flags.contains(value) && Declaration::find(value).is_err())
            .map(|(value, _)| format!("`{value}`"))
            .collect();
        assert!(values.contains(&"`labels`".to_string()), "{values:?}");
        lines_of_libraries(&mut |path, line| {
            let named = values.iter().find(|value| line.contains(*value));
            assert!(named.is_none(), "{}: {line}", path.display());
        });
    }

    /// Every setting that is offered has a flag, and every flag the help and the default of its setting.
    #[test]
    fn every_setting_is_a_flag() {
        let command = Given::augment_args(Command::new("train"));
        for setting in offered() {
            let arg = command.get_arguments().find(|arg| arg.get_id() == setting.name).expect(setting.name);
            let help = arg.get_help().expect("help").to_string();
            assert!(help.to_lowercase().contains(&setting.help.to_lowercase()), "{help}");
            let follows = ["depth", "hidden", "learning_rate", "batch_size", "epochs", "scaling"];
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
