//! Orders that look random and are the same everywhere: they protect nothing.

/// The step of splitmix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number that looks random, the same for the same number (splitmix64).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The output of that index of the generator splitmix64 with seed 0.
pub(crate) fn splitmix(index: u32) -> u64 {
    mixed(u64::from(index).wrapping_mul(STEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the authors of splitmix64 publish it, for seed 0.
    #[test]
    fn outputs_are_those_of_splitmix64() {
        let published = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!([0, 1, 2].map(splitmix), published);
        assert_eq!(mixed(0), published[0]);
    }
}
