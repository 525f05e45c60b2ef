//! Releases of a small network, a running server, and a client that needs no library.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use progap::settings::Request;
use progap_formats::read::LoadOptions;
use progap_formats::read::table::read_bytes;
use progap_graph::Ratios;
use progap_server::{Access, Limits, Log, Options, Server};
use serde_json::Value;
use tokio::sync::oneshot;

pub const TOKEN: &str = "0123456789abcdef-the-token";

/// A hundred people of two classes, with a town, a pay and an age that some do not tell.
pub fn people() -> progap::Dataset {
    let mut nodes = "id,label,pay,town,age\n".to_string();
    for k in 0..100u32 {
        let rich = k % 3 == 0;
        let (label, pay) = if rich { ("rich", 900 + k) } else { ("poor \"x\"", 100 + k) };
        let town = ["Oslo", "Rome", "Bern"][(k % 7 % 3) as usize];
        let age = if k % 10 == 0 { String::new() } else { (20 + k % 50).to_string() };
        nodes += &format!("p{k},\"{}\",{pay},{town},{age}\n", label.replace('"', "\"\""));
    }
    let edges: String = (0..100).map(|k| format!("p{k},p{}\n", (k * 7 + 3) % 100)).collect();
    let edges = format!("source,target\n{edges}");
    let mut options = LoadOptions::default();
    for (column, bounds) in [("pay", [0.0, 1000.0]), ("age", [0.0, 100.0])] {
        let choice = options.columns.columns.entry(column.into()).or_default();
        choice.kind = Some(progap_formats::read::columns::ColumnKind::Number);
        choice.bounds = Some(bounds.map(progap_formats::read::columns::Bound::Number));
    }
    let categories = ["Bern", "Oslo", "Rome"].map(String::from).to_vec();
    options.columns.columns.entry("town".into()).or_default().categories = Some(categories);
    options.columns.columns.entry("age".into()).or_default().missing = Some(true);
    let data = read_bytes(("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes()), &options);
    data.expect("tables").or_random_split(Ratios::default(), 1).expect("a split")
}

/// Trains a release.
pub fn train(folder: &Path, asked: impl Into<Request>) {
    progap::train(&people(), asked).into_folder(folder).expect("trained");
}

pub fn edge_release(folder: &Path) {
    train(folder, progap::Edge::epsilon(2.0));
}

/// A server in the background, which ends when this is dropped.
pub struct Running {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

pub fn options(releases: &[(&str, PathBuf)]) -> Options {
    Options {
        releases: releases.iter().map(|(name, folder)| (name.to_string(), folder.clone())).collect(),
        listen: ([127, 0, 0, 1], 0).into(),
        tls: None,
        access: Access::default(),
        signer: None,
        limits: Limits {
            timeout: Duration::from_secs(2),
            grace: Duration::from_secs(3),
            ..Limits::default()
        },
        reload_every: Duration::from_millis(50),
        log: Log::None,
    }
}

pub fn serve(options: Options) -> Running {
    try_serve(options).expect("it starts")
}

pub fn try_serve(options: Options) -> Result<Running, String> {
    let (stop, stopped) = oneshot::channel();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads");
        runtime.block_on(async {
            match Server::start(options).await {
                Err(error) => tell.send(Err(error.to_string())).expect("somebody listens"),
                Ok(server) => {
                    tell.send(Ok(server.address().expect("an address"))).expect("somebody listens");
                    server.run(async { stopped.await.unwrap_or_default() }).await;
                }
            }
        });
    });
    let address = told.recv().expect("an outcome")?;
    Ok(Running { address, stop: Some(stop), thread: Some(thread) })
}

impl Running {
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // A server that has ended already does not listen.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ends well");
        }
    }

    pub fn get(&self, path: &str) -> Answer {
        ask(self.address, "GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        ask(self.address, "POST", path, &[("content-type", "application/json")], body.to_string().as_bytes())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An answer of the server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The one sentence of a refusal.
    pub fn refused(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()["error"].as_str().expect("a sentence").to_string()
    }
}

/// Asks on a connection of its own.
pub fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let host = if headers.iter().any(|(name, _)| *name == "host") {
        String::new()
    } else {
        format!("host: {address}\r\n")
    };
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{host}connection: close\r\ncontent-length: {length}\r\n{more}\r\n"
    );
    // The server may refuse before it has read all.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    let mut bytes = vec![];
    let _ = stream.read_to_end(&mut bytes);
    answer(&bytes)
}

pub fn answer(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head: {:?}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = head[9..12].parse().expect("a status");
    let mut body = bytes[end + 4..].to_vec();
    if head.contains("transfer-encoding: chunked") {
        body = unchunked(&body);
    }
    Answer { status, head, body }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = vec![];
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size =
            usize::from_str_radix(std::str::from_utf8(&bytes[..end]).expect("a size"), 16).expect("a size");
        whole.extend_from_slice(&bytes[end + 2..][..size]);
        bytes = &bytes[end + 2 + size + 2..];
    }
    whole
}
