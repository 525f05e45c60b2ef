//! `progap completions`: what a shell needs to complete commands, flags and values.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Outcome;
use crate::ui;

/// Print a script that lets a shell complete commands, flags and their values
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap completions bash > ~/.local/share/bash-completion/completions/progap
  progap completions zsh > ~/.zfunc/_progap     # with ~/.zfunc in fpath
  progap completions fish > ~/.config/fish/completions/progap.fish")]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut command = crate::Arguments::command();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "progap", &mut script);
        ui::print(String::from_utf8(script)?.trim_end())
    }
}
