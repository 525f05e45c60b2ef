//! Many clients, most of them bad, and a new version in the middle: no wrong answer, no end, no growth.
//!
//! `PROGAP_ROBUST_SECONDS=600 cargo test --release -p progap-server --test robust` takes as long as one likes.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::*;
use progap::Release;
use progap_server::{Limits, Options};
use serde_json::json;

/// Anything, the same for the same number.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(5))).ok()?;
    Some(stream)
}

/// What the kernel holds for this process: memory in KiB, and open files.
fn held() -> (u64, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let memory =
        line.and_then(|line| line.split_whitespace().nth(1)).and_then(|n| n.parse().ok()).unwrap_or(0);
    (memory, std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count))
}

#[test]
fn bad_clients_and_a_new_version_change_no_answer() {
    let seconds = std::env::var("PROGAP_ROBUST_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    edge_release(&at("one"));
    edge_release(&at("two"));
    let point = |target: &str| {
        std::os::unix::fs::symlink(at(target), at("next")).expect("linked");
        std::fs::rename(at("next"), at("current")).expect("put in place");
    };
    point("one");
    let answers = |name: &str| {
        let release = Release::open(&at(name)).expect("a release");
        let found = release.predict().expect("predictions");
        let names = release.nodes().class_names().to_vec();
        let class = |at: usize| names[found.classes[at] as usize].clone();
        let ids = (0..100).map(|at| release.nodes().node_ids().name(at));
        let of: std::collections::HashMap<String, String> = ids.zip((0..100).map(class)).collect();
        (release.sha256().to_string(), of)
    };
    let known = [answers("one"), answers("two")];
    let limits = Limits {
        timeout: Duration::from_secs(1),
        max_connections: 200,
        max_body: 1 << 20,
        ..Limits::default()
    };
    let mut served = serve(Options { limits, ..options(&[("people", at("current"))]) });
    let (address, stop) = (served.address, AtomicBool::new(false));
    let (right, versions) = (AtomicU64::new(0), AtomicU64::new(0));
    let (stop, right, versions, known) = (&stop, &right, &versions, &known);
    let mut early = (0, 0);
    std::thread::scope(|scope| {
        for client in 0..24u64 {
            scope.spawn(move || {
                let mut turn = client;
                while !stop.load(Ordering::Relaxed) {
                    turn = turn.wrapping_add(24);
                    match client % 8 {
                        // Good ones: every answer is that of the version that it names.
                        0..=2 => {
                            let id = format!("p{}", turn * 7 % 100);
                            let answer = match client % 2 {
                                0 => ask(address, "GET", &format!("/v1/nodes/{id}"), &[], b""),
                                _ => {
                                    let body = json!({ "ids": [id] }).to_string();
                                    ask(address, "POST", "/v1/nodes", &[("content-type", "application/json")], body.as_bytes())
                                }
                            };
                            assert_eq!(answer.status, 200, "{}", answer.text());
                            let found = answer.json();
                            let of = known.iter().position(|(hash, _)| found["release"] == hash.as_str()).expect("a version");
                            let class = found["class"].as_str().or(found["predictions"][0]["class"].as_str());
                            assert_eq!(class, Some(known[of].1[&id].as_str()));
                            right.fetch_add(1, Ordering::Relaxed);
                            versions.fetch_or(1 << of, Ordering::Relaxed);
                        }
                        // Asks for much and reads a byte now and then.
                        3 => {
                            let Some(mut stream) = connect(address) else { continue };
                            let ids = vec!["p1"; 20_000];
                            let body = json!({ "ids": ids }).to_string();
                            let head = format!("POST /v1/nodes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
                            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
                            for _ in 0..5 {
                                std::thread::sleep(Duration::from_millis(300));
                                let _ = stream.read(&mut [0]);
                            }
                        }
                        // Begins a request and says no more; the server has to hang up.
                        4 => {
                            let Some(mut stream) = connect(address) else { continue };
                            let _ = stream.write_all(b"POST /v1/rows HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{\"ro");
                            let begun = Instant::now();
                            let _ = stream.read_to_end(&mut vec![]);
                            assert!(begun.elapsed() < Duration::from_secs(4), "a half-open connection stays");
                        }
                        // Whatever it likes.
                        5 => {
                            let Some(mut stream) = connect(address) else { continue };
                            let _ = stream.write_all(&noise(turn, 1 + (turn % 4000) as usize));
                            let _ = stream.shutdown(std::net::Shutdown::Write);
                            let _ = stream.read_to_end(&mut vec![]);
                        }
                        // A hundred million bytes, said or not.
                        6 => {
                            let Some(mut stream) = connect(address) else { continue };
                            let head: &[u8] = match turn % 2 {
                                0 => b"POST /v1/rows HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000000\r\n\r\n",
                                _ => b"POST /v1/rows HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5f5e100\r\n",
                            };
                            let _ = stream.write_all(head);
                            let part = vec![b' '; 1 << 20];
                            let sent = (0..100).take_while(|_| stream.write_all(&part).is_ok()).count();
                            assert!(sent < 100, "all of it was taken");
                        }
                        // JSON that is none of ours.
                        _ => {
                            let body = noise(turn, 300).iter().map(|byte| b"[]{}\",:01antrue "[*byte as usize % 16]).collect::<Vec<u8>>();
                            let answer = ask(address, "POST", "/v2/models/people/infer", &[("content-type", "application/json")], &body);
                            assert_eq!(answer.status, 400, "{}", answer.text());
                        }
                    }
                }
            });
        }
        let begun = Instant::now();
        let part = Duration::from_secs(seconds) / 6;
        for turn in 1..=6u32 {
            std::thread::sleep((part * turn).saturating_sub(begun.elapsed()));
            if turn == 2 {
                early = held();
            }
            point(if turn % 2 == 1 { "two" } else { "one" });
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(right.load(Ordering::Relaxed) > 50, "{right:?}");
    assert_eq!(versions.load(Ordering::Relaxed), 3, "both versions were served");
    // Clients are gone: what they held is given back.
    std::thread::sleep(Duration::from_millis(1500));
    let late = held();
    assert!(late.1 <= early.1 + 8, "open files: {early:?}, then {late:?}");
    assert!(late.0 <= early.0 + early.0 / 4 + (40 << 10), "memory: {early:?}, then {late:?}");
    let metrics = served.get("/metrics").text();
    for status in ["200", "400", "408", "413"] {
        assert!(metrics.contains(&format!("status=\"{status}\"")), "{status}: {metrics}");
    }
    served.stop();
}

#[test]
fn a_request_that_has_begun_is_answered_when_the_server_stops() {
    let place = tempfile::tempdir().expect("a folder");
    edge_release(&place.path().join("one"));
    let mut served = serve(options(&[("people", place.path().join("one"))]));
    let mut stream = connect(served.address).expect("connected");
    let body = br#"{"ids":["p1"]}"#;
    let head = format!(
        "POST /v1/nodes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(&body[..5]).expect("sent");
    std::thread::sleep(Duration::from_millis(200));
    let stopping = std::thread::spawn(move || {
        let begun = Instant::now();
        served.stop();
        begun.elapsed()
    });
    std::thread::sleep(Duration::from_millis(300));
    stream.write_all(&body[5..]).expect("sent");
    let mut bytes = vec![];
    stream.read_to_end(&mut bytes).expect("read");
    assert_eq!(answer(&bytes).json()["predictions"][0]["id"], "p1");
    assert!(
        stopping.join().expect("it ends") < Duration::from_secs(3),
        "it ends once the last request is answered"
    );
}

#[test]
fn requests_from_one_address_are_bounded_by_the_second() {
    let place = tempfile::tempdir().expect("a folder");
    edge_release(&place.path().join("one"));
    let limits = Limits { max_rate: 5, ..Limits::default() };
    let served = serve(Options { limits, ..options(&[("people", place.path().join("one"))]) });
    let statuses: Vec<u16> = (0..40).map(|_| served.get("/v1/nodes/p1").status).collect();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert!(refused > 10 && refused < 40, "{statuses:?}");
    let answer =
        (0..40).map(|_| served.get("/v1/nodes/p1")).find(|answer| answer.status == 429).expect("refused");
    assert!(answer.head.contains("retry-after: 1"));
}
