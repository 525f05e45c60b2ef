//! The `progap` command: it reads arguments, calls the libraries, and shows what they say. It knows no
//! algorithm.
#![forbid(unsafe_code)]

mod command;
mod plot;
mod source;
mod transforms;
mod ui;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Train node classifiers on sensitive graphs, with a privacy guarantee you can show to anyone.
#[derive(Parser)]
#[command(name = "progap", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  progap inspect demo                       a synthetic social network, nothing to download
  progap inspect my-graph/                  a folder with nodes.csv and edges.csv
  progap data list                          the data sets of the paper, and which are present
  progap data convert my-graph/ g.progap    a file that loads in an instant
  progap account --level edge --depth 3 --epsilon 1 --delta 1e-7
                                            the noise that a privacy target needs";

#[derive(Subcommand)]
enum Command {
    Inspect(command::inspect::Inspect),
    Account(command::account::Account),
    #[command(subcommand)]
    Data(command::data::Data),
    #[command(subcommand)]
    Ledger(command::ledger::LedgerCommand),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Inspect(inspect) => inspect.run(),
        Command::Account(account) => account.run(),
        Command::Data(data) => data.run(),
        Command::Ledger(ledger) => ledger.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if ui::is_closed_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
