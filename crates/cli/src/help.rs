//! `-h` in one line a flag: its first clause, with the default where there is room. `--help` has all of it.

use clap::builder::PossibleValue;
use clap::{Arg, Command};

/// The longest line of `-h`.
const MAX_LINE: usize = 100;

/// Where a sentence about a flag can end.
const ENDS: [&str; 8] = ["; ", ": ", " (", ", such as ", ", which ", ", so ", ", where ", ", if "];

/// The same command, where `-h` has one line for each flag of it and of its subcommands.
pub fn in_one_line(command: Command) -> Command {
    let args: Vec<(Option<String>, usize)> =
        command.get_arguments().map(|arg| (group(arg), width(arg))).collect();
    let widest = |of: &Option<String>| {
        args.iter().filter(|(group, _)| group == of).map(|(_, width)| *width).max().unwrap_or(0)
    };
    // Two columns before the flag and two between it and its text; clap wants four more before it breaks lines.
    let rooms: Vec<(Option<String>, usize)> =
        args.iter().map(|(group, _)| (group.clone(), MAX_LINE.saturating_sub(widest(group) + 8))).collect();
    let room = |arg: &Arg| rooms.iter().find(|(of, _)| *of == group(arg)).map_or(0, |(_, room)| *room);
    command.mut_args(|arg| shortened(room(&arg), arg)).mut_subcommands(in_one_line)
}

/// The heading under which a flag is listed; arguments without a flag have one of their own.
fn group(arg: &Arg) -> Option<String> {
    match (arg.is_positional(), arg.get_help_heading()) {
        (true, _) => Some("Arguments".into()),
        (false, heading) => heading.map(String::from),
    }
}

/// The width of a flag with its value as `-h` shows it, with room for the short one.
fn width(arg: &Arg) -> usize {
    let names: Vec<&str> =
        arg.get_value_names().unwrap_or_default().iter().map(clap::builder::Str::as_str).collect();
    let value = match (arg.get_action().takes_values(), names.join("> <").len()) {
        (false, _) => 0,
        (true, 0) => arg.get_id().as_str().len() + " <>".len(),
        (true, length) => length + " <>".len(),
    };
    // A value that may be left out stands in brackets, behind an equals sign.
    let brackets = if arg.get_num_args().is_some_and(|range| range.min_values() == 0) { 2 } else { 0 };
    match arg.get_long() {
        Some(long) => "-x, --".len() + long.len() + value + brackets,
        None => value + "...".len(),
    }
}

/// An argument whose short help has at most this many characters; what is left out is in the long one.
fn shortened(room: usize, arg: Arg) -> Arg {
    let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let (text, said) = match text.rsplit_once(" [default: ") {
        Some((text, default)) => (text.to_string(), Some(format!(" [default: {default}"))),
        None => (text, None),
    };
    let takes_values = arg.get_action().takes_values();
    let given: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = said.clone().or_else(|| {
        (takes_values && !given.is_empty() && !arg.is_hide_default_value_set())
            .then(|| format!(" [default: {}]", given.join(",")))
    });
    let mut long = arg
        .get_long_help()
        .map_or_else(|| format!("{text}{}", said.clone().unwrap_or_default()), ToString::to_string);
    if said.is_none() {
        long += default.as_deref().unwrap_or_default();
    }
    if let Some(name) = arg.get_env() {
        long += &format!(" [env: {}]", name.to_string_lossy());
    }
    if takes_values && !arg.is_hide_possible_values_set() {
        long += &choices(&arg.get_possible_values());
    }
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    let room = match aliases.join(", --").len() {
        0 => room,
        length => room.saturating_sub(length + " [alias: --]".len()),
    };
    let short = fitting(&text, &default.unwrap_or_default(), room);
    let arg = arg.help(short).long_help(long);
    match takes_values {
        true => arg.hide_default_value(true).hide_possible_values(true).hide_env(true),
        false => arg,
    }
}

/// The names that a flag takes, each with its meaning where they have one.
fn choices(values: &[PossibleValue]) -> String {
    let shown: Vec<&PossibleValue> = values.iter().filter(|value| !value.is_hide_set()).collect();
    let names = || shown.iter().map(|value| value.get_name()).collect::<Vec<_>>().join(", ");
    match shown.iter().any(|value| value.get_help().is_some()) {
        _ if shown.is_empty() => String::new(),
        false => format!(" [possible values: {}]", names()),
        true => shown.iter().fold("\n\nPossible values:".into(), |list, value| {
            let what = value.get_help().map(|what| format!(": {what}")).unwrap_or_default();
            format!("{list}\n- {}{what}", value.get_name())
        }),
    }
}

/// As much of a sentence as fits, with the default where that fits too.
fn fitting(text: &str, default: &str, room: usize) -> String {
    let mut clauses: Vec<&str> =
        ENDS.iter().flat_map(|end| text.match_indices(end)).map(|(at, _)| &text[..at]).collect();
    clauses.push(text);
    clauses.sort_by_key(|clause| std::cmp::Reverse(clause.len()));
    let fits = |line: &String| line.chars().count() <= room;
    let lines = clauses.iter().flat_map(|clause| [format!("{clause}{default}"), (*clause).to_string()]);
    lines.into_iter().find(fits).unwrap_or_else(|| clauses[clauses.len() - 1].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of a command, and of those below it, that take more than a line.
    fn long(command: &mut Command, path: &str, found: &mut Vec<String>) {
        let help = command.render_help().to_string();
        let too_long = help.lines().filter(|line| line.chars().count() > MAX_LINE);
        found.extend(too_long.map(|line| format!("{path}: {line}")));
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let short = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let is_whole = |line: &str| line.ends_with(&short) || line.contains(&format!("{short} [alias"));
            if !help.lines().any(is_whole) {
                found.push(format!("{path} --{}: {short}", arg.get_id()));
            }
        }
        for below in command.get_subcommands_mut() {
            let name = format!("{path} {}", below.get_name());
            long(below, &name, found);
        }
    }

    #[test]
    fn every_flag_has_one_line_of_the_short_help() {
        let mut found = vec![];
        long(&mut crate::command().term_width(MAX_LINE), "progap", &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn what_does_not_fit_is_left_out_by_clauses() {
        assert_eq!(
            fitting("Drop rows; all of them", " [default: no]", 40),
            "Drop rows; all of them [default: no]"
        );
        assert_eq!(fitting("Drop rows; all of them", " [default: no]", 30), "Drop rows; all of them");
        assert_eq!(fitting("Drop rows; all of them", " [default: no]", 25), "Drop rows; all of them");
        assert_eq!(fitting("Drop rows; all of them", "", 15), "Drop rows");
    }
}
