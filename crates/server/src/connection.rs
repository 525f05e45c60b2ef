//! Connections: how many, how long, with TLS or without, and how they end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use progap::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tower::Service;

use crate::{Shared, api};

/// The largest head of a request, and the most it is read ahead.
const MAX_HEAD: usize = 64 << 10;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub SocketAddr);

/// A certificate and its key.
#[derive(Clone)]
pub(crate) struct Tls(TlsAcceptor);

impl Tls {
    /// Reads both from PEM files.
    pub fn read(chain: &Path, key: &Path) -> Result<Tls> {
        let wrong =
            |file: &Path, problem: String| Error::unsuitable(format!("{}: {problem}", file.display()));
        let no_chain = |error| wrong(chain, format!("there is no certificate in it (PEM): {error}"));
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(chain)
            .map_err(no_chain)?
            .collect::<std::result::Result<_, _>>()
            .map_err(no_chain)?;
        let secret = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| wrong(key, format!("there is no private key in it (PEM): {error}")))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(chain, error.to_string()))?;
        let mut config =
            builder.with_no_client_auth().with_single_cert(certificates, secret).map_err(|error| {
                wrong(chain, format!("it does not fit to the key {}: {error}", key.display()))
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }
}

/// Answers on every connection until `stop` is done; then those that are being answered end, within a while.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: Option<Tls>,
    shared: &Arc<Shared>,
    stop: impl Future<Output = ()>,
    stopping: watch::Sender<bool>,
) {
    let limits = shared.limits;
    let most = limits.max_connections.clamp(1, Semaphore::MAX_PERMITS >> 1);
    let (slots, router) = (Arc::new(Semaphore::new(most)), api::router(shared.clone()));
    tokio::pin!(stop);
    loop {
        // Without a free slot nobody is let in: those that come wait in the system's queue.
        let slot = tokio::select! {
            () = &mut stop => break,
            slot = slots.clone().acquire_owned() => slot,
        };
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            // Too many open files, or a client that is gone again: neither is a reason to end.
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        let (router, tls, stopping) = (router.clone(), tls.clone(), shared.stopping.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            match tls {
                None => {
                    answer(Patient::new(stream, limits.timeout), peer, router, limits.timeout, stopping)
                        .await;
                }
                Some(Tls(acceptor)) => {
                    if let Ok(Ok(stream)) = timeout(limits.timeout, acceptor.accept(stream)).await {
                        answer(Patient::new(stream, limits.timeout), peer, router, limits.timeout, stopping)
                            .await;
                    }
                }
            }
            drop(slot);
        });
    }
    drop(listener);
    let _ = stopping.send(true);
    let _ = timeout(limits.grace, slots.acquire_many(most as u32)).await;
}

/// Answers the requests of one connection.
async fn answer<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: Patient<S>,
    peer: SocketAddr,
    router: Router,
    limit: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        router.clone().call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limit)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        _ = connection.as_mut() => true,
        _ = stopping.wait_for(|stop| *stop) => false,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        // Whatever a client still sends or reads badly is no business of the server any more.
        let _ = connection.await;
    }
}

/// A stream whose other end has to read within some time.
struct Patient<S> {
    stream: S,
    limit: Duration,
    deadline: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S> Patient<S> {
    fn new(stream: S, limit: Duration) -> Patient<S> {
        Patient { stream, limit, deadline: Box::pin(sleep(limit)), waits: false }
    }

    fn in_time<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waits = false;
            return outcome;
        }
        if !self.waits {
            self.waits = true;
            self.deadline.as_mut().reset(Instant::now() + self.limit);
        }
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.in_time(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.in_time(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, outcome)
    }
}

/// Done when the process is asked to end.
#[cfg(unix)]
pub(crate) fn stop_signals() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| {
        signal(kind).map_err(|error| Error::unsuitable(format!("signals cannot be received: {error}")))
    };
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Done when the process is asked to end.
#[cfg(not(unix))]
pub(crate) fn stop_signals() -> Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
