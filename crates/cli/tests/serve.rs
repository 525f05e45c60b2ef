//! The command `serve`: how it starts, what it refuses, how it ends.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use common::{command, folder, progap_in, put};

fn trained(at: &Path) {
    progap_in(at, &["data", "synth", "g.progap", "--nodes", "300", "--edges", "3000", "--classes", "3"]).ok();
    progap_in(at, &["train", "g.progap", "--quiet", "--out", "people"]).ok();
}

/// Starts to serve, and gives what was said of it and the address.
fn serve(at: &Path, arguments: &[&str]) -> (Child, String, String) {
    let mut child = command(at)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut said).expect("a line");
    let address = said.trim().rsplit("http://").next().unwrap_or_default().to_string();
    (child, said, address)
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[cfg(unix)]
#[test]
fn it_says_where_it_is_answers_and_ends_when_asked_to() {
    let place = folder();
    let at = place.path();
    trained(at);
    let (mut child, said, address) = serve(at, &["people", "again=people", "--log", "requests"]);
    assert!(said.starts_with("serving people, again at http://127.0.0.1:"), "{said}");
    let answer = get(&address, "/v1/nodes/17?model=again");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"id\":\"17\""), "{answer}");
    get(&address, "/v1/nodes/secret-name?model=again");
    let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.expect("kill").success());
    assert!(child.wait().expect("it ends").success());
    let mut log = String::new();
    child.stderr.take().expect("its log").read_to_string(&mut log).expect("text");
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    // The log has routes, and no id.
    assert!(
        log.contains("/v1/nodes/{id}") && log.contains("\"status\":404") && log.contains("stopped"),
        "{log}"
    );
    assert!(!log.contains("secret-name") && !log.contains("/17"), "{log}");
}

#[test]
fn what_cannot_be_served_is_refused_in_one_sentence() {
    let place = folder();
    let at = place.path();
    trained(at);
    let refused = |arguments: &[&str], parts: &[&str]| {
        progap_in(at, &[&["serve"], arguments].concat()).refused(parts);
    };
    refused(&["gone"], &["gone", "no release here"]);
    refused(&["people", "--listen", "0.0.0.0:0"], &["0.0.0.0:0", "token"]);
    refused(&["people", "people"], &["two releases", "NAME=FOLDER"]);
    refused(&["a b=people"], &["a b", "no name"]);
    refused(&["people", "--token-file", "gone"], &["gone"]);
    refused(
        &["people", "--tls-cert", "people/config.toml", "--tls-key", "people/config.toml"],
        &["config.toml", "PEM"],
    );
    put(at, &[("token", &b"a token that anybody can read"[..])]);
    #[cfg(unix)]
    {
        std::fs::set_permissions(at.join("token"), std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .expect("anybody's");
        refused(&["people", "--token-file", "token"], &["token", "chmod 600"]);
    }
    std::fs::write(at.join("people/privacy.json"), "{}").expect("changed");
    refused(&["people"], &["privacy.json"]);
}
