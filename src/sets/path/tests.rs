#![allow(clippy::unwrap_used)]

use super::*;

fn pattern(text: &str) -> Pattern {
    Pattern::written(text)
}

/// `A B except C D`
fn set(text: &str) -> PathSet {
    let (include, exclude) = text.split_once(" except ").unwrap_or((text, ""));
    let all = |text: &str| text.split(", ").filter(|one| !one.is_empty()).map(pattern).collect();
    PathSet { include: all(include), exclude: all(exclude) }
}

fn path(text: &str) -> AbsPath {
    match text.strip_prefix('$') {
        Some(rest) => {
            let mut parts = rest.split('/');
            let start = AbsPath::variable(parts.next().unwrap());
            parts.fold(start, |path, segment| path.join(segment))
        }
        None => AbsPath::parse(text).unwrap(),
    }
}

#[test]
fn paths_are_absolute_and_normalised() {
    for good in ["/", "/a", "/a/b", "/a\\b", "/...", "C:/a", "/ "] {
        assert_eq!(AbsPath::parse(good).unwrap().to_string(), good);
    }
    for (bad, error) in [
        ("", PathError::Relative),
        ("a", PathError::Relative),
        ("$HOME/a", PathError::Relative),
        ("//", PathError::EmptySegment),
        ("/a//b", PathError::EmptySegment),
        ("//a", PathError::EmptySegment),
        ("/a/", PathError::TrailingSlash),
        ("/a/./b", PathError::Dots),
        ("/..", PathError::Dots),
        ("/a\0b", PathError::Nul),
    ] {
        assert_eq!(AbsPath::parse(bad), Err(error), "{bad:?}");
    }
    let odd = AbsPath::parse(b"/a\xff\n").unwrap();
    assert_eq!(odd.to_string(), "/a\\xff\\n");
    assert_eq!(odd.as_bytes().unwrap(), b"/a\xff\n");
    assert_eq!(AbsPath::variable("HOME").join("a").as_bytes(), None);
    assert_eq!(AbsPath::root().parent(), None);
    assert_eq!(path("/a/b").ancestors().map(|p| p.to_string()).collect::<Vec<_>>(), ["/", "/a", "/a/b"]);
}

#[test]
fn what_a_pattern_matches() {
    for (text, yes, no) in [
        ("/a", &["/a", "/a/b", "/a/b/c"][..], &["/", "/ab", "/b/a"][..]),
        ("exact /a", &["/a"], &["/", "/a/b"]),
        ("below /a", &["/a/b", "/a/b/c"], &["/", "/a"]),
        (
            "/**/.env",
            &["/.env", "/a/.env", "/a/b/.env", "/a/.env/x", "$W/.env", "$W/a/.env"],
            &["/", "/a", "/a/.envx", "$W"],
        ),
        ("exact /a/**/b", &["/a/b", "/a/x/b", "/a/b/b", "/a/b/x/b"], &["/a", "/a/b/x", "/b"]),
        ("/a/**", &["/a", "/a/b"], &["/", "/b"]),
        ("/", &["/", "/a", "$W", "$W/a"], &[]),
        ("exact /", &["/"], &["/a", "$W"]),
        ("below /", &["/a", "$W", "$W/a"], &["/"]),
        ("below /**", &["/a", "$W", "$W/a"], &["/"]),
        ("exact /**", &["/a", "$W", "$W/a", "/"], &[]),
        ("below /**/b", &["/b/a", "$W/b/a"], &["$W", "$W/b", "/b"]),
        ("/*", &["/a", "/a/b", "/.a"], &["/", "$W", "$W/a"]),
        ("$W/*.c", &["$W/a.c", "$W/a.c/d"], &["$W", "/a.c", "$V/a.c", "$W/a/b.c"]),
        ("/a/*/c", &["/a/b/c", "/a/b/c/d"], &["/a/c", "/a/b/b/c"]),
        ("/[!a]", &["/b", "/b/a"], &["/a", "/bb"]),
        ("exact /**/a/**/b", &["/a/b", "/x/a/b", "/a/x/b", "/a/a/x/b"], &["/b", "/a", "/b/a"]),
        ("/a except /a/b, exact /a/c", &["/a", "/a/d", "/a/c/x"], &["/a/b", "/a/b/x", "/a/c"]),
    ] {
        for yes in yes {
            assert!(set(text).contains(&path(yes)), "{text} {yes}");
        }
        for no in no {
            assert!(!set(text).contains(&path(no)), "{text} {no}");
        }
    }
}

/// `<` strictly inside, `=` equal, `|` apart, `x` overlapping.
#[test]
fn how_two_sets_stand() {
    for (a, relation, b) in [
        ("/a", "=", "/a/**"),
        ("/a", "=", "/a"),
        ("/a/b", "<", "/a"),
        ("exact /a", "<", "/a"),
        ("below /a", "<", "/a"),
        ("below /a", "|", "exact /a"),
        ("exact /a, below /a", "=", "/a"),
        ("below /a", "=", "/a/*"),
        ("/ab", "|", "/a"),
        ("/a", "<", "/"),
        ("$W", "<", "/"),
        ("$W/a", "<", "/**"),
        ("$W/a", "<", "$W"),
        ("$W", "|", "$V"),
        ("$W", "|", "/a"),
        ("$W", "<", "below /"),
        ("$W/.env", "<", "/**/.env"),
        ("$W/**/.env", "<", "/**/.env"),
        ("$W", "x", "/**/.env"),
        ("/**/.env", "<", "/"),
        ("/a/**/b", "<", "/a"),
        ("/a/**/b", "x", "/a/c"),
        ("/a/b", "<", "/a/**/b"),
        ("/a/**/**/b", "=", "/a/**/b"),
        ("/a/**/*", "=", "below /a"),
        ("/a/*/**/b", "<", "/a/**/b"),
        ("/a/**/*/b", "=", "/a/*/**/b"),
        ("/**/a/**/a", "<", "/**/a"),
        ("/a/*.c", "<", "/a/*"),
        ("/a/*.c", "x", "/a/x*"),
        ("/a/x*.c", "<", "/a/*.c"),
        ("/a/x.c", "<", "/a/*.c"),
        ("/a/*b*", "<", "/a/*"),
        ("/a/?", "<", "/a/*"),
        ("/a/??*", "<", "/a/*"),
        ("/a/?, /a/??*", "=", "/a/*"),
        ("/a/[bc]", "=", "/a/b, /a/c"),
        ("/a/[b]", "=", "/a/b"),
        ("/a/[!b]", "<", "/a/?"),
        ("exact /a/[!b]", "<", "exact /a/?"),
        ("exact /a/[!b], exact /a/b", "=", "exact /a/?"),
        ("/a/é", "<", "/a/?"),
        ("/a/.*", "<", "/a/*.*"),
        ("/a except /a/b", "<", "/a"),
        ("/a except /a/b", "|", "/a/b"),
        ("/a except /a/b", "x", "/a/*"),
        ("/a except /a/b", "=", "/a except /a/b/**"),
        ("/a except /a/b, /a/c", "<", "/a except /a/b"),
        ("/a/c", "<", "/a except /a/b"),
        ("/a/b/c", "|", "/a except /a/b"),
        ("/a except /a/*", "=", "exact /a"),
        ("/a except /a/?, /a/??*", "=", "exact /a"),
        ("/a/b except /a/b", "<", "/z"),
        ("exact /a/[.]", "<", "/z"),
        ("exact /a/[.x]", "=", "exact /a/x"),
        ("exact /a/.?", "<", "exact /a/??"),
        ("exact /a/.[.b]", "=", "exact /a/.b"),
        ("/**/*.pem, /**/*.key", "<", "/**/*.*"),
        ("/a/**/b/**/c", "<", "/a/**/c"),
        ("/a/**/c/**/c", "<", "/a/**/c"),
        ("exact /**/a", "x", "exact /a/**"),
        ("/a/*a*b*", "<", "/a/*a*"),
        ("/a/*ab*", "<", "/a/*a*b*"),
        ("/a/*a*, /a/*b*", "<", "/a/*"),
    ] {
        let (x, y) = (set(a), set(b));
        let found = match (x.is_subset(&y), y.is_subset(&x), x.overlap(&y)) {
            (Ok(()), Ok(()), _) => "=",
            (Ok(()), Err(witness), _) => {
                assert!(y.contains(&witness) && !x.contains(&witness), "{a} {b}: {witness}");
                "<"
            }
            (Err(_), _, None) => "|",
            (Err(witness), backwards, Some(common)) => {
                assert!(backwards.is_err(), "{a} {b} is the wrong way round");
                assert!(x.contains(&witness) && !y.contains(&witness), "{a} {b}: {witness}");
                assert!(x.contains(&common) && y.contains(&common), "{a} {b}: {common}");
                "x"
            }
        };
        assert_eq!(found, relation, "{a} {b}");
        assert_eq!(x.is_strictly_inside(&y), relation == "<", "{a} {b}");
        assert_eq!(x.is_inside(&y), relation == "<" || relation == "=", "{a} {b}");
        assert_eq!(y.is_inside(&x), relation == "=", "{a} {b}");
    }
}

/// Each pattern is searched by itself, but a place that one of them names may be in any.
#[test]
fn a_place_that_one_pattern_names_may_be_in_the_others() {
    let below = Pattern { reach: Reach::Below, ..Pattern::literal(&AbsPath::root(), Reach::Tree) };
    let each = Pattern { reach: Reach::Exact, ..pattern("/**/*") };
    let wide = PathSet { include: vec![below.clone(), pattern("$W/b")], exclude: Vec::new() };
    let narrow = PathSet::from(each);
    assert!(narrow.is_strictly_inside(&wide));
    assert_eq!(wide.is_subset(&narrow), Err(AbsPath::variable("W")));
    // Without it there is no such place.
    assert!(!narrow.is_strictly_inside(&PathSet::from(below)));
}

#[test]
fn witnesses_are_short_and_readable() {
    let outside = |a, b| set(a).is_subset(&set(b)).unwrap_err().to_string();
    assert_eq!(outside("/a", "/a/b"), "/a");
    assert_eq!(outside("below /a", "/a/b"), "/a/x");
    assert_eq!(outside("/a", "exact /a"), "/a/x");
    assert_eq!(outside("/a/**/.env", "/a/.env"), "/a/x/.env");
    assert_eq!(outside("/**/.env", "/**/.env except $W/.env"), "$W/.env");
    assert_eq!(set("/a/*b").overlap(&set("/a/c*")).unwrap().to_string(), "/a/cb");
    assert_eq!(set("/a/**/x").shortest().unwrap().to_string(), "/a/x");
    assert!(set("/a/b except /a").is_empty());
    assert!(PathSet::default().is_empty());
}

#[test]
fn many_stars_are_decided() {
    let hard = set("/**/*a*a*a*a/**/x/**/*b*b*b*b");
    let whole = set("/**/*a*a*a*/**/*b*b*b*");
    assert!(hard.is_inside(&whole));
    assert!(!whole.is_inside(&hard));
    let ladder: Vec<String> = (0..64).map(|index| format!("/**/*{}?*k{index}", "?".repeat(index % 9))).collect();
    let but = PathSet { include: vec![pattern("/a")], exclude: ladder.iter().map(|text| pattern(text)).collect() };
    assert!(but.is_strictly_inside(&set("/a")));
    assert!(!set("/a").is_inside(&but));
}

#[test]
fn a_matcher_agrees_with_each_set() {
    let sets: Vec<PathSet> = [
        "/a",
        "exact /a",
        "below /a",
        "/",
        "exact /",
        "below /",
        "/**/b",
        "/**/*b",
        "/a/**/c except /a/b",
        "/ except /a/b, exact /c",
        "$W",
        "$W/*a except $W/ba",
        "exact /**/a/**/b",
        "below /**",
        "exact /**",
        "below /**/b",
        "/a/?/c",
    ]
    .into_iter()
    .map(set)
    .collect();
    let mut matcher = Matcher::new(&sets);
    let mut paths = vec![path("/"), path("$W"), path("$V")];
    for depth in 0..4 {
        let last: Vec<AbsPath> = paths.iter().filter(|path| path.segments.len() == depth).cloned().collect();
        paths.extend(last.iter().flat_map(|path| ["a", "b", "c", "ba"].map(|segment| path.join(segment))));
    }
    for path in &paths {
        let state = matcher.at(path);
        let expected: Vec<u32> =
            (0..).zip(&sets).filter(|(_, set)| set.contains(path)).map(|(index, _)| index).collect();
        assert_eq!(matcher.accepting(state), expected, "{path}");
        let below = |other: &&AbsPath| other.is_inside(path);
        if matcher.is_dead(state) {
            assert!(!paths.iter().filter(below).any(|path| sets.iter().any(|set| set.contains(path))), "{path}");
        }
    }
    let mut small = Matcher::new(&[set("/a"), set("/b/c except /b/c/d")]);
    for (text, dead) in
        [("/", false), ("/a", false), ("/b", false), ("/b/c", false), ("/b/c/x", false), ("/b/c/d", true), ("/z", true)]
    {
        let state = small.at(&path(text));
        assert_eq!(small.is_dead(state), dead, "{text}");
    }
    let (deep, deeper) = (small.at(&path("/a/x")), small.at(&path("/a/x/y")));
    assert_eq!(deep, deeper, "states are shared");
}
