//! Downloads of data sets by name.
//!
//! A file arrives under the name `NAME.part`, beside its place; a download that was cut goes on where it
//! stopped. It gets its name only when it is verified: by size and SHA-256 where they are known, else by the
//! checksums within the format and the published counts of the data set. A wrong file is removed, never used.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::Agent;
use ureq::http::StatusCode;

use super::{Counts, Presence, RemoteFile, checksum, find, load, locate, presence};
use crate::AtomicFile;
use crate::read::LoadOptions;
use crate::read::facebook100::School;
use crate::{InFile, Problem, Result};

/// How to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchOptions {
    /// An address that has the same files by their names alone, to be used instead of the usual ones.
    pub mirror: Option<String>,
    /// How often to try without getting any further.
    pub attempts: u32,
    /// How long to wait before the second try; doubled each time.
    pub pause: Duration,
}

impl Default for FetchOptions {
    fn default() -> Self {
        FetchOptions { mirror: None, attempts: 4, pause: Duration::from_secs(1) }
    }
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file that is being downloaded.
    pub file: &'a Path,
    /// Bytes that are here.
    pub done: u64,
    /// Bytes in all, where known.
    pub total: Option<u64>,
}

/// A file that is here and verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it was downloaded now; otherwise it was here before.
    pub downloaded: bool,
}

/// Downloads the files of a data set that are not in the folder yet, and verifies those that are.
///
/// Running it again after any failure is safe and goes on where it stopped.
pub fn fetch(
    name: &str,
    data_dir: &Path,
    options: &FetchOptions,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Fetched>> {
    let entry = find(name)?;
    let mut fetched = Vec::new();
    for file in &entry.files {
        fetched.extend(fetch_file(file, data_dir, options, progress)?);
    }
    // Without a published checksum, the counts tell whether these are the right files.
    let unsure =
        |fetched: &Fetched| fetched.downloaded && super::known_checksum(&entry, &fetched.path).is_none();
    if let Some(expected) = entry.expected
        && fetched.iter().any(unsure)
        && matches!(presence(&entry, data_dir), Presence::Present(_))
    {
        let found = load(name, data_dir, &LoadOptions::default()).and_then(|dataset| {
            let found = Counts::of(&dataset);
            let message = format!("the files of {name} give {found:?}, but published are {expected:?}");
            if found == expected { Ok(()) } else { Err(Problem::Invalid(message).into()) }
        });
        if let Err(e) = found {
            for path in fetched.iter().filter(|fetched| unsure(fetched)).map(|fetched| &fetched.path) {
                remove(path)?;
                remove(&checksum::note_path(path))?;
            }
            return Err(e);
        }
    }
    Ok(fetched)
}

/// One remote file, which may be an archive of several.
fn fetch_file(
    file: &RemoteFile,
    data_dir: &Path,
    options: &FetchOptions,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Fetched>> {
    let here: Option<Vec<PathBuf>> = file.targets().iter().map(|target| locate(target, data_dir)).collect();
    if let Some(paths) = here
        && paths
            .iter()
            .all(|path| checksum::verify(path, file.sha256.filter(|_| file.members.is_empty())).is_ok())
    {
        return Ok(paths.into_iter().map(|path| Fetched { path, downloaded: false }).collect());
    }
    let target = data_dir.join(&file.path);
    let url = match &options.mirror {
        None => file.url.clone(),
        Some(mirror) => {
            let name = file.url.rsplit('/').next().unwrap_or_default();
            format!("{}/{name}", mirror.trim_end_matches('/'))
        }
    };
    // An archive that someone put there by hand is as good as a download, if it can be unpacked.
    let by_hand = !file.members.is_empty() && target.is_file();
    if !by_hand {
        let download = Download { url, target: target.clone(), size: file.size, sha256: file.sha256 };
        download.run(options, progress)?;
    }
    if file.members.is_empty() {
        if file.sha256.is_none() {
            checksum::note(&target)?;
        }
        return Ok(vec![Fetched { path: target, downloaded: true }]);
    }
    let mut fetched = Vec::new();
    for (name, path) in &file.members {
        let path = data_dir.join(path);
        if let Err(e) = unpack(&target, name, &path) {
            if !by_hand {
                remove(&target)?;
            }
            return Err(e);
        }
        checksum::note(&path)?;
        fetched.push(Fetched { path, downloaded: true });
    }
    remove(&target)?;
    Ok(fetched)
}

/// Unpacks one file of an archive, wherever in it it lies; the archive's CRC-32 is verified on the way.
fn unpack(archive: &Path, name: &str, target: &Path) -> Result<()> {
    let corrupt = |e: zip::result::ZipError| match e {
        zip::result::ZipError::Io(e) => crate::Error::from(e).in_file(archive),
        e => Problem::Corrupt(e.to_string()).in_file(archive),
    };
    let mut zip =
        zip::ZipArchive::new(io::BufReader::new(File::open(archive).in_file(archive)?)).map_err(corrupt)?;
    let names = zip.file_names().map(|name| name.map(std::borrow::Cow::into_owned));
    let names: Vec<String> = names.collect::<std::result::Result<_, _>>().map_err(corrupt)?;
    let Some(at) = names.iter().position(|member| member.rsplit('/').next() == Some(name)) else {
        let found = names[..names.len().min(20)].join(", ");
        return Err(Problem::Missing { what: format!("file {name}"), found }.in_file(archive));
    };
    create_folder(target)?;
    let mut output = AtomicFile::create(target)?;
    let mut member = zip.by_index(at).map_err(corrupt)?;
    let size = member.size();
    let copied =
        io::copy(&mut Read::take(&mut member, size.saturating_add(1)), &mut output).in_file(archive)?;
    if copied != size {
        let what = format!("file {name}");
        return Err(Problem::Length { what, found: copied, expected: size }.in_file(archive));
    }
    output.commit()
}

/// The download of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// Where from.
    pub url: String,
    /// Where to.
    pub target: PathBuf,
    /// Its size in bytes, where it is known.
    pub size: Option<u64>,
    /// Its checksum, where it is known.
    pub sha256: Option<super::Sha256Sum>,
}

/// Why one try did not finish.
enum Stop {
    /// Another try may go on.
    Interrupted(String),
    /// The partial file of an earlier try does not fit; the next try starts anew.
    Stale,
    /// Trying again is no use.
    Refused(String),
    /// The file is not the right one, or cannot be written.
    Failed(crate::Error),
}

impl Download {
    /// Downloads, verifies and names the file.
    pub fn run(&self, options: &FetchOptions, progress: &mut dyn FnMut(Progress<'_>)) -> Result<()> {
        create_folder(&self.target)?;
        let part = self.part();
        let agent: Agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .timeout_per_read(Some(Duration::from_secs(60)))
            .build()
            .into();
        let mut kept_from_before = length(&part);
        let mut failures = 0;
        loop {
            let before = length(&part);
            match self.attempt(&agent, &part, progress).and_then(|()| self.verify(&part)) {
                Ok(()) => {
                    File::open(&part).and_then(|file| file.sync_all()).in_file(&part)?;
                    return fs::rename(&part, &self.target).in_file(&self.target);
                }
                Err(Stop::Failed(error)) => {
                    remove(&part)?;
                    // The partial file of an earlier run may have been the reason: one more try without it.
                    if kept_from_before == 0 {
                        return Err(error);
                    }
                    kept_from_before = 0;
                }
                Err(Stop::Stale) => {
                    remove(&part)?;
                    kept_from_before = 0;
                    failures += 1;
                    if failures >= options.attempts {
                        return Err(self.by_hand("the server's answers do not fit together"));
                    }
                }
                Err(Stop::Refused(reason)) => return Err(self.by_hand(&reason)),
                Err(Stop::Interrupted(reason)) => {
                    failures = if length(&part) > before { 1 } else { failures + 1 };
                    if failures >= options.attempts {
                        return Err(self.by_hand(&reason));
                    }
                    std::thread::sleep(options.pause * 2u32.saturating_pow(failures - 1).min(64));
                }
            }
        }
    }

    fn part(&self) -> PathBuf {
        let mut name = self.target.as_os_str().to_owned();
        name.push(".part");
        name.into()
    }

    /// One request for what is still missing.
    fn attempt(
        &self,
        agent: &Agent,
        part: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> std::result::Result<(), Stop> {
        let have = length(part);
        if self.size.is_some_and(|size| have == size) {
            return Ok(());
        }
        if self.size.is_some_and(|size| have > size) {
            return Err(Stop::Stale);
        }
        let mut request = agent.get(&self.url);
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let response = request.call().map_err(|e| match e {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => Stop::Refused(e.to_string()),
            e => Stop::Interrupted(e.to_string()),
        })?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let start = match response.status() {
            StatusCode::OK => 0,
            StatusCode::PARTIAL_CONTENT if header("content-range").and_then(range_start) == Some(have) => {
                have
            }
            StatusCode::PARTIAL_CONTENT => return Err(Stop::Stale),
            // Everything is here already, or what is here is longer than the file.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let total = header("content-range").and_then(|range| range.rsplit('/').next()?.parse().ok());
                return if total == Some(have) { Ok(()) } else { Err(Stop::Stale) };
            }
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(Stop::Interrupted(format!("the server answered {status}")));
            }
            status => return Err(Stop::Refused(format!("the server answered {status}"))),
        };
        let announced = response.body().content_length().map(|length| start + length);
        let total = self.size.or(announced);
        if let (Some(size), Some(announced)) = (self.size, announced)
            && size != announced
        {
            return Err(Stop::Failed(self.wrong_size(announced, size)));
        }
        let open =
            OpenOptions::new().create(true).write(true).truncate(start == 0).append(start > 0).open(part);
        let failed = |e: io::Error| Stop::Failed(crate::Error::from(e).in_file(part));
        let mut output = open.map_err(failed)?;
        let (mut body, mut done) = (response.into_body().into_reader(), start);
        let mut block = vec![0; 1 << 16];
        loop {
            progress(Progress { file: &self.target, done, total });
            let read = body.read(&mut block).map_err(|e| Stop::Interrupted(e.to_string()))?;
            if read == 0 {
                break;
            }
            output.write_all(&block[..read]).map_err(failed)?;
            done += read as u64;
            if let Some(total) = total.filter(|&total| done > total) {
                return Err(Stop::Failed(self.wrong_size(done, total)));
            }
        }
        match total {
            Some(total) if done < total => Err(Stop::Interrupted(format!("{done} of {total} bytes came"))),
            _ => Ok(()),
        }
    }

    /// Whether the file is the right one.
    fn verify(&self, part: &Path) -> std::result::Result<(), Stop> {
        let found = length(part);
        if let Some(size) = self.size.filter(|&size| size != found) {
            return Err(Stop::Failed(self.wrong_size(found, size)));
        }
        let ending = self.target.extension().and_then(|extension| extension.to_str());
        let result = match (self.sha256, ending) {
            (Some(_), _) => checksum::verify(part, self.sha256).map(|_| ()),
            (None, Some("mat")) => School::read(part).map(|_| ()),
            (None, Some("zip")) => open_zip(part),
            (None, _) => Ok(()),
        };
        result.map_err(Stop::Failed)
    }

    fn wrong_size(&self, found: u64, expected: u64) -> crate::Error {
        let what = format!("file at {}", self.url);
        Problem::Length { what, found, expected }.in_file(&self.target)
    }

    fn by_hand(&self, reason: &str) -> crate::Error {
        let (url, reason, target) = (self.url.clone(), reason.to_string(), self.target.clone());
        Problem::Download { url, reason, target }.into()
    }
}

/// Whether the directory of an archive can be read; its files are verified as they are unpacked.
fn open_zip(path: &Path) -> Result<()> {
    let file = File::open(path).in_file(path)?;
    zip::ZipArchive::new(io::BufReader::new(file))
        .map(|_| ())
        .map_err(|e| Problem::Corrupt(format!("it is no zip archive ({e})")).in_file(path))
}

/// The start in `bytes 100-199/200`.
fn range_start(header: &str) -> Option<u64> {
    header.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

fn create_folder(target: &Path) -> Result<()> {
    target.parent().map_or(Ok(()), |folder| fs::create_dir_all(folder).in_file(folder))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e).in_file(path),
        _ => Ok(()),
    }
}
