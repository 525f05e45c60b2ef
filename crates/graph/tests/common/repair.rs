//! Right checksums for damaged `.progap` files, so that damage gets past them.

use xxhash_rust::xxh3::xxh3_64;

const HEADER: usize = 64;
const ENTRY: usize = 48;
const CHUNK: usize = 4 << 20;

/// Writes the length and the checksums that the header and the section table should have, as far as they lie
/// within the file.
pub fn checksums(file: &mut [u8]) {
    let Some(sections) = file.get(12..16).map(|bytes| u32::from_le_bytes(std::array::from_fn(|k| bytes[k])))
    else {
        return;
    };
    let table_end = HEADER.saturating_add((sections as usize).saturating_mul(ENTRY));
    if table_end > file.len() {
        return;
    }
    let number = |file: &[u8], at: usize| u64::from_le_bytes(std::array::from_fn(|k| file[at + k]));
    for entry in (HEADER..table_end).step_by(ENTRY) {
        let start = number(file, entry + 16) as usize;
        let end = start.saturating_add(number(file, entry + 24) as usize);
        if let Some(content) = file.get(start..end) {
            let chunks: Vec<u8> = content.chunks(CHUNK).flat_map(|c| xxh3_64(c).to_le_bytes()).collect();
            file[entry + 32..entry + 40].copy_from_slice(&xxh3_64(&chunks).to_le_bytes());
        }
    }
    let length = file.len() as u64;
    file[16..24].copy_from_slice(&length.to_le_bytes());
    let header = xxh3_64(&[&file[..24], &file[HEADER..table_end]].concat());
    file[24..32].copy_from_slice(&header.to_le_bytes());
}
