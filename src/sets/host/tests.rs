#![allow(clippy::unwrap_used)]

use super::*;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn set(text: &str) -> HostSet {
    HostSet::from(Pattern::parse(text).unwrap())
}

#[test]
fn one_canonical_form() {
    for (given, canonical) in [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("b\u{fc}cher\u{3002}example", "xn--bcher-kva.example"),
        ("_dmarc.bücher.example", "_dmarc.xn--bcher-kva.example"),
        ("r3---sn-x.example", "r3---sn-x.example"),
        ("localhost", "localhost"),
        ("1.2.3.example", "1.2.3.example"),
    ] {
        assert_eq!(name(given).as_str(), canonical, "{given}");
    }
}

#[test]
fn what_is_no_host_name() {
    let long = "a".repeat(64);
    let longest = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(62)].join(".");
    for bad in [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a.b..",
        "evil.example\0.allowed.test",
        "a b.example",
        "a\u{a0}b.example",
        "a%2e.example",
        "a/b.example",
        "a\\b.example",
        "user@a.example",
        "a.example:80",
        "[a.example]",
        "[::1]",
        "::1",
        "a\r\n.example",
        "a\t.example",
        "*.example",
        "-a.example",
        "a-.example",
        "xn--.example",
        "xn--a-.example",
        "xn--example-.example",
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0x7f000001",
        "0x",
        "a.1",
        "a.0x1f",
        "１２７.０.０.１",
        "127。0。0。1",
        "a\u{ad}",
        "\u{ad}",
        "a\u{202e}b.example",
        "a\u{ff0f}b.example",
        &format!("{long}.example"),
        &longest.replace("dd", "ddd"),
    ] {
        let read = Name::parse(bad);
        if bad == "a\u{ad}" {
            // The soft hyphen is mapped to nothing by UTS 46, in rule and request alike.
            assert_eq!(read.unwrap().as_str(), "a");
        } else {
            assert!(read.is_err(), "{bad:?} was read as {read:?}");
        }
    }
    assert_eq!(longest.len(), 254);
    assert!(Name::parse(&longest).is_err());
    assert!(Name::parse(&longest[..253]).is_ok());
    assert_eq!(Name::parse("127.1"), Err(NameError::Address("127.0.0.1".parse().ok())));
    assert_eq!(Name::parse("a/b"), Err(NameError::Character('/')));
}

#[test]
fn below_is_at_any_depth_and_never_the_apex() {
    let below = set("*.example.com");
    for (host, inside) in [
        ("example.com", false),
        ("a.example.com", true),
        ("a.b.example.com", true),
        ("notexample.com", false),
        ("example.com.evil.test", false),
        ("com", false),
    ] {
        assert_eq!(below.contains(&name(host)), inside, "{host}");
    }
    assert!(set("*").contains(&name("x")));
}

#[test]
fn a_star_stays_in_its_label() {
    let api = set("api-*.example.com");
    for (host, inside) in [
        ("api-1.example.com", true),
        ("api-.example.com", true),
        ("api-1.x.example.com", false),
        ("xapi-1.example.com", false),
    ] {
        let Ok(host) = Name::parse(host) else { continue };
        assert_eq!(api.contains(&host), inside, "{host}");
    }
    assert_eq!(Pattern::parse("a.*.example.com"), Err(NameError::Star));
    assert_eq!(Pattern::parse("*.*.example.com"), Err(NameError::Star));
    assert!(Pattern::parse("*.b*.example.com").is_ok());
    assert!(Pattern::parse("*.1").is_err());
    assert!(Pattern::parse("a*.0x1").is_err());
    assert!(Pattern::parse("a*.b?.com").is_err());
}

#[test]
fn inclusion() {
    for (a, b, strictly) in [
        ("a.example.com", "*.example.com", true),
        ("*.a.example.com", "*.example.com", true),
        ("*.example.com", "*.example.com", false),
        ("example.com", "*.example.com", false),
        ("*.example.com", "*", true),
        ("api-*.example.com", "*.example.com", true),
        ("api-*.example.com", "api*.example.com", true),
        ("*.com", "*.example.com", false),
        ("a*.example.com", "*a.example.com", false),
        ("aa.example.com", "a*.example.com", true),
    ] {
        assert_eq!(set(a).is_strictly_inside(&set(b)), strictly, "{a} in {b}");
    }
    let but = HostSet {
        include: vec![Pattern::parse("*.example.com").unwrap()],
        exclude: vec![Pattern::parse("a.example.com").unwrap()],
    };
    assert!(but.is_strictly_inside(&set("*.example.com")));
    assert_eq!(set("*.example.com").is_subset(&but).unwrap_err().to_string(), "a.example.com");
    assert!(set("b.example.com").is_strictly_inside(&but));
    assert_eq!(set("*.example.com").overlap(&set("a*.example.com")).unwrap().to_string(), "a.example.com");
    assert_eq!(set("*.example.com").overlap(&set("example.com")), None);
    // A label does not end in `-`, so these are the same names.
    assert!(set("api-*.x.com").is_subset(&set("api-*.x.com")).is_ok());
}

#[test]
fn a_variable_is_apart() {
    let variable = HostSet::from(Pattern::Variable("env.H".into()));
    assert!(variable.is_strictly_inside(&set("*")));
    assert_eq!(variable.overlap(&set("a.b")), None);
    assert_eq!(variable.shortest(), Some(Host::Variable("env.H".into())));
}

mod tables {
    use super::*;
    use proptest::prelude::*;

    fn table(entries: &[Pattern]) -> Vec<Pattern> {
        let mut builder = Builder::default();
        for (entry, line) in entries.iter().zip(1..) {
            let Pattern::Labels { below, .. } = entry else { panic!("no entry of a list") };
            let text = entry.to_string();
            builder.push(*below, &name(text.strip_prefix("*.").unwrap_or(&text)), line).unwrap();
        }
        Arc::new(builder.finish("ads.txt".into())).all()
    }

    fn label() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["a", "b", "c", "ab", "a-b"])
    }

    /// Names and `*.` names, which meet often.
    fn entry() -> impl Strategy<Value = Pattern> {
        (any::<bool>(), prop::collection::vec(label(), 1..4)).prop_map(|(below, labels)| {
            let labels = labels.into_iter().map(|label| Label::Literal(label.to_owned())).collect();
            Pattern::Labels { below, labels }
        })
    }

    fn pattern() -> impl Strategy<Value = Pattern> {
        let glob = (any::<bool>(), prop::sample::select(vec!["a*", "*b", "a*b.c", "a.*a", "b*.a.b", "c.a*"]));
        let glob =
            glob.prop_map(|(below, text)| Pattern::parse(&format!("{}{text}", if below { "*." } else { "" })).unwrap());
        prop_oneof![4 => entry(), 2 => glob, 1 => Just(Pattern::Any), 1 => Just(Pattern::Variable("env.H".into()))]
    }

    /// A set, and the same with its lists written out.
    fn pair() -> impl Strategy<Value = (HostSet, HostSet)> {
        let patterns = || prop::collection::vec(pattern(), 0..3);
        let list = || prop::collection::vec(entry(), 0..12);
        (patterns(), list(), patterns(), list()).prop_map(|(include, own, exclude, less)| {
            let with = |patterns: &[Pattern], list: &[Pattern]| {
                let one = if list.is_empty() { Vec::new() } else { table(list) };
                patterns.iter().cloned().chain(one).collect()
            };
            let set = HostSet { include: with(&include, &own), exclude: with(&exclude, &less) };
            (set, HostSet { include: [include, own].concat(), exclude: [exclude, less].concat() })
        })
    }

    fn labels(host: &Host) -> usize {
        match host {
            Host::Name(name) => name.labels().count(),
            Host::Variable(_) => 1,
        }
    }

    fn is_in(set: &HostSet, host: &Host) -> bool {
        let holds = |pattern: &Pattern| match (pattern, host) {
            (pattern, Host::Name(name)) => pattern.contains(name),
            (Pattern::Any, Host::Variable(_)) => true,
            (Pattern::Variable(own), Host::Variable(name)) => own == name,
            _ => false,
        };
        set.include.iter().any(holds) && !set.exclude.iter().any(holds)
    }

    proptest! {
        /// A list answers as the same names written out.
        #[test]
        fn a_table_answers_as_its_patterns((a, plain_a) in pair(), (b, plain_b) in pair(), asked in entry()) {
            if let Some(asked) = asked.is_literal().then(|| name(&asked.to_string())) {
                prop_assert_eq!(a.contains(&asked), plain_a.contains(&asked));
                prop_assert_eq!(a.names(&asked), plain_a.names(&asked));
            }
            prop_assert_eq!(a.is_empty(), plain_a.is_empty());
            prop_assert_eq!(a.is_strictly_inside(&b), plain_a.is_strictly_inside(&plain_b));
            for (own, plain) in [
                (a.is_subset(&b).err(), plain_a.is_subset(&plain_b).err()),
                (a.is_subset(&plain_b).err(), plain_a.is_subset(&b).err()),
            ] {
                prop_assert_eq!(own.as_ref().map(labels), plain.as_ref().map(labels), "{:?} {:?}", own, plain);
                if let Some(witness) = own {
                    prop_assert!(is_in(&plain_a, &witness) && !is_in(&plain_b, &witness), "{}", witness);
                }
            }
            let (own, plain) = (a.overlap(&b), plain_a.overlap(&plain_b));
            prop_assert_eq!(own.as_ref().map(labels), plain.as_ref().map(labels));
            if let Some(witness) = own {
                prop_assert!(is_in(&plain_a, &witness) && is_in(&plain_b, &witness), "{}", witness);
            }
            let (own, plain) = (a.shortest(), plain_a.shortest());
            prop_assert_eq!(own.as_ref().map(labels), plain.as_ref().map(labels));
            prop_assert!(own.is_none_or(|witness| is_in(&plain_a, &witness)));
        }

        /// Two lists are equal where they hold the same names.
        #[test]
        fn tables_are_equal_as_sets(
            a in prop::collection::vec(entry(), 1..6), b in prop::collection::vec(entry(), 1..6)
        ) {
            let set = |patterns: &[Pattern]| HostSet { include: patterns.to_vec(), exclude: Vec::new() };
            let same = set(&a).is_subset(&set(&b)).is_ok() && set(&b).is_subset(&set(&a)).is_ok();
            prop_assert_eq!(table(&a)[0] == table(&b)[0], same);
        }
    }

    #[test]
    fn an_entry_is_found_again_by_its_line() {
        let entries = ["b.example", "*.ads.example", "a.example", "x.ads.example", "b.example"];
        let entries: Vec<_> = entries.iter().map(|text| Pattern::parse(text).unwrap()).collect();
        let set = HostSet { include: table(&entries), exclude: Vec::new() };
        for (asked, line) in [
            ("a.example", Some(3)),
            ("b.example", Some(1)),
            ("x.ads.example", Some(2)),
            ("y.z.ads.example", Some(2)),
            ("ads.example", None),
            ("example", None),
            ("aa.example", None),
        ] {
            assert_eq!(set.listed(&name(asked)), line.map(|line| ("ads.txt", line)), "{asked}");
        }
    }

    #[test]
    fn a_name_beside_a_wildcard_that_covers_it_is_named() {
        let entries = ["*.example", "db.example", "*.b.example", "x.b.example", "db.example"];
        let entries: Vec<_> = entries.iter().map(|text| Pattern::parse(text).unwrap()).collect();
        let set = HostSet { include: table(&entries), exclude: Vec::new() };
        for (asked, named) in [("db.example", true), ("x.b.example", true), ("b.example", false), ("x.example", false)]
        {
            assert!(set.contains(&name(asked)), "{asked}");
            assert_eq!(set.names(&name(asked)), named, "{asked}");
        }
    }

    #[test]
    fn a_shortest_name_beside_a_crowded_list() {
        let letters = || ('a'..='z').chain('0'..='9').chain(['_']);
        let mut entries: Vec<_> = letters().map(|one| format!("{one}.example")).collect();
        entries.extend(letters().flat_map(|one| letters().map(move |two| format!("{one}{two}.example"))));
        let entries: Vec<_> = entries.iter().map(|text| Pattern::parse(text).unwrap()).collect();
        let found = set("*.example").is_subset(&HostSet { include: table(&entries), exclude: Vec::new() }).unwrap_err();
        assert!(found.to_string().len() >= "aaa.example".len() && labels(&found) == 2, "{found}");
    }
}
