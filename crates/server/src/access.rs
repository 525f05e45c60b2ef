//! Who may ask, how often, and for which nodes.

use std::collections::HashMap;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use progap::{Error, Result};

use crate::error::Refusal;

/// The header with which a node shows whose token it has.
pub(crate) const NODE_TOKEN: &str = "x-node-token";
/// The most bytes of a file of tokens, and of one token.
const MAX_FILE: u64 = 1 << 30;
const MIN_TOKEN: usize = 16;
/// The most addresses whose rate is known at a time.
const MAX_ADDRESSES: usize = 1 << 16;

/// Who may ask, and for which nodes.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// What every request but those about health must show as `Authorization: Bearer`.
    pub token: Option<Token>,
    /// How a node is told, at node level.
    pub owners: Owners,
}

/// A secret that a client shows. Only its hash is kept, so that comparing takes the same time whatever was shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token(blake3::Hash);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The token with this text.
    ///
    /// # Errors
    /// One that could be guessed, or that no header can hold.
    pub fn new(text: &str) -> std::result::Result<Token, String> {
        if text.len() < MIN_TOKEN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "a token has at least {MIN_TOKEN} letters, digits or signs of ASCII, and no blank: make one with `openssl rand -hex 32`"
            ));
        }
        Ok(Token(blake3::hash(text.as_bytes())))
    }

    /// Reads the token from the first line of a file that nobody but its owner can read.
    ///
    /// # Errors
    /// A file that others can read, or that holds no token.
    pub fn read(file: &Path) -> Result<Token> {
        let text = secret(file)?;
        Token::new(text.trim()).map_err(|problem| Error::unsuitable(format!("{}: {problem}", file.display())))
    }

    fn is(&self, shown: &[u8]) -> bool {
        self.0 == blake3::hash(shown)
    }
}

/// How a request shows that it comes from the owner of a node's record.
#[derive(Debug, Clone, Default)]
pub enum Owners {
    /// It cannot: at node level no prediction about a node of the release is given out.
    #[default]
    Unknown,
    /// By a token of that node, in the header `X-Node-Token`.
    Tokens(HashMap<Token, String>),
    /// By a header that a proxy sets to the node's id, which is believed of this address alone.
    Header(HeaderName, IpAddr),
}

impl Owners {
    /// Reads a table with the columns `id` and `token`, a row for each node, that nobody but its owner can read.
    ///
    /// # Errors
    /// A file that others can read, rows that are no such rows, and tokens that two nodes have.
    pub fn read(file: &Path) -> Result<Owners> {
        let text = secret(file)?;
        let wrong = |problem: String| Error::unsuitable(format!("{}: {problem}", file.display()));
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
        let column = |name: &str| {
            let found = header.iter().position(|column| column == name);
            found.ok_or_else(|| {
                wrong(format!("it has no column {name:?}: give a table with the columns id and token"))
            })
        };
        let (id, token) = (column("id")?, column("token")?);
        let mut tokens = HashMap::new();
        for (at, row) in reader.records().enumerate() {
            let in_row = |problem: String| wrong(format!("row {}: {problem}", at + 2));
            let row = row.map_err(|error| in_row(error.to_string()))?;
            let token = Token::new(&row[token]).map_err(&in_row)?;
            if tokens.insert(token, row[id].to_string()).is_some() {
                return Err(in_row("another node has the same token: give each one of its own".into()));
            }
        }
        match tokens.is_empty() {
            true => Err(wrong("it has no rows: give each node a token".into())),
            false => Ok(Owners::Tokens(tokens)),
        }
    }

    /// The node that a request comes from.
    fn node<'r>(&'r self, headers: &'r HeaderMap, peer: IpAddr) -> Option<&'r str> {
        match self {
            Owners::Unknown => None,
            Owners::Tokens(tokens) => {
                let shown = headers.get(NODE_TOKEN)?.as_bytes();
                tokens.get(&Token(blake3::hash(shown))).map(String::as_str)
            }
            Owners::Header(name, proxy) => {
                // Two values would let a client smuggle its own beside that of the proxy.
                let mut values = headers.get_all(name).iter();
                let value = values.next().filter(|_| peer.to_canonical() == *proxy)?;
                values.next().is_none().then(|| value.to_str().ok()).flatten()
            }
        }
    }

    /// Refuses a request about nodes that it does not come from.
    pub(crate) fn check<'i>(
        &self,
        mut ids: impl Iterator<Item = &'i str>,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> std::result::Result<(), Refusal> {
        let own = self.node(headers, peer);
        match own.is_some_and(|own| ids.all(|id| id == own)) {
            true => Ok(()),
            false => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "at node level a prediction is for the owner of the node's record alone: show that node's token as X-Node-Token, or \
                 ask through the proxy that knows its owner",
            )),
        }
    }
}

impl Access {
    /// Refuses a request without the token.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> std::result::Result<(), Refusal> {
        let Some(token) = &self.token else { return Ok(()) };
        let shown = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let shown = shown
            .and_then(|value| value.split_at_checked(7))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        match shown.is_some_and(|(_, shown)| token.is(shown)) {
            true => Ok(()),
            false => Err(Refusal::new(
                StatusCode::UNAUTHORIZED,
                "show the token of this server as Authorization: Bearer TOKEN",
            )),
        }
    }
}

/// Whether the host that a request names is this machine: a page of a browser that had its own name point here would
/// name that.
pub(crate) fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// How often each address may ask: a bucket that fills by the second.
pub(crate) struct Rates {
    rate: f64,
    buckets: Mutex<HashMap<IpAddr, (f64, Instant)>>,
}

impl Rates {
    pub fn new(rate: u32) -> Rates {
        Rates { rate: f64::from(rate.max(1)), buckets: Mutex::default() }
    }

    /// Refuses a request of an address that asks too often.
    pub fn check(&self, address: IpAddr) -> std::result::Result<(), Refusal> {
        let now = Instant::now();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_ADDRESSES && !buckets.contains_key(&address) {
            // Those that are full again are as if they had never asked.
            buckets.retain(|_, (_, at)| now.duration_since(*at).as_secs_f64() < 1.0);
            if buckets.len() >= MAX_ADDRESSES {
                return Err(Refusal::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "too many clients at a time: ask again later",
                ));
            }
        }
        let (left, at) = buckets.entry(address).or_insert((self.rate, now));
        *left = (*left + now.duration_since(*at).as_secs_f64() * self.rate).min(self.rate);
        *at = now;
        if *left < 1.0 {
            return Err(Refusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many requests from this address: ask for several nodes in one request, or more slowly",
            ));
        }
        *left -= 1.0;
        Ok(())
    }
}

/// The text of a small file that nobody but its owner can read.
fn secret(file: &Path) -> Result<String> {
    let wrong = |problem: String| Error::unsuitable(format!("{}: {problem}", file.display()));
    let open = std::fs::File::open(file).map_err(|error| wrong(error.to_string()))?;
    let about = open.metadata().map_err(|error| wrong(error.to_string()))?;
    if !about.is_file() {
        return Err(wrong("it is no ordinary file".into()));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let mode = about.permissions().mode() & 0o777;
        // What root put there for one group, as orchestrators of containers do, is this group's secret.
        let others = if about.uid() == 0 { 0o037 } else { 0o077 };
        if mode & others != 0 {
            return Err(wrong(format!(
                "others than its owner can use this secret (mode {mode:04o}): run `chmod 600` on it"
            )));
        }
    }
    let mut text = String::new();
    open.take(MAX_FILE).read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().expect("a header"));
        names_this_machine(&headers)
    }

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for own in ["localhost", "LOCALHOST:8787", "127.0.0.1:1", "127.8.8.8", "[::1]:80", "[::1]"] {
            assert!(named(own), "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "",
            ":80",
        ] {
            assert!(!named(other), "{other}");
        }
    }

    #[test]
    fn a_bucket_is_empty_after_a_second_of_requests_and_fills_again() {
        let rates = Rates::new(10);
        let address = IpAddr::from([127, 0, 0, 1]);
        let passed = (0..100).filter(|_| rates.check(address).is_ok()).count();
        assert!((10..=11).contains(&passed), "{passed}");
        // Another address has a bucket of its own.
        assert!(rates.check(IpAddr::from([127, 0, 0, 2])).is_ok());
        std::thread::sleep(std::time::Duration::from_millis(250));
        assert!(rates.check(address).is_ok());
    }

    #[test]
    fn a_proxy_is_believed_by_its_address_and_by_one_header() {
        let proxy = IpAddr::from([10, 0, 0, 1]);
        let owners = Owners::Header(HeaderName::from_static("x-user"), proxy);
        let mut headers = HeaderMap::new();
        let asks = |headers: &HeaderMap, peer, id| owners.check([id].into_iter(), headers, peer).is_ok();
        assert!(!asks(&headers, proxy, "ann"));
        headers.insert("x-user", "ann".parse().expect("a header"));
        assert!(asks(&headers, proxy, "ann") && !asks(&headers, proxy, "bob"));
        assert!(!asks(&headers, IpAddr::from([10, 0, 0, 2]), "ann"));
        headers.append("x-user", "bob".parse().expect("a header"));
        assert!(!asks(&headers, proxy, "ann") && !asks(&headers, proxy, "bob"));
    }
}
