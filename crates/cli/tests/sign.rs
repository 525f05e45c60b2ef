//! Who made it: `progap key`, `progap export --sign`, `progap verify --signer`.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Run, progap_in, put, text};

/// A folder with a small release `r`, a key `me` and an export `e` that is signed with it.
fn workplace() -> tempfile::TempDir {
    let place = common::folder();
    let at = place.path();
    progap_in(at, &["data", "synth", "g.progap", "--nodes", "300", "--edges", "3000", "--classes", "3"]).ok();
    progap_in(at, &["train", "g.progap", "--quiet", "--out", "r", "--epochs", "1", "--depth", "1"]).ok();
    progap_in(at, &["key", "new", "me"]).ok();
    progap_in(at, &["export", "r", "e", "--sign", "me.key", "--date", "2026-01-31"]).ok();
    place
}

fn fingerprint(at: &Path, key: &str) -> String {
    let shown = progap_in(at, &["key", "show", key, "--json"]).json();
    shown["fingerprint"].as_str().expect("a fingerprint").to_string()
}

fn verify(at: &Path, arguments: &[&str]) -> Run {
    progap_in(at, &[&["verify"], arguments].concat())
}

/// The output of a run that finds a mistake, its lines joined, and that it fails.
#[track_caller]
fn wrong(run: Run, parts: &[&str]) {
    let said = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!run.success && run.stderr.contains("must not be trusted"), "{said}\n{}", run.stderr);
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}

fn read(at: &Path, name: &str) -> Vec<u8> {
    std::fs::read(at.join(name)).expect(name)
}

#[test]
fn an_export_says_who_signed_it_and_nobody_else_did() {
    let place = workplace();
    let at = place.path();
    let me = fingerprint(at, "me.pub");
    assert_eq!(me, fingerprint(at, "me.key"), "both halves have the fingerprint of the public one");
    let found = verify(at, &["e", "--signer", "me.pub", "--json"]).json();
    assert_eq!((&found["ok"], &found["signature"]["asked_for"]), (&true.into(), &true.into()));
    assert_eq!(found["signature"]["fingerprint"], me.as_str());
    let said = verify(at, &["e", "--signer", "me.pub"]).ok();
    assert!(said.contains(&me) && said.contains("as asked for"), "{said}");

    // Without being asked for, a signature shows nothing about its maker.
    let unasked = verify(at, &["e"]).ok();
    assert!(unasked.contains(&me) && unasked.contains("not asked for") && unasked.contains("(signer)"));
    let unasked = verify(at, &["e", "--json"]).json();
    assert_eq!(unasked["signature"]["asked_for"], false);

    progap_in(at, &["key", "new", "other"]).ok();
    let other = fingerprint(at, "other.pub");
    wrong(verify(at, &["e", "--signer", "other.pub"]), &[&me, &other, "not by key"]);
    // Someone else signs the same files, and says that it is me.
    progap_in(at, &["export", "e", "theirs", "--sign", "other.key", "--date", "2026-01-31"]).ok();
    wrong(verify(at, &["theirs", "--signer", "me.pub"]), &[&me, &other]);
    std::fs::copy(at.join("e/signer.pub"), at.join("theirs/signer.pub")).expect("copied");
    wrong(verify(at, &["theirs", "--signer", "me.pub"]), &["no signature of manifest.json"]);
    wrong(verify(at, &["theirs"]), &["no signature of manifest.json"]);
    assert_eq!(
        read(at, "e/manifest.json"),
        read(at, "theirs/manifest.json"),
        "a signature changes no other file"
    );
}

#[test]
fn what_has_no_signature_is_not_what_a_signer_is_asked_for() {
    let place = workplace();
    let at = place.path();
    progap_in(at, &["export", "r", "plain"]).ok();
    for folder in ["plain", "r"] {
        let said = verify(at, &[folder]).ok();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("do not show who made this, nor that training was really run as described"),
            "{said}"
        );
        wrong(verify(at, &[folder, "--signer", "me.pub"]), &["none; one by key", &fingerprint(at, "me.pub")]);
        let found = verify(at, &[folder, "--json"]).json();
        assert_eq!(found["signature"], serde_json::json!({ "fingerprint": null, "asked_for": false }));
    }
    // A signature that was taken away.
    std::fs::remove_file(at.join("e/manifest.sig")).expect("removed");
    wrong(verify(at, &["e", "--signer", "me.pub"]), &["none; one by key"]);
    wrong(verify(at, &["e"]), &["none, though signer.pub names a signer"]);
    // An export of a signed export is its maker's, and says nothing of the first.
    progap_in(at, &["export", "plain", "again"]).ok();
    assert!(!at.join("again/manifest.sig").exists());
    // A release as training leaves it has no signature: files that say so do not belong.
    std::fs::write(at.join("r/manifest.sig"), [0; 64]).expect("written");
    assert!(!verify(at, &["r"]).success);
}

#[test]
fn nothing_can_be_changed_in_what_is_signed() {
    let place = workplace();
    let at = place.path();
    let signed = |name: &str| format!("e/{name}");
    let files = common::runs::contents(&at.join("e"));
    assert!(files.len() == 12, "{:?}", files.keys());
    for (name, content) in &files {
        // One bit in the middle.
        let mut changed = content.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        for changed in [changed, content[..content.len() - 1].to_vec(), vec![]] {
            put(at, &[(&signed(name), &changed)]);
            let found = verify(at, &["e", "--signer", "me.pub"]);
            assert!(!found.success, "{name}: {}{}", found.stdout, found.stderr);
            assert!(!found.stderr.contains("mistake in progap"), "{name}: {}", found.stderr);
        }
        put(at, &[(&signed(name), content)]);
    }
    // A consistent forgery: the manifest lists what is there, but nobody signed it.
    let manifest = String::from_utf8(files["manifest.json"].clone()).expect("text");
    let later = manifest.replace("2026-01-31", "2026-02-01");
    put(at, &[("e/manifest.json", later.as_bytes())]);
    wrong(verify(at, &["e", "--signer", "me.pub"]), &["no signature of manifest.json", "was changed"]);
    put(at, &[("e/manifest.json", manifest.as_bytes())]);
    verify(at, &["e", "--signer", "me.pub"]).ok();
}

#[test]
fn every_byte_of_a_signature_counts_and_so_does_its_length() {
    let place = workplace();
    let at = place.path();
    let signature = read(at, "e/manifest.sig");
    assert_eq!(signature.len(), 64);
    for byte in (0..64).step_by(7) {
        let mut changed = signature.clone();
        changed[byte] ^= 0x80;
        put(at, &[("e/manifest.sig", &changed)]);
        wrong(verify(at, &["e", "--signer", "me.pub"]), &["no signature"]);
    }
    // The same signature with the group's order added to its second half, which only strict rules refuse.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut other = signature.clone();
    let mut carry = 0;
    for (byte, more) in other[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(more) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    for changed in [other, signature[..63].to_vec(), [&signature[..], &[0]].concat()] {
        put(at, &[("e/manifest.sig", &changed)]);
        wrong(verify(at, &["e", "--signer", "me.pub"]), &["no signature"]);
    }
}

#[test]
fn with_a_signer_nothing_is_opened_before_the_signature_holds() {
    let place = workplace();
    let at = place.path();
    progap_in(at, &["key", "new", "other"]).ok();
    // Files that cannot be opened are not reached.
    put(at, &[("e/privacy.json", b"{"), ("e/nodes.progap", b"")]);
    let found = verify(at, &["e", "--signer", "other.pub", "--json"]);
    assert!(!found.success && !found.stderr.contains("privacy.json"), "{}", found.stderr);
    let found: serde_json::Value = serde_json::from_str(&found.stdout).expect("JSON");
    assert_eq!(found["findings"].as_array().map(Vec::len), Some(1), "{found}");
}

#[cfg(unix)]
#[test]
fn a_secret_key_is_for_its_owner_alone_and_nothing_is_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let place = workplace();
    let at = place.path();
    let mode = |name: &str| std::fs::metadata(at.join(name)).expect("a file").permissions().mode() & 0o777;
    // Also where the umask would allow more.
    let program = format!("umask 000; exec {} key new wide", env!("CARGO_BIN_EXE_progap"));
    let made = Command::new("sh").args(["-c", &program]).current_dir(at).status().expect("a shell");
    assert!(made.success());
    assert_eq!((mode("me.key"), mode("wide.key"), mode("wide.pub")), (0o600, 0o600, 0o666));

    let before = (read(at, "me.key"), read(at, "me.pub"));
    progap_in(at, &["key", "new", "me"]).refused(&["me.key", "already exists", "--force"]);
    std::fs::remove_file(at.join("me.key")).expect("removed");
    progap_in(at, &["key", "new", "me"]).refused(&["me.pub", "already exists", "--force"]);
    assert!(!at.join("me.key").exists(), "nothing is half-written");
    put(at, &[("me.key", &before.0)]);
    std::fs::set_permissions(at.join("me.key"), PermissionsExt::from_mode(0o600)).expect("set");
    assert_eq!((read(at, "me.key"), read(at, "me.pub")), before);
    // As where it was killed between its two files: the same command ends it.
    std::fs::remove_file(at.join("me.pub")).expect("removed");
    let ended = progap_in(at, &["key", "new", "me", "--json"]).json();
    assert_eq!(
        (&ended["new"], read(at, "me.key"), read(at, "me.pub")),
        (&false.into(), before.0.clone(), before.1.clone())
    );
    std::fs::remove_file(at.join("me.pub")).expect("removed");
    put(at, &[("none.key", b"no key")]);
    progap_in(at, &["key", "new", "none"]).refused(&["none.key", "already exists", "--force"]);
    progap_in(at, &["key", "new", "me", "--force"]).ok();
    assert!(read(at, "me.key") != before.0 && read(at, "me.pub") != before.1 && mode("me.key") == 0o600);

    for wide in [0o644, 0o640, 0o601] {
        std::fs::set_permissions(at.join("me.key"), PermissionsExt::from_mode(wide)).expect("set");
        progap_in(at, &["export", "r", "new", "--sign", "me.key"]).refused(&["me.key", "chmod 600"]);
        assert!(!at.join("new").exists());
    }
    progap_in(at, &["key", "new", "nowhere/me"]).refused(&["nowhere/me.key"]);
    progap_in(at, &["key", "new", "r/me"]).refused(&["r/me.key", "release"]);
    progap_in(at, &["key", "new", ".."]).refused(&["no name"]);
}

#[cfg(unix)]
#[test]
fn damaged_keys_are_refused_in_one_sentence() {
    use std::os::unix::fs::PermissionsExt;
    let place = workplace();
    let at = place.path();
    let whole = |name: &str| String::from_utf8(read(at, name)).expect("text");
    let (secret, public) = (whole("me.key"), whole("me.pub"));
    let put_private = |content: &[u8]| {
        put(at, &[("bad.key", content)]);
        std::fs::set_permissions(at.join("bad.key"), PermissionsExt::from_mode(0o600)).expect("set");
    };
    for cut in [0, 1, 20, secret.len() / 2, secret.len() - 20] {
        put_private(&secret.as_bytes()[..cut]);
        progap_in(at, &["export", "r", "new", "--sign", "bad.key"])
            .refused(&["bad.key", "no secret Ed25519 key"]);
    }
    for cut in [0, 1, 20, public.len() / 2, public.len() - 20] {
        put(at, &[("bad.pub", &public.as_bytes()[..cut])]);
        verify(at, &["e", "--signer", "bad.pub"]).refused(&["bad.pub", "no public Ed25519 key"]);
    }
    put_private(&[0xff; 100]);
    progap_in(at, &["key", "show", "bad.key"]).refused(&["bad.key"]);
    put_private(&vec![b'x'; 1 << 20]);
    progap_in(at, &["export", "r", "new", "--sign", "bad.key"]).refused(&["bad.key", "too large"]);
    verify(at, &["e", "--signer", "me.key"]).refused(&["me.key", "secret key"]);
    put_private(public.as_bytes());
    progap_in(at, &["export", "r", "new", "--sign", "bad.key"]).refused(&["bad.key", "public key"]);
    verify(at, &["e", "--signer", "none.pub"]).refused(&["none.pub"]);
    verify(at, &["e", "--signer", "e"]).refused(&["e", "no ordinary file"]);
    // A pipe must not make the reader wait.
    let made = Command::new("mkfifo").arg(at.join("pipe")).status().expect("mkfifo");
    assert!(made.success());
    verify(at, &["e", "--signer", "pipe"]).refused(&["pipe", "no ordinary file"]);
    std::fs::remove_file(at.join("e/manifest.sig")).expect("removed");
    std::fs::rename(at.join("pipe"), at.join("e/manifest.sig")).expect("moved");
    verify(at, &["e", "--signer", "me.pub"]).refused(&["manifest.sig", "and not a file"]);
    assert!(!at.join("new").exists());
}

/// Runs a program of another hand; says so where it is not there.
fn other_hand(program: &mut Command) -> Option<(bool, String)> {
    match program.output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
        }
        Err(_) => {
            eprintln!("skipped: there is no {} here", text(Path::new(program.get_program())));
            None
        }
    }
}

#[test]
fn openssl_checks_what_we_sign_and_we_what_openssl_signs() {
    let place = workplace();
    let at = place.path();
    let openssl = |arguments: &[&str]| other_hand(Command::new("openssl").args(arguments).current_dir(at));
    let check = ["pkeyutl", "-verify", "-pubin", "-inkey", "me.pub", "-rawin", "-in", "e/manifest.json"];
    let check = [&check[..], &["-sigfile", "e/manifest.sig"]].concat();
    let Some((ok, said)) = openssl(&check) else { return };
    assert!(ok, "{said}");
    let Some((ok, said)) = openssl(&["pkey", "-in", "me.key", "-pubout", "-out", "again.pub"]) else {
        return;
    };
    assert!(ok && read(at, "again.pub") == read(at, "me.pub"), "{said}");
    openssl(&["pkey", "-pubin", "-in", "me.pub", "-outform", "DER", "-out", "me.der"]);
    let hash = other_hand(Command::new("sha256sum").arg(at.join("me.der")));
    assert!(hash.is_none_or(|(_, said)| said.starts_with(&fingerprint(at, "me.pub"))));

    let Some((ok, said)) = openssl(&["genpkey", "-algorithm", "ed25519", "-out", "theirs.key"]) else {
        return;
    };
    assert!(ok, "{said}");
    openssl(&["pkey", "-in", "theirs.key", "-pubout", "-out", "theirs.pub"]);
    progap_in(at, &["export", "r", "t", "--sign", "theirs.key"]).ok();
    verify(at, &["t", "--signer", "theirs.pub"]).ok();
    let sign = [
        "pkeyutl",
        "-sign",
        "-inkey",
        "theirs.key",
        "-rawin",
        "-in",
        "t/manifest.json",
        "-out",
        "theirs.sig",
    ];
    let Some((ok, said)) = openssl(&sign) else { return };
    assert!(ok && read(at, "theirs.sig") == read(at, "t/manifest.sig"), "{said}");
    let mut later = read(at, "e/manifest.json");
    later.push(b' ');
    put(at, &[("e/manifest.json", &later)]);
    assert!(!openssl(&check).is_some_and(|(ok, _)| ok), "a changed manifest has no signature");
}

#[test]
fn python_s_cryptography_checks_what_we_sign() {
    let Some(python) = std::env::var_os("PROGAP_PYTHON") else {
        eprintln!("skipped: PROGAP_PYTHON names no Python, as ./test does");
        return;
    };
    let place = workplace();
    let program = "
import sys
try:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
except ImportError:
    print('absent'); sys.exit()
public = load_pem_public_key(open('me.pub', 'rb').read())
manifest, signature = open('e/manifest.json', 'rb').read(), open('e/manifest.sig', 'rb').read()
public.verify(signature, manifest)
secret = load_pem_private_key(open('me.key', 'rb').read(), None)
assert secret.public_key().public_bytes_raw() == public.public_bytes_raw()
assert secret.sign(manifest) == signature
print('verified')
";
    let said = other_hand(Command::new(python).args(["-c", program]).current_dir(place.path()));
    match said {
        Some((true, said)) if said.trim() == "absent" => {
            eprintln!("skipped: this Python has no cryptography");
        }
        Some((ok, said)) => assert!(ok && said.trim() == "verified", "{said}"),
        None => {}
    }
}

#[test]
fn signed_predictions_are_those_that_were_signed() {
    let place = workplace();
    let at = place.path();
    for file in ["p.csv", "p.json", "p.parquet"] {
        progap_in(at, &["predict", "r", "--out", file, "--sign", "me.key", "--date", "2026-01-31"]).ok();
        let said = verify(at, &[file, "--signer", "me.pub"]).ok();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("as asked for") && said.contains("2026-01-31") && said.contains("features"),
            "{said}"
        );
    }
    let told = verify(at, &["p.csv", "--json"]).json();
    assert_eq!((&told["ok"], &told["signature"]["asked_for"]), (&true.into(), &false.into()));
    let manifest = Command::new("sha256sum").arg(at.join("r/manifest.json")).output().expect("a sum").stdout;
    let manifest = String::from_utf8(manifest).expect("text")[..64].to_string();
    assert!(told.to_string().contains(&manifest));
    let text = String::from_utf8(read(at, "p.csv")).expect("text");
    let ends = |line: &str| line.ends_with(&format!("{},2026-01-31", &manifest[..16]));
    assert!(text.lines().skip(1).count() == 300 && text.lines().skip(1).all(ends), "{text}");

    progap_in(at, &["key", "new", "other"]).ok();
    wrong(verify(at, &["p.csv", "--signer", "other.pub"]), &["not by key"]);
    // A changed prediction, a changed fact, and a signature of other predictions.
    put(
        at,
        &[
            ("changed.csv", text.replacen("true", "false", 1).as_bytes()),
            ("changed.csv.sig", &read(at, "p.csv.sig")[..]),
        ],
    );
    wrong(verify(at, &["changed.csv", "--signer", "me.pub"]), &["not those that were signed"]);
    let note = String::from_utf8(read(at, "p.csv.sig")).expect("text");
    put(
        at,
        &[
            ("dated.csv", text.as_bytes()),
            ("dated.csv.sig", note.replace("2026-01-31", "2026-02-01").as_bytes()),
        ],
    );
    wrong(verify(at, &["dated.csv", "--signer", "me.pub"]), &["no signature of these predictions"]);
    put(at, &[("spaced.csv", text.as_bytes()), ("spaced.csv.sig", format!("{note} ").as_bytes())]);
    wrong(verify(at, &["spaced.csv", "--signer", "me.pub"]), &["was changed"]);
    put(at, &[("other.csv", text.as_bytes()), ("other.csv.sig", &read(at, "p.json.sig")[..])]);
    wrong(verify(at, &["other.csv"]), &["not those that were signed"]);
    put(
        at,
        &[("bare.csv", text.as_bytes()), ("broken.csv", text.as_bytes()), ("broken.csv.sig", &b"{}"[..])],
    );
    verify(at, &["bare.csv"]).refused(&["bare.csv", "no signature"]);
    verify(at, &["broken.csv"]).refused(&["broken.csv.sig", "no version"]);
    // Nothing is written where a key cannot be used, or something would be replaced.
    progap_in(at, &["predict", "r", "--out", "q.csv", "--sign", "me.pub"]).refused(&["me.pub"]);
    assert!(!at.join("q.csv").exists());
    put(at, &[("q.csv.sig", &b"mine"[..])]);
    progap_in(at, &["predict", "r", "--out", "q.csv", "--sign", "me.key"]).refused(&["q.csv.sig", "--force"]);
    assert!(!at.join("q.csv").exists());
}
