//! Consistent forgeries of a release: one value of one file is changed, and every checksum is made right again. Each
//! must be found by `verify`, or be of a field that it lists as claimed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use progap::release::{self, Finding, Verdict};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The outcome of forging.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Forgeries that could not be opened, or had a wrong finding.
    pub caught: usize,
    /// Forgeries of fields that are listed as claimed.
    pub claimed: usize,
}

impl Tally {
    /// All forgeries.
    pub fn all(self) -> usize {
        self.caught + self.claimed
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.caught += other.caught;
        self.claimed += other.claimed;
    }
}

/// The public files that are forged, where they are there.
const FILES: [&str; 5] = ["privacy.json", "config.toml", "metrics.json", "manifest.json", "export.json"];

/// Forges every value of every public file of a release in every way, each `every`-th of all forgeries from the
/// `first`-th on. The release is left as it was.
///
/// # Errors
/// The forgeries that went unnoticed.
pub fn forgeries(folder: &Path, every: usize, first: usize) -> Result<Tally, Vec<String>> {
    let originals = originals(folder);
    let claimed = claimed(&release::verify(folder).expect("an honest release"));
    let (mut tally, mut unnoticed, mut number) = (Tally::default(), vec![], 0);
    for name in FILES {
        let Some(original) = originals.get(name) else { continue };
        let value = parse(name, original);
        for place in places(&value) {
            for (how, forged) in forged(&value, &place) {
                number += 1;
                if !(number + first).is_multiple_of(every) {
                    continue;
                }
                write(folder, &originals, name, &forged);
                let outcome = release::verify(folder);
                restore(folder, &originals);
                let field = format!("{name}: {}", place.join("."));
                match outcome {
                    Err(_) => tally.caught += 1,
                    Ok(findings) if findings.iter().any(|finding| !finding.ok) => tally.caught += 1,
                    Ok(_) if is_claimed(&claimed, &field) => tally.claimed += 1,
                    Ok(_) => unnoticed.push(format!("{}: {field} {how}", folder.display())),
                }
            }
        }
    }
    if unnoticed.is_empty() { Ok(tally) } else { Err(unnoticed) }
}

/// The fields that an honest release lists as claimed.
pub fn claimed(findings: &[Finding]) -> Vec<String> {
    assert!(findings.iter().all(|finding| finding.ok), "{findings:#?}");
    let claimed = findings.iter().filter(|finding| finding.verdict == Verdict::Claimed);
    claimed.flat_map(|finding| finding.fields.clone()).collect()
}

fn is_claimed(claimed: &[String], field: &str) -> bool {
    claimed.iter().any(|claim| field == claim || field.starts_with(&format!("{claim}.")))
}

fn originals(folder: &Path) -> BTreeMap<&'static str, Vec<u8>> {
    FILES.into_iter().filter_map(|name| Some((name, std::fs::read(folder.join(name)).ok()?))).collect()
}

fn restore(folder: &Path, originals: &BTreeMap<&'static str, Vec<u8>>) {
    for (name, content) in originals {
        std::fs::write(folder.join(name), content).expect("written");
    }
}

fn parse(name: &str, content: &[u8]) -> Value {
    let text = std::str::from_utf8(content).expect("text");
    match name.ends_with(".toml") {
        true => serde_json::to_value(toml::from_str::<toml::Value>(text).expect("TOML")).expect("JSON"),
        false => serde_json::from_str(text).expect("JSON"),
    }
}

fn sum(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a forged file, with every checksum and every copy of what it says made right.
fn write(folder: &Path, originals: &BTreeMap<&'static str, Vec<u8>>, name: &str, forged: &Value) {
    let text = match name.ends_with(".toml") {
        // TOML has no null: then the value is left out.
        true => toml::to_string(&without_null(forged)).unwrap_or_default(),
        false => serde_json::to_string_pretty(forged).expect("JSON"),
    };
    std::fs::write(folder.join(name), &text).expect("written");
    if name == "export.json" {
        return;
    }
    let mut manifest = if name == "manifest.json" {
        forged.clone()
    } else {
        parse("manifest.json", &originals["manifest.json"])
    };
    if name != "manifest.json" {
        manifest["files"][name] = sum(text.as_bytes()).into();
    }
    let manifest_text = serde_json::to_string_pretty(&manifest).expect("JSON");
    std::fs::write(folder.join("manifest.json"), &manifest_text).expect("written");
    if let Some(note) = originals.get("export.json") {
        let mut note = parse("export.json", note);
        note["sha256"] = sum(manifest_text.as_bytes()).into();
        for key in ["date", "rows"] {
            if let Some(value) = manifest.pointer(&format!("/export/{key}")) {
                note[key] = value.clone();
            }
        }
        std::fs::write(folder.join("export.json"), note.to_string()).expect("written");
    }
}

fn without_null(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_null(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(without_null).collect()),
        other => other.clone(),
    }
}

/// Every value in a tree but the root, by the keys that lead to it.
fn places(value: &Value) -> Vec<Vec<String>> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => {
            list.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => vec![],
    };
    let mut found = vec![];
    for (key, child) in children {
        found.push(vec![key.clone()]);
        found.extend(places(child).into_iter().map(|rest| [vec![key.clone()], rest].concat()));
    }
    found
}

fn at<'v>(value: &'v mut Value, place: &[String]) -> &'v mut Value {
    place.iter().fold(value, |value, key| match value {
        Value::Array(list) => &mut list[key.parse::<usize>().expect("an index")],
        other => &mut other[key.as_str()],
    })
}

/// The tree with the value at a place changed in every way.
fn forged(value: &Value, place: &[String]) -> Vec<(String, Value)> {
    let mut original = value.clone();
    let original = at(&mut original, place).clone();
    let others: Vec<Value> = match &original {
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().expect("a number");
            vec![
                (number * 0.5).into(),
                (number * 1.01 + 1e-6).into(),
                (-number - 1.0).into(),
                1e300.into(),
                0.0.into(),
                "x".into(),
            ]
        }
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(0);
            vec![
                (number + 1).into(),
                (number - 1).into(),
                (-number - 5).into(),
                i64::MAX.into(),
                0.into(),
                "x".into(),
            ]
        }
        Value::String(text) => vec![
            format!("{text} ").into(),
            "".into(),
            "none".into(),
            "../../dev/zero".into(),
            flipped(text).into(),
            7.into(),
        ],
        Value::Bool(flag) => vec![(!flag).into(), 1.into()],
        Value::Null => vec![0.5.into(), true.into()],
        Value::Array(list) => {
            vec![Value::Array(vec![]), Value::Array(list.iter().chain(list.last()).cloned().collect())]
        }
        Value::Object(map) => {
            let mut more: Map<String, Value> = map.clone();
            more.insert("extra".into(), 1.into());
            vec![Value::Object(Map::new()), Value::Object(more)]
        }
    };
    let mut forged: Vec<(String, Value)> = vec![];
    for other in others.into_iter().chain([Value::Null]).filter(|other| !same(other, &original)) {
        let mut whole = value.clone();
        *at(&mut whole, place) = other.clone();
        let shown: String = other.to_string().chars().take(60).collect();
        forged.push((format!("became {shown}"), whole));
    }
    let (last, before) = place.split_last().expect("not the root");
    let mut whole = value.clone();
    match at(&mut whole, before) {
        Value::Array(list) => drop(list.remove(last.parse().expect("an index"))),
        Value::Object(map) => drop(map.remove(last)),
        _ => unreachable!("a value that holds another"),
    }
    forged.push(("was removed".into(), whole));
    forged
}

/// Whether two values say the same: null and nothing do.
fn same(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && one.as_f64() == other.as_f64())
}

/// The other choice where a text is one of a few.
fn flipped(text: &str) -> &str {
    const CHOICES: [&[&str]; 11] = [
        &["progap-labels", "progap", "mlp", "gap", "sage"],
        &["none", "edge", "node"],
        &["labels", "embeddings", "auto"],
        &["weight", "cap", "sample"],
        &["best-validation", "last-epoch"],
        &["best", "rdp", "theorem"],
        &["records", "published"],
        &["cat", "sum", "mean"],
        &["selu", "relu", "tanh"],
        &["edge-undirected", "node"],
        &["gdp", "pld"],
    ];
    let list = CHOICES.iter().find(|list| list.contains(&text));
    list.map_or("other", |list| {
        let index = list.iter().position(|choice| *choice == text).unwrap_or(0);
        list[(index + 1) % list.len()]
    })
}

/// Small releases of every method at every level that it has, and what is exported of them; all below a folder.
pub fn releases(place: &Path) -> Vec<PathBuf> {
    use progap::Settings;
    use progap::release::{Exported, export};
    use progap::settings::{Level, MethodKind};
    use progap_graph::synth::SocialNetwork;
    let data = SocialNetwork::new(240).edges(2400).classes(3).seed(1).generate().expect("a network");
    let data = data.or_random_split(progap_graph::Ratios::default(), 1).expect("a split");
    let mut made = vec![];
    let all = progap::method::catalogue::methods();
    for (method, level) in all.flat_map(|entry| entry.levels.iter().map(|&level| (entry.method, level))) {
        let settings = Settings { epochs: 2, batch_size: 20, ..Settings::of(method, level).unit_by_graph() };
        let folder = place.join(format!("{method}-{level}"));
        progap::train(&data, &settings).into_folder(&folder).expect("trained");
        made.push(folder.clone());
        for rows in [false, true] {
            if method == MethodKind::ProgapLabels && !(rows && level == Level::Node) {
                let out = place.join(format!("{method}-{level}-export-{rows}"));
                let exported = Exported { date: "2026-01-31".parse().expect("a day"), rows };
                export(&folder, &out, exported, &mut |_| Ok("a page".into()), None).expect("exported");
                made.push(out);
            }
        }
    }
    made
}
