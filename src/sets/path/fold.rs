//! One form for names that a system takes for the same: without case, and without regard to the normalisation form.
//!
//! An approximation for warnings alone (Unicode's simple lower case, NFC): no access is decided by it.

use icu_normalizer::ComposingNormalizerBorrowed;

/// A segment in the form in which names that differ in case or normalisation are equal. What is not UTF-8 stays as it is.
pub fn fold(segment: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(segment) else { return segment.to_vec() };
    if text.is_ascii() {
        return segment.to_ascii_lowercase();
    }
    ComposingNormalizerBorrowed::new_nfc().normalize(&text.to_lowercase()).into_owned().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn case_and_form_do_not_matter() {
        for (one, other) in [("Src", "src"), ("é", "e\u{301}"), ("É", "e\u{301}"), ("ÀB", "a\u{300}b"), ("Ω", "ω")]
        {
            assert_eq!(fold(one.as_bytes()), fold(other.as_bytes()), "{one} {other}");
        }
        assert_ne!(fold(b"src"), fold(b"srC1"));
        assert_eq!(fold(b"\xff"), b"\xff");
    }
}
