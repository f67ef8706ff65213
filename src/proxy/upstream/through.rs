//! Asking a proxy for a connection: CONNECT (RFC 9110, section 9.3.6), SOCKS5 (RFC 1928, 1929).
//!
//! Reads exactly what belongs to the answer: the byte after it is the server's.

use super::server::{Credentials, Scheme, Server};
use crate::proxy::authority::{Authority, Host};
use std::io;
use std::net::IpAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest head, and the longest text of a refusal, that is read.
const LONGEST: usize = 64 << 10;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum Declined {
    #[error("the proxy can't be reached: {0}")]
    Unreachable(io::Error),
    #[error("the proxy broke off: {0}")]
    Broken(#[from] io::Error),
    #[error("the proxy says {line}")]
    Http {
        status: u16,
        /// The status and its reason.
        line: String,
        /// What it says to people: of a plain text, and no other.
        text: Option<String>,
    },
    #[error("the proxy says that it {0}")]
    Socks(&'static str),
    #[error("what is there is no proxy of that kind")]
    NoProxy,
}

/// Asks the proxy at the other end of `stream` for a connection to `authority`.
///
/// # Errors
/// Why there is none. The stream is of no use then.
pub async fn open(stream: &mut TcpStream, server: &Server, authority: &Authority) -> Result<(), Declined> {
    match server.scheme {
        Scheme::Http => http(stream, server.credentials.as_ref(), authority).await,
        Scheme::Socks5 | Scheme::Socks5h => socks(stream, server.credentials.as_ref(), authority).await,
    }
}

/// The value of `Proxy-Authorization` (RFC 7617).
pub fn authorization(credentials: &Credentials) -> String {
    format!("Basic {}", base64(format!("{}:{}", credentials.user, credentials.password).as_bytes()))
}

async fn http(
    stream: &mut TcpStream,
    credentials: Option<&Credentials>,
    authority: &Authority,
) -> Result<(), Declined> {
    let mut head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    if let Some(credentials) = credentials {
        head.extend(["Proxy-Authorization: ", &authorization(credentials), "\r\n"]);
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    let head = read_head(stream).await?;
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let (version, line) = line.split_once(' ').ok_or(Declined::NoProxy)?;
    let status: u16 = line.get(..3).and_then(|status| status.parse().ok()).ok_or(Declined::NoProxy)?;
    if !version.starts_with("HTTP/1.") {
        return Err(Declined::NoProxy);
    }
    if (200..300).contains(&status) {
        return Ok(());
    }
    let field = |name: &str| {
        let mut fields = lines.clone().filter_map(|line| line.split_once(':'));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let plain = field("content-type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/plain"));
    let length = field("content-length").and_then(|length| length.parse().ok()).filter(|length| *length <= LONGEST);
    let mut text = None;
    if let Some(length) = length.filter(|_| plain) {
        let mut bytes = vec![0; length];
        text = stream.read_exact(&mut bytes).await.ok().map(|_| String::from_utf8_lossy(&bytes).into_owned());
    }
    Err(Declined::Http { status, line: line.to_owned(), text })
}

/// Everything up to the empty line, and not a byte more.
async fn read_head(stream: &mut TcpStream) -> Result<Vec<u8>, Declined> {
    const END: &[u8] = b"\r\n\r\n";
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let there = stream.peek(&mut buffer).await?;
        if there == 0 {
            return Err(Declined::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
        let before = head.len();
        head.extend_from_slice(&buffer[..there]);
        // The end may have begun in what was there before.
        let from = before.saturating_sub(END.len() - 1);
        let end = head[from..].windows(END.len()).position(|window| window == END).map(|at| from + at + END.len());
        let belongs = end.unwrap_or(head.len()) - before;
        stream.read_exact(&mut buffer[..belongs]).await?;
        if let Some(end) = end {
            head.truncate(end - END.len());
            return Ok(head);
        }
        if head.len() > LONGEST {
            return Err(Declined::NoProxy);
        }
    }
}

async fn socks(
    stream: &mut TcpStream,
    credentials: Option<&Credentials>,
    authority: &Authority,
) -> Result<(), Declined> {
    const FIVE: u8 = 5;
    const NO_AUTHENTICATION: u8 = 0;
    const USER_AND_PASSWORD: u8 = 2;
    let methods: &[u8] = if credentials.is_some() { &[NO_AUTHENTICATION, USER_AND_PASSWORD] } else { &[0] };
    let count = u8::try_from(methods.len()).unwrap_or(1);
    stream.write_all(&[&[FIVE, count], methods].concat()).await?;
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen).await?;
    match (chosen, credentials) {
        ([FIVE, NO_AUTHENTICATION], _) => {}
        ([FIVE, USER_AND_PASSWORD], Some(Credentials { user, password })) => {
            let mut said = vec![1];
            for part in [user, password] {
                said.push(u8::try_from(part.len()).unwrap_or(u8::MAX));
                said.extend(part.as_bytes());
            }
            stream.write_all(&said).await?;
            let mut answer = [0; 2];
            stream.read_exact(&mut answer).await?;
            if answer[1] != 0 {
                return Err(Declined::Socks("does not take the user and password"));
            }
        }
        ([FIVE, _], _) => return Err(Declined::Socks("wants another authentication")),
        _ => return Err(Declined::NoProxy),
    }
    let mut request = vec![FIVE, 1, 0];
    match &authority.host {
        Host::Address(IpAddr::V4(address)) => request.extend([&[1][..], &address.octets()].concat()),
        Host::Address(IpAddr::V6(address)) => request.extend([&[4][..], &address.octets()].concat()),
        Host::Name(name) | Host::Localhost(name) => {
            let name = name.as_str().as_bytes();
            request.extend([3, u8::try_from(name.len()).unwrap_or(u8::MAX)]);
            request.extend(name);
        }
    }
    request.extend(authority.port.to_be_bytes());
    stream.write_all(&request).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version, code, _, kind] = head;
    if version != FIVE {
        return Err(Declined::NoProxy);
    }
    // Where it is bound.
    bound(stream, kind).await?;
    match code {
        0 => Ok(()),
        2 => Err(Declined::Socks("does not allow it")),
        3 => Err(Declined::Socks("cannot reach the network")),
        4 => Err(Declined::Socks("cannot reach the host")),
        5 => Err(Declined::Socks("was refused by the host")),
        _ => Err(Declined::Socks("failed")),
    }
}

async fn bound(stream: &mut (impl AsyncRead + Unpin), kind: u8) -> Result<(), Declined> {
    let length = match kind {
        1 => 4,
        4 => 16,
        3 => usize::from(stream.read_u8().await?),
        _ => return Err(Declined::NoProxy),
    };
    let mut bytes = vec![0; length + 2];
    stream.read_exact(&mut bytes).await?;
    Ok(())
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0u32, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn bytes_as_letters() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    /// What comes of asking a proxy that answers so, in pieces of this size, and what is left on the connection.
    async fn asked(server: &str, answers: &[&[u8]], piece: usize) -> (Result<(), Declined>, Vec<u8>) {
        let answers: Vec<Vec<u8>> = answers.iter().map(|answer| answer.to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let proxy = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            for answer in answers {
                let _ = stream.read(&mut [0; 4096]).await.unwrap();
                for piece in answer.chunks(piece) {
                    stream.write_all(piece).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        });
        let server = Server::parse(server).unwrap();
        let authority = Authority::parse("a.test:443", None).unwrap();
        let mut stream = TcpStream::connect(at).await.unwrap();
        let result = open(&mut stream, &server, &authority).await;
        let mut rest = Vec::new();
        if result.is_ok() {
            stream.read_to_end(&mut rest).await.unwrap();
        }
        proxy.await.unwrap();
        (result, rest)
    }

    #[tokio::test]
    async fn what_the_server_says_at_once_is_not_taken_for_the_proxys() {
        for piece in [1, 3, 5, 1000] {
            let answer = b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\nSSH-2.0-x\r\n";
            let (result, rest) = asked("http://p", &[answer], piece).await;
            assert!(result.is_ok());
            assert_eq!(rest, b"SSH-2.0-x\r\n", "{piece}");
            let answers: &[&[u8]] = &[b"\x05\0", b"\x05\0\0\x01\0\0\0\0\0\0hello"];
            let (result, rest) = asked("socks5h://p", answers, piece).await;
            assert!(result.is_ok());
            assert_eq!(rest, b"hello", "{piece}");
        }
    }

    #[tokio::test]
    async fn refusals_are_told_in_the_proxys_words() {
        let answer =
            b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n\r\nno\n";
        let Err(Declined::Http { status, line, text }) = asked("http://p", &[answer], 7).await.0 else { panic!() };
        assert_eq!((status, line.as_str(), text.as_deref()), (403, "403 Forbidden", Some("no\n")));
        let said = |result: Result<(), Declined>| result.unwrap_err().to_string();
        let login = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Type: text/html\r\n\r\n<p>";
        assert_eq!(said(asked("http://p", &[login], 1000).await.0), "the proxy says 407 Proxy Authentication Required");
        assert_eq!(
            said(asked("http://p", &[b"SSH-2.0-x y\r\n\r\n"], 9).await.0),
            "what is there is no proxy of that kind"
        );
        assert_eq!(said(asked("socks5://p", &[b"HTTP/1.1 400"], 99).await.0), "what is there is no proxy of that kind");
        assert_eq!(
            said(asked("socks5://p", &[b"\x05\xff"], 9).await.0),
            "the proxy says that it wants another authentication"
        );
        let answers: &[&[u8]] = &[b"\x05\x02", b"\x01\x01"];
        assert_eq!(
            said(asked("socks5://u:p@p", answers, 9).await.0),
            "the proxy says that it does not take the user and password"
        );
        let answers: &[&[u8]] = &[b"\x05\0", b"\x05\x02\0\x01\0\0\0\0\0\0"];
        assert_eq!(said(asked("socks5://p", answers, 9).await.0), "the proxy says that it does not allow it");
    }
}
