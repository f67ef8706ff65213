//! Tables, and what holds for any text.

#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> Result<Authority, Malformed> {
    Authority::parse(text, Some(80))
}

#[test]
fn one_spelling_has_one_meaning() {
    for (text, canonical) in [
        ("a.test", "a.test:80"),
        ("a.test:443", "a.test:443"),
        ("A.Test:443", "a.test:443"),
        ("a.test.:443", "a.test:443"),
        ("a_b-c.test:1", "a_b-c.test:1"),
        ("localhost:65535", "localhost:65535"),
        ("10.0.0.7:5432", "10.0.0.7:5432"),
        ("[2001:DB8::1]:443", "[2001:db8::1]:443"),
        ("[2001:db8:0::1]", "[2001:db8::1]:80"),
        ("[::ffff:10.0.0.7]:22", "10.0.0.7:22"),
        ("[::ffff:a00:7]:22", "10.0.0.7:22"),
        ("1e100.net:80", "1e100.net:80"),
        ("0x.test:80", "0x.test:80"),
    ] {
        assert_eq!(parse(text).map(|authority| authority.to_string()), Ok(canonical.to_owned()), "{text}");
    }
}

#[test]
fn what_others_read_differently_is_refused() {
    for (text, why) in [
        ("", Malformed::NoHost),
        (":80", Malformed::NoHost),
        ("user@a.test:80", Malformed::Userinfo),
        ("allowed.test:80@evil.test:80", Malformed::Userinfo),
        ("evil.test\0.allowed.test:80", Malformed::Character('\0')),
        ("a.test\r\nx:80", Malformed::Character('\r')),
        ("a test:80", Malformed::Character(' ')),
        ("a.test%00:80", Malformed::Character('%')),
        ("a.test/:80", Malformed::Character('/')),
        ("evil.test\\.allowed.test:80", Malformed::Character('\\')),
        ("evil.test#.allowed.test:80", Malformed::Character('#')),
        ("evil.test?.allowed.test:80", Malformed::Character('?')),
        ("\u{ff41}.test:80", Malformed::Character('\u{ff41}')),
        ("a.test\u{7f}:80", Malformed::Character('\u{7f}')),
        ("[allowed.example]:80", Malformed::Brackets),
        ("[10.0.0.1]:80", Malformed::Brackets),
        ("[::1", Malformed::Brackets),
        ("[::1]80", Malformed::Brackets),
        ("[::1].allowed.test:80", Malformed::Brackets),
        ("a[::1]:80", Malformed::Unbracketed),
        ("a.test]:80", Malformed::Brackets),
        ("[]:80", Malformed::Brackets),
        ("[fe80::1%25eth0]:80", Malformed::Character('%')),
        ("::1", Malformed::Unbracketed),
        ("a.test:80:80", Malformed::Unbracketed),
        ("a.test:", Malformed::Port),
        ("a.test:0", Malformed::Port),
        ("a.test:080", Malformed::Port),
        ("a.test:+80", Malformed::Port),
        ("a.test:-1", Malformed::Port),
        ("a.test:65536", Malformed::Port),
        ("a.test:http", Malformed::Port),
        ("a.test:80a", Malformed::Port),
        ("127.1:80", Malformed::Number),
        ("0x7f.1:80", Malformed::Number),
        ("0x7f000001:80", Malformed::Number),
        ("0x:80", Malformed::Number),
        ("2130706433:80", Malformed::Number),
        ("017700000001:80", Malformed::Number),
        ("127.0.0.01:80", Malformed::Number),
        ("127.0.0.1.:80", Malformed::Number),
        ("256.0.0.1:80", Malformed::Number),
        ("1.2.3.4.5:80", Malformed::Number),
        ("a.test.0X1:80", Malformed::Number),
    ] {
        assert_eq!(parse(text), Err(why), "{text:?}");
    }
    for text in
        ["*.test:80", "a..test:80", ".test:80", "-a.test:80", "a,b.test:80", "a;b:80", "a'b:80", "xn--\u{61}-:80"]
    {
        assert!(matches!(parse(text), Err(Malformed::Name(_))), "{text:?}: {:?}", parse(text));
    }
}

#[test]
fn connect_needs_its_port() {
    assert_eq!(Authority::parse("a.test", None), Err(Malformed::NoPort));
    assert_eq!(Authority::parse("[::1]", None), Err(Malformed::NoPort));
}

#[test]
fn names_under_localhost_are_the_loopback() {
    for text in ["localhost", "LOCALHOST.", "app.localhost:80"] {
        assert!(matches!(parse(text).unwrap().host, Host::Localhost(_)), "{text}");
    }
    assert!(matches!(parse("notlocalhost").unwrap().host, Host::Name(_)));
    assert!(matches!(parse("localhost.test").unwrap().host, Host::Name(_)));
}

#[test]
fn the_host_field_leaves_the_usual_port_out() {
    assert_eq!(parse("a.test:80").unwrap().host_field(80), "a.test");
    assert_eq!(parse("a.test:8080").unwrap().host_field(80), "a.test:8080");
    assert_eq!(parse("[::1]:80").unwrap().host_field(80), "[::1]");
    assert_eq!(parse("[::1]:81").unwrap().host_field(80), "[::1]:81");
}

proptest! {
    #[test]
    fn any_text_is_an_authority_or_an_error(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn what_is_accepted_is_clean_and_reads_the_same_again(text in r"[\[\]a-zA-Z0-9.:_@%\x00 *-]{0,30}") {
        if let Ok(authority) = parse(&text) {
            let again = authority.to_string();
            let clean = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".:-_[]".contains(c);
            prop_assert!(again.chars().all(clean), "{again:?}");
            prop_assert_eq!(Authority::parse(&again, None), Ok(authority));
        }
    }

    #[test]
    fn every_address_reads_as_itself(bits in any::<u128>(), v4 in any::<u32>(), port in 1u16..) {
        let v6 = Ipv6Addr::from(bits);
        let parsed = parse(&format!("[{v6}]:{port}")).unwrap();
        prop_assert_eq!(parsed, Authority { host: Host::Address(IpAddr::V6(v6).to_canonical()), port });
        let v4 = Ipv4Addr::from(v4);
        let parsed = parse(&format!("{v4}:{port}")).unwrap();
        prop_assert_eq!(parsed, Authority { host: Host::Address(v4.into()), port });
    }

    #[test]
    fn no_name_is_what_the_system_takes_for_an_address(
        text in "(0x)?[0-9a-f]{1,11}(\\.(0x)?[0-9a-f]{1,4}){0,3}\\.?",
    ) {
        // The resolver is given names alone, and must not find an address in one by `inet_aton`.
        if let Ok(Authority { host: Host::Name(name), .. }) = parse(&text) {
            let last = name.as_str().rsplit('.').next().unwrap();
prop_assert!(!last.bytes().all(|byte| byte.is_ascii_digit()), "{last}");
            prop_assert!(!(last.starts_with("0x") && u64::from_str_radix(&last[2..], 16).is_ok()), "{last}");
        }
    }
}
