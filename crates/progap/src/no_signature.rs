//! Stands where keys are, in a build without the feature `sign`: there is no value of them.

/// A secret key; this build has no value of it.
#[derive(Debug)]
pub enum SecretKey {}

/// A public key; this build has no value of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKey {}

impl SecretKey {
    pub(crate) fn public(&self) -> PublicKey {
        match *self {}
    }

    pub(crate) fn sign(&self, _: &[u8]) -> [u8; 64] {
        match *self {}
    }
}

impl PublicKey {
    pub(crate) fn parse(_: &str) -> Result<PublicKey, &'static str> {
        Err("this build checks no signatures (feature sign)")
    }

    pub(crate) fn pem(&self) -> String {
        match *self {}
    }

    pub(crate) fn fingerprint(&self) -> String {
        match *self {}
    }

    pub(crate) fn signed(&self, _: &[u8], _: &[u8]) -> bool {
        match *self {}
    }
}
