//! Hash that is equal on every machine and in every version, for file names and seeds. It does not resist
//! deliberate collisions; files therefore store their full inputs.

/// Computes FNV-1a, mixed with the finaliser of `SplitMix64` so that similar texts give unlike values.
pub(crate) fn stable(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    let folded =
        bytes.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let first = (folded ^ (folded >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    second ^ (second >> 31)
}

#[cfg(test)]
mod tests {
    use super::stable;

    #[test]
    fn stable_hash_of_a_text_is_the_same_in_every_version() {
        assert_eq!(stable(b""), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(stable(b"fig06"), stable(b"fig06"));
        assert_ne!(stable(b"fig06"), stable(b"fig07"));
    }
}
