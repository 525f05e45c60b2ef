//! Damage to bytes: bits, numbers at their extremes, pieces moved, cut and doubled, words of JSON and TOML exchanged.

use crate::Target;

/// No case is longer.
pub const LONGEST: usize = 1 << 19;

/// Numbers that are not protected from anything (SplitMix64), so that a case can be made again from its number.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that fall as the seed says.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, or 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.bits() % limit as u64) as usize }
    }

    fn of<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        &list[self.below(list.len())]
    }
}

/// The case of a number: a seed of the target, damaged one to eight times.
pub fn case(target: &Target, seeds: &[Vec<u8>], seed: u64, number: u64) -> Vec<u8> {
    let name = target.name.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let mut dice = Dice::new(seed ^ name.rotate_left(32) ^ number.wrapping_mul(0xd134_2543_de82_ef95));
    let mut bytes = if seeds.is_empty() { vec![] } else { dice.of(seeds).clone() };
    for _ in 0..=dice.below(8).min(dice.below(8)) {
        damage(&mut bytes, seeds, &mut dice);
    }
    bytes.truncate(LONGEST);
    bytes
}

/// Numbers at which programs break.
const NUMBERS: [u64; 20] = [
    0,
    1,
    2,
    3,
    7,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// Words at which readers of text break.
const WORDS: [&str; 32] = [
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "1e-320",
    "1e308",
    "1e400",
    "-1e308",
    "0.5",
    "NaN",
    "nan",
    "inf",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"\\u0000\"",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1000000000",
    "\"../../etc/passwd\"",
    "\"\\u001b[2J\"",
    "\"secure\"",
    "\"node\"",
    "\"edge\"",
    "\"none\"",
    ",",
    "}",
];

fn damage(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], dice: &mut Dice) {
    let length = bytes.len();
    let at = dice.below(length);
    let span = || [1usize, 2, 4, 8, 16, 64, 256, 4096];
    let end = (at + 1 + dice.below(*dice.clone().of(&span()))).min(length);
    match dice.below(16) {
        0 | 1 if length > 0 => bytes[at] ^= 1 << dice.below(8),
        2 if length > 0 => bytes[at] = dice.bits() as u8,
        3 | 4 if length > 0 => {
            let number = dice.of(&NUMBERS).wrapping_add(dice.below(3) as u64).wrapping_sub(1);
            let width = *dice.of(&[1usize, 2, 4, 8]);
            let mut pattern = number.to_le_bytes();
            if dice.below(2) == 0 {
                pattern[..width].reverse();
            }
            let width = width.min(length - at);
            bytes[at..at + width].copy_from_slice(&pattern[..width]);
        }
        5 => bytes.truncate(at),
        6 if length > 0 => drop(bytes.drain(at..end)),
        7 if length > 0 => {
            let piece = bytes[at..end].to_vec();
            let to = dice.below(length);
            bytes.splice(to..to, piece);
        }
        8 => {
            let new: Vec<u8> = (0..dice.below(16)).map(|_| dice.bits() as u8).collect();
            bytes.splice(at..at, new);
        }
        9 if !seeds.is_empty() => {
            // The rest of another seed, from anywhere.
            let other = dice.of(seeds).clone();
            let from = dice.below(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        10..=12 => exchange_word(bytes, dice),
        13 => repeat_line(bytes, dice),
        14 => {
            let bracket = *dice.of(&[b'[', b'{', b'(', b'"', b'\n', 0]);
            let depth = *dice.of(&[2usize, 130, 5000]);
            bytes.splice(at..at, std::iter::repeat_n(bracket, depth));
        }
        _ if length > 0 => {
            let value = *dice.of(&[0u8, 0xff, b' ', b'9']);
            bytes[at..end].fill(value);
        }
        _ => {}
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'_' | b'"')
}

/// Puts another word in the place of one.
fn exchange_word(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let Some(from) = (dice.below(bytes.len())..bytes.len()).find(|&at| is_word(bytes[at])) else { return };
    let begin = bytes[..from].iter().rposition(|&byte| !is_word(byte)).map_or(0, |before| before + 1);
    let end = bytes[from..].iter().position(|&byte| !is_word(byte)).map_or(bytes.len(), |more| from + more);
    let word: Vec<u8> = match dice.below(3) {
        0 => {
            // A word from elsewhere in the same text.
            let at = dice.below(bytes.len());
            let last =
                bytes[at..].iter().position(|&byte| !is_word(byte)).map_or(bytes.len(), |more| at + more);
            bytes[at..last].to_vec()
        }
        _ => dice.of(&WORDS).as_bytes().to_vec(),
    };
    bytes.splice(begin..end, word);
}

/// Doubles, drops or moves a line.
fn repeat_line(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return;
    }
    let (at, to) = (dice.below(lines.len()), dice.below(lines.len()));
    match dice.below(3) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(to, lines[at].clone()),
        _ => lines.swap(at, to),
    }
    *bytes = lines.concat();
}
