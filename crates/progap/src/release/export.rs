//! Exports: a release without what is for the data owner alone.
//!
//! An export is a release of its own. It has no folder `private/`, and no raw rows (features and labels of nodes)
//! unless they are public and asked for. Besides the public files of a release it has:
//!
//! | file | what it is |
//! |---|---|
//! | `report.html` | the public page |
//! | `manifest.json` | as in a release; also the date, and whether the rows are there |
//! | `export.json` | the same, with the SHA-256 of the manifest: by it an export is named |
//! | `manifest.sig`, `signer.pub` | where it is signed: the signature of the manifest, and the key to check it with |
//!
//! Only files that are known to be public are copied, by name; what else lies in a release stays there.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use progap_graph::{AtomicFolder, Dataset, Features, store};
use serde::{Deserialize, Serialize};

use super::manifest::{Contents, Manifest};
use super::{MANIFEST, NODES, Release, SCHEMA, no_classes, verify};
use crate::error::InFile;
use crate::files;
use crate::folder::{Folder, SMALL};
use crate::settings::Level;
use crate::{Error, Remedy, Result};

/// The file in which an export describes itself, beside its manifest.
pub(super) const EXPORT: &str = "export.json";
/// The signature of an export.
pub const SIGNATURE: &str = "manifest.sig";
/// The key to check it with, as far as the maker says.
pub const SIGNER: &str = "signer.pub";
/// The public page of an export.
pub const PAGE: &str = "report.html";

/// The difference between an export and a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exported {
    /// The day it was made, or that its maker gave it.
    pub date: Date,
    /// Whether features and labels of the nodes are there.
    pub rows: bool,
}

/// The content of `export.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    version: u64,
    date: Date,
    rows: bool,
    /// The SHA-256 of `manifest.json`, which holds those of all other files.
    sha256: String,
}

impl Note {
    fn of(folder: &Folder, exported: Exported) -> Result<Note> {
        let Exported { date, rows } = exported;
        Ok(Note { version: files::FORMAT, date, rows, sha256: folder.checksum(MANIFEST, SMALL)? })
    }

    /// The hash of an export, if what lies beside its manifest fits to it.
    pub(super) fn check(folder: &Folder, exported: &Exported) -> Result<std::result::Result<String, String>> {
        let expected = Note::of(folder, exported.clone())?;
        Ok(match folder.json::<Note>(EXPORT, SMALL) {
            // To the last byte: what is not in the manifest follows from it.
            Ok(note)
                if note == expected
                    && folder.read(EXPORT, SMALL)? == files::json(&folder.path(EXPORT), &expected)? =>
            {
                Ok(expected.sha256)
            }
            Ok(note) if note == expected => Err(format!("{EXPORT} is not as progap writes it")),
            Ok(_) => Err(format!("{EXPORT} belongs to another manifest")),
            Err(error) => Err(error.to_string()),
        })
    }
}

/// A day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Date(String);

impl Date {
    /// The day it is now, at Greenwich.
    pub fn today() -> Date {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Date::of_day(seconds / 86_400)
    }

    /// This many days after the first of January 1970.
    fn of_day(mut left: u64) -> Date {
        let mut year = 1970;
        while left >= days_of_year(year) {
            left -= days_of_year(year);
            year += 1;
        }
        let mut month = 1;
        while left >= days_of_month(year, month) {
            left -= days_of_month(year, month);
            month += 1;
        }
        Date(format!("{year:04}-{month:02}-{:02}", left + 1))
    }
}

fn days_of_year(year: u64) -> u64 {
    (1..=12).map(|month| days_of_month(year, month)).sum()
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

impl std::str::FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Date, String> {
        let wrong = || format!("{text:?} is no day: give one as 2026-01-31");
        let digits = |part: &str, length: usize| {
            (part.len() == length && part.bytes().all(|b| b.is_ascii_digit()))
                .then(|| part.parse::<u64>().ok())
                .flatten()
        };
        let parts: Vec<&str> = text.split('-').collect();
        let &[year, month, day] = &parts[..] else { return Err(wrong()) };
        match (digits(year, 4), digits(month, 2), digits(day, 2)) {
            (Some(year), Some(month @ 1..=12), Some(day))
                if year > 0 && (1..=days_of_month(year, month)).contains(&day) =>
            {
                Ok(Date(text.into()))
            }
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Date {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Date, String> {
        text.parse()
    }
}

impl From<Date> for String {
    fn from(date: Date) -> String {
        date.0
    }
}

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An export that was made.
#[derive(Debug)]
pub struct Export {
    /// The exported release, opened.
    pub release: Release,
    /// The SHA-256 of its manifest, in hexadecimal.
    pub sha256: String,
    /// The names of its files.
    pub files: Vec<String>,
}

/// Makes the public page of a release.
pub type PageMaker<'p> = dyn FnMut(&Release) -> std::result::Result<String, Box<dyn std::error::Error>> + 'p;

/// Signs what is exported, in this folder, and gives the names of the files that it adds.
pub type Signs<'s> = dyn FnMut(&Path) -> Result<Vec<String>> + 's;

/// Exports a release to a new folder, which is there whole or not at all. `page` makes the public page of what is
/// exported; `sign` signs it (`progap-export`).
///
/// # Errors
/// Rows at node level, where they are private; rows that are not there; a folder that exists already, or lies in the
/// release; a release without its settings; and an export that would not pass [`verify()`].
pub fn export(
    folder: &Path,
    out: &Path,
    exported: Exported,
    page: &mut PageMaker<'_>,
    sign: Option<&mut Signs<'_>>,
) -> Result<Export> {
    let release = Release::open(folder)?;
    if exported.rows && release.level() == Level::Node {
        return Err(Error::contradiction(
            "features and labels are private at node level: an export cannot have them",
        )
        .remedy(Remedy::Drop("with_rows")));
    }
    if exported.rows && !release.has_features() {
        return Err(Error::file(folder, "the rows of the nodes are not in this release")
            .remedy(Remedy::Drop("with_rows")));
    }
    let place = new_folder(out, folder)?;
    let mut names = Contents::of(release.settings()?).names(false);
    names.retain(|name| *name != SCHEMA || release.schema().is_some());
    for name in &names {
        let to = place.path().join(name);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent).in_file(out)?;
        }
        match name == NODES && !exported.rows {
            true => store::write(&without_rows(release.nodes())?, &to)?,
            false => files::write(&to, &release.listed.read(name, release.bounds.of(name))?)?,
        }
    }
    let staged = Folder::open(place.path(), "the folder of the export is gone")?;
    let list = |names: &[String]| {
        let manifest = Manifest::of(&staged, names.iter().cloned())?;
        files::write_json(
            &place.path().join(MANIFEST),
            &Manifest { export: Some(exported.clone()), ..manifest },
        )
    };
    // The page is made of what is exported, and of nothing else.
    list(&names)?;
    let text = page(&Release::open(place.path())?).in_file(out)?;
    files::write(&place.path().join(PAGE), text.as_bytes())?;
    names.push(PAGE.into());
    list(&names)?;
    let note = Note::of(&staged, exported)?;
    files::write_json(&place.path().join(EXPORT), &note)?;
    if let Some(wrong) = verify(place.path())?.into_iter().find(|finding| !finding.ok) {
        let problem =
            format!("it must not be trusted, and is not exported ({}: {})", wrong.what, wrong.detail);
        return Err(Error::file(folder, problem));
    }
    if let Some(sign) = sign {
        // Last, of what was found to be right.
        names.extend(sign(place.path())?);
    }
    place.commit()?;
    names.extend([MANIFEST, EXPORT].map(String::from));
    names.sort();
    Ok(Export { release: Release::open(out)?, sha256: note.sha256, files: names })
}

/// Ids, class names and split; no feature, and no label.
fn without_rows(nodes: &Dataset) -> Result<Dataset> {
    let mut parts = nodes.clone().into_parts();
    parts.labels = no_classes(nodes);
    parts.features = Features::none();
    parts.feature_names = vec![];
    parts.numbers = vec![];
    parts.undeclared = vec![];
    Ok(Dataset::new(parts)?)
}

/// A new folder for what is made of a release, which lies outside of it.
pub fn new_folder(out: &Path, release: &Path) -> Result<AtomicFolder> {
    if out.symlink_metadata().is_ok() {
        return Err(Error::file(out, "it is there already, and nothing is replaced: name a new folder"));
    }
    if out.file_name().is_none() {
        return Err(Error::file(out, "it is no name for a folder: give another one"));
    }
    let whole = std::path::absolute(out).in_file(out)?;
    let release = std::fs::canonicalize(release).in_file(release)?;
    // As far as the way there exists, without links.
    let there = whole.ancestors().skip(1).find_map(|folder| std::fs::canonicalize(folder).ok());
    if there.is_some_and(|there| there.starts_with(&release)) {
        return Err(Error::file(out, "an export inside of the release would not belong there")
            .remedy(Remedy::NewFolder));
    }
    Ok(AtomicFolder::create(out)?)
}

/// The reason why an export makes no predictions, where it makes none.
pub fn missing_for_predictions(release: &Release) -> Option<&'static str> {
    if !release.covers_predictions() && !release.has_aggregates() {
        return Some(
            "what the model reads of a node's senders (private/aggregates-1.npy) is for the data owner alone and \
             not in \
             this release: predictions need it",
        );
    }
    match (release.has_features(), release.level()) {
        (true, _) => None,
        (false, Level::Node) => Some(
            "the features (private/rows.progap) are for the data owner alone and were taken out of this release: \
             predictions need them",
        ),
        (false, _) => Some(
            "the rows of the nodes (features and labels) are not in this export: predictions need them, ask for an \
             export \
             that has them",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_a_day_that_there_is() {
        for good in ["2026-01-31", "2024-02-29", "2000-02-29", "0001-12-31"] {
            assert_eq!(good.parse::<Date>().map(String::from), Ok(good.to_string()));
        }
        for bad in [
            "",
            "2026",
            "2026-1-31",
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-04-31",
            "+026-01-01",
            "2026-01-31T10",
        ] {
            assert!(bad.parse::<Date>().is_err_and(|problem| problem.contains("2026-01-31")), "{bad}");
        }
    }

    #[test]
    fn days_are_counted_as_calendars_do() {
        for (day, date) in
            [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_454, "2026-01-01")]
        {
            assert_eq!(Date::of_day(day).to_string(), date);
        }
    }
}
