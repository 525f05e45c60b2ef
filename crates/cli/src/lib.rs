//! The `progap` command: it reads arguments, calls the libraries, and shows what they say. It knows no
//! algorithm. It is a library so that other packages can carry the same command, see [`run`].
#![forbid(unsafe_code)]

mod columns;
mod command;
mod flags;
mod help;
mod launch;
mod machine;
#[cfg(feature = "mpi")]
mod mpi;
mod output;
mod plot;
mod remedy;
mod report;
mod source;
mod stop;
mod transforms;
mod ui;
mod verdict;
mod weights;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use progap_export::{KeyFiles, SecretKey};

/// Train node classifiers on sensitive graphs, with a privacy guarantee you can show to anyone.
#[derive(Parser)]
#[command(name = "progap", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  progap train                            # the built-in network, edges private, epsilon 1
  progap predict releases/demo-edge-1     # classes and probabilities, without the graph
  progap verify releases/demo-edge-1      # recompute the guarantee
  progap report releases/demo-edge-1      # a page with the guarantee, tables and figures
  progap export releases/demo-edge-1 out  # a copy that may be shared, with a hash
  progap serve releases/demo-edge-1       # predictions over HTTP, with a page to try it
  progap key new me                       # a key that signs exports
  progap audit releases/demo-edge-1       # attack it: is the guarantee kept?
  progap inspect demo                     # a synthetic social network, nothing to download
  progap check my-graph/                  # likely mistakes, before training
  progap inspect my-graph/                # a folder with nodes.csv and edges.csv
  progap data list                        # the data sets of the paper, and which are present
  progap data convert my-graph/ g.progap  # a file that loads in an instant
  progap experiment table2                # compare methods over several runs
  progap account --level edge --depth 3 --epsilon 1 --delta 1e-7   # the noise for a budget";

#[derive(Subcommand)]
enum Command {
    Train(Box<command::train::Train>),
    Predict(command::predict::Predict),
    Verify(command::verify::Verify),
    Audit(Box<command::audit::Audit>),
    Inspect(Box<command::inspect::Inspect>),
    Check(Box<command::check::Check>),
    Report(command::report::WriteReport),
    Export(command::export::Export),
    Serve(Box<command::serve::Serve>),
    Methods(command::methods::Methods),
    Account(command::account::Account),
    #[command(subcommand)]
    Experiment(Box<command::experiment::Experiment>),
    #[command(subcommand)]
    Data(command::data::Data),
    #[command(subcommand)]
    Ledger(command::ledger::LedgerCommand),
    #[command(subcommand)]
    Key(command::key::KeyCommand),
    Completions(command::completions::Completions),
    Man(command::man::Man),
}

/// The command with all its flags.
fn command() -> clap::Command {
    let command = flags::with_quiet(Arguments::command());
    help::in_one_line(command.mut_subcommand("train", command::train::settle_resumed))
}

/// Runs the command with these arguments, of which the first is its own name, and gives its exit code. It takes over
/// the process: the panic hook, the handling of signals and the pool of threads.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    std::panic::set_hook(Box::new(report_panic));
    machine::prepare();
    let command = command();
    let parsed = command.clone().try_get_matches_from(arguments).and_then(|matches| {
        flags::remember(&command, &matches);
        if flags::is_quiet(&matches) {
            ui::silence();
        }
        Arguments::from_arg_matches(&matches)
    });
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            // Where not even that can be printed, the exit code must do.
            let _ = flags::say(&error);
            return u8::try_from(error.exit_code()).unwrap_or(1);
        }
    };
    let threads = match &arguments.command {
        Command::Train(train) => train.threads,
        _ => None,
    };
    machine::start_threads(threads);
    match &arguments.command {
        Command::Train(train) => train.memory.keep(),
        Command::Predict(predict) => predict.memory.keep(),
        Command::Verify(verify) => verify.memory.keep(),
        _ => {}
    }
    let outcome = match arguments.command {
        Command::Train(train) => train_on_ranks(*train),
        Command::Predict(predict) => predict.run(),
        Command::Verify(verify) => verify.run(),
        Command::Audit(audit) => audit.run(),
        Command::Inspect(inspect) => inspect.run(),
        Command::Check(check) => check.run(),
        Command::Report(report) => report.run(),
        Command::Export(export) => export.run(),
        Command::Serve(serve) => serve.run(),
        Command::Methods(methods) => methods.run(),
        Command::Account(account) => account.run(),
        Command::Experiment(experiment) => experiment.run(),
        Command::Data(data) => data.run(),
        Command::Ledger(ledger) => ledger.run(),
        Command::Key(key) => key.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    };
    match outcome {
        Ok(()) => 0,
        Err(error) if ui::is_closed_pipe(error.as_ref()) => 0,
        Err(error) if error.is::<command::predict::rows::Rejected>() => {
            print_error(&format!("caution: {error}"));
            command::predict::rows::EXIT_CODE
        }
        Err(error) => {
            let of_data = match error.downcast_ref().map(progap::Error::kind) {
                Some(progap::ErrorKind::Data(error)) => Some(error),
                _ => error.downcast_ref(),
            };
            let flags = of_data.and_then(remedy::flags_for);
            let flags = flags.map_or(String::new(), |flags| format!(" ({flags})"));
            print_error(&format!("error: {}{flags}", flags::said(error.as_ref())));
            1
        }
    }
}

/// Trains, alone or as one of several ranks.
#[cfg(feature = "mpi")]
fn train_on_ranks(train: command::train::Train) -> command::Outcome {
    match launch::ranks() {
        None => train.run(),
        Some(_) => mpi::run(|ranks| match ranks {
            None => train.run(),
            Some(ranks) => train.run_on(ranks),
        }),
    }
}

/// Trains alone. Several processes that were started as ranks would each train the whole, and each charge a budget.
#[cfg(not(feature = "mpi"))]
fn train_on_ranks(train: command::train::Train) -> command::Outcome {
    match launch::ranks() {
        Some(ranks) if ranks > 1 => Err(format!(
            "this is one of {ranks} ranks, and this build of progap trains on one machine: build it with `cargo \
             build --release \
             --features mpi`"
        )
        .into()),
        _ => train.run(),
    }
}

/// Writes the report of a release, or of an experiment, into a folder that holds nothing else, and gives the path of
/// its page; with `public` one that anyone may see.
///
/// # Errors
/// In one sentence: a folder that is neither, or that cannot be written to.
pub fn report(folder: &Path, out: &Path, public: bool) -> progap::Result<PathBuf> {
    command::report::write(folder, out, public).map_err(of_library)
}

/// Makes a copy of a release that may be shared, with its public page, and signs it where there is a key.
///
/// # Errors
/// In one sentence: as [`progap_export::export()`].
pub fn export(
    release: &Path,
    out: &Path,
    exported: progap::release::Exported,
    key: Option<&SecretKey>,
) -> progap::Result<progap::release::Export> {
    command::export::make(release, out, exported, key).map_err(of_library)
}

/// Makes a key: NAME.key and NAME.pub, which replace others only with `force`. Of a secret key that is there without its
/// public half, as where this was interrupted, the public half is written.
///
/// # Errors
/// In one sentence: files that are there, or cannot be written.
pub fn new_key(name: &Path, force: bool) -> progap::Result<(SecretKey, KeyFiles)> {
    let made = command::key::make(name, output::Force { force })?;
    Ok((made.key, made.files))
}

/// The library's error in one of a command; one of the command's own in its words.
fn of_library(error: Box<dyn std::error::Error>) -> progap::Error {
    error.downcast().map_or_else(|other| progap::Error::unsuitable(other.to_string()), |error| *error)
}

/// A panic is a mistake of ours, and says so; unless a reader expects it of a damaged file.
fn report_panic(panic: &std::panic::PanicHookInfo<'_>) {
    if !progap_formats::read::table::catches_panics() {
        print_error(&format!(
            "error: a mistake in progap itself ({panic}); please report it with the command you ran"
        ));
    }
}

/// Prints to standard error; where that fails too, such as into a file on a full disk, the exit code must do.
fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", ui::harmless(text));
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    /// Help wraps at 100 columns: a longer example would go on in the margin, where it cannot be copied.
    #[test]
    fn examples_fit_on_a_line() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines().filter(|line| line.starts_with("  ")) {
                assert!(line.chars().count() <= 96, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Arguments::command());
    }
}
