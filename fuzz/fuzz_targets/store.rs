//! Our own format, as the bytes come: what a checksum or the header gives away.
#![no_main]

use libfuzzer_sys::fuzz_target;
use progap_graph::store;

fuzz_target!(|content: &[u8]| {
    let _ = store::from_bytes(content.to_vec());
});
