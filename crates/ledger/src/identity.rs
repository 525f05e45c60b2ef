//! Whose data these are: keyed sketches of node ids, edges and rows, under a secret of the ledger's own.
//!
//! A budget belongs to the people that the data are about, not to a file. So data are known by sketches that neither
//! the order of rows nor the label changes, and a column or an edge less hardly does: if any of them agrees in nine
//! of ten parts, the data are taken to be about the same people.
//!
//! Identities lie in a table beside the rows, outside of the seals: receipts, seals and rows are the same whatever
//! the data are. Each has a seal of its own under the secret, so that a damaged one is found before anything relies
//! on it. Without the secret an identity says nothing; with the whole file, a guess of the data can be tested. So the
//! file is for its owner.

use std::path::Path;

use progap_graph::{Dataset, PARTS, SKETCHES, Sketch};
use progap_privacy::Unit;
use progap_privacy::noise::RunKey;
use rusqlite::{Connection, Transaction};
use zeroize::Zeroizing;

use super::book::Book;
use super::error::{Error, Result};

/// The purposes of keyed hashes, so that none is ever that of anything else.
const SEED: &[u8] = b"progap ledger, seed of sketches\0";
const PART: &[u8] = b"progap ledger, part of a sketch\0";
const SEAL: &[u8] = b"progap ledger, seal of an identity\0";
const NODE: &[u8] = b"progap ledger, a new node\0";
const DIGEST: &[u8] = b"progap ledger, a digest\0";
const NOISE: &[u8] = b"progap ledger, key of noise\0";
/// The bytes of all sketches.
const BYTES: usize = SKETCHES * PARTS * 8;

/// What data are known by under the secret of a ledger.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity([Sketch; SKETCHES]);

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// The identity of data under a key. Time is linear in nodes, edges and features; labels and splits play no role.
    pub fn new(key: &[u8; 32], dataset: &Dataset) -> Identity {
        let hash = |text: &[u8]| {
            let hash = blake3::keyed_hash(key, text);
            u64::from_le_bytes(std::array::from_fn(|at| hash.as_bytes()[at]))
        };
        let sketches = dataset.sketches(hash(SEED));
        Identity(std::array::from_fn(|kind| {
            sketches[kind].map(|part, value| {
                let place = [kind as u64, part as u64, value].map(u64::to_le_bytes);
                // The largest number stands for an empty part.
                hash(&[PART, place.as_flattened()].concat()).min(u64::MAX - 1)
            })
        }))
    }

    /// Whether both are about the same people: any sketch agrees in nine of ten parts.
    pub fn matches(&self, other: &Identity) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a.matches(b))
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|sketch| sketch.0).flat_map(u64::to_le_bytes).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Identity> {
        if bytes.len() != BYTES {
            return None;
        }
        let part = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * at + byte]));
        Some(Identity(std::array::from_fn(|kind| Sketch(std::array::from_fn(|at| part(kind * PARTS + at))))))
    }
}

/// The secret of a ledger.
pub(super) struct Secret([u8; 32]);

impl Secret {
    /// A new one, from the operating system.
    pub(super) fn new() -> Result<Secret> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::invalid("randomness", error, "given by the operating system"))?;
        Ok(Secret(bytes))
    }

    /// The one that a ledger has.
    pub(super) fn read(path: &Path, connection: &Connection) -> Result<Secret> {
        let damaged = |what: String| Error::Damaged { path: path.to_owned(), what };
        let bytes: Vec<u8> = connection
            .query_row("SELECT key FROM secret WHERE id = 1", [], |row| row.get(0))
            .map_err(|error| damaged(format!("its secret: {error}")))?;
        let key = bytes.try_into().map_err(|_| damaged("its secret has another length".to_owned()))?;
        Ok(Secret(key))
    }

    pub(super) fn write(&self, path: &Path, tx: &Transaction<'_>) -> Result<()> {
        tx.execute("INSERT INTO secret (id, key) VALUES (1, ?1)", [&self.0[..]])
            .map(|_| ())
            .map_err(|error| Error::from_sqlite(path, error))
    }

    pub(super) fn identity(&self, dataset: &Dataset) -> Identity {
        Identity::new(&self.0, dataset)
    }

    /// What a node is known by.
    pub(super) fn node_tag(&self, id: &str) -> u64 {
        let hash = blake3::keyed_hash(&self.0, &[NODE, id.as_bytes()].concat());
        u64::from_le_bytes(std::array::from_fn(|at| hash.as_bytes()[at]))
    }

    /// The digest of a list of texts, in hexadecimal; no two lists are the same bytes.
    pub(super) fn digest<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(DIGEST);
        for text in texts {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The key of noise for a purpose.
    pub(super) fn noise_key(&self, purpose: &str) -> RunKey {
        let mut bytes = Zeroizing::new([0; RunKey::BYTES]);
        // The first eight count successors, of which there are none.
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(NOISE).update(purpose.as_bytes());
        hasher.finalize_xof().fill(&mut bytes[8..]);
        RunKey::from_bytes(&bytes)
    }

    /// The seal of an identity and of whose it is.
    fn seal(&self, dataset: &str, unit: &str, sketches: &[u8]) -> [u8; 32] {
        let lengths = [dataset.len() as u64, unit.len() as u64].map(u64::to_le_bytes);
        let text = [SEAL, lengths.as_flattened(), dataset.as_bytes(), unit.as_bytes(), sketches].concat();
        *blake3::keyed_hash(&self.0, &text).as_bytes()
    }
}

/// The identities of all accounts that have one.
pub(super) struct Identities(Vec<(String, String, Identity)>);

impl Identities {
    /// Reads all of them. One that is damaged, missing or of no account is an error: nothing may rely on the others.
    pub(super) fn read(path: &Path, connection: &Connection, book: &Book) -> Result<Identities> {
        let damaged = |what: String| Error::Damaged { path: path.to_owned(), what };
        let secret = Secret::read(path, connection)?;
        let rows = connection
            .prepare_cached("SELECT dataset, unit, sketches, seal FROM identity")
            .and_then(|mut statement| {
                let rows = statement
                    .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
                rows.collect::<rusqlite::Result<Vec<(String, String, Vec<u8>, Vec<u8>)>>>()
            })
            .map_err(|error| damaged(format!("its identities: {error}")))?;
        let mut all = Vec::with_capacity(rows.len());
        for (dataset, unit, sketches, seal) in rows {
            match Identity::from_bytes(&sketches) {
                Some(identity) if secret.seal(&dataset, &unit, &sketches)[..] == seal[..] => {
                    all.push((dataset, unit, identity));
                }
                _ => return Err(damaged(format!("the identity of {dataset} in the unit {unit}"))),
            }
        }
        let identities = Identities(all);
        let known = |account: &&super::book::Account| account.known;
        for account in book.accounts.iter().filter(known) {
            if !identities
                .0
                .iter()
                .any(|(name, unit, _)| *name == account.name && unit == account.unit.name())
            {
                return Err(damaged(format!(
                    "the identity of {} in the unit {} is gone",
                    account.name, account.unit
                )));
            }
        }
        if identities.0.len() != book.accounts.iter().filter(known).count() {
            return Err(damaged("it has the identity of a data set that it does not have".to_owned()));
        }
        Ok(identities)
    }

    /// The identities under which a name is known, one for each unit at most.
    pub(super) fn of(&self, name: &str) -> impl Iterator<Item = &Identity> {
        self.0.iter().filter(move |(dataset, ..)| dataset == name).map(|(.., identity)| identity)
    }

    /// The names whose data are about the same people as these, in the order in which they were registered.
    pub(super) fn names<'b>(&self, book: &'b Book, data: &Identity) -> Vec<&'b str> {
        book.names().into_iter().filter(|name| self.of(name).any(|known| known.matches(data))).collect()
    }
}

pub(super) fn write(
    path: &Path,
    tx: &Transaction<'_>,
    (name, unit): (&str, Unit),
    identity: &Identity,
) -> Result<()> {
    let sketches = identity.to_bytes();
    let seal = Secret::read(path, tx)?.seal(name, unit.name(), &sketches);
    let values = (name, unit.name(), &sketches, &seal[..]);
    tx.execute("INSERT INTO identity (dataset, unit, sketches, seal) VALUES (?1, ?2, ?3, ?4)", values)
        .map(|_| ())
        .map_err(|error| Error::from_sqlite(path, error))
}
