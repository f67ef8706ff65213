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
