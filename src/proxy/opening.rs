//! What the first bytes of a client say it speaks: TLS, HTTP/1, or something that is not looked at.
//!
//! Pure. Whatever more bytes could still turn into TLS or HTTP is undecided, and nothing else is: who speaks another
//! protocol is not held up by a byte more than it takes to see that.

use super::hello::{self, Hello};

/// The longest request line that is waited for.
const LINE: usize = 16 << 10;

/// The longest method; the registry's have 17 letters at the most.
const METHOD: usize = 24;

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

/// Servers skip empty lines before a request (RFC 9112, section 2.2).
fn request(bytes: &[u8]) -> Opening {
    let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let bytes = &bytes[blank..];
    if bytes.is_empty() {
        return if blank < LINE { Opening::Undecided } else { Opening::Other };
    }
    let method = bytes.iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'-').count();
    if method > METHOD {
        return Opening::Other;
    }
    match bytes.get(method) {
        None => return Opening::Undecided,
        Some(b' ' | b'\t') if method > 0 => {}
        Some(_) => return Opening::Other,
    }
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return if bytes.len() < LINE { Opening::Undecided } else { Opening::Other };
    };
    let line = bytes[..end].trim_ascii_end();
    let version = line.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
    // HTTP/2 with prior knowledge is another protocol, which begins like this one.
    if version.starts_with(b"HTTP/") && version != b"HTTP/2.0" { Opening::Http } else { Opening::Other }
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
            "hello",
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
        ] {
            assert_eq!(tell(http.as_bytes()), Opening::Http, "{http:?}");
        }
        assert_eq!(tell(&hello("a.test")), Opening::Tls(Some("a.test".into())));
        assert!(matches!(tell(b"\x16\x03\x01\0\0"), Opening::Broken(_)));
        assert_eq!(tell(b"\x16\x02\x01\0\0"), Opening::Other);
    }

    #[test]
    fn what_can_still_be_either_is_undecided() {
        for begun in ["", "G", "GET", "GET ", "GET / HTTP/1.1", "\r\n", "\x16", "\x16\x03", "\x16\x03\x01"] {
            assert_eq!(tell(begun.as_bytes()), Opening::Undecided, "{begun:?}");
        }
        assert_eq!(tell(&[b'A'; METHOD + 1]), Opening::Other);
        assert_eq!(tell(&[&b"GET /"[..], &[b'a'; LINE]].concat()), Opening::Other);
    }
}
