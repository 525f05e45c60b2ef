//! `progap report` as people use it: by the command, with hostile names, in a real browser.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{folder, progap_in, put};
use serde_json::Value;

/// Class names that try to be something else.
const CLASSES: [&str; 3] =
    ["<script>alert(1)</script>", "<img src=x onerror=alert(2)> & \"co\"", "50%_of|{x}$"];

/// A folder with a small network of three hostile classes in it.
fn workplace() -> tempfile::TempDir {
    network(|node| node % 3)
}

/// The same with a network whose nodes have these classes.
fn network(class: impl Fn(usize) -> usize) -> tempfile::TempDir {
    let folder = folder();
    let mut nodes = String::from("id,label,a,b,c\n");
    let mut edges = String::from("source,target\n");
    for node in 0..240 {
        let class = class(node);
        let quoted = CLASSES[class].replace('"', "\"\"");
        // The features tell the class of two nodes out of three.
        let told = if node % 9 < 6 { class } else { (class + 1) % 3 };
        let column = |k: usize| u8::from(told == k);
        nodes += &format!("{node},\"{quoted}\",{},{},{}\n", column(0), column(1), column(2));
        for step in [3, 6, 9, 30, 60] {
            edges += &format!("{node},{}\n", (node + step) % 240);
        }
    }
    put(folder.path(), &[("<i>net/nodes.csv", nodes.as_bytes()), ("<i>net/edges.csv", edges.as_bytes())]);
    folder
}

fn train(place: &Path, epochs: &str, more: &[&str]) {
    let arguments = ["train", "<i>net", "--epochs", epochs, "--out", "r", "--quiet"];
    progap_in(place, &[&arguments, more].concat()).ok();
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn a_release_becomes_a_page_and_files() {
    let place = workplace();
    train(place.path(), "20", &["--epsilon", "40"]);
    assert_eq!(progap_in(place.path(), &["report", "r"]).ok().trim(), "r-report/report.html");
    progap_in(place.path(), &["verify", "r"]).ok();
    let at = |name: &str| place.path().join("r-report").join(name);
    for figure in ["stages", "confusion", "calibration", "training", "loss"] {
        assert!(read(at(&format!("figures/{figure}.svg"))).starts_with("<svg "), "{figure}");
        for ending in ["csv", "md", "tex"] {
            assert!(read(at(&format!("tables/{figure}.{ending}"))).lines().count() > 1, "{figure}.{ending}");
        }
    }
    let page = read(at("report.html"));
    for hostile in ["<script>alert", "<img", "<i>net"] {
        assert!(!page.contains(hostile), "{hostile} is not escaped");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains("http://") && !page.contains("https://"), "the page needs no network");
    let statement: Value = serde_json::from_str(&read(place.path().join("r/privacy.json"))).expect("JSON");
    assert!(page.contains(statement["in_words"].as_str().expect("words")), "the guarantee in plain words");
    for part in ["Not covered:", "epsilon", "peak memory", "Run it again"] {
        assert!(page.contains(part), "{part}");
    }

    // The confusion matrix adds up to the accuracy of the release.
    let metrics: Value = serde_json::from_str(&read(place.path().join("r/metrics.json"))).expect("JSON");
    let counts: Vec<Vec<f64>> = read(at("tables/confusion.csv"))
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').take(3).map(|count| count.parse().expect("a count")).collect())
        .collect();
    let all: f64 = counts.iter().flatten().sum();
    let right: f64 = (0..3).map(|class| counts[class][2 - class]).sum();
    assert_eq!(all, 36.0);
    assert!((right / all - metrics["test_accuracy"].as_f64().expect("a number")).abs() < 1e-9);
    let accuracy = read(at("tables/accuracy.csv"));
    let expected = format!("test nodes,36,{},", metrics["test_accuracy"].as_f64().expect("a number"));
    assert!(accuracy.contains(&expected), "{accuracy}");
    assert!(read(at("tables/classes.tex")).contains("50\\%\\_of\\textbar{}\\{x\\}\\$"));
    // A noisy sum tells more than any of the three columns by itself, and every one of them is told of.
    let importance = read(at("tables/importance.csv"));
    for name in ["sum 1", "\na,", "\nb,", "\nc,"] {
        assert!(importance.contains(name), "{name}: {importance}");
    }
    let lines = read(at("tables/training.csv"));
    assert_eq!(lines.lines().count(), 61, "three stages of twenty epochs");
    assert!(lines.lines().last().is_some_and(|line| line.starts_with("60,stage 2,")), "{lines}");
}

/// Of a rare class the page shows what every threshold finds, and every number with its interval.
#[test]
fn a_rare_class_has_curves_thresholds_and_intervals() {
    let place = network(|node| if node % 12 == 5 { 2 } else { node % 2 });
    train(place.path(), "20", &["--epsilon", "40"]);
    progap_in(place.path(), &["report", "r"]).ok();
    let at = |name: &str| read(place.path().join("r-report").join(name));
    let rows = |name: &str| -> Vec<Vec<f64>> {
        let numbers = |line: &str| line.split(',').filter_map(|cell| cell.parse().ok()).collect();
        at(name).lines().skip(1).map(numbers).collect()
    };
    let curve = rows("tables/precision-recall.csv");
    assert!(
        curve.len() > 1 && curve.windows(2).all(|pair| pair[0][0] < pair[1][0]),
        "recall grows: {curve:?}"
    );
    assert_eq!(curve.last().map(|row| row[0]), Some(1.0), "all are found in the end");
    let gains = rows("tables/gains.csv");
    assert_eq!((gains[0][1], gains.last().map(|row| row[1])), (0.0, Some(1.0)), "{gains:?}");
    let text = at("tables/thresholds.csv");
    let header = "to flag,threshold,flagged,share flagged,precision,precision (low),precision (high),recall,";
    assert!(text.starts_with(header) && text.contains("largest F1"), "{text}");
    let found = rows("tables/thresholds.csv");
    assert!(found.len() >= 3 && found.windows(2).all(|pair| pair[0][1] < pair[1][1]), "{text}");
    // The lift is the precision over the share of the class.
    let base = |row: &[f64]| row[3] / row[row.len() - 1];
    let share = base(found.last().expect("a row"));
    assert!(
        share > 0.0 && found.iter().all(|row| row[3] == 0.0 || (base(row) - share).abs() < 1e-9),
        "{text}"
    );
    let classes = at("tables/classes.csv");
    for name in ["recall (low)", "AUROC (high)", "average precision (low)"] {
        assert!(classes.contains(name), "{classes}");
    }
    assert!(at("tables/metrics.csv").contains("test nodes (low)"));
    // At edge level labels are public, and so is all of this.
    progap_in(place.path(), &["report", "r", "--public", "--out", "public"]).ok();
    assert_eq!(read(place.path().join("public/tables/thresholds.csv")), text);
    let again = ["report", "r", "--out", "again"];
    progap_in(place.path(), &again).ok();
    assert_eq!(read(place.path().join("again/tables/classes.csv")), classes, "resamples are the same");
}

#[test]
fn private_labels_are_shown_to_the_data_owner_only() {
    let place = workplace();
    train(place.path(), "2", &["--level", "node", "--batch-size", "60", "--max-degree", "5"]);
    progap_in(place.path(), &["report", "r"]).ok();
    let page = read(place.path().join("r-report/report.html"));
    assert!(page.contains("Labels are private at node level") && page.contains("data owner alone"));
    assert!(!place.path().join("r-report/tables/confusion.csv").exists());
    progap_in(place.path(), &["report", "r", "--data", "<i>net", "--out", "own"]).ok();
    let page = read(place.path().join("own/report.html"));
    assert!(page.contains("Computed from private labels, without noise: for the data owner alone"));
    assert!(place.path().join("own/tables/confusion.csv").exists());
    // The same folder without the labels: nothing that was made of them is left.
    progap_in(place.path(), &["report", "r", "--out", "own", "--force"]).ok();
    assert!(!place.path().join("own/tables/confusion.csv").exists());
    let other = ["data", "synth", "other.progap", "--nodes", "300", "--edges", "900", "--classes", "3"];
    progap_in(place.path(), &other).ok();
    let wrong = ["report", "r", "--data", "other.progap", "--out", "wrong"];
    progap_in(place.path(), &wrong).refused(&["other.progap", "other data"]);
    assert!(!place.path().join("wrong").exists());
}

/// A page that anyone may see: no figure that is made of private labels, of the time it took, or of where things lie.
#[test]
fn a_public_page_has_nothing_for_the_data_owner_alone() {
    let place = workplace();
    train(place.path(), "2", &["--level", "node", "--batch-size", "60", "--max-degree", "5"]);
    let page = "r-public-report/report.html";
    assert_eq!(progap_in(place.path(), &["report", "r", "--public"]).ok().trim(), page);
    let text = read(place.path().join(page));
    for kept_back in ["peak memory", "processor time", "Accuracy", "id=\"training\"", "private/manifest"] {
        assert!(!text.contains(kept_back), "{kept_back}");
    }
    let metrics: Value =
        serde_json::from_str(&read(place.path().join("r/private/metrics.json"))).expect("JSON");
    // One of them may be a percentage of the page by chance: the noise is fresh in every run.
    let shown = ["test_accuracy", "val_accuracy", "train_accuracy"].into_iter().filter(|name| {
        let accuracy = 100.0 * metrics[*name].as_f64().expect("a number");
        text.contains(&format!("{accuracy:.1} %"))
    });
    assert!(shown.count() < 2 && !text.contains("accuracy ends at"), "an accuracy");
    for said in ["Left out", "made of private labels without noise", "time and memory of training", "epsilon"]
    {
        assert!(text.contains(said), "{said}");
    }
    let both = ["report", "r", "--public", "--data", "<i>net", "--out", "x"];
    assert!(!progap_in(place.path(), &both).success && !place.path().join("x").exists());

    // At edge level labels are public: the page shows what was learnt, but not what it took.
    std::fs::rename(place.path().join("r"), place.path().join("node")).expect("moved");
    train(place.path(), "3", &[]);
    progap_in(place.path(), &["report", "r", "--public", "--out", "edge"]).ok();
    let text = read(place.path().join("edge/report.html"));
    assert!(text.contains("id=\"accuracy\"") && place.path().join("edge/tables/confusion.csv").exists());
    assert!(!text.contains("peak memory") && !text.contains(place.path().to_str().expect("a path")));
}

#[test]
fn a_release_without_a_promise_says_so() {
    let place = workplace();
    train(place.path(), "3", &["--level", "none", "--method", "mlp"]);
    progap_in(place.path(), &["report", "r"]).ok();
    let page = read(place.path().join("r-report/report.html"));
    assert!(page.contains("Not private. The model was trained on the data as it is"));
    for claim in ["Taken as public", "In numbers", "secure random"] {
        assert!(!page.contains(claim), "{claim}");
    }
}

#[test]
fn bad_requests_are_one_sentence() {
    let place = workplace();
    train(place.path(), "1", &[]);
    progap_in(place.path(), &["report", "nowhere"]).refused(&["nowhere", "no release"]);
    progap_in(place.path(), &["report", "r", "--out", "r/page"]).refused(&["r/page", "inside a release"]);
    progap_in(place.path(), &["report", "r", "--data", "<i>net"]).refused(&["--data", "node level"]);
    std::fs::remove_file(place.path().join("r/private/cost.json")).expect("taken out");
    progap_in(place.path(), &["verify", "r"]).ok();
    progap_in(place.path(), &["report", "r", "--quiet"]).ok();
    assert!(read(place.path().join("r-report/report.html")).contains("Time and memory are not known"));
    std::fs::write(place.path().join("r/privacy.json"), "{}").expect("tampered");
    progap_in(place.path(), &["report", "r"]).refused(&["privacy.json", "checksum"]);
}

/// A page as the browser has it in the end, and what it wrote to its console.
struct Seen {
    page: String,
    console: Vec<String>,
}

/// The browser: `$PROGAP_CHROMIUM`, or `chromium` on the path.
fn browser() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("PROGAP_CHROMIUM") {
        return Some(path.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join("chromium")).find(|path| path.is_file())
}

fn open(browser: &Path, page: &Path, size: &str) -> Seen {
    let profile = folder();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={size}"))
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let console = errors.lines().filter(|line| line.contains("CONSOLE")).map(String::from).collect();
    Seen { page: String::from_utf8(output.stdout).expect("text"), console }
}

/// The page in the browser, at the width of a phone and of a desk.
#[test]
fn it_renders_in_a_browser() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no chromium on the path; install it, or name it with PROGAP_CHROMIUM");
        return;
    };
    // A rare class, so that every kind of figure is there.
    let place = network(|node| if node % 12 == 5 { 2 } else { node % 2 });
    train(place.path(), "20", &["--epsilon", "40"]);
    progap_in(place.path(), &["report", "r", "--out", "page"]).ok();
    let page = place.path().join("page/report.html");
    let text = read(page.clone()).replace('&', "&amp;").replace('"', "&quot;");
    let probe = place.path().join("probe.html");
    std::fs::write(&probe, include_str!("report/probe.html").replace("{{PAGE}}", &text)).expect("written");
    let loud = place.path().join("loud.html");
    std::fs::write(&loud, "<script>nothing.there()</script>").expect("written");
    let views = [(&loud, "1280,900"), (&page, "360,800"), (&page, "1280,900"), (&probe, "1400,1000")];
    let browser = &browser;
    let [loud, phone, desk, seen] = std::thread::scope(|scope| {
        views
            .map(|(page, size)| scope.spawn(move || open(browser, page, size)))
            .map(|view| view.join().expect("a view"))
    });
    // A page that complains is heard: otherwise silence would say nothing.
    assert_eq!(loud.console.len(), 1);
    for view in [&phone, &desk, &seen] {
        assert_eq!(view.console, Vec::<String>::new());
    }
    assert!(phone.page.contains("</footer>") && desk.page.contains("</footer>"));
    let result =
        seen.page.split_once("<pre>").and_then(|(_, rest)| rest.split_once("</pre>")).expect("a result").0;
    let result = result.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let found: Value = serde_json::from_str(&result).expect("JSON");
    for view in found.as_array().unwrap_or_else(|| panic!("{found}")) {
        check_view(view);
    }
    assert_eq!(found.as_array().map(Vec::len), Some(2));
}

/// Shows, for a phone and for a desk, by how much each box that can scroll is wider than it shows.
const CLIPPED: &str = r#"<body><iframe style="width:360px;height:800px;border:0" srcdoc="{{PAGE}}"></iframe>
<iframe style="width:1280px;height:900px;border:0" srcdoc="{{PAGE}}"></iframe><script>
addEventListener("load", () => {
  const result = document.createElement("pre");
  result.textContent = JSON.stringify([...document.querySelectorAll("iframe")].map((frame) =>
    [...frame.contentDocument.querySelectorAll(".table .scroll")].filter((box) => box.clientWidth > 0)
      .map((box) => [box.getAttribute("aria-label").slice(0, 30), box.scrollWidth - box.clientWidth])));
  document.body.replaceChildren(result);
});
</script>"#;

/// Tables of experiments have many columns: all of them are seen, on a phone as well.
#[test]
fn no_table_of_an_experiment_is_clipped() {
    let place = workplace();
    let run = ["experiment", "table2", "--data-sets", "<i>net", "--runs", "1", "--levels", "none,edge"];
    let more = [
        "--methods",
        "progap-views,progap,mlp",
        "--preset",
        "both",
        "--set",
        "epochs=2",
        "--out",
        "e",
        "--quiet",
    ];
    progap_in(place.path(), &[&run[..], &more].concat()).ok();
    let page = read(place.path().join("e/report.html"));
    assert!(page.contains("<table class=\"many\" role=\"table\"") && page.contains("data-label=\"delta\""));
    let Some(browser) = browser() else {
        eprintln!("skipped: no chromium on the path; install it, or name it with PROGAP_CHROMIUM");
        return;
    };
    let probe = place.path().join("clipped.html");
    let text = page.replace('&', "&amp;").replace('"', "&quot;");
    std::fs::write(&probe, CLIPPED.replace("{{PAGE}}", &text)).expect("written");
    let seen = open(&browser, &probe, "1400,1000");
    let result =
        seen.page.split_once("<pre>").and_then(|(_, rest)| rest.split_once("</pre>")).expect("a result").0;
    let views: Vec<Vec<(String, f64)>> = serde_json::from_str(result).expect("JSON");
    assert_eq!(views.len(), 2);
    for view in views {
        assert!(view.len() >= 2, "{view:?}");
        assert!(view.iter().all(|(_, hidden)| *hidden <= 0.0), "{view:?}");
    }
}

fn check_view(view: &Value) {
    let number = |key: &str| view[key].as_f64().unwrap_or_else(|| panic!("{key} in {view}"));
    let width = number("width");
    assert!(number("scrollWidth") <= width, "the page scrolls sideways at {width}: {view}");
    assert_eq!(view["outside"], serde_json::json!([]), "at {width}");
    assert_eq!(number("figures"), 7.0);
    assert_eq!(
        view["pictures"],
        serde_json::json!([1, 1, 1, 1, 1, 1, 1]),
        "each figure in one width, at {width}"
    );
    assert_eq!(number("tables"), 7.0, "each figure as a table");
    assert!(number("smallest") >= 9.0, "words in figures are {} pixels high at {width}", view["smallest"]);
    assert_eq!((number("unnamed"), number("injected"), number("headings")), (0.0, 0.0, 1.0), "{view}");
    let pictures = view["keys"].as_array().expect("a list");
    // Noise decides how many groups the calibration has: one alone has nowhere to lead.
    let alone = pictures.iter().filter(|keys| keys["tooltips"] == 1).count();
    assert!(pictures.iter().all(|keys| keys["tooltips"].is_u64()), "{view}");
    assert!(alone <= 1, "{alone} figures with a single value: {view}");
    for keys in pictures {
        assert_eq!(keys["stops"], 1, "{keys}");
        let said: Vec<&str> =
            keys["said"].as_array().expect("a list").iter().map(|text| text.as_str().unwrap_or("")).collect();
        assert!(said.iter().all(|text| !text.is_empty()), "every key leads to a value: {keys}");
        assert_eq!(said[0] == said[1], keys["tooltips"] == 1, "the arrow leads on: {keys}");
        assert_eq!(keys["label"].as_str(), said.last().copied());
        assert_eq!((&keys["inside"], &keys["hidden"]), (&true.into(), &true.into()), "{keys}");
    }
    assert!(view["pointed"].as_str().is_some_and(|text| text.contains('%')), "{view}");
    let colours = &view["colours"];
    assert_ne!(colours["light"]["ground"], colours["dark"]["ground"]);
    for theme in ["light", "dark", "auto"] {
        let contrast = colours[theme]["contrast"].as_f64().unwrap_or(0.0);
        assert!(contrast >= 4.5, "contrast {contrast} in {theme}");
    }
}
