//! Auditing as people do: by the command.

mod common;

use common::{folder, progap_in};

fn workplace() -> tempfile::TempDir {
    let folder = folder();
    let size = ["data", "synth", "g.progap", "--nodes", "800", "--edges", "16000", "--classes", "3"];
    progap_in(folder.path(), &size).ok();
    folder
}

#[test]
fn an_audit_says_what_was_claimed_and_what_was_measured() {
    let place = workplace();
    let run = ["audit", "g.progap", "--epochs", "3", "--canaries", "2000", "--seed", "1"];
    let text = progap_in(place.path(), &[&run[..], &["--out", "plots"]].concat()).ok();
    for words in
        ["claimed at most 1.00, measured at least", "95 % confidence: nothing found", "influence", "AUC"]
    {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
    for plot in ["canaries-1.svg", "canaries-2.svg", "edges.svg", "nodes.svg"] {
        let svg = std::fs::read_to_string(place.path().join("plots").join(plot)).expect(plot);
        assert!(svg.contains("<polyline") && !svg.contains("NaN") && !svg.contains(",inf"), "{plot}");
    }
    let report = progap_in(place.path(), &[&run[..], &["--json"]].concat()).json();
    assert_eq!(report["refuted"], false);
    let again = progap_in(place.path(), &[&run[..], &["--json"]].concat()).json();
    assert_eq!(report, again, "the same seed, the same report");
    for finding in report["findings"].as_array().expect("findings") {
        assert!(finding["measured"].as_f64() <= finding["claimed"].as_f64(), "{finding}");
    }
    assert_eq!(report["link_inference"].as_array().map(Vec::len), Some(4));
    assert!(report["membership_inference"]["auc"].is_number());
}

#[test]
fn a_release_is_audited_with_its_own_settings_and_data() {
    let place = workplace();
    let train =
        ["train", "g.progap", "--epochs", "3", "--undirected", "--epsilon", "2", "--quiet", "--out", "r"];
    progap_in(place.path(), &train).ok();
    let audit = ["audit", "r", "--canaries", "1000", "--seed", "3", "--json"];
    let report = progap_in(place.path(), &audit).json();
    assert!(
        report["findings"][0]["what"].as_str().is_some_and(|what| what.contains("undirected edge")),
        "{report}"
    );
    // The verdict names what the release itself guarantees.
    let statement = std::fs::read_to_string(place.path().join("r/privacy.json")).expect("a statement");
    let statement: serde_json::Value = serde_json::from_str(&statement).expect("JSON");
    for key in ["unit", "epsilon", "delta"] {
        assert_eq!(report["release"][key], statement[key], "{key}");
    }
    let epsilon =
        format!("the release guarantees epsilon {:.4}", statement["epsilon"].as_f64().expect("a number"));
    let verdict = report["verdict"].as_str().expect("a verdict");
    assert!(verdict.contains(&epsilon) && verdict.contains("unit edge-undirected"), "{verdict}");
    let claimed = report["findings"][0]["claimed"].as_f64().expect("a claim");
    assert!((1.9..=2.0).contains(&claimed), "{claimed}");
    // Settings of another run would be audited in its place.
    for flags in [
        &["--method", "gap"][..],
        &["--epsilon", "3"],
        &["--preset", "paper"],
        &["--config", "r/config.toml"],
        &["--directed"],
    ] {
        let audit = [&["audit", "r", "--parts", "mechanism"], flags].concat();
        progap_in(place.path(), &audit).refused(&["its own settings", &format!("leave {} out", flags[0])]);
    }
    progap_in(place.path(), &["audit", "r", "--symmetrise"]).refused(&["data of its run", "--data"]);
}

/// Methods with queries of their own: a noisy graph, and sums over nodes with their senders, whose predictions claim
/// nothing.
#[test]
fn every_method_is_audited() {
    let place = workplace();
    let audit = |method: &str, more: &[&str]| {
        let run = ["audit", "g.progap", "--method", method, "--epochs", "1", "--canaries", "1000"];
        progap_in(place.path(), &[&run[..], &["--seed", "1", "--json"], more].concat())
    };
    for (method, more, words, tests) in [
        ("edge-rand", [].as_slice(), ["a noisy graph", "a sparse noisy graph", "training"].as_slice(), 5),
        ("dp-gnn", &["--batch-size", "100"], &["nodes with their senders", "many receivers"], 4),
    ] {
        let report = audit(method, more).json();
        let findings = report["findings"].as_array().expect("findings");
        assert_eq!((findings.len(), &report["refuted"]), (tests, &false.into()), "{report}");
        for words in words {
            let named = |finding: &serde_json::Value| finding["what"].to_string().contains(words);
            assert!(findings.iter().any(named), "{words:?} is not in {report}");
        }
    }
    audit("dp-gnn", &["--batch-size", "100", "--parts", "training"]).refused(&["not protected"]);
}

#[test]
fn nonsense_is_refused_in_one_sentence() {
    let place = workplace();
    progap_in(place.path(), &["audit", "g.progap", "--confidence", "1.5"]).refused(&["confidence", "1.5"]);
    progap_in(place.path(), &["audit", "g.progap", "--level", "none", "--epsilon", "1"])
        .refused(&["epsilon"]);
}
