//! Keys, signatures, requests to a server, comparisons and settings: what is parsed by itself.

use std::sync::LazyLock;

use progap::release::Statement;
use progap::{Level, Settings};
use progap_experiments::{CustomFile, DataSpec, Options, changed};
use progap_export::{PublicKey, SecretKey};
use serde_json::json;

use crate::{Target, contents};

/// The targets of this file.
pub fn targets() -> Vec<Target> {
    vec![
        Target { name: "key", run: key, seeds: || contents(&["fuzz/corpus/key"]), weight: 1500 },
        Target {
            name: "request",
            run: progap_server::parse_anything,
            seeds: || contents(&["fuzz/corpus/request"]),
            weight: 1500,
        },
        Target { name: "signature", run: signature, seeds: signed, weight: 150 },
        Target {
            name: "experiment",
            run: experiment,
            seeds: || contents(&["fuzz/corpus/experiment"]),
            weight: 500,
        },
        Target { name: "change", run: change, seeds: || contents(&["fuzz/corpus/change"]), weight: 500 },
        Target {
            name: "event",
            run: event,
            seeds: || contents(&["fuzz/corpus/event", STATEMENTS[0], STATEMENTS[1]]),
            weight: 500,
        },
    ]
}

const STATEMENTS: [&str; 2] = ["fuzz/corpus/release/privacy.json", "fuzz/corpus/node/privacy.json"];

/// Files of keys, of either kind.
pub fn key(content: &[u8]) {
    let text = String::from_utf8_lossy(content);
    if let Ok(secret) = SecretKey::parse(&text) {
        assert!(secret.public().signed(b"a", &secret.sign(b"a")));
    }
    if let Ok(public) = PublicKey::parse(&text) {
        assert_eq!(PublicKey::parse(&public.pem()), Ok(public));
    }
}

struct Signed {
    key: PublicKey,
    whole: Vec<u8>,
}

/// A manifest with its signature before it.
static SIGNED: LazyLock<Signed> = LazyLock::new(|| {
    let [key, manifest, signature] = ["signer.pub", "manifest.json", "manifest.sig"]
        .map(|name| contents(&[&format!("fuzz/corpus/release/{name}")]).concat());
    let key = PublicKey::parse(&String::from_utf8_lossy(&key)).expect("the corpus has a key");
    Signed { key, whole: [signature, manifest].concat() }
});

fn signed() -> Vec<Vec<u8>> {
    vec![SIGNED.whole.clone()]
}

/// A signature of 64 bytes and what it is of: only the one that was made holds.
pub fn signature(content: &[u8]) {
    let (signature, manifest) = content.split_at(content.len().min(64));
    let holds = SIGNED.key.signed(manifest, signature);
    assert_eq!(holds, content == SIGNED.whole, "a forged signature");
}

/// Comparisons from a file.
pub fn experiment(content: &[u8]) {
    let Ok(file) = CustomFile::parse(&String::from_utf8_lossy(content)) else { return };
    let options =
        Options::new(vec![DataSpec { name: "demo".into(), content: json!({}), place: json!({}) }], 1);
    let _ = file.experiment(&options);
}

/// `--set NAME=VALUE`, one in each line.
pub fn change(content: &[u8]) {
    let text = String::from_utf8_lossy(content);
    let mut changes = vec![];
    for (name, value) in text.lines().take(50).filter_map(|line| line.split_once('=')) {
        let value = serde_json::from_str(value.trim()).unwrap_or_else(|_| json!(value.trim()));
        changes.push((name.trim().to_string(), value));
    }
    for level in [Level::None, Level::Edge, Level::Node] {
        if let Ok(settings) = changed(&Settings::of(progap::MethodKind::ProgapLabels, level).into(), &changes)
        {
            let _ = settings.checked();
        }
    }
}

/// Privacy statements, and trees of events in them.
pub fn event(content: &[u8]) {
    let _ = serde_json::from_slice::<Statement>(content);
    if let Ok(event) = serde_json::from_slice::<progap_privacy::Event>(content) {
        let _ = event.pure_epsilon();
    }
}
