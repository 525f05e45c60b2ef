//! Runs that cannot work and releases that cannot be trusted: one sentence, an exit code, no folder, no budget spent.

mod common;

use std::path::Path;

use common::runs::{charges, contents, make_ledger, start, train, wait_for, workplace};
use common::{folder, progap_in, put};

/// A place to work with a budget of which nothing is spent.
fn workplace_with_budget(unit: &str) -> tempfile::TempDir {
    let place = workplace();
    make_ledger(place.path(), "budget.db", unit, "9");
    place
}

#[track_caller]
fn nothing_happened(place: &Path, arguments: &[&str]) {
    assert!(!place.join("r").exists() && !place.join("releases").exists(), "{arguments:?} left a folder");
    assert_eq!(charges(place, "budget.db").len(), 0, "{arguments:?} spent budget");
}

/// Trains with a ledger, which must be refused with these words before anything happens.
#[track_caller]
fn refused(place: &Path, settings: &[&str], parts: &[&str]) {
    let common = ["train", "g.progap", "--out", "r", "--ledger", "budget.db"];
    let arguments = [&common[..], settings].concat();
    progap_in(place, &arguments).refused(parts);
    nothing_happened(place, &arguments);
}

#[test]
fn settings_out_of_range() {
    let place = workplace_with_budget("edge-undirected");
    let node = |flag, value| ["--level", "node", flag, value];
    let cases: [(&[&str], &[&str]); 22] = [
        (&["--depth", "51"], &["depth 51", "0 to 50"]),
        (&["--depth", "18446744073709551615"], &["depth", "0 to 50"]),
        (&["--epochs", "0"], &["epochs 0", "1 to"]),
        (&["--epochs", "99999999"], &["epochs 99999999"]),
        (&["--learning-rate", "0"], &["learning rate 0", "1e-9 to 1000"]),
        (&["--learning-rate", "nan"], &["learning rate NaN"]),
        (&["--lr", "1e9"], &["learning rate"]),
        (&["--weight-decay=-1"], &["weight decay -1", "0 to"]),
        (&["--dropout", "1"], &["dropout 1", "0 to 0.99"]),
        (&["--hidden", "0"], &["hidden width 0", "1 to 64"]),
        (&["--layers", "0"], &["layers 0", "1 to 8"]),
        (&["--epsilon", "0"], &["epsilon 0", "0.001 to"]),
        (&["--epsilon=-1"], &["epsilon -1"]),
        (&["--epsilon", "inf"], &["epsilon inf"]),
        (&["--delta", "0"], &["delta 0", "1e-30 to 0.1"]),
        (&["--delta", "1"], &["delta 1"]),
        (&node("--batch-size", "0"), &["batch size 0"]),
        (&node("--batch-size", "1125"), &["batch size 1125", "1125 training nodes"]),
        (&node("--clip", "0"), &["clip 0"]),
        // No bound on what one node contributes.
        (&node("--max-degree", "0"), &["max degree 0", "1 to"]),
        (&node("--gradient-noise-ratio", "0"), &["gradient noise ratio 0"]),
        (&["--ratios", "0.9,0.2"], &["0.9", "0.2", "training nodes"]),
    ];
    for (settings, parts) in cases {
        refused(place.path(), settings, parts);
    }
}

#[test]
fn settings_that_contradict_each_other() {
    let place = workplace_with_budget("edge-undirected");
    let at = place.path();
    refused(at, &["--level", "none", "--epsilon", "1"], &["--epsilon has no effect", "level none"]);
    refused(at, &["--level", "none", "--delta", "1e-5"], &["--delta has no effect", "level none"]);
    refused(at, &["--level", "none"], &["--ledger"]);
    // Noise from a seed is not secret: the ledger would promise what is not true.
    refused(at, &["--seed", "5"], &["--seed", "not private", "cannot be charged"]);
    refused(at, &["--ledger-name", "nobody"], &["no budget for nobody", "progap ledger init budget.db"]);
    refused(at, &["--level", "node", "--selection", "best-validation"], &["validation labels are private"]);
    refused(at, &["--level", "node", "--dropout", "0.1"], &["dropout"]);
    // The ledger protects edges.
    refused(at, &["--level", "node", "--epochs", "1"], &["edge", "node", "progap ledger init budget.db"]);
    for arguments in [
        &["--depth=-1"][..],
        &["--epochs", "many"],
        &["--repeats", "0"],
        &["--threads", "0"],
        &["--delta", "small"],
        &["--level", "friend"],
        &["--preset", "paper", "--config", "c.toml"],
    ] {
        let common = ["train", "g.progap", "--out", "r", "--ledger", "budget.db"];
        let run = progap_in(at, &[&common[..], arguments].concat());
        assert!(!run.success && run.stderr.starts_with("error: "), "{arguments:?}: {}", run.stderr);
        nothing_happened(at, arguments);
    }
}

#[test]
fn settings_from_a_file() {
    let place = workplace_with_budget("edge-undirected");
    let at = place.path();
    progap_in(at, &["train", "g.progap", "--epochs", "2", "--out", "good", "--quiet"]).ok();
    let good = std::fs::read_to_string(at.join("good/config.toml")).expect("settings");
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from} is not in {good}");
        put(at, &[("c.toml", good.replace(from, to).as_bytes())]);
    };
    with("max_degree", "max_degrees");
    refused(at, &["--config", "c.toml"], &["c.toml", "max_degrees"]);
    with("epochs = 2", "epochs = 0");
    refused(at, &["--config", "c.toml"], &["epochs 0"]);
    with("level = \"edge\"", "level = \"friend\"");
    refused(at, &["--config", "c.toml"], &["c.toml", "friend"]);
    refused(at, &["--config", "nowhere.toml"], &["nowhere.toml"]);
    // A setting that is left out has its default.
    let own = |text: &str| put(at, &[("own.toml", text.as_bytes())]);
    let config = ["--config", "own.toml"];
    own("[settings]\nmethod = \"progap\"\nlevel = \"edge\"\nepsilon = 2\nepochs = 2\nclip = 1.0\n");
    let train = ["train", "g.progap", "--quiet", "--out", "own"];
    progap_in(at, &[&train[..], &config].concat()).ok();
    let settings =
        progap::Release::open(&at.join("own")).expect("a release").settings().expect("settings").clone();
    assert_eq!((settings.epsilon, settings.epochs, settings.depth), (Some(2.0), 2, 2));
    for (text, parts) in [
        (
            "[settings]\nlevel = \"edge\"\ndepth = \"deep\"\n",
            &["line 3", "depth", "a whole number from 0 to 50"][..],
        ),
        ("[settings]\nepsilon = nan\n", &["line 2", "epsilon NaN", "0.001 to 1000"]),
        ("[settings]\nlevel = \"edge\"\nclip = 0.5\n", &["clip has no effect", "level node"]),
        ("[settings]\nmethod = \"dp-gnn\"\nlevel = \"edge\"\n", &["dp-gnn has no level edge"]),
        ("[source]\nseed = \"x\"\n", &["line 1", "invalid type"]),
        ("[source]\nnonsense = 4\n", &["line 1", "nonsense"]),
        ("[source.source]\nnonsense = 4\n", &["line 1", "nonsense"]),
        ("settings = 4\n", &["line 1"]),
    ] {
        own(text);
        refused(at, &config, &[&["own.toml"], parts].concat());
    }
    with("method = \"progap-labels\"", "method = \"dp-gnn\"");
    refused(at, &["--config", "c.toml"], &["c.toml", "dp-gnn has no level edge"]);
}

/// Advice that leads somewhere, and flags that change nothing of the data.
#[test]
fn what_changes_nothing_is_refused_with_advice_that_helps() {
    let place = workplace_with_budget("edge-undirected");
    let at = place.path();
    refused(at, &["-m", "mlp", "--direction", "out"], &["--direction has no effect", "uses no edge"]);
    refused(at, &["-m", "progap-labels", "--depth", "0", "--direction", "out"], &["depth of at least 1"]);
    refused(at, &["-m", "dp-gnn", "--depth", "3"], &["one convolution", "leave out --depth"]);
    refused(at, &["--level", "node", "--dropout", "0.5"], &["leave out --dropout"]);
    refused(
        at,
        &["-m", "progap-labels", "--messages", "structure"],
        &["--messages auto or --messages labels"],
    );
    refused(at, &["--unscaled"], &["--unscaled has no effect", "number columns"]);
    refused(at, &["--max-categories", "2"], &["--max-categories has no effect", "table"]);
    let noisy = ["train", "g.progap", "--level", "node", "--scaling", "noisy", "--out", "r"];
    progap_in(at, &noisy).refused(&["--scaling has no effect", "number columns"]);
}

/// Where nothing is asked of the edges epsilon and delta are zero, and written so.
#[test]
fn a_run_that_costs_nothing_says_zero() {
    let place = workplace();
    let at = place.path();
    let run = ["train", "g.progap", "--method", "mlp", "--level", "edge", "--epochs", "1", "--out", "r"];
    let mut said = progap_in(at, &run).ok();
    said += &progap_in(at, &["inspect", "r"]).ok();
    said += &progap_in(at, &["verify", "r"]).ok();
    said += &progap_in(at, &["check", "g.progap", "--method", "mlp", "--level", "edge"]).ok();
    assert!(!said.contains("-0.0") && !said.contains("0e0"), "{said}");
    assert!(said.contains("undirected edge  ") || said.contains("epsilon 0.0000"), "{said}");
}

#[test]
fn data_that_cannot_be_trained_on() {
    let place = folder();
    let at = place.path();
    let edges: &[u8] = b"source,target\n1,2\n2,3\n3,4\n4,1\n";
    let check = |nodes: &str, parts: &[&str]| {
        put(at, &[("g/nodes.csv", nodes.as_bytes()), ("g/edges.csv", edges)]);
        progap_in(at, &["train", "g", "--out", "r"]).refused(parts);
        progap_in(at, &["train", "g", "--out", "r", "--ledger", "none.db"]).refused(&[]);
        assert!(!at.join("r").exists() && !at.join("none.db").exists());
    };
    check(
        "id,label,x,split\n1,a,1,train\n2,,2,train\n3,b,3,val\n4,a,1,val\n",
        &["fewer than two training nodes"],
    );
    progap_in(at, &["train", "nothing", "--out", "r"]).refused(&["nothing", "progap data list"]);
    assert!(!at.join("r").exists());
}

#[test]
fn ledgers_that_cannot_be_charged() {
    let place = workplace();
    let at = place.path();
    put(at, &[("text.db", b"not a ledger"), ("empty.db", b"")]);
    make_ledger(at, "small.db", "edge-undirected", "0.5");
    let other = [
        "ledger",
        "init",
        "other.db",
        "--data",
        "demo",
        "--unit",
        "edge",
        "--epsilon",
        "4",
        "--delta",
        "1e-7",
    ];
    progap_in(at, &other).ok();
    for (ledger, parts) in [
        ("nowhere.db", &["nowhere.db", "progap ledger init"][..]),
        ("text.db", &["text.db", "not a privacy ledger"]),
        ("empty.db", &["empty.db", "not a privacy ledger"]),
        (
            "other.db",
            &[
                "no budget",
                "`progap ledger init other.db --data g.progap --unit edge-undirected --epsilon 1 --delta 1e-6`",
            ],
        ),
        ("small.db", &["refused", "0.5"]),
    ] {
        progap_in(at, &["train", "g.progap", "--epochs", "2", "--out", "r", "--ledger", ledger])
            .refused(parts);
        assert!(!at.join("r").exists(), "{ledger}");
    }
    // A split has no budget of its own.
    make_ledger(at, "once.db", "edge-undirected", "1.2");
    let again = |ratios, out| {
        progap_in(
            at,
            &[
                "train", "g.progap", "--epochs", "2", "--ratios", ratios, "--quiet", "--out", out,
                "--ledger", "once.db",
            ],
        )
    };
    again("0.1,0.15", "first").ok();
    again("0.2,0.2", "second").refused(&["refused"]);
    assert_eq!(charges(at, "once.db").len(), 1);
}

#[test]
fn folders_in_the_way() {
    let place = workplace_with_budget("edge-undirected");
    let at = place.path();
    put(at, &[("r/mine.txt", b"mine"), ("file", b"")]);
    for (out, part) in [("r", "not empty"), ("file", "file")] {
        let run = ["train", "g.progap", "--epochs", "2", "--out", out, "--ledger", "budget.db"];
        progap_in(at, &run).refused(&[out, part]);
    }
    assert_eq!(contents(&at.join("r")).len(), 1);
    assert_eq!(charges(at, "budget.db").len(), 0);
}

#[cfg(unix)]
#[test]
fn runs_that_cannot_go_on() {
    let place = workplace_with_budget("edge-undirected");
    let at = place.path();
    let interrupt = |out: &str, ledger: &[&str]| {
        let mut child = start(train(at, &[&["--epochs", "30000"], ledger].concat(), out));
        wait_for(&mut child, &at.join(out).join("run.json"));
        child.kill().expect("killed");
        child.wait().expect("gone");
    };
    interrupt("r", &["--ledger", "budget.db"]);
    let spent = charges(at, "budget.db");
    let before = contents(&at.join("r"));
    let resume = |parts: &[&str]| {
        progap_in(at, &["train", "--resume", "r"]).refused(parts);
        assert_eq!(charges(at, "budget.db"), spent, "{parts:?}");
    };

    for flag in
        [&["--epochs", "5"][..], &["--epsilon", "5"], &["g.progap"], &["--seed", "1"], &["--layerwise"]]
    {
        let run = progap_in(at, &[&["train", "--resume", "r"][..], flag].concat());
        assert!(!run.success && run.stderr.contains("cannot be used with"), "{flag:?}: {}", run.stderr);
    }

    // Other settings, by hand.
    let run = String::from_utf8(before["run.json"].clone()).expect("text");
    put(at, &[("r/run.json", run.replace("\"epsilon\": 1.0", "\"epsilon\": 5.0").as_bytes())]);
    resume(&["run.json", "changed since the run began"]);
    put(at, &[("r/run.json", run.replace("\"version\": 1", "\"version\": 2").as_bytes())]);
    resume(&["run.json", "another version"]);
    put(at, &[("r/run.json", b"{}")]);
    resume(&["run.json"]);
    put(at, &[("r/run.json", run.as_bytes())]);

    // Other noise.
    put(at, &[("r/secret.key", b"short")]);
    resume(&["secret.key", "damaged"]);
    // A key of the right length, of another run.
    interrupt("s", &[]);
    std::fs::copy(at.join("s/secret.key"), at.join("r/secret.key")).expect("exchanged");
    resume(&["secret.key", "not the one that the run began with"]);
    put(at, &[("r/secret.key", &before["secret.key"])]);

    // Other data under the same name, then none.
    let data = std::fs::read(at.join("g.progap")).expect("data");
    let other = ["data", "synth", "h.progap", "--nodes", "1500", "--edges", "40000", "--classes", "3"];
    progap_in(at, &[&other[..], &["--seed", "9"]].concat()).ok();
    std::fs::rename(at.join("h.progap"), at.join("g.progap")).expect("exchanged");
    resume(&["begun on other data"]);
    std::fs::remove_file(at.join("g.progap")).expect("removed");
    resume(&["g.progap"]);
    put(at, &[("g.progap", &data)]);

    for folder in ["nowhere", "."] {
        progap_in(at, &["train", "--resume", folder]).refused(&["there is no run here"]);
    }
}

#[test]
fn releases_that_cannot_be_trusted() {
    let place = workplace();
    let at = place.path();
    progap_in(at, &["train", "g.progap", "--epochs", "5", "--out", "r", "--quiet"]).ok();
    let good = contents(&at.join("r"));
    let all_refuse = |parts: &[&str]| {
        for command in ["predict", "verify"] {
            progap_in(at, &[command, "r"]).refused(parts);
        }
    };
    let text = |name: &str| String::from_utf8(good[name].clone()).expect("text");

    let newer = text("manifest.json").replace("\"version\": 1", "\"version\": 2");
    put(at, &[("r/manifest.json", newer.as_bytes())]);
    all_refuse(&["manifest.json", "version 2", "update"]);
    put(at, &[("r/manifest.json", b"[]")]);
    all_refuse(&["manifest.json"]);
    put(at, &[("r/manifest.json", &good["manifest.json"])]);

    for (name, content) in &good {
        let path = at.join("r").join(name);
        std::fs::remove_file(&path).expect("removed");
        all_refuse(&[if name == "manifest.json" { "no release" } else { name }]);
        std::fs::write(&path, content).expect("put back");
    }
    let swap = |names: [&str; 2]| {
        let [first, second] = names.map(|name| at.join("r").join(name));
        std::fs::rename(&first, at.join("aside")).expect("moved");
        std::fs::rename(&second, &first).expect("moved");
        std::fs::rename(at.join("aside"), &second).expect("moved");
    };
    swap(["aggregates/1.npy", "aggregates/2.npy"]);
    all_refuse(&["aggregates/1.npy", "swapped"]);
    swap(["aggregates/1.npy", "aggregates/2.npy"]);

    // Of another run with the same settings.
    progap_in(at, &["train", "g.progap", "--epochs", "5", "--out", "other", "--quiet"]).ok();
    swap(["model.safetensors", "../other/model.safetensors"]);
    all_refuse(&["model.safetensors", "swapped"]);
    swap(["model.safetensors", "../other/model.safetensors"]);

    // A file that does not belong, which predictions do not read.
    put(at, &[("r/extra.txt", b"?")]);
    let verified = progap_in(at, &["verify", "r"]);
    assert!(!verified.success && verified.stdout.contains("extra.txt"), "{}", verified.stdout);
    std::fs::remove_file(at.join("r/extra.txt")).expect("removed");

    progap_in(at, &["verify", "r"]).ok();
    for folder in ["nowhere", "."] {
        progap_in(at, &["verify", folder]).refused(&["no release here"]);
        progap_in(at, &["predict", folder]).refused(&["no release here"]);
    }
    progap_in(at, &["predict", "r", "--out", "p.txt"]).refused(&["p.txt", ".csv, .json or .parquet"]);
    progap_in(at, &["predict", "r", "--out", "nowhere/p.csv"]).refused(&["nowhere/p.csv"]);
    progap_in(at, &["predict", "r", "--nodes", "3,nobody"]).refused(&["nobody"]);
}
