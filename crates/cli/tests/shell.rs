//! Support for shells that comes with the command: completions and manual pages.

mod common;

use std::process::{Command, Stdio};

use common::{folder, progap_in, put, text};

/// All commands, as the manual names their pages.
const COMMANDS: [&str; 19] = [
    "key-new",
    "key-show",
    "train",
    "predict",
    "verify",
    "export",
    "inspect",
    "account",
    "data-list",
    "data-fetch",
    "data-convert",
    "data-synth",
    "ledger-init",
    "ledger-show",
    "ledger-check",
    "ledger-set-budget",
    "completions",
    "man",
    "data",
];

/// Whether a program is there; where it is not, says that a check is skipped.
fn there_is(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("skipped: there is no {program} here");
    }
    found.is_ok()
}

#[test]
fn completions_for_every_shell() {
    let place = folder();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = progap_in(place.path(), &["completions", shell]).ok();
        for word in ["train", "resume", "epsilon", "set-budget", "best-validation"] {
            assert!(script.contains(word), "{word} is not completed in {shell}");
        }
        put(place.path(), &[(shell, script.as_bytes())]);
        if ["bash", "zsh", "fish"].contains(&shell) && there_is(shell) {
            let checked = Command::new(shell).arg("-n").arg(place.path().join(shell)).output();
            let checked = checked.expect("the shell starts");
            assert!(checked.status.success(), "{shell}: {}", String::from_utf8_lossy(&checked.stderr));
        }
    }
    let other = progap_in(place.path(), &["completions", "tcsh"]);
    assert!(!other.success && other.stderr.contains("possible values: bash"), "{}", other.stderr);
}

/// The completions that bash offers for a line of which the last word is being typed.
fn offered(script: &str, line: &[&str]) -> Vec<String> {
    let words = line.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let last = line.len() - 1;
    let (current, previous) = (line[last], line[last - 1]);
    let program = format!(
        "{script}\nCOMP_WORDS=({words}); COMP_CWORD={last}; _progap progap '{current}' '{previous}'; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    // A file, as the script is longer than an argument may be.
    let place = folder();
    let file = place.path().join("complete.sh");
    std::fs::write(&file, program).expect("written");
    let output = Command::new("bash").arg("--norc").arg(&file).output().expect("bash starts");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    if !there_is("bash") {
        return;
    }
    let script = progap_in(folder().path(), &["completions", "bash"]).ok();
    assert_eq!(offered(&script, &["progap", "tr"]), ["train"]);
    assert_eq!(offered(&script, &["progap", "train", "--led"]), ["--ledger", "--ledger-name"]);
    assert_eq!(offered(&script, &["progap", "train", "--level", ""]), ["none", "edge", "node"]);
    assert_eq!(offered(&script, &["progap", "ledger", "se"]), ["set-budget"]);
}

#[test]
fn a_manual_page_for_every_command() {
    let place = folder();
    let said = progap_in(place.path(), &["man", "man1"]).ok();
    let pages: Vec<_> = std::fs::read_dir(place.path().join("man1")).expect("a folder").collect();
    assert_eq!(said.trim_end(), format!("man1: {} pages", pages.len()));
    for command in COMMANDS {
        let page = std::fs::read_to_string(place.path().join(format!("man1/progap-{command}.1")));
        let page = page.unwrap_or_else(|e| panic!("{command}: {e}"));
        assert!(page.contains(".TH") && page.contains("SYNOPSIS"), "{command}");
    }
    let whole = progap_in(place.path(), &["man"]).ok();
    assert_eq!(whole.matches(".TH ").count(), pages.len());
    if there_is("groff") {
        for page in pages {
            let page = page.expect("a page").path();
            let shown = Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z", text(&page)]).output();
            let shown = shown.expect("groff starts");
            let warnings = String::from_utf8_lossy(&shown.stderr);
            assert!(shown.status.success() && warnings.is_empty(), "{}: {warnings}", page.display());
        }
    }
}
