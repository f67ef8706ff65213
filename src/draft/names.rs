//! Paths that differ only where a version or a temporary name stands.
//!
//! Two different paths at least are evidence; from one nobody can tell what of it changes.

use crate::sets::path::{AbsPath, target};
use crate::vocabulary::Verb;
use std::collections::{BTreeMap, BTreeSet};

/// A run of letters without a digit is one that a program made up if both cases stand in it, and it is as long as this.
const MADE_UP: usize = 6;

/// So many characters that all begin with are no coincidence.
const COMMON: usize = 3;

/// Stands for what changes.
const ANY: char = '\0';

/// The most stars of a segment that the language takes.
const STARS: usize = 4;

/// Paths of one form, for which the same was asked.
pub(super) struct Group {
    pub paths: Vec<AbsPath>,
    pub verbs: BTreeSet<Verb>,
}

/// The groups of paths that have one form.
pub(super) fn alike<'a>(paths: impl Iterator<Item = (&'a AbsPath, &'a BTreeSet<Verb>)>) -> Vec<Group> {
    let mut groups: BTreeMap<(Vec<String>, &BTreeSet<Verb>), Vec<AbsPath>> = BTreeMap::new();
    for (path, verbs) in paths {
        let segments: Option<Vec<_>> = path.segments.iter().map(|name| std::str::from_utf8(name).ok()).collect();
        if let Some(segments) = segments {
            let form = segments.into_iter().map(form).collect();
            groups.entry((form, verbs)).or_default().push(path.clone());
        }
    }
    let many = groups.into_iter().filter(|(_, paths)| paths.len() > 1);
    many.map(|((_, verbs), paths)| Group { paths, verbs: verbs.clone() }).collect()
}

impl Group {
    /// What follows the first so many segments, as a target of the language, with a star where the paths differ; `None` where
    /// that would be any name at all.
    pub fn pattern(&self, skip: usize) -> Option<String> {
        let length = self.paths[0].segments.len();
        let mut text = String::new();
        for at in skip..length {
            let names: BTreeSet<&str> =
                self.paths.iter().filter_map(|path| std::str::from_utf8(&path.segments[at]).ok()).collect();
            text.push('/');
            match names.iter().next() {
                Some(name) if names.len() == 1 => text.push_str(&literal(name)?),
                _ => {
                    let name = common(&names)?;
                    // In the middle a version says nothing more; a last segment would be everything in its directory.
                    if name == "*" && (at + 1 == length || !names.iter().all(|name| is_version(name))) {
                        return None;
                    }
                    text.push_str(&name);
                }
            }
        }
        Some(text)
    }
}

/// A name, if it needs no quotes: they are not mixed with stars here.
fn literal(name: &str) -> Option<String> {
    (target("", name) == name).then(|| name.to_owned())
}

/// The runs of letters and digits of a name, and what stands between them.
fn runs(name: &str) -> Vec<&str> {
    let mut runs = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let inside = first.is_ascii_alphanumeric();
        let end = rest.find(|c: char| c.is_ascii_alphanumeric() != inside).unwrap_or(rest.len());
        runs.push(&rest[..end]);
        rest = &rest[end..];
    }
    runs
}

fn changes(run: &str) -> bool {
    let any = |is: fn(&char) -> bool| run.chars().any(|c| is(&c));
    any(char::is_ascii_digit) || run.len() >= MADE_UP && any(char::is_ascii_lowercase) && any(char::is_ascii_uppercase)
}

/// A name with a mark for each run that may change; a version is one.
fn form(name: &str) -> String {
    let marked: String = runs(name).into_iter().map(|run| if changes(run) { "\0" } else { run }).collect();
    joined(marked, ANY)
}

/// Marks with a dot between them are one.
fn joined(mut text: String, mark: char) -> String {
    while let Some(at) = text.find(&format!("{mark}.{mark}")) {
        text.replace_range(at..=at + 1, "");
    }
    text
}

fn is_version(name: &str) -> bool {
    let name = name.strip_prefix('v').unwrap_or(name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// What names of one form have in common, with stars where they differ.
fn common(names: &BTreeSet<&str>) -> Option<String> {
    let all: Vec<Vec<&str>> = names.iter().map(|name| runs(name)).collect();
    let first = all.first()?;
    // Versions may have more numbers or fewer: then all of it is one star.
    if all.iter().any(|runs| runs.len() != first.len()) {
        return names.iter().all(|name| is_version(name)).then(|| "*".to_owned());
    }
    let mut text = String::new();
    for (at, run) in first.iter().enumerate() {
        let same: Vec<&str> = all.iter().map(|runs| runs[at]).collect();
        if same.iter().all(|other| other == run) {
            text.push_str(&literal(run)?);
            continue;
        }
        let prefix = same.iter().fold(*run, |prefix, other| shared(prefix, other));
        let digits = same.iter().all(|run| run[prefix.len()..].chars().all(|c| c.is_ascii_digit()));
        // A number is all of it, not the digits by which some differ.
        let prefix = if digits { prefix.trim_end_matches(|c: char| c.is_ascii_digit()) } else { prefix };
        if digits || prefix.len() >= COMMON {
            text.push_str(prefix);
        }
        text.push('*');
    }
    let text = joined(text, '*');
    (text.matches('*').count() <= STARS).then_some(text)
}

/// What two texts begin with. Both are ASCII.
fn shared<'t>(one: &'t str, other: &str) -> &'t str {
    let end = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    &one[..end]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pattern(paths: &[&str]) -> Vec<Option<String>> {
        let paths: Vec<_> = paths.iter().map(|path| AbsPath::parse(path).unwrap()).collect();
        let verbs = BTreeSet::from([Verb::Read]);
        alike(paths.iter().map(|path| (path, &verbs))).iter().map(|group| group.pattern(0)).collect()
    }

    #[test]
    fn what_differs_is_a_star() {
        for (paths, expected) in [
            (&["/a/tmpab12cd.txt", "/a/tmpqx99zz.txt"][..], "/a/tmp*.txt"),
            (&["/a/npm-1234-debug.log", "/a/npm-99-debug.log"], "/a/npm-*-debug.log"),
            (&["/opt/node-v20.11.1/bin/node", "/opt/node-v22.1.0/bin/node"], "/opt/node-v*/bin/node"),
            (&["/opt/node/20.11.1/bin", "/opt/node/22.1/bin"], "/opt/node/*/bin"),
            (&["/a/x.tmp.AbCdEf", "/a/x.tmp.QrStUv"], "/a/x.tmp.*"),
            (&["/a/h1", "/a/h2", "/a/h31"], "/a/h*"),
            (&["/a/python3.11/site/b", "/a/python3.12/site/b"], "/a/python3.*/site/b"),
            (&["/a/2026-01-02T03_04_05.log", "/a/2026-11-12T13_14_15.log"], "/a/2026-*-*_*_*.log"),
        ] {
            assert_eq!(pattern(paths), [Some(expected.to_owned())], "{paths:?}");
        }
    }

    #[test]
    fn what_would_be_any_name_is_none() {
        assert_eq!(pattern(&["/a/3f2a9b1c", "/a/99ffab1d"]), [None]);
        assert_eq!(pattern(&["/a/3f2a9b1c/x", "/a/99ffab1d/x"]), [None]);
        assert_eq!(pattern(&["/a/1", "/a/2"]), [None]);
        assert_eq!(pattern(&["/a/1-2-3-4-5 x", "/a/6-7-8-9-0 x"]), [None]);
    }

    #[test]
    fn other_names_are_not_alike() {
        for paths in
            [&["/a/id_ed25519", "/a/config"][..], &["/a/b/c1", "/a/d/c2"], &["/a/1x"], &["/a/abcdef", "/a/ghijkl"]]
        {
            assert_eq!(pattern(paths), [], "{paths:?}");
        }
    }
}
