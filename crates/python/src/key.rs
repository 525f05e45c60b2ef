//! Keys that sign exports.

use std::path::PathBuf;

use progap_export::{PublicKey, SecretKey};
use pyo3::prelude::*;

use crate::errors::{Keywords, OrRaise, exception};

/// A key that signs exports (``Release.export(sign=...)``), or the public half that checks who signed
/// (``Release.verify(signer=...)``).
#[pyclass(frozen, module = "progap")]
pub struct Key {
    file: PathBuf,
    secret: Option<SecretKey>,
    public: PublicKey,
}

impl Key {
    /// The half that checks signatures.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The half that signs.
    pub fn secret(&self, py: Python<'_>) -> PyResult<&SecretKey> {
        self.secret.as_ref().ok_or_else(|| {
            let file = self.file.display();
            exception(
                py,
                "ReleaseError",
                format!("{file}: it is a public key; a signature needs the secret one"),
            )
        })
    }
}

#[pymethods]
impl Key {
    /// Makes a key: NAME.key, which is secret and for its owner alone, and NAME.pub for those who check signatures.
    #[staticmethod]
    #[pyo3(name = "new", signature = (name, *, force = false))]
    fn make(py: Python<'_>, name: PathBuf, force: bool) -> PyResult<Key> {
        let made = py.detach(|| progap_cli::new_key(&name, force));
        let (secret, files) = made.map_err(|error| exception(py, "ReleaseError", error.said(&Keywords)))?;
        let public = secret.public();
        Ok(Key { file: files.secret, secret: Some(secret), public })
    }

    /// Reads a secret key, which nobody but its owner may be able to read, or a public one.
    #[staticmethod]
    fn load(py: Python<'_>, file: PathBuf) -> PyResult<Key> {
        let secret = match SecretKey::is_secret(&file).or_raise(py)? {
            true => Some(SecretKey::read(&file).or_raise(py)?),
            false => None,
        };
        let public = match &secret {
            Some(secret) => secret.public(),
            None => PublicKey::read(&file).or_raise(py)?,
        };
        Ok(Key { file, secret, public })
    }

    /// Where it lies.
    #[getter]
    fn file(&self) -> PathBuf {
        self.file.clone()
    }

    /// Whether it can sign.
    #[getter]
    fn is_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// The SHA-256 of the public key, in hexadecimal: by it people compare keys.
    #[getter]
    fn fingerprint(&self) -> String {
        self.public.fingerprint()
    }

    /// The public half, as the text of a PEM file.
    #[getter]
    fn public_pem(&self) -> String {
        self.public.pem()
    }

    fn __repr__(&self) -> String {
        let kind = if self.secret.is_some() { "secret" } else { "public" };
        format!("Key({kind}, {})", self.public.fingerprint())
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.file.display();
        let message =
            format!("{file}: a key is not pickled: read it where it is needed, with progap.Key.load");
        Err(exception(py, "ReleaseError", message))
    }
}
