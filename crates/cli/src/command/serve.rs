//! `progap serve`: predictions of releases over HTTP.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use progap_export::PublicKey;
use progap_server::{Access, Limits, Log, Options, Owners, Token};

use super::Outcome;
use crate::ui;

/// Serve predictions of releases over HTTP (Open Inference Protocol), with their guarantee
#[derive(Args)]
#[command(after_help = "\
Examples:
  progap serve release/                      # http://127.0.0.1:8787, with a page to try it
  progap serve people=releases/current shops=other/    # two models, by name
  progap serve release/ --listen 0.0.0.0:8787 --token-file token
  progap serve release/ --listen 0.0.0.0:8443 --tls-cert chain.pem --tls-key key.pem
  progap serve release/ --node-tokens tokens.csv       # node level: each node asks for itself

A release is served once its checksums and its guarantee were verified. A folder, or link, that leads to another \
version later is opened and verified again; one that must not be trusted is refused, and the old one stays. At edge \
level the folder private/ is never opened. At node level a prediction about a node goes to the owner of its record \
alone, who shows a token of that node, or comes through a proxy that says whose request it is; all others are \
refused.")]
pub struct Serve {
    /// The folders of releases, each perhaps with the name of its model before it
    #[arg(required = true, value_name = "[NAME=]RELEASE")]
    releases: Vec<String>,
    /// Where to listen; beyond this machine a token or TLS is needed
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    listen: SocketAddr,
    /// File with the token that clients show as Authorization: Bearer
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Node level: table of ids and tokens, by which nodes show who they are (X-Node-Token)
    #[arg(long, value_name = "FILE", conflicts_with = "owner_header")]
    node_tokens: Option<PathBuf>,
    /// Node level: the header in which a proxy says for which node a request is
    #[arg(long, value_name = "HEADER", requires = "trusted_proxy")]
    owner_header: Option<String>,
    /// Address of that proxy: the header is believed of no other
    #[arg(long, value_name = "IP", requires = "owner_header")]
    trusted_proxy: Option<IpAddr>,
    /// Serve only what is signed with this public key
    #[arg(long, value_name = "PUBLIC")]
    signer: Option<PathBuf>,
    /// Maximum size of a request body, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_body: u16,
    /// Maximum number of nodes or rows in a request
    #[arg(long, value_name = "ROWS", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_rows: u32,
    /// Maximum number of requests a second from one address
    #[arg(long, value_name = "REQUESTS", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_rate: u32,
    /// Maximum number of connections at a time; further ones wait
    #[arg(long, value_name = "CONNECTIONS", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..))]
    max_connections: u16,
    /// Timeout in seconds of a request, and of a silent client
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=3600))]
    timeout: u16,
    /// Seconds that requests may take when the server is stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=3600))]
    grace: u16,
    /// Seconds between looks for new versions (SIGHUP looks at once)
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    reload_every: u16,
    /// What to write to standard error, as lines of JSON
    #[arg(long, value_name = "WHAT", default_value = "events",
        value_parser = PossibleValuesParser::new(Log::ALL.map(|(name, _)| name)))]
    log: String,
}

impl Serve {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let releases = self.releases.iter().map(|release| named(release)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<String> = releases.iter().map(|(name, _)| name.clone()).collect();
        let owners = match (&self.node_tokens, &self.owner_header, self.trusted_proxy) {
            (Some(file), ..) => Owners::read(file)?,
            (None, Some(header), Some(proxy)) => {
                let name = header
                    .to_ascii_lowercase()
                    .parse()
                    .map_err(|_| format!("{header:?} is no name of a header"))?;
                Owners::Header(name, proxy.to_canonical())
            }
            _ => Owners::Unknown,
        };
        let token = self.token_file.as_deref().map(Token::read).transpose()?;
        let limits = Limits {
            max_body: usize::from(self.max_body) << 20,
            max_rows: self.max_rows as usize,
            max_rate: self.max_rate,
            max_connections: usize::from(self.max_connections),
            timeout: Duration::from_secs(self.timeout.into()),
            grace: Duration::from_secs(self.grace.into()),
        };
        let options = Options {
            releases,
            listen: self.listen,
            tls: self.tls_cert.zip(self.tls_key),
            access: Access { token, owners },
            signer: self.signer.as_deref().map(PublicKey::read).transpose()?,
            limits,
            reload_every: Duration::from_secs(self.reload_every.into()),
            log: Log::ALL.into_iter().find(|(name, _)| *name == self.log).map_or(Log::Events, |(_, log)| log),
        };
        progap_server::serve(options, |server| {
            let scheme = if server.is_encrypted() { "https" } else { "http" };
            let said = format!("serving {} at {scheme}://{}", names.join(", "), server.address()?);
            // Where nobody reads it the server runs all the same.
            let _ = ui::print(&said);
            Ok(())
        })?;
        Ok(())
    }
}

/// A release with its name: what stands before the sign of equality, or the name of the folder.
fn named(release: &str) -> Result<(String, PathBuf), String> {
    if let Some((name, folder)) = release.split_once('=').filter(|(name, _)| !name.contains(['/', '\\'])) {
        return Ok((name.into(), folder.into()));
    }
    let folder = Path::new(release);
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let name = whole.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| format!("{release}: it has no name: give one, as NAME={release}"))?;
    Ok((name.into(), folder.into()))
}
