//! `progap man`: manual pages.

use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Page;
use progap_graph::AtomicFolder;

use super::Outcome;
use crate::output::{Force, Inputs};
use crate::ui;

/// Print the manual, or write one page per command into a folder
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap man | man -l -                              # read it
  progap man ~/.local/share/man/man1                 # then: man progap-train")]
pub struct Man {
    /// Folder for the pages, made if it is not there [default: all pages on standard output]
    folder: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

impl Man {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut command = crate::Arguments::command().disable_help_subcommand(true);
        command.build();
        let mut pages = Vec::new();
        collect(command, &mut pages)?;
        let Some(folder) = self.folder else {
            let texts = pages.into_iter().map(|(_, text)| text).collect::<String>();
            return ui::print(texts.trim_end());
        };
        for (name, _) in &pages {
            self.force.file(&folder.join(name), &Inputs::default())?;
        }
        let staged = AtomicFolder::create(&folder)?;
        for (name, text) in &pages {
            std::fs::write(staged.path().join(name), text)
                .map_err(|e| format!("{}: {e}", folder.join(name).display()))?;
        }
        staged.commit_into(pages.first().map(|(name, _)| name.as_str()))?;
        ui::print(&format!("{}: {} pages", folder.display(), ui::count(pages.len())))
    }
}

/// The pages of a command and of everything below it: file name and text.
fn collect(command: Command, pages: &mut Vec<(String, String)>) -> Outcome {
    let below: Vec<Command> =
        command.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let page = Page::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push((page.get_filename(), String::from_utf8(text)?));
    for command in below {
        collect(command.version(env!("CARGO_PKG_VERSION")), pages)?;
    }
    Ok(())
}
