//! Where random bits come from: the operating system, or a seed.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Where noise came from, as a value that can be written into a privacy statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Provenance {
    /// Keyed by the operating system; the key was never shown to anyone.
    Secure,
    /// Derived from a seed: anyone who knows the seed can remove the noise, so nothing is private.
    Reproducible {
        /// The seed.
        seed: u64,
    },
}

impl Provenance {
    /// Whether a release made with this noise may be called private.
    pub fn is_private(self) -> bool {
        self == Self::Secure
    }
}

pub(super) mod sealed {
    pub trait Sealed {
        fn key(&self, label: &str) -> Result<[u8; 32], crate::error::Error>;
    }
}

/// A source of keys: [`Secure`], [`Reproducible`] or [either](AnySource), and nothing else.
pub trait Source: sealed::Sealed + Clone + Send + Sync + 'static {
    /// The same information as a value.
    fn provenance(&self) -> Provenance;

    /// The same source as a type that both have.
    fn erase(self) -> AnySource;
}

/// Keys from the operating system, a fresh one for every purpose.
#[derive(Debug, Clone)]
pub struct Secure(pub(super) ());

/// Keys derived from a seed, for experiments. Results made with it are not private.
#[derive(Debug, Clone)]
pub struct Reproducible {
    pub(super) seed: u64,
}

impl Source for Secure {
    fn provenance(&self) -> Provenance {
        Provenance::Secure
    }

    fn erase(self) -> AnySource {
        AnySource::Secure(self)
    }
}

impl Source for Reproducible {
    fn provenance(&self) -> Provenance {
        Provenance::Reproducible { seed: self.seed }
    }

    fn erase(self) -> AnySource {
        AnySource::Reproducible(self)
    }
}

/// Either source, where the type no longer says which; [`Source::provenance`] still does.
#[derive(Debug, Clone)]
pub enum AnySource {
    /// Keys from the operating system.
    Secure(Secure),
    /// Keys derived from a seed.
    Reproducible(Reproducible),
}

impl Source for AnySource {
    fn provenance(&self) -> Provenance {
        match self {
            AnySource::Secure(source) => source.provenance(),
            AnySource::Reproducible(source) => source.provenance(),
        }
    }

    fn erase(self) -> AnySource {
        self
    }
}

impl sealed::Sealed for AnySource {
    fn key(&self, label: &str) -> Result<[u8; 32], Error> {
        match self {
            AnySource::Secure(source) => source.key(label),
            AnySource::Reproducible(source) => source.key(label),
        }
    }
}

impl sealed::Sealed for Secure {
    fn key(&self, _label: &str) -> Result<[u8; 32], Error> {
        super::key::from_os()
    }
}

impl sealed::Sealed for Reproducible {
    fn key(&self, label: &str) -> Result<[u8; 32], Error> {
        let mut hash = Sha256::new();
        hash.update(b"progap reproducible noise 1\0");
        hash.update(self.seed.to_le_bytes());
        hash.update(label.as_bytes());
        Ok(hash.finalize().into())
    }
}
