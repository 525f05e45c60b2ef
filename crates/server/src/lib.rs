#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod access;
mod api;
mod connection;
mod error;
mod infer;
mod log;
mod metrics;
mod model;
mod models;
mod nodes;
mod page;
mod parse;
mod time;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use progap::{Error, Remedy, Result};
use progap_export::PublicKey;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

pub use access::{Access, Owners, Token};
pub use api::openapi;
pub use log::Log;
#[doc(hidden)]
pub use parse::parse_anything;

use connection::Tls;
use models::Models;

/// Everything that decides how releases are served.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folders of releases, each with the name that it is served under.
    pub releases: Vec<(String, PathBuf)>,
    /// Where to listen; beyond this machine only with a token or TLS.
    pub listen: SocketAddr,
    /// A certificate chain and its key, both PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Who may ask, and for which nodes.
    pub access: Access,
    /// Only releases that are signed with this key.
    pub signer: Option<PublicKey>,
    /// How much one client may ask for.
    pub limits: Limits,
    /// How often folders are looked at for a new version.
    pub reload_every: Duration,
    /// What is written to the log.
    pub log: Log,
}

/// How much clients may ask for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest body of a request, in bytes.
    pub max_body: usize,
    /// The most nodes or rows in one request.
    pub max_rows: usize,
    /// The most requests a second from one address, over a few seconds.
    pub max_rate: u32,
    /// The most connections at a time; further ones wait.
    pub max_connections: usize,
    /// How long a request may take, from its first byte to its answer; how long a client may let its connection idle,
    /// or its answer wait to be read.
    pub timeout: Duration,
    /// How long requests that are being answered may take to end when the server stops.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_body: 16 << 20,
            max_rows: 100_000,
            max_rate: 100_000,
            max_connections: 1024,
            timeout: Duration::from_secs(10),
            grace: Duration::from_secs(10),
        }
    }
}

/// What every request needs.
pub(crate) struct Shared {
    pub models: Models,
    pub access: Access,
    pub limits: Limits,
    pub rates: access::Rates,
    pub metrics: metrics::Metrics,
    pub log: Log,
    /// Whether names of other hosts are refused: where only programs on this machine may ask, a page of a browser must
    /// not.
    pub local_names_only: bool,
    /// Room for bodies that are being read, in KiB: clients that send slowly must not fill the memory together.
    pub bodies: Semaphore,
    /// The same for large answers that are being made or sent, and how much that is.
    pub answers: Arc<Semaphore>,
    pub max_answers: usize,
    pub stopping: watch::Receiver<bool>,
}

/// A server that listens, with every release opened and verified.
pub struct Server {
    listener: TcpListener,
    tls: Option<Tls>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    reload_every: Duration,
}

impl Server {
    /// Opens and verifies every release, and listens.
    ///
    /// # Errors
    /// A release that must not be trusted, an address that cannot be listened at, or one beyond this machine without a
    /// token or TLS.
    pub async fn start(options: Options) -> Result<Server> {
        let local = options.listen.ip().is_loopback();
        if !local && options.access.token.is_none() && options.tls.is_none() {
            return Err(Error::unsuitable(format!(
                "{} can be reached from other machines, and anyone there could ask",
                options.listen
            ))
            .remedy(Remedy::Give("token_file"))
            .remedy(Remedy::GiveAll(vec!["tls_cert", "tls_key"])));
        }
        let tls = options.tls.as_ref().map(|(chain, key)| Tls::read(chain, key)).transpose()?;
        let models = tokio::task::block_in_place(|| {
            Models::open(&options.releases, options.signer.clone(), &options.access.owners)
        })?;
        let listener = TcpListener::bind(options.listen)
            .await
            .map_err(|error| Error::unsuitable(format!("cannot listen at {}: {error}", options.listen)))?;
        let (stop, stopping) = watch::channel(false);
        let room = options.limits.max_body.saturating_mul(4).div_ceil(1024).clamp(1, u32::MAX as usize >> 1);
        let shared = Arc::new(Shared {
            models,
            local_names_only: local && options.access.token.is_none(),
            access: options.access,
            limits: options.limits,
            rates: access::Rates::new(options.limits.max_rate),
            metrics: metrics::Metrics::default(),
            log: options.log,
            bodies: Semaphore::new(room),
            answers: Arc::new(Semaphore::new(room)),
            max_answers: room,
            stopping,
        });
        Ok(Server { listener, tls, shared, stop, reload_every: options.reload_every })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// A socket that was closed.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|error| Error::unsuitable(error.to_string()))
    }

    /// Whether connections use TLS.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Answers until `stop` is done; then requests that have begun are answered, and no others.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Server { listener, tls, shared, stop: stopping, reload_every } = self;
        let reloading = tokio::spawn(models::keep_up(shared.clone(), reload_every));
        shared.log.event("started", &[("models", shared.models.names().join(","))]);
        connection::accept(listener, tls, &shared, stop, stopping).await;
        reloading.abort();
        shared.log.event("stopped", &[]);
    }
}

/// Serves on this machine's cores until the process is asked to end (SIGINT, SIGTERM); SIGHUP looks for new versions at
/// once.
///
/// # Errors
/// As [`Server::start`].
pub fn serve(options: Options, started: impl FnOnce(&Server) -> Result<()>) -> Result<()> {
    let refused = |error| {
        let why = format!("the system refuses to start a thread ({error}); allow this user more processes");
        Error::unsuitable(why + " (see `ulimit -u`)")
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    start_at_once(workers + SPARE).map_err(refused)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(workers).enable_all().build().map_err(refused)?;
    runtime.block_on(async {
        let server = Server::start(options).await?;
        let signals = connection::stop_signals()?;
        started(&server)?;
        server.run(signals).await;
        Ok(())
    })
}

/// Threads beside the workers: for work that waits for disks, and one that has just ended.
const SPARE: usize = 2;

/// Starts so many threads at the same time, and ends them: where the system does not let it, the runtime would panic.
fn start_at_once(threads: usize) -> std::io::Result<()> {
    let held = std::sync::Mutex::new(());
    std::thread::scope(|scope| {
        let all_started = held.lock();
        let wait = || drop(held.lock());
        let started =
            (0..threads).try_for_each(|_| std::thread::Builder::new().spawn_scoped(scope, wait).map(drop));
        drop(all_started);
        started
    })
}
