//! Our own format with right checksums, whatever the sections say: what must be refused for its content.
#![no_main]

use libfuzzer_sys::fuzz_target;
use progap_graph::store;

#[path = "../../crates/graph/tests/common/repair.rs"]
mod repair;

fuzz_target!(|content: &[u8]| {
    let mut content = content.to_vec();
    repair::checksums(&mut content);
    let _ = store::from_bytes(content);
});
