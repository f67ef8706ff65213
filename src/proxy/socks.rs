//! SOCKS5 (RFC 1928, with RFC 1929's user and password, which are read and not looked at) and SOCKS4 with names (4a):
//! CONNECT alone. BIND and UDP are refused with the code that says so.
//!
//! Reads exactly what belongs to the handshake: the byte after it is the tunnel's.

use super::Proxy;
use super::authority::{Authority, Host};
use super::dial::{self, Dialled};
use super::refusal::Failure;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The first byte of a client that speaks SOCKS5.
pub const FIVE: u8 = 5;
/// The same for SOCKS4.
pub const FOUR: u8 = 4;

const CONNECT: u8 = 1;
const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const NO_ACCEPTABLE: u8 = 0xff;
/// The longest user id, and the longest name, of SOCKS4.
const LONGEST: usize = 255;

/// What was asked for, or the code to refuse it with.
type Request = Result<Authority, u8>;

/// RFC 1928, section 6.
mod reply {
    pub const SUCCEEDED: u8 = 0;
    pub const FAILURE: u8 = 1;
    pub const NOT_ALLOWED: u8 = 2;
    pub const NETWORK_UNREACHABLE: u8 = 3;
    pub const HOST_UNREACHABLE: u8 = 4;
    pub const CONNECTION_REFUSED: u8 = 5;
    pub const COMMAND_NOT_SUPPORTED: u8 = 7;
    pub const ADDRESS_NOT_SUPPORTED: u8 = 8;
}

/// Shakes hands and connects; `None` where the client was refused, and told so. `served` is set once it has asked for something.
///
/// # Errors
/// When the client breaks off, or says what SOCKS does not.
pub(super) async fn shake(proxy: &Proxy, client: &mut TcpStream, served: &AtomicBool) -> io::Result<Option<Dialled>> {
    let read = async {
        let version = client.read_u8().await?;
        let request = if version == FIVE { read_five(client).await? } else { read_four(client).await? };
        Ok::<_, io::Error>((version, request))
    };
    let (version, request) = timeout(proxy.limits.head, read).await??;
    served.store(true, Ordering::Relaxed);
    let answer = match request {
        Ok(authority) => match dial::connect(proxy, &authority).await {
            Ok(upstream) => Ok(upstream),
            Err(failure) => {
                proxy.report(&failure);
                Err(code(&failure))
            }
        },
        Err(code) => Err(code),
    };
    let code = answer.as_ref().err().copied().unwrap_or(reply::SUCCEEDED);
    if version == FIVE {
        // Where it is bound is nobody's business inside.
        client.write_all(&[FIVE, code, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    } else {
        let granted = if code == reply::SUCCEEDED { 90 } else { 91 };
        client.write_all(&[0, granted, 0, 0, 0, 0, 0, 0]).await?;
    }
    Ok(answer.ok())
}

async fn read_five(client: &mut TcpStream) -> io::Result<Request> {
    let mut methods = vec![0; usize::from(client.read_u8().await?)];
    client.read_exact(&mut methods).await?;
    if methods.contains(&NO_AUTHENTICATION) {
        client.write_all(&[FIVE, NO_AUTHENTICATION]).await?;
    } else if methods.contains(&USER_AND_PASSWORD) {
        client.write_all(&[FIVE, USER_AND_PASSWORD]).await?;
        if client.read_u8().await? != 1 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        for _ in 0..2 {
            let mut text = vec![0; usize::from(client.read_u8().await?)];
            client.read_exact(&mut text).await?;
        }
        client.write_all(&[1, 0]).await?;
    } else {
        client.write_all(&[FIVE, NO_ACCEPTABLE]).await?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    request_five(client).await
}

/// The request after the greeting.
async fn request_five(client: &mut (impl AsyncRead + Unpin)) -> io::Result<Request> {
    let mut head = [0; 4];
    client.read_exact(&mut head).await?;
    let [version, command, _, kind] = head;
    if version != FIVE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let host = match kind {
        1 => Some(Host::Address(IpAddr::V4(client.read_u32().await?.into()))),
        4 => Some(Host::Address(IpAddr::V6(Ipv6Addr::from(client.read_u128().await?)).to_canonical())),
        3 => {
            let mut name = vec![0; usize::from(client.read_u8().await?)];
            client.read_exact(&mut name).await?;
            named(&name)
        }
        _ => return Ok(Err(reply::ADDRESS_NOT_SUPPORTED)),
    };
    let port = client.read_u16().await?;
    if command != CONNECT {
        return Ok(Err(reply::COMMAND_NOT_SUPPORTED));
    }
    Ok(authority(host, port))
}

/// After the version: command, port, address, user id; and a name, where the address is 0.0.0.x and x is not 0.
async fn read_four(client: &mut (impl AsyncRead + Unpin)) -> io::Result<Request> {
    let command = client.read_u8().await?;
    let port = client.read_u16().await?;
    let address = Ipv4Addr::from(client.read_u32().await?);
    until_nul(client).await?;
    let host = match address.octets() {
        [0, 0, 0, x] if x != 0 => named(&until_nul(client).await?),
        _ => Some(Host::Address(address.into())),
    };
    if command != CONNECT {
        return Ok(Err(reply::COMMAND_NOT_SUPPORTED));
    }
    Ok(authority(host, port))
}

/// What a client asks for that says this, its version first.
#[cfg(fuzzing)]
pub async fn fuzzed(mut bytes: &[u8]) -> Option<Authority> {
    let client = &mut bytes;
    let request = match client.read_u8().await.ok()? {
        FIVE => request_five(client).await,
        FOUR => read_four(client).await,
        _ => return None,
    };
    request.ok()?.ok()
}

async fn until_nul(client: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        match client.read_u8().await? {
            0 => return Ok(text),
            _ if text.len() >= LONGEST => return Err(io::ErrorKind::InvalidData.into()),
            byte => text.push(byte),
        }
    }
}

/// The one spelling of a host without a port, as in a request line.
fn named(name: &[u8]) -> Option<Host> {
    let name = str::from_utf8(name).ok().filter(|name| !name.contains([':', '[', ']']))?;
    Authority::parse(name, Some(1)).ok().map(|authority| authority.host)
}

fn authority(host: Option<Host>, port: u16) -> Request {
    match host {
        Some(host) if port != 0 => Ok(Authority { host, port }),
        _ => Err(reply::FAILURE),
    }
}

fn code(failure: &Failure) -> u8 {
    use io::ErrorKind::{ConnectionRefused, NetworkUnreachable};
    match failure {
        Failure::Refused(_) | Failure::Unseen { .. } => reply::NOT_ALLOWED,
        Failure::Resolve(_) => reply::HOST_UNREACHABLE,
        Failure::Dial(error) => match error.kind() {
            ConnectionRefused => reply::CONNECTION_REFUSED,
            NetworkUnreachable => reply::NETWORK_UNREACHABLE,
            _ => reply::HOST_UNREACHABLE,
        },
        _ => reply::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    async fn five(bytes: &[u8]) -> Option<Request> {
        request_five(&mut &bytes[..]).await.ok()
    }

    async fn four(bytes: &[u8]) -> Option<Request> {
        read_four(&mut &bytes[..]).await.ok()
    }

    fn asked(request: Option<Request>) -> String {
        match request.unwrap() {
            Ok(authority) => authority.to_string(),
            Err(code) => format!("refused: {code}"),
        }
    }

    #[tokio::test]
    async fn names_and_addresses_are_read() {
        for (bytes, expected) in [
            (&b"\x05\x01\0\x01\xc0\0\x02\x07\0\x50"[..], "192.0.2.7:80"),
            (b"\x05\x01\0\x03\x06A.tesT\x01\xbb", "a.test:443"),
            (b"\x05\x01\0\x03\x09192.0.2.7\0\x50", "192.0.2.7:80"),
            (b"\x05\x01\0\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07\0\x50", "[2001:db8::7]:80"),
            (b"\x05\x01\0\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x07\0\x50", "192.0.2.7:80"),
            (b"\x05\x02\0\x03\x06a.test\0\x50", "refused: 7"),
            (b"\x05\x03\0\x01\0\0\0\0\0\0", "refused: 7"),
            (b"\x05\x01\0\x05a.test\0\x50", "refused: 8"),
            (b"\x05\x01\0\x03\x06a.test\0\0", "refused: 1"),
            (b"\x05\x01\0\x03\0\0\x50", "refused: 1"),
            (b"\x05\x01\0\x03\x0eevil\0.a.test:1\0\x50", "refused: 1"),
            (b"\x05\x01\0\x03\x09a.test:80\0\x50", "refused: 1"),
            (b"\x05\x01\0\x03\x08[a.test]\0\x50", "refused: 1"),
            (b"\x05\x01\0\x03\x05127.1\0\x50", "refused: 1"),
            (b"\x05\x01\0\x03\x08u@a.test\0\x50", "refused: 1"),
            (b"\x05\x01\0\x03\x02\xff\xfe\0\x50", "refused: 1"),
        ] {
            assert_eq!(asked(five(bytes).await), expected, "{bytes:?}");
        }
        for (bytes, expected) in [
            (&b"\x01\0\x50\xc0\0\x02\x07user\0"[..], "192.0.2.7:80"),
            (b"\x01\x01\xbb\0\0\0\x01\0a.test\0", "a.test:443"),
            (b"\x02\x01\xbb\0\0\0\x01\0a.test\0", "refused: 7"),
            (b"\x01\x01\xbb\0\0\0\x01\0evil test\0", "refused: 1"),
        ] {
            assert_eq!(asked(four(bytes).await), expected, "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn what_is_cut_off_or_too_long_is_no_request() {
        let whole = b"\x05\x01\0\x03\x06a.test\0\x50";
        for end in 0..whole.len() {
            assert!(five(&whole[..end]).await.is_none(), "{end}");
        }
        assert!(five(b"\x04\x01\0\x03\x06a.test\0\x50").await.is_none());
        let long = [&b"\x01\0\x50\0\0\0\x01\0"[..], &[b'a'; 300], b"\0"].concat();
        assert!(four(&long).await.is_none());
    }
}
