//! A release that was changed, with every checksum made right, is found out, or what was changed is listed as claimed.

#[path = "support/forge.rs"]
mod forge;

use std::path::Path;

use forge::{Tally, forgeries, releases};
use progap::release::{self, Verdict};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// One forgery in this many is tried here; the torture example tries them all.
const EVERY: usize = 29;

#[test]
fn every_forged_value_is_found_or_is_listed_as_claimed() {
    let place = tempfile::tempdir().expect("a folder");
    let (mut tally, mut unnoticed) = (Tally::default(), vec![]);
    let every = std::env::var("PROGAP_EVERY").ok().and_then(|text| text.parse().ok()).unwrap_or(EVERY);
    for (number, folder) in releases(place.path()).iter().enumerate() {
        match forgeries(folder, every, number) {
            Ok(found) => tally += found,
            Err(missed) => unnoticed.extend(missed),
        }
    }
    println!("{tally:?}");
    assert!(unnoticed.is_empty(), "{} went unnoticed:\n{}", unnoticed.len(), unnoticed.join("\n"));
    assert!(tally.all() * every > 10_000, "{tally:?}");
    assert!(tally.caught > 2 * tally.claimed, "little is left to be claimed: {tally:?}");
}

/// A file's name, and what is done to its text.
type Change<'c> = (&'static str, &'c dyn Fn(&mut String));

/// Changes files of a release by name, with the checksums of the manifest made right. Gives what verify says; the
/// release is left as it was.
fn forged(folder: &Path, changes: &[Change<'_>]) -> progap::Result<Vec<release::Finding>> {
    let names = changes.iter().map(|(name, _)| *name).chain(["manifest.json"]);
    let before: Vec<(&str, String)> =
        names.map(|name| (name, std::fs::read_to_string(folder.join(name)).expect("text"))).collect();
    let mut list: Value = serde_json::from_str(&before.last().expect("a manifest").1).expect("JSON");
    for (name, change) in changes {
        let mut text = std::fs::read_to_string(folder.join(name)).expect("text");
        change(&mut text);
        std::fs::write(folder.join(name), &text).expect("written");
        let sum: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        list["files"][*name] = sum.into();
    }
    std::fs::write(folder.join("manifest.json"), list.to_string()).expect("written");
    let found = release::verify(folder);
    for (name, text) in before {
        std::fs::write(folder.join(name), text).expect("written");
    }
    found
}

fn wrong(found: progap::Result<Vec<release::Finding>>) -> Vec<String> {
    let found = found.expect("opened").into_iter().filter(|finding| finding.verdict == Verdict::Wrong);
    found.map(|finding| finding.what).collect()
}

/// Epsilon 0.01 and delta 0.99 for the same queries: what the numbers say is consistent, and promises nothing.
#[test]
fn a_delta_beyond_the_rule_is_wrong_however_consistent() {
    let place = tempfile::tempdir().expect("a folder");
    for folder in releases(place.path()) {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let claimed = progap::Release::open(&folder).expect("a release").statement.delta;
        if name.contains("export") || claimed.is_none_or(|delta| delta == 0.0) {
            continue;
        }
        for delta in [0.99, 0.1, 0.05] {
            let (word, number) = (format!("{delta:e}"), Value::from(delta));
            let statement = |text: &mut String| {
                let mut forged: Value = serde_json::from_str(text).expect("JSON");
                let old = format!("delta {:e}", forged["delta"].as_f64().expect("a delta"));
                let words =
                    forged["in_words"].as_str().expect("words").replace(&old, &format!("delta {word}"));
                forged["in_words"] = words.into();
                forged["delta"] = number.clone();
                *text = forged.to_string();
            };
            let found = wrong(forged(&folder, &[("privacy.json", &statement)]));
            assert!(found.contains(&"delta".to_string()), "{name}: {found:?}");
            // The settings say so too.
            let config = |text: &mut String| {
                *text = text.replace("[settings]", &format!("[settings]\ndelta = {delta}"));
            };
            match forged(&folder, &[("privacy.json", &statement), ("config.toml", &config)]) {
                Err(error) => assert!(error.to_string().contains("delta"), "{error}"),
                found => assert!(wrong(found).contains(&"delta".to_string()), "{name}"),
            }
        }
        let said = release::verify(&folder).expect("opened");
        assert!(
            said.iter().any(|finding| finding.what == "delta" && finding.detail.contains("e-")),
            "{name}"
        );
    }
}

#[test]
fn a_file_that_no_release_of_the_method_has_does_not_belong_though_it_is_listed() {
    let place = tempfile::tempdir().expect("a folder");
    for folder in releases(place.path()).iter().take(6) {
        let manifest = std::fs::read_to_string(folder.join("manifest.json")).expect("text");
        for name in
            ["secret.key", "run.json", "noisy-graph.progap", "graph.progap", "aggregates/99.npy", "notes.txt"]
        {
            std::fs::create_dir_all(folder.join("aggregates")).expect("a folder");
            std::fs::write(folder.join(name), "x").expect("written");
            let unlisted = release::verify(folder);
            assert!(
                unlisted.is_err() || wrong(unlisted).contains(&"files that do not belong".into()),
                "{name}"
            );
            let mut list: Value = serde_json::from_str(&manifest).expect("JSON");
            let sum: String = Sha256::digest(b"x").iter().map(|byte| format!("{byte:02x}")).collect();
            list["files"][name] = sum.into();
            std::fs::write(folder.join("manifest.json"), list.to_string()).expect("written");
            assert!(release::verify(folder).is_err(), "{name} in {}", folder.display());
            std::fs::remove_file(folder.join(name)).expect("removed");
            std::fs::write(folder.join("manifest.json"), &manifest).expect("written");
        }
        let found = release::verify(folder).expect("whole again");
        assert!(found.iter().all(|finding| finding.ok), "{found:#?}");
    }
}

#[test]
fn what_cannot_be_recomputed_is_listed_by_name() {
    let place = tempfile::tempdir().expect("a folder");
    for folder in releases(place.path()) {
        let claimed = forge::claimed(&release::verify(&folder).expect("opened"));
        assert!(claimed.contains(&"config.toml: dataset".into()), "{claimed:?}");
        // Where epochs decide nothing, nothing is said of them that could be compared.
        let settings = progap::Release::open(&folder).expect("opened").settings().expect("settings").clone();
        let epochs = settings.without_effect("epochs").is_none().then_some("config.toml: settings.epochs");
        let never = ["privacy.json", "manifest.json: files", "config.toml: settings.level"];
        for never in never.into_iter().chain(epochs) {
            assert!(claimed.iter().all(|claim| !claim.starts_with(never)), "{never} in {claimed:?}");
        }
    }
}

/// Facts that predictions need travel with the model: an owner can hand on a release without the record of its
/// settings.
#[test]
fn a_release_without_its_settings_predicts_the_same_and_says_what_verify_misses() {
    let place = tempfile::tempdir().expect("a folder");
    for folder in releases(place.path()) {
        let whole = progap::Release::open(&folder).expect("a release");
        let list = folder.join("manifest.json");
        let mut listed: Value =
            serde_json::from_slice(&std::fs::read(&list).expect("a manifest")).expect("JSON");
        listed["files"].as_object_mut().expect("files").remove("config.toml").expect("listed");
        std::fs::write(&list, listed.to_string()).expect("written");
        std::fs::remove_file(folder.join("config.toml")).expect("removed");
        let opened = progap::Release::open(&folder).expect("it opens");
        assert_eq!((opened.level(), opened.guarantee()), (whole.level(), whole.guarantee()));
        assert_eq!(opened.covers_predictions(), whole.covers_predictions());
        match (whole.predict(), opened.predict()) {
            (Ok(before), Ok(now)) => assert_eq!(before, now, "{}", folder.display()),
            (Err(before), Err(now)) => assert_eq!(before.to_string(), now.to_string()),
            other => panic!("{}: {other:?}", folder.display()),
        }
        for refused in
            [release::verify(&folder).expect_err("no settings"), opened.config().expect_err("none")]
        {
            assert!(refused.to_string().contains("config.toml is not in this release"), "{refused}");
        }
        // The rest of what is public is due as before.
        listed["files"].as_object_mut().expect("files").remove("nodes.progap").expect("listed");
        std::fs::write(&list, listed.to_string()).expect("written");
        let refused = progap::Release::open(&folder).expect_err("no rows").to_string();
        assert!(refused.contains("nodes.progap is missing"), "{refused}");
    }
}
