//! Near misses: the word somebody probably meant. Nothing else is guessed.

/// The candidate nearest to `word`, if one is near enough to be a slip of the fingers: one edit in words of up
/// to three letters, two up to ten, three past that; a transposition is one. `None` if the word is itself a candidate.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    // A word longer than any keyword is not compared: the distance is quadratic.
    if length > 64 {
        return None;
    }
    let allowed = match length {
        0 | 1 => 0,
        2..=3 => 1,
        4..=10 => 2,
        _ => 3,
    };
    let folded = word.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word)
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count().max(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_slips_and_only_slips() {
        let words = ["allow", "deny", "forbid", "default", "set", "on"];
        for (word, expected) in [
            ("alow", Some("allow")),
            ("allwo", Some("allow")),
            ("dney", Some("deny")),
            ("Deny", Some("deny")),
            ("defualt", Some("default")),
            ("st", Some("set")),
            ("o", None),
            ("permit", None),
            ("xyzzy", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
    }
}
