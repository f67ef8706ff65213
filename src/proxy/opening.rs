//! What the first bytes of a client say it speaks: TLS, HTTP/1, or something that is not looked at.
//!
//! Pure. Whatever more bytes could still turn into TLS or HTTP is undecided, and nothing else is: who speaks another
//! protocol is not held up by a byte more than it takes to see that.

use super::hello::{self, Hello};

/// The longest request line that is waited for: what is longer is not let pass, but left to the reader of HTTP to refuse.
const LINE: usize = 16 << 10;

/// What the bytes so far are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    Undecided,
    /// A whole ClientHello; with the name it asks for, as it was sent.
    Tls(Option<String>),
    /// TLS that no server may take.
    Broken(&'static str),
    /// A request line of HTTP/1.
    Http,
    Other,
}

/// Tells from the first bytes.
pub fn tell(bytes: &[u8]) -> Opening {
    if hello::begins(bytes) {
        return match hello::read(bytes) {
            Hello::Partial => Opening::Undecided,
            Hello::Whole { server_name } => Opening::Tls(server_name),
            Hello::Malformed(why) => Opening::Broken(why),
        };
    }
    request(bytes)
}

/// Whatever some server takes for a request of HTTP/1, so that what passes as something else is none to any: any token for a
/// method (RFC 9110, section 9.1), blank lines before it (RFC 9112, section 2.2), and the blanks that lenient ones split at.
fn request(bytes: &[u8]) -> Opening {
    let undecided = if bytes.len() < LINE { Opening::Undecided } else { Opening::Http };
    let start = bytes.iter().take_while(|byte| is_blank(**byte) || matches!(byte, b'\r' | b'\n')).count();
    let bytes = &bytes[start..];
    let method = bytes.iter().take_while(|byte| is_token(**byte)).count();
    match bytes.get(method) {
        None => return undecided,
        Some(byte) if method > 0 && is_blank(*byte) => {}
        Some(_) => return Opening::Other,
    }
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return undecided };
    let line = &bytes[..end];
    // HTTP/2 with prior knowledge is another protocol, which begins like this one (RFC 9113, section 3.4).
    if line == b"PRI * HTTP/2.0\r" {
        return Opening::Other;
    }
    let mut words = line.split(|byte| is_blank(*byte) || *byte == b'\r').filter(|word| !word.is_empty());
    // Node.js takes the second as well, as Icecast's clients write it.
    let is_version = |word: &[u8]| ["HTTP/", "ICE/"].iter().any(|name| begins_with(word, name.as_bytes()));
    if words.next_back().is_some_and(is_version) { Opening::Http } else { Opening::Other }
}

/// ASCII's blanks and separators, and those of ISO-8859-1, as which some servers read a head.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | 0x1c..=0x1f | 0x85 | 0xa0)
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn begins_with(word: &[u8], name: &[u8]) -> bool {
    word.get(..name.len()).is_some_and(|begun| begun.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::super::hello::tests::hello;
    use super::*;

    #[test]
    fn protocols_are_told_apart() {
        let server_first = [
            "SSH-2.0-OpenSSH_9.2\r\n",
            "EHLO me\r\n",
            "USER anonymous\r\n",
            "PING\r\n",
            "*1\r\n$4\r\nPING\r\n",
            "\0\0\0\x08\x04\u{d2}\x16\u{2f}",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "A001 CAPABILITY\r\n",
            "hello\r\n",
            "get key\r\n",
            "RFB 003.008\n",
            "AMQP\0\0\u{9}\u{1}",
            "@RSYNCD: 31.0\n",
            "GET key\r\n",
        ];
        for other in server_first {
            assert_eq!(tell(other.as_bytes()), Opening::Other, "{other:?}");
        }
        for http in [
            "GET / HTTP/1.1\r\n",
            "\r\n\r\nPOST http://a.test/ HTTP/1.0\n",
            "M-SEARCH * HTTP/1.1\r\n",
            "CONNECT b.test:443 HTTP/1.1\r\n",
            "GET  /  HTTP/1.1 \r\n",
            "GET\t/\tHTTP/1.1\r\n",
            // Another version that a server takes for its own, and what begins like HTTP/2 and is not it.
            "GET / HTTP/2.0\r\n",
            "PRI / HTTP/2.0\r\n",
            "SOURCE / ICE/1.0\r\n",
            "GET / http/1.1\r\n",
            // Any token is a method to some, and any blank a separator.
            "get / HTTP/1.1\r\n",
            "M_X1 / HTTP/1.1\r\n",
            "*!. / HTTP/1.1\r\n",
            " GET\u{b}/\u{c}HTTP/1.1\r\n",
        ] {
            assert_eq!(tell(http.as_bytes()), Opening::Http, "{http:?}");
        }
        assert_eq!(tell(&hello("a.test")), Opening::Tls(Some("a.test".into())));
        assert!(matches!(tell(b"\x16\x03\x01\0\0"), Opening::Broken(_)));
        assert_eq!(tell(b"\x16\x02\x01\0\0"), Opening::Other);
    }

    #[test]
    fn what_can_still_be_either_is_undecided() {
        for begun in ["", "G", "GET", "GET ", "GET / HTTP/1.1", "\r\n", "hello", "\x16", "\x16\x03", "\x16\x03\x01"] {
            assert_eq!(tell(begun.as_bytes()), Opening::Undecided, "{begun:?}");
        }
    }

    #[test]
    fn what_is_too_long_to_tell_does_not_pass() {
        for filler in [b"GET /".as_slice(), b"A", b"\r\n"] {
            let long: Vec<u8> = filler.iter().chain(filler.iter().cycle().skip(1)).copied().take(LINE).collect();
            assert_eq!(tell(&long), Opening::Http, "{filler:?}");
        }
    }

    #[test]
    fn another_record_before_the_hello_does_not_hide_it() {
        for kind in [20, 21, 23, 24] {
            let alert = [&[kind, 3, 1, 0, 2, 1, 0x70][..], &hello("b.test")].concat();
            assert!(matches!(tell(&alert), Opening::Broken(_)), "{kind}");
            assert_eq!(tell(&[kind]), Opening::Undecided);
        }
    }
}
