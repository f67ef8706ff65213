//! Keys that follow from a content: a UUID of version 8 (RFC 9562 section 5.8) made of its FNV-1a hash of 128 bits.
//!
//! A hash without secrets: two filters of one policy with the same key would have to be sought, by the policy's own author,
//! and are then refused when the artefact is read back.

/// Offset basis and prime of FNV-1a, 128 bits (draft-eastlake-fnv section 5).
const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// The key of a content, in braces.
pub(super) fn of(content: &str) -> String {
    let hash = content.bytes().fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    // The version and the variant take 6 of the bits.
    let bits = hash & !(0xf << 76) & !(0x3 << 62) | 0x8 << 76 | 0x2 << 62;
    let text = format!("{bits:032x}");
    format!("{{{}-{}-{}-{}-{}}}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn a_key_is_of_its_content() {
        // FNV-1a of nothing is its basis, less the bits that say what sort of UUID this is.
        assert_eq!(of(""), "{6c62272e-07bb-8142-a2b8-21756295c58d}");
        assert_eq!(of("a"), of("a"));
        assert_ne!(of("a"), of("b"));
    }
}
