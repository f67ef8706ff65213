//! The address of a proxy, as the usual variables name it. What is said of a wrong one repeats nothing of it: there may be a
//! password in it.

use crate::proxy::authority::{Authority, Malformed};
use std::fmt;

/// A proxy that is asked for connections.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    pub(super) scheme: Scheme,
    pub(super) at: Authority,
    pub(super) credentials: Option<Credentials>,
}

/// How it is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Http,
    /// It is told addresses alone: names are looked up here.
    Socks5,
    /// It is told names.
    Socks5h,
}

/// Who asks.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub user: String,
    pub password: String,
}

/// Why a text names no proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadServer {
    #[error("a proxy that is itself spoken to in TLS (`https://`) cannot be used; most take `http://` too")]
    Tls,
    #[error("its scheme is none of http, socks5 and socks5h")]
    Scheme,
    #[error("a path stands behind the host")]
    Path,
    #[error("its user or password is not well encoded, or too long")]
    Credentials,
    #[error("it has no host and port: {0}")]
    Authority(Malformed),
}

impl Server {
    /// Reads `[SCHEME://][USER[:PASSWORD]@]HOST[:PORT][/]`; without a scheme it is `http`.
    ///
    /// # Errors
    /// What is wrong with it, without a word of it.
    pub fn parse(text: &str) -> Result<Self, BadServer> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let (scheme, port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (Scheme::Http, 80),
            "socks5" => (Scheme::Socks5, 1080),
            "socks5h" | "socks" => (Scheme::Socks5h, 1080),
            "https" => return Err(BadServer::Tls),
            _ => return Err(BadServer::Scheme),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (who, at) = rest.rsplit_once('@').map_or((None, rest), |(who, at)| (Some(who), at));
        if at.contains(['/', '?', '#']) {
            return Err(BadServer::Path);
        }
        // A message about a host says a character of it at the most.
        let at = Authority::parse(at, Some(port)).map_err(BadServer::Authority)?;
        let credentials = who.map(|who| credentials(who).ok_or(BadServer::Credentials)).transpose()?;
        Ok(Self { scheme, at, credentials })
    }

    /// Where it stands.
    pub fn at(&self) -> &Authority {
        &self.at
    }

    /// What a request says to it of who asks.
    pub(in crate::proxy) fn authorization(&self) -> Option<String> {
        self.credentials.as_ref().map(super::authorization)
    }

    /// Whether it is told names, and looks them up itself.
    pub fn resolves(&self) -> bool {
        self.scheme != Scheme::Socks5
    }
}

/// Percent-encoded (RFC 3986, section 3.2.1). Of a length that SOCKS5 can say (RFC 1929), and without what would end a field
/// of HTTP.
fn credentials(text: &str) -> Option<Credentials> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let clean = |part: String| (part.len() <= 255 && !part.chars().any(char::is_control)).then_some(part);
    let (user, password) = (decoded(user).and_then(clean)?, decoded(password).and_then(clean)?);
    // RFC 7617: a colon would end the user.
    (!user.contains(':')).then_some(Credentials { user, password })
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            digit()? << 4 | digit()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

/// The host and the port alone.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.fmt(f)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.scheme, self.at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str) -> String {
        match Server::parse(text) {
            Ok(server) => {
                let who = server.credentials.as_ref().map(|who| format!("{}:{}@", who.user, who.password));
                format!("{:?} {}{}", server.scheme, who.unwrap_or_default(), server.at)
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn addresses_of_proxies_are_read_as_other_programs_read_them() {
        for (text, expected) in [
            ("http://proxy.corp:3128", "Http proxy.corp:3128"),
            ("proxy.corp", "Http proxy.corp:80"),
            ("HTTP://Proxy.Corp:8080/", "Http proxy.corp:8080"),
            ("http://192.0.2.7:1", "Http 192.0.2.7:1"),
            ("http://[2001:db8::7]:1/", "Http [2001:db8::7]:1"),
            ("socks5://h", "Socks5 h:1080"),
            ("socks5h://u:p@h:9", "Socks5h u:p@h:9"),
            ("http://u@h", "Http u:@h:80"),
            ("http://us%40er:p%3Aa%20ss@h", "Http us@er:p:a ss@h:80"),
            ("http://a@b:c@h", "Http a@b:c@h:80"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_secret() {
        for text in [
            "https://user:hunter2@h:1",
            "ftp://user:hunter2@h",
            "http://user:hunter2@h/path",
            "http://user:hunter2%zz@h",
            "http://user:hunter2%0d%0a@h",
            "http://us%3Aer:hunter2@h",
            "http://user:hunter2@h:0",
            "http://user:hunter2@h h",
            "http://user:hunter2@",
            "http://user:hunter2",
        ] {
            let error = Server::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter"), "{text}: {error}");
        }
        let server = Server::parse("http://user:hunter2@h").unwrap();
        assert_eq!(format!("{server} {server:?}"), "h:80 Http h:80");
    }
}
