//! Who may ask, and for which nodes; what is opened of a release; how new versions come.

mod common;

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use common::*;
use progap::Release;
use progap_export::SecretKey;
use progap_server::{Access, Options, Owners, Token};
use serde_json::{Value, json};

fn secret(file: &Path, content: &str) {
    std::fs::write(file, content).expect("written");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).expect("its owner's");
}

#[test]
fn beyond_this_machine_a_token_or_tls_is_needed() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    edge_release(&folder);
    let open = Options { listen: ([0, 0, 0, 0], 0).into(), ..options(&[("people", folder.clone())]) };
    assert!(try_serve(open.clone()).err().expect("refused").contains("token_file"));
    let access = Access { token: Some(Token::new(TOKEN).expect("a token")), owners: Owners::Unknown };
    let served = serve(Options { access, ..open });
    let address = (IpAddr::from([127, 0, 0, 1]), served.address.port()).into();
    let with = |token: &str| ask(address, "GET", "/v1/nodes/p1", &[("authorization", token)], b"");
    assert_eq!(with(&format!("Bearer {TOKEN}")).status, 200);
    assert_eq!(with(&format!("bearer {TOKEN}")).status, 200);
    for wrong in [
        "",
        "Bearer",
        "Bearer ",
        "Basic 0123456789abcdef-the-token",
        &format!("Bearer {TOKEN}x"),
        "Bearer 0123456789abcdef",
    ] {
        let refused = with(wrong);
        assert!(refused.refused(401).contains("token"), "{wrong}");
        assert!(refused.head.contains("www-authenticate: bearer"));
    }
    for open in ["/v2/health/live", "/v2/health/ready", "/", "/openapi.json"] {
        assert_eq!(ask(address, "GET", open, &[], b"").status, 200, "{open}");
    }
    for closed in ["/metrics", "/v1/guarantee", "/v1/models", "/v2", "/v2/models/people", "/elsewhere"] {
        assert_eq!(ask(address, "GET", closed, &[], b"").status, 401, "{closed}");
    }
}

#[test]
fn a_page_of_another_host_cannot_ask() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    edge_release(&folder);
    let served = serve(options(&[("people", folder)]));
    let named = |host: &str| ask(served.address, "GET", "/v1/nodes/p1", &[("host", host)], b"").status;
    assert_eq!((named("localhost:80"), named("evil.example")), (200, 403));
}

#[test]
fn secrets_that_others_can_read_or_guess_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("token");
    secret(&file, &format!("{TOKEN}\n"));
    assert!(Token::read(&file).is_ok());
    for (content, said) in
        [("short", "at least 16"), ("", "at least 16"), ("a token with blanks in it", "no blank")]
    {
        secret(&file, content);
        assert!(Token::read(&file).expect_err(content).to_string().contains(said));
    }
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("anybody's");
    assert!(Token::read(&file).expect_err("anybody's").to_string().contains("chmod 600"));
    let cases = [
        ("id\np1\n", "no column \"token\""),
        ("id,token\n", "no rows"),
        ("id,token\np1,short\n", "row 2"),
        ("id,token\np1,0123456789abcdef\np2,0123456789abcdef\n", "row 3: another node"),
        ("id,token\np1\n", "row 2"),
    ];
    for (content, said) in cases {
        let file = place.path().join("tokens.csv");
        secret(&file, content);
        let problem = Owners::read(&file).expect_err(content).to_string();
        assert!(problem.contains(said) && problem.contains("tokens.csv"), "{problem}");
    }
}

#[test]
fn at_node_level_a_row_goes_to_its_owner_alone() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    train(&folder, progap::Node::epsilon(8.0));
    let expected = Release::open(&folder).expect("a release").predict().expect("predictions");
    let tokens = place.path().join("tokens.csv");
    secret(&tokens, "token,id\ntoken-of-person-1,p1\ntoken-of-person-2,p2\n");
    let id = json!({ "name": "id", "shape": [1], "datatype": "BYTES", "data": ["p1"] });
    let asks = |served: &Running, headers: &[(&str, &str)]| -> Vec<Answer> {
        let json = [headers, &[("content-type", "application/json")]].concat();
        let post =
            |path: &str, body: Value| ask(served.address, "POST", path, &json, body.to_string().as_bytes());
        vec![
            ask(served.address, "GET", "/v1/nodes/p1", headers, b""),
            post("/v1/nodes", json!({ "ids": ["p1"] })),
            post("/v2/models/people/infer", json!({ "inputs": [id] })),
        ]
    };
    // Nobody can show who they are: no row is even opened, and all are refused.
    {
        let served = serve(options(&[("people", folder.clone())]));
        for answer in asks(&served, &[("x-node-token", "token-of-person-1")]) {
            assert!(answer.refused(403).contains("owner"));
        }
        assert!(!served.get("/v1/models").json()["models"][0]["nodes"].as_bool().expect("a truth value"));
    }
    let access = Access { owners: Owners::read(&tokens).expect("tokens"), ..Access::default() };
    let served = serve(Options { access, ..options(&[("people", folder.clone())]) });
    for answer in asks(&served, &[("x-node-token", "token-of-person-1")]) {
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    for headers in [
        &[][..],
        &[("x-node-token", "token-of-person-2")],
        &[("x-node-token", "")],
        &[("authorization", "Bearer token-of-person-1")],
    ] {
        for answer in asks(&served, headers) {
            assert!(answer.refused(403).contains("owner"));
        }
    }
    let both = served.post("/v1/nodes", &json!({ "ids": ["p1", "p2"] }));
    both.refused(403);
    // One's own row among others is refused as a whole.
    let mixed = ask(
        served.address,
        "POST",
        "/v1/nodes",
        &[("content-type", "application/json"), ("x-node-token", "token-of-person-1")],
        br#"{"ids":["p1","p2"]}"#,
    );
    mixed.refused(403);
    let release = Release::open(&folder).expect("a release");
    let at = (0..100).find(|&at| release.nodes().node_ids().name(at) == "p1").expect("p1");
    let own =
        ask(served.address, "GET", "/v1/nodes/p1", &[("x-node-token", "token-of-person-1")], b"").json();
    assert_eq!(own["class"], release.nodes().class_names()[expected.classes[at] as usize].as_str());
}

/// Predictions of dp-gnn read the rows of senders as they are: not even the owner of a record is shown one.
#[test]
fn predictions_that_the_guarantee_does_not_cover_are_not_served() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    train(&folder, progap::Node::epsilon(8.0).method(progap::MethodKind::DpGnn).batch_size(30).epochs(1));
    assert!(!Release::open(&folder).expect("a release").covers_predictions());
    let tokens = place.path().join("tokens.csv");
    secret(&tokens, "token,id\ntoken-of-person-1,p1\n");
    let access = Access { owners: Owners::read(&tokens).expect("tokens"), ..Access::default() };
    let served = serve(Options { access, ..options(&[("people", folder)]) });
    let answer = ask(served.address, "GET", "/v1/nodes/p1", &[("x-node-token", "token-of-person-1")], b"");
    assert!(answer.refused(404).contains("data owner alone"));
}

#[test]
fn the_header_of_a_proxy_names_the_owner() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    train(&folder, progap::Node::epsilon(8.0));
    let owners = |proxy: [u8; 4]| Owners::Header("x-user".parse().expect("a name"), IpAddr::from(proxy));
    let start = |owners| {
        serve(Options {
            access: Access { owners, ..Access::default() },
            ..options(&[("people", folder.clone())])
        })
    };
    let own = |served: &Running, user: &str| {
        ask(served.address, "GET", "/v1/nodes/p1", &[("x-user", user)], b"").status
    };
    let trusted = start(owners([127, 0, 0, 1]));
    assert_eq!((own(&trusted, "p1"), own(&trusted, "p2")), (200, 403));
    let elsewhere = start(owners([10, 0, 0, 1]));
    assert_eq!(own(&elsewhere, "p1"), 403);
}

/// What the kernel says was opened below a folder.
#[cfg(target_os = "linux")]
mod watched {
    use std::mem::MaybeUninit;
    use std::path::Path;

    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

    pub struct Watch(rustix::fd::OwnedFd);

    impl Watch {
        pub fn of(folder: &Path) -> Watch {
            let watch = init(CreateFlags::NONBLOCK).expect("inotify");
            add_watch(&watch, folder, WatchFlags::OPEN | WatchFlags::ACCESS).expect("watched");
            Watch(watch)
        }

        /// Whether anything was opened or read since.
        pub fn saw_anything(&self) -> bool {
            let mut room = [MaybeUninit::uninit(); 4096];
            Reader::new(&self.0, &mut room).next().is_ok()
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn at_edge_level_what_is_private_is_never_opened() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    edge_release(&folder);
    let private = folder.join("private");
    std::fs::create_dir_all(&private).expect("made");
    std::fs::write(private.join("edges.csv"), "the edges").expect("written");
    let watch = watched::Watch::of(&private);
    let tokens = place.path().join("tokens.csv");
    secret(&tokens, "token,id\ntoken-of-person-1,p1\n");
    let access = Access { owners: Owners::read(&tokens).expect("tokens"), ..Access::default() };
    let served = serve(Options { access, ..options(&[("people", folder.clone())]) });
    for path in ["/v1/nodes/p1", "/v1/guarantee", "/v2/models/people", "/metrics", "/v1/models"] {
        assert_eq!(served.get(path).status, 200, "{path}");
    }
    let rows = json!({ "rows": [{ "pay": 1, "town": "Oslo", "age": 3 }] });
    assert_eq!(served.post("/v1/rows", &rows).status, 200);
    std::thread::sleep(Duration::from_millis(200));
    assert!(!watch.saw_anything());
    // The watch does see what is opened.
    std::fs::read(private.join("edges.csv")).expect("read");
    assert!(watch.saw_anything());
}

/// Waits until something holds.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_new_version_is_served_once_it_was_verified_and_a_bad_one_never() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    edge_release(&at("one"));
    edge_release(&at("two"));
    edge_release(&at("bad"));
    // An epsilon that nobody computed, in a release whose checksums are right.
    let statement = at("bad/privacy.json");
    let text = std::fs::read_to_string(&statement).expect("read");
    let mut changed: Value = serde_json::from_str(&text).expect("JSON");
    changed["epsilon"] = json!(0.5);
    std::fs::write(&statement, serde_json::to_string_pretty(&changed).expect("JSON") + "\n")
        .expect("written");
    let manifest = at("bad/manifest.json");
    let mut list: Value = serde_json::from_slice(&std::fs::read(&manifest).expect("read")).expect("JSON");
    list["files"]["privacy.json"] = sha256(&std::fs::read(&statement).expect("read")).into();
    std::fs::write(&manifest, serde_json::to_string_pretty(&list).expect("JSON")).expect("written");
    let point = |target: &str| {
        let _ = std::fs::remove_file(at("next"));
        std::os::unix::fs::symlink(at(target), at("next")).expect("linked");
        std::fs::rename(at("next"), at("current")).expect("put in place");
    };
    let hash = |name: &str| Release::open(&at(name)).expect("a release").sha256().to_string();
    point("one");
    let served = serve(options(&[("people", at("current"))]));
    let current = || served.get("/v1/guarantee").json()["release"].as_str().expect("a hash").to_string();
    assert_eq!(current(), hash("one"));
    point("two");
    eventually("the second version", || current() == hash("two"));
    point("bad");
    let count = |outcome: &str, n: u32| {
        served
            .get("/metrics")
            .text()
            .contains(&format!("progap_reloads_total{{outcome=\"{outcome}\"}} {n}\n"))
    };
    eventually("a refusal", || count("refused", 1));
    assert_eq!(current(), hash("two"));
    // It is not opened again and again, and a good one is still taken.
    std::thread::sleep(Duration::from_millis(300));
    assert!(count("refused", 1));
    point("one");
    eventually("the first version again", || current() == hash("one"));
    // Nor does a server start with it.
    let refused = try_serve(options(&[("people", at("bad"))])).err().expect("refused");
    assert!(refused.contains("it is not served"), "{refused}");
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn only_what_is_signed_is_served_where_that_is_asked_for() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    edge_release(&at("people"));
    let (own, other) = (SecretKey::new().expect("a key"), SecretKey::new().expect("a key"));
    let exported = progap::release::Exported { date: "2026-01-31".parse().expect("a day"), rows: true };
    progap_export::export(&at("people"), &at("export"), exported, &mut |_| Ok("page".into()), Some(&own))
        .expect("an export");
    let with = |folder: &str, key: &SecretKey| {
        try_serve(Options { signer: Some(key.public()), ..options(&[("people", at(folder))]) })
    };
    assert!(with("export", &own).is_ok());
    assert!(with("export", &other).err().expect("refused").contains("signature"));
    assert!(with("people", &own).err().expect("refused").contains("signature"));
}

#[test]
fn releases_and_names_that_cannot_be_served_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("people");
    edge_release(&folder);
    let refused =
        |releases: &[(&str, std::path::PathBuf)]| try_serve(options(releases)).err().expect("refused");
    assert!(refused(&[("a", place.path().join("gone"))]).contains("no release here"));
    assert!(refused(&[("a/b", folder.clone())]).contains("no name for a model"));
    assert!(refused(&[("a", folder.clone()), ("a", folder.clone())]).contains("two releases"));
    assert!(refused(&[]).contains("no release"));
    // A taken port.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let problem = try_serve(Options { listen: address, ..options(&[("a", folder)]) }).err().expect("refused");
    assert!(problem.contains("cannot listen at"), "{problem}");
}

#[test]
fn over_tls_it_answers_clients_that_trust_its_certificate() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    let run = |program: &str, arguments: &[&str]| {
        std::process::Command::new(program).args(arguments).current_dir(place.path()).output()
    };
    let made = run(
        "openssl",
        &[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
            "-days",
            "1",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ],
    );
    if !made.is_ok_and(|made| made.status.success()) || run("curl", &["--version"]).is_err() {
        eprintln!("skipped: this test needs the commands openssl and curl");
        return;
    }
    edge_release(&at("people"));
    let tls = Some((at("cert.pem"), at("key.pem")));
    // Beyond this machine TLS is enough.
    let served =
        serve(Options { tls, listen: ([0, 0, 0, 0], 0).into(), ..options(&[("people", at("people"))]) });
    let url = format!("https://localhost:{}/v1/nodes/p1", served.address.port());
    let trusted = run("curl", &["-sS", "--noproxy", "*", "--cacert", "cert.pem", &url]).expect("curl");
    let text = String::from_utf8_lossy(&trusted.stdout).into_owned();
    assert!(text.contains("\"id\":\"p1\""), "{text}{}", String::from_utf8_lossy(&trusted.stderr));
    assert!(!run("curl", &["-sS", "--noproxy", "*", &url]).expect("curl").status.success());
    let plain = format!("http://localhost:{}/v1/nodes/p1", served.address.port());
    assert!(!run("curl", &["-sS", "--noproxy", "*", &plain]).expect("curl").status.success());
    // A key that is none, or of another certificate.
    let tls = Some((at("cert.pem"), at("cert.pem")));
    let problem = try_serve(Options { tls, ..options(&[("people", at("people"))]) }).err().expect("refused");
    assert!(problem.contains("no private key"), "{problem}");
}
