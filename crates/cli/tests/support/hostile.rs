//! Folders that a stranger may send: links, pipes, files without end, lists of other people's files. Every command that
//! reads them must refuse, soon, and without reading anything outside.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// How long a refusal may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Text that lies outside, and must not be shown, nor its checksum.
const SECRET: &str = "something outside of the folder, 4711";
/// A terabyte that takes no space.
const TERABYTE: u64 = 1 << 40;

/// Hostile entries where a file is due.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    LinkOutside,
    LinkToItself,
    LinkToRoot,
    LinkToDevice,
    Pipe,
    Folder,
    /// Without the right checksum, or with it where that can be computed.
    Terabyte,
    Empty,
    Nested,
    Halved,
    Doubled,
}

const KINDS: [Kind; 11] = [
    Kind::LinkOutside,
    Kind::LinkToItself,
    Kind::LinkToRoot,
    Kind::LinkToDevice,
    Kind::Pipe,
    Kind::Folder,
    Kind::Terabyte,
    Kind::Empty,
    Kind::Nested,
    Kind::Halved,
    Kind::Doubled,
];

/// The files of a release at edge level, and of a run that is not finished.
const OF_A_RELEASE: [&str; 8] = [
    "manifest.json",
    "privacy.json",
    "config.toml",
    "metrics.json",
    "model.safetensors",
    "nodes.progap",
    "aggregates/1.npy",
    "private/cost.json",
];
const OF_A_RUN: [&str; 4] = ["run.json", "secret.key", "aggregates/1.npy", "checkpoint-1.safetensors"];

/// Runs on hostile folders.
pub struct Range<'p> {
    progap: &'p Path,
    place: &'p Path,
    complaints: Vec<String>,
    count: usize,
}

/// Tries every kind of hostile folder with every command that reads it. Gives how many there were.
///
/// # Errors
/// Those that were not refused as they should be.
pub fn hostile_folders(progap: &Path, place: &Path) -> Result<usize, Vec<String>> {
    let mut range = Range { progap, place, complaints: vec![], count: 0 };
    range.prepare();
    for file in OF_A_RELEASE {
        for kind in KINDS {
            range.release(file, kind);
        }
    }
    for (what, manifest) in manifests() {
        range.manifest(&what, &manifest);
    }
    range.strangers();
    for file in OF_A_RUN {
        for kind in KINDS {
            range.run(file, kind);
        }
    }
    if range.complaints.is_empty() { Ok(range.count) } else { Err(range.complaints) }
}

impl Range<'_> {
    fn at(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    /// An honest release, a run that was killed, and something outside of both.
    fn prepare(&mut self) {
        std::fs::write(self.at("outside.txt"), SECRET).expect("written");
        let size = ["data", "synth", "g.progap", "--nodes", "300", "--edges", "3000", "--classes", "3"];
        self.must_succeed(&size);
        let train = ["train", "g.progap", "--quiet", "--depth", "1", "--messages", "labels", "--seed", "1"];
        self.must_succeed(&[&train[..], &["--epochs", "2", "--out", "release"]].concat());
        self.must_succeed(&["verify", "release"]);
        let mut child = self
            .command(&[&train[..], &["--epochs", "2000", "--out", "run"]].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("progap starts");
        let patience = Instant::now() + Duration::from_secs(120);
        // A file counts from when the run lists it.
        let listed = |name: &str| {
            std::fs::read_to_string(self.at("run/secret.key")).is_ok_and(|text| text.contains(name))
        };
        while !(listed("aggregates/1.npy") && listed("checkpoint-")) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().expect("killed");
        child.wait().expect("over");
        let there = OF_A_RUN[..3].iter().all(|name| self.at("run").join(name).exists());
        assert!(there, "the run was killed while it had its files");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        // A reader of a terabyte fails here before the machine does.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 16000000; exec \"$0\" \"$@\""]).arg(self.progap).args(arguments);
        command.current_dir(self.place).env_remove("PROGAP_DATA").stdin(Stdio::null());
        command
    }

    fn must_succeed(&self, arguments: &[&str]) {
        let output = self.command(arguments).output().expect("progap starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs a command that must refuse.
    fn must_refuse(&mut self, what: &str, arguments: &[&str]) {
        self.count += 1;
        let [out, err] = ["out.txt", "err.txt"].map(|name| self.at(name));
        let sink = |path: &Path| Stdio::from(std::fs::File::create(path).expect("a file"));
        let child = self.command(arguments).stdout(sink(&out)).stderr(sink(&err)).spawn();
        let mut child = child.expect("progap starts");
        let start = Instant::now();
        let status = loop {
            match child.try_wait().expect("a child") {
                Some(status) => break Some(status),
                None if start.elapsed() > PATIENCE => {
                    child.kill().expect("killed");
                    child.wait().expect("over");
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let text = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).expect("read")).into_owned();
        let (shown, said) = (text(&out), text(&err));
        let told = [SECRET.to_string(), sum(SECRET.as_bytes())]
            .iter()
            .any(|secret| (shown.clone() + &said).contains(secret));
        let mut complain = |problem: &str| {
            self.complaints.push(format!("{what}: progap {}: {problem}: {said}", arguments.join(" ")));
        };
        match status {
            None => complain("does not end"),
            Some(status) if status.success() => complain("succeeds"),
            Some(status) if status.code() != Some(1) => complain(&format!("ends with {status}")),
            Some(_) if told => complain("tells what is outside"),
            Some(_) if said.contains("panicked") || said.contains("mistake in progap") => {
                complain("fails by itself");
            }
            Some(_) if !said.starts_with("error: ") || said.trim_end().lines().count() > 4 => {
                complain("is not one sentence");
            }
            Some(_) => {}
        }
    }

    /// A release with something else where a file is due.
    fn release(&mut self, file: &str, kind: Kind) {
        let what = format!("{file} as {kind:?}");
        copy(&self.at("release"), &self.at("hostile"));
        self.put(file, kind);
        for command in ["verify", "predict", "report", "export", "inspect"] {
            // Time and memory of training are opened by whoever shows or checks them; a link or a pipe is refused by
            // all.
            let unread = file == "private/cost.json" && matches!(command, "predict" | "export" | "inspect");
            let special = matches!(
                kind,
                Kind::LinkOutside | Kind::LinkToItself | Kind::LinkToRoot | Kind::LinkToDevice | Kind::Pipe
            );
            if !unread || special {
                self.try_release(&what, command);
            }
        }
    }

    fn try_release(&mut self, what: &str, command: &str) {
        for left in ["exported", "page"] {
            let _ = std::fs::remove_dir_all(self.at(left));
        }
        match command {
            "export" => self.must_refuse(what, &["export", "hostile", "exported"]),
            "report" => self.must_refuse(what, &["report", "hostile", "--out", "page"]),
            command => self.must_refuse(what, &[command, "hostile"]),
        }
        if self.at("exported").exists() {
            self.complaints.push(format!("{what}: an export was left"));
        }
    }

    /// A release with another list of files.
    fn manifest(&mut self, what: &str, text: &str) {
        copy(&self.at("release"), &self.at("hostile"));
        let mut list: Value =
            serde_json::from_slice(&std::fs::read(self.at("release/manifest.json")).expect("read"))
                .expect("JSON");
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(more)) => {
                for (name, sum) in more {
                    list["files"][name] = sum;
                }
                std::fs::write(self.at("hostile/manifest.json"), list.to_string()).expect("written");
            }
            _ => std::fs::write(self.at("hostile/manifest.json"), text).expect("written"),
        }
        for command in ["verify", "predict", "report", "export"] {
            self.try_release(what, command);
        }
    }

    /// A release with more in it than a release has.
    fn strangers(&mut self) {
        type Case<'c> = (&'static str, &'c dyn Fn(&Path));
        let cases: [Case<'_>; 5] = [
            ("a link to the folder itself", &|folder| symlink(".", folder.join("more")).expect("linked")),
            ("a link to everything", &|folder| symlink("/", folder.join("private/more")).expect("linked")),
            ("a link to a folder above", &|folder| {
                symlink("../..", folder.join("aggregates/more")).expect("linked");
            }),
            ("a pipe beside its files", &|folder| pipe(&folder.join("more"))),
            ("many files", &|folder| {
                (0..1200).for_each(|number| {
                    std::fs::write(folder.join(format!("{number}.txt")), "").expect("written");
                });
            }),
        ];
        for (what, make) in cases {
            copy(&self.at("release"), &self.at("hostile"));
            make(&self.at("hostile"));
            for command in ["verify", "predict", "report", "export"] {
                self.try_release(what, command);
            }
        }
        copy(&self.at("release"), &self.at("hostile"));
        let deep = self.at("hostile").join(["deep"; 40].join("/"));
        std::fs::create_dir_all(&deep).expect("made");
        std::fs::write(deep.join("file"), "").expect("written");
        self.try_release("deep folders", "verify");
        // All of a folder that the files lie in.
        for name in ["aggregates", "private"] {
            copy(&self.at("release"), &self.at("hostile"));
            std::fs::rename(self.at("hostile").join(name), self.at("elsewhere")).expect("moved");
            symlink(self.at("elsewhere"), self.at("hostile").join(name)).expect("linked");
            for command in ["verify", "predict", "report", "export"] {
                self.try_release(&format!("{name} is a link"), command);
            }
            std::fs::remove_dir_all(self.at("elsewhere")).expect("removed");
        }
    }

    /// A run with something else where a file is due.
    fn run(&mut self, file: &str, kind: Kind) {
        copy(&self.at("run"), &self.at("hostile"));
        let file = match self.at("run").join(file).exists() {
            true => file,
            // The state of training is kept by turns.
            false => "checkpoint-2.safetensors",
        };
        self.put(file, kind);
        let outside = std::fs::read_dir(self.place).expect("a folder").count();
        self.must_refuse(
            &format!("{file} of a run as {kind:?}"),
            &["train", "--resume", "hostile", "--quiet"],
        );
        if std::fs::read_dir(self.place).expect("a folder").count() < outside {
            self.complaints.push(format!("{file} of a run as {kind:?}: something outside was removed"));
        }
    }

    /// Puts something in the place of a file, with its checksum listed where it has one.
    fn put(&self, file: &str, kind: Kind) {
        let folder = self.at("hostile");
        let path = folder.join(file);
        let content = std::fs::read(&path).expect("read");
        std::fs::remove_file(&path).expect("removed");
        let forged = match kind {
            Kind::LinkOutside => {
                symlink(self.at("outside.txt"), &path).expect("linked");
                Some(SECRET.into())
            }
            Kind::LinkToItself => return symlink(".", &path).expect("linked"),
            Kind::LinkToRoot => return symlink("/", &path).expect("linked"),
            Kind::LinkToDevice => return symlink("/dev/zero", &path).expect("linked"),
            Kind::Pipe => return pipe(&path),
            Kind::Folder => return std::fs::create_dir(&path).expect("made"),
            Kind::Terabyte => {
                let file = std::fs::File::create(&path).expect("a file");
                return file.set_len(TERABYTE).expect("a hole");
            }
            Kind::Empty => Some(vec![]),
            Kind::Nested => Some("[".repeat(100_000).into_bytes()),
            Kind::Halved => Some(content[..content.len() / 2].to_vec()),
            Kind::Doubled => Some([content.clone(), content].concat()),
        };
        let Some(forged) = forged else { return };
        if kind != Kind::LinkOutside {
            std::fs::write(&path, &forged).expect("written");
        }
        let manifest = folder.join("manifest.json");
        if file != "manifest.json" && manifest.exists() {
            let mut list: Value =
                serde_json::from_slice(&std::fs::read(&manifest).expect("read")).expect("JSON");
            if list["files"].get(file).is_some() {
                list["files"][file] = sum(&forged).into();
                std::fs::write(&manifest, list.to_string()).expect("written");
            }
        }
    }
}

/// Lists that no release has: what they have besides the files that are there, or their whole text.
fn manifests() -> Vec<(String, String)> {
    let outside = sum(SECRET.as_bytes());
    let names = [
        "../outside.txt",
        "../../dev/zero",
        "../../../../../../dev/zero",
        "/etc/hostname",
        "/dev/zero",
        "private/../../outside.txt",
        "aggregates/../../outside.txt",
        "",
        ".",
        "..",
        "./model.safetensors",
        "aggregates//1.npy",
        "aggregates\\1.npy",
        "aggregates",
        "a/b/c/d/e",
        "secret.key",
        "run.json",
        "graph.progap",
        "private/rows.progap",
        "nul\0byte",
        "\u{1b}[2Jescape",
    ];
    let mut all: Vec<(String, String)> = names
        .iter()
        .map(|name| (format!("a list with {name:?}"), json!({ *name: outside }).to_string()))
        .collect();
    let many: serde_json::Map<String, Value> =
        (0..100_000).map(|number| (format!("{number}"), "0".into())).collect();
    all.push(("a list of 100,000 files".into(), Value::Object(many).to_string()));
    let some: serde_json::Map<String, Value> =
        (0..200).map(|number| (format!("{number}"), "0".into())).collect();
    all.push(("a list of 200 files".into(), Value::Object(some).to_string()));
    all.push(("nested lists".into(), "{\"version\":1,\"files\":".to_string() + &"[".repeat(200_000)));
    all.push(("nested objects".into(), "{\"a\":".repeat(100_000)));
    all.push(("no version".into(), "[]".into()));
    all
}

fn sum(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

/// A fresh copy of a folder.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(std::fs::copy(&path, &target).expect("copied")),
        }
    }
}
