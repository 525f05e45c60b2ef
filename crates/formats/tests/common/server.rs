//! A small HTTP server on this machine that can misbehave.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The behaviour of the server.
#[derive(Clone, Default)]
pub struct Behaviour {
    /// The content of every file; the name asked for does not matter.
    pub content: Vec<u8>,
    /// Whether parts of a file can be asked for.
    pub ranges: bool,
    /// After how many bytes of content the first connections are cut.
    pub cuts: Vec<usize>,
    /// Whether to send clients on to another path first, as file hosts do.
    pub redirect: bool,
    /// The status to answer instead of content.
    pub status: Option<u16>,
}

/// For each request for content, where it asked to begin.
type Log = Arc<Mutex<Vec<Option<usize>>>>;

pub struct Server {
    pub address: String,
    log: Log,
}

impl Server {
    /// Serves until the test's process ends.
    pub fn start(behaviour: Behaviour) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let log = Log::default();
        let written = log.clone();
        std::thread::spawn(move || {
            let mut cuts = behaviour.cuts.clone().into_iter();
            for stream in listener.incoming().flatten() {
                // A client that hangs up early is part of the test.
                let _ = answer(stream, &behaviour, &mut cuts, &written);
            }
        });
        Server { address, log }
    }

    pub fn starts(&self) -> Vec<Option<usize>> {
        self.log.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    behaviour: &Behaviour,
    cuts: &mut impl Iterator<Item = usize>,
    log: &Log,
) -> std::io::Result<()> {
    let (mut path, mut start) = (String::new(), None);
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some(request) = line.strip_prefix("GET ") {
            path = request.split(' ').next().unwrap_or_default().to_string();
        }
        if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse().ok();
        }
    }
    if behaviour.redirect && !path.starts_with("/moved") {
        let head = "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\n";
        return write!(stream, "{head}Location: /moved{path}\r\n\r\n");
    }
    log.lock().unwrap().push(start);
    let cut = cuts.next();
    let content = &behaviour.content;
    let total = content.len();
    if let Some(status) = behaviour.status {
        return write!(stream, "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let start = start.filter(|_| behaviour.ranges);
    let body = match start {
        Some(start) if start >= total => {
            let head = "HTTP/1.1 416 Range Not Satisfiable\r\nConnection: close\r\nContent-Length: 0\r\n";
            return write!(stream, "{head}Content-Range: bytes */{total}\r\n\r\n");
        }
        Some(start) => {
            let range = format!("Content-Range: bytes {start}-{}/{total}", total - 1);
            write!(stream, "HTTP/1.1 206 Partial Content\r\n{range}\r\n")?;
            &content[start..]
        }
        None => {
            write!(stream, "HTTP/1.1 200 OK\r\n")?;
            &content[..]
        }
    };
    write!(stream, "Content-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    stream.write_all(&body[..cut.unwrap_or(body.len()).min(body.len())])
}
