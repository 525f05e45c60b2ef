//! Data sets by name: where they come from, what they need, whether they are here, and loading them.
//!
//! | name | what it is |
//! |---|---|
//! | `demo` | a synthetic social network, generated on the spot |
//! | `facebook` | one school of Facebook100, UIllinois20 |
//! | `fb:<School>` | any other school by the same recipe |
//! | `fb-100` | all schools that are present, as published |
//! | `fb-100-clean` | the same without the people whose year is missing |
//! | `reddit` | posts, connected by common commenters |
//! | `amazon` | products, connected by common buyers (ogbn-products) |
//! | `roman-empire`, `amazon-ratings`, `minesweeper`, `tolokers`, `questions` | graphs whose neighbours seldom share a class |
//! | `chameleon-filtered`, `squirrel-filtered` | the same, pages of an encyclopaedia |
//!
//! ```
//! use progap_formats::named;
//!
//! let entry = named::find("fb:Berkeley13")?;
//! assert_eq!(entry.files[0].path.to_str(), Some("facebook100/Berkeley13.mat"));
//! let message = named::find("fb:Berkley").unwrap_err().to_string();
//! assert!(message.contains("fb:Berkeley13"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checksum;
#[cfg(feature = "fetch")]
pub mod fetch;
mod heterophilous;
mod schools;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

pub use checksum::{Sha256Sum, Verification};
pub use schools::SCHOOLS;

use crate::read::facebook100::{self, Missing, Recipe};
use crate::read::{LoadOptions, ogbn, reddit};
use crate::{Dataset, Error, Problem, Remedy, Result, prepare, synth};

/// A data set that has a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// How it is made.
    pub source: Origin,
    /// Who published it, and where.
    pub origin: &'static str,
    /// Its licence, as far as that is known.
    pub licence: &'static str,
    /// The files to download; none for what is generated.
    pub files: Vec<RemoteFile>,
    /// The counts of the published experiments.
    pub expected: Option<Counts>,
}

/// How a data set is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Generated on the spot.
    Generated,
    /// One school of Facebook100.
    School(&'static str),
    /// All schools of Facebook100 that are present.
    AllSchools {
        /// Without the people whose year is missing; otherwise as published.
        clean: bool,
    },
    /// The reddit graph of GraphSAGE.
    Reddit,
    /// The benchmark ogbn-products.
    Amazon,
    /// A graph whose neighbours seldom share a class, with its own splits.
    Heterophilous,
}

/// A file to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Where from.
    pub url: String,
    /// Where to, in the data folder.
    pub path: PathBuf,
    /// Its size in bytes, where it is known exactly.
    pub size: Option<u64>,
    /// Its size in bytes, where it is known roughly.
    pub about: Option<u64>,
    /// Its checksum, where one is known.
    pub sha256: Option<Sha256Sum>,
    /// The files within, if it is a zip archive: name in the archive and place in the data folder.
    pub members: Vec<(&'static str, PathBuf)>,
}

impl RemoteFile {
    /// How a download is verified, for a listing.
    pub fn verification(&self) -> &'static str {
        match self.sha256 {
            Some(_) => "SHA-256",
            None => "checksum: none published; verified by the format's own checksums and expected counts",
        }
    }

    /// The files a user needs in the end: the file itself, or the files within.
    fn targets(&self) -> Vec<&Path> {
        match &self.members[..] {
            [] => vec![&self.path],
            members => members.iter().map(|(_, path)| path.as_path()).collect(),
        }
    }
}

/// Sizes of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Nodes.
    pub nodes: usize,
    /// Directed edges.
    pub edges: usize,
    /// Feature columns.
    pub features: usize,
    /// Classes.
    pub classes: usize,
}

impl Counts {
    /// The counts of a data set.
    pub fn of(dataset: &Dataset) -> Counts {
        let (nodes, edges) = (dataset.nodes(), dataset.graph().edges());
        Counts { nodes, edges, features: dataset.features().columns(), classes: dataset.classes() }
    }
}

/// Whether a data set can be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It needs no files.
    Generated,
    /// All files are here.
    Present(Vec<PathBuf>),
    /// Some of the files are here; enough for `fb-100`, which takes the schools that are present.
    Partly {
        /// The files that are here.
        present: Vec<PathBuf>,
        /// How many files there are in all.
        of: usize,
    },
    /// None of the files is here.
    Absent,
}

/// The data folder: what the user says, else the environment's `PROGAP_DATA`, else `data`.
pub fn data_dir(explicit: Option<&Path>) -> PathBuf {
    explicit.map_or_else(
        || {
            std::env::var_os("PROGAP_DATA")
                .filter(|folder| !folder.is_empty())
                .map_or("data".into(), PathBuf::from)
        },
        Path::to_path_buf,
    )
}

/// All data sets that have a name, each school of Facebook100 included, and whether they are in the folder.
pub fn list(data_dir: &Path) -> Vec<(Entry, Presence)> {
    let with_presence = |entry: Entry| {
        let presence = presence(&entry, data_dir);
        (entry, presence)
    };
    entries().into_iter().map(with_presence).collect()
}

/// The data set of that name; an unknown name is an error that suggests others.
pub fn find(name: &str) -> Result<Entry> {
    let wanted = name.trim().to_ascii_lowercase().replace(' ', "");
    let entries = entries();
    if let Some(entry) = entries.iter().find(|entry| entry.name.to_ascii_lowercase() == wanted) {
        return Ok(entry.clone());
    }
    if wanted == "wenet" {
        let message = "the data set wenet is not public: ask its owners, and load the files by their path";
        return Err(Problem::NotRecognised(message.into()).into());
    }
    let mut nearest: Vec<(usize, &str)> = entries
        .iter()
        .map(|entry| (distance(&wanted, &entry.name.to_ascii_lowercase()), &*entry.name))
        .collect();
    nearest.sort_unstable();
    let nearest: Vec<&str> = nearest.iter().take(3).map(|&(_, name)| name).collect();
    Err(Problem::UnknownName { name: name.into(), nearest: nearest.join(", ") }.into())
}

/// Whether a name is one of a data set, rather than a path.
pub fn is_name(name: &str) -> bool {
    find(name).is_ok()
}

/// Where the files of a data set are, if they are in the folder.
pub fn presence(entry: &Entry, data_dir: &Path) -> Presence {
    if entry.source == Origin::Generated {
        return Presence::Generated;
    }
    let targets: Vec<&Path> = entry.files.iter().flat_map(RemoteFile::targets).collect();
    let present: Vec<PathBuf> = targets.iter().filter_map(|target| locate(target, data_dir)).collect();
    match present.len() {
        0 => Presence::Absent,
        found if found == targets.len() => Presence::Present(present),
        _ => Presence::Partly { present, of: targets.len() },
    }
}

/// Loads a data set from the files in the folder, prepared as published.
///
/// Files are verified first: against their known checksum, or the one that was written down when they were
/// downloaded. Of `options` the target (`label_column`, for schools), `direction`, `min_class_count` and `seed`
/// apply; the names of columns are refused.
pub fn load(name: &str, data_dir: &Path, options: &LoadOptions) -> Result<Dataset> {
    let entry = find(name)?;
    let is_facebook = matches!(entry.source, Origin::School(_) | Origin::AllSchools { .. });
    options.expect_no_columns(is_facebook).and_then(|()| options.expect_own_labels())?;
    let paths = match (&entry.source, presence(&entry, data_dir)) {
        (Origin::Generated, _) => vec![],
        (_, Presence::Present(paths))
        | (Origin::AllSchools { .. }, Presence::Partly { present: paths, .. }) => paths,
        (_, Presence::Partly { present, .. }) => return Err(absent(&entry, data_dir, &present)),
        (_, _) => return Err(absent(&entry, data_dir, &[])),
    };
    paths.par_iter().try_for_each(|path| checksum::verify(path, known_checksum(&entry, path)).map(|_| ()))?;
    let dataset = match entry.source {
        Origin::Generated => synth::demo()?,
        Origin::School(_) => facebook100::load(&paths, &Recipe::one_school().with_options(options)?)?,
        Origin::AllSchools { clean } => {
            let published = Recipe::all_schools();
            let missing = if clean { Missing::NotPositive } else { published.missing };
            facebook100::load(&paths, &Recipe { missing, ..published }.with_options(options)?)?
        }
        Origin::Reddit => {
            let min_count = options.min_class_count.unwrap_or(reddit::MIN_CLASS_COUNT);
            prepare::prepare_as_published(reddit::read(folder_of(&paths))?, min_count, options.seed)?
        }
        Origin::Amazon => {
            let min_count = options.min_class_count.unwrap_or(ogbn::MIN_CLASS_COUNT);
            prepare::prepare_as_published(ogbn::read(folder_of(&paths))?, min_count, options.seed)?
        }
        Origin::Heterophilous => return Ok(crate::read::load(&paths[0], options)?.named(entry.name)),
    };
    options.expect_weights(&dataset)?;
    options.direction.apply(dataset.named(entry.name))
}

fn folder_of(paths: &[PathBuf]) -> &Path {
    paths.first().and_then(|path| path.parent()).unwrap_or(Path::new("."))
}

/// The checksum of a file that is downloaded as it is.
fn known_checksum(entry: &Entry, path: &Path) -> Option<Sha256Sum> {
    let same_name = |file: &&RemoteFile| squeezed(&file.path) == squeezed(path);
    entry.files.iter().filter(|file| file.members.is_empty()).find(same_name).and_then(|file| file.sha256)
}

/// The error when files are not here, with what to do.
fn absent(entry: &Entry, data_dir: &Path, present: &[PathBuf]) -> crate::Error {
    let folder = data_dir.display();
    let by_hand: Vec<String> = entry
        .files
        .iter()
        .filter(|file| file.targets().iter().any(|target| locate(target, data_dir).is_none()))
        .take(3)
        .map(|file| format!("{} as {}", file.url, data_dir.join(&file.path).display()))
        .collect();
    let (name, by_hand) = (&entry.name, by_hand.join(" and "));
    let problem = Problem::Missing {
        what: format!(
            "data set {name} in the folder {folder}: fetch it, or save {by_hand}, or give the folder that has it"
        ),
        found: match present {
            [] => "none of its files".into(),
            present => present.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
        },
    };
    Error::from(problem).remedy(Remedy::Fetch(name.clone()))
}

/// A file in the data folder: at its own place, in the folders where others put it, or in the folder itself.
fn locate(target: &Path, data_dir: &Path) -> Option<PathBuf> {
    let name = Path::new(target.file_name()?);
    let own = data_dir.join(target);
    let folders = match target.parent().and_then(Path::to_str) {
        Some("facebook100") => &["", "Facebook100"][..],
        Some("reddit") => &["", "reddit/raw", "Reddit/raw", "Reddit"],
        Some("products/raw") => {
            &["products", "amazon/raw", "amazon", "ogbn_products/raw", "ogbn-products/raw", "raw"]
        }
        _ => &[],
    };
    let places = std::iter::once(own).chain(folders.iter().map(|folder| data_dir.join(folder).join(name)));
    // Tables may be unpacked.
    let plain = |path: &Path| path.extension().is_some_and(|e| e == "gz").then(|| path.with_extension(""));
    let spellings = |path: PathBuf| [plain(&path), schools::with_space(&path), Some(path)].into_iter().rev();
    places.flat_map(spellings).flatten().find(|path| path.is_file())
}

/// A file's name without spaces: the original archive has `Johns Hopkins55.mat`.
fn squeezed(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().replace(' ', "")).unwrap_or_default()
}

const FACEBOOK_ORIGIN: &str =
    "Traud, Mucha, Porter: Social structure of Facebook networks, Physica A 391 (2012), arXiv:1102.2166";
const FACEBOOK_LICENCE: &str =
    "no licence stated; published for research, cite the paper; real people: do not try to identify anyone";

fn entries() -> Vec<Entry> {
    let mut entries = vec![
        Entry {
            name: "demo".into(),
            summary: "a synthetic social network like a Facebook100 school, generated on the spot".into(),
            source: Origin::Generated,
            origin: "this project",
            licence: "that of this project",
            files: vec![],
            expected: None,
        },
        Entry {
            name: "facebook".into(),
            summary: "Facebook network of one school (UIllinois20), to predict the year".into(),
            expected: Some(Counts { nodes: 26_406, edges: 2_117_924, features: 501, classes: 6 }),
            ..school_entry("UIllinois20")
        },
        all_schools_entry("fb-100", false),
        all_schools_entry("fb-100-clean", true),
        Entry {
            name: "reddit".into(),
            summary: "posts of September 2014, connected by common commenters, to predict the community"
                .into(),
            source: Origin::Reddit,
            origin: "Hamilton, Ying, Leskovec: Inductive representation learning on large graphs, NeurIPS 2017, \
                     as repackaged by DGL",
            licence: "no licence stated; derived from public posts, cite the paper",
            files: vec![RemoteFile {
                url: "https://data.dgl.ai/dataset/reddit.zip".into(),
                path: "reddit/reddit.zip".into(),
                size: None,
                about: None,
                sha256: None,
                members: [reddit::DATA_FILE, reddit::GRAPH_FILE]
                    .map(|name| (name, Path::new("reddit").join(name)))
                    .to_vec(),
            }],
            expected: Some(Counts { nodes: 116_713, edges: 46_233_380, features: 602, classes: 8 }),
        },
        Entry {
            name: "amazon".into(),
            summary: "products, connected when bought together, to predict the category (ogbn-products)"
                .into(),
            source: Origin::Amazon,
            origin: "Hu et al.: Open Graph Benchmark, NeurIPS 2020; data of Bhatia et al., Extreme \
                     Classification Repository",
            licence: "Amazon licence, as stated by the Open Graph Benchmark; cite both",
            files: vec![RemoteFile {
                url: "http://snap.stanford.edu/ogb/data/nodeproppred/products.zip".into(),
                path: "products/products.zip".into(),
                size: None,
                about: Some(1_400_000_000),
                sha256: None,
                members: [
                    "edge.csv.gz",
                    "node-feat.csv.gz",
                    "node-label.csv.gz",
                    "num-node-list.csv.gz",
                    "num-edge-list.csv.gz",
                ]
                .map(|name| (name, Path::new("products/raw").join(name)))
                .to_vec(),
            }],
            expected: Some(Counts { nodes: 1_790_731, edges: 80_966_832, features: 100, classes: 10 }),
        },
    ];
    entries.extend(heterophilous::entries());
    entries.extend(SCHOOLS.iter().map(|school| school_entry(school)));
    entries
}

fn school_entry(school: &'static str) -> Entry {
    Entry {
        name: format!("fb:{school}"),
        summary: format!("Facebook network of {school}, to predict the year"),
        source: Origin::School(school),
        origin: FACEBOOK_ORIGIN,
        licence: FACEBOOK_LICENCE,
        files: vec![schools::remote_file(school)],
        expected: match school {
            "Berkeley13" => Some(Counts { nodes: 18_939, edges: 1_354_934, features: 437, classes: 6 }),
            "Cornell5" => Some(Counts { nodes: 15_348, edges: 1_303_452, features: 349, classes: 6 }),
            _ => None,
        },
    }
}

fn all_schools_entry(name: &str, clean: bool) -> Entry {
    let published = Counts { nodes: 1_120_280, edges: 86_304_478, features: 537, classes: 6 };
    Entry {
        name: name.into(),
        summary: match clean {
            false => {
                "Facebook networks of all schools that are present, to predict the year; as published, so a \
                      missing year is a class of its own"
            }
            true => {
                "Facebook networks of all schools that are present, to predict the year, without people whose year \
                     is missing"
            }
        }
        .into(),
        source: Origin::AllSchools { clean },
        origin: FACEBOOK_ORIGIN,
        licence: FACEBOOK_LICENCE,
        files: SCHOOLS.iter().map(|school| schools::remote_file(school)).collect(),
        expected: (!clean).then_some(published),
    }
}

/// How many letters must be changed, added, dropped or come after: a name that begins as typed is near.
fn distance(typed: &str, name: &str) -> usize {
    let name: Vec<char> = name.chars().collect();
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (at, letter) in typed.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for column in 1..row.len() {
            let changed = diagonal + usize::from(name[column - 1] != letter);
            diagonal = row[column];
            row[column] = changed.min(row[column] + 1).min(row[column - 1] + 1);
        }
    }
    // Letters that are still to come count a quarter.
    let whole = 4 * row[name.len()];
    let begun = row.iter().enumerate().map(|(used, edits)| 4 * edits + (name.len() - used)).min();
    whole.min(begun.unwrap_or(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_suggested_when_misspelt() {
        for name in ["demo", "facebook", "fb-100", "fb-100-clean", "reddit", "amazon", "FB:berkeley13"] {
            assert!(find(name).is_ok(), "{name}");
        }
        assert_eq!(find("facebook").unwrap().files, find("fb:UIllinois20").unwrap().files);
        for (typed, meant) in [("redit", "reddit"), ("fb:Berkeley", "fb:Berkeley13"), ("facebok", "facebook")]
        {
            let message = find(typed).unwrap_err().to_string();
            assert!(message.contains(&format!("nearest names are {meant},")), "{message}");
        }
        assert!(find("wenet").unwrap_err().to_string().contains("not public"));
    }

    #[test]
    fn the_list_has_all_schools_and_names_that_differ() {
        let folder = tempfile::tempdir().unwrap();
        let list = list(folder.path());
        let mut names: Vec<&str> = list.iter().map(|(entry, _)| &*entry.name).collect();
        assert_eq!(names.len(), 113);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 113);
        assert!(list[1..].iter().all(|(_, presence)| *presence == Presence::Absent));
        assert_eq!(list[0].1, Presence::Generated);
    }

    #[test]
    fn files_are_found_where_people_put_them() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "content").unwrap();
        };
        ["facebook100/Reed98.mat", "Amherst41.mat", "facebook100/Johns Hopkins55.mat"]
            .into_iter()
            .for_each(put);
        put("reddit/reddit_data.npz");
        let names = "edge node-feat node-label num-node-list num-edge-list";
        names.split(' ').for_each(|name| put(&format!("amazon/raw/{name}.csv")));
        let presence = |name: &str| presence(&find(name).unwrap(), folder.path());
        for name in ["fb:Reed98", "fb:Amherst41", "fb:JohnsHopkins55", "amazon"] {
            assert!(matches!(presence(name), Presence::Present(_)), "{name}");
        }
        assert!(matches!(presence("reddit"), Presence::Partly { of: 2, .. }));
        assert!(matches!(presence("fb-100"), Presence::Partly { of: 100, .. }));
        assert_eq!(presence("facebook"), Presence::Absent);

        let load = |name: &str| load(name, folder.path(), &LoadOptions::default()).unwrap_err();
        let message = load("facebook").to_string();
        for part in ["data set facebook", "fetch it", "UIllinois20.mat", "facebook100"] {
            assert!(message.contains(part), "{message}");
        }
        assert!(matches!(load("fb:Reed98").problem(), Problem::Checksum { .. }));
    }
}
