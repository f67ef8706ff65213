//! Other proxies, that connections go through: which one is for what, as the usual variables say, and how they are asked.
//!
//! Whether a connection may be made at all is decided before, and elsewhere.

mod except;
mod server;
mod through;

pub use server::{BadServer, Scheme, Server};
pub use through::Declined;
use through::authorization;
pub(super) use through::open;

use super::authority::{Authority, Host};
use crate::event::lock;
use crate::sets::host::Name;
use except::Except;
use std::fmt::Write;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The proxies of the caller's environment.
#[derive(Debug)]
pub struct Upstream {
    /// For requests in plain HTTP, and for everything else; with the variable that names it.
    requests: Option<Named>,
    tunnels: Option<Named>,
    except: Except,
    /// Until when this machine's name servers are not asked, as they have not answered.
    silent: Mutex<Option<Instant>>,
}

type Named = (Server, &'static str);

/// The variables that name a proxy: those of connections that are passed through first, then those of any kind, then those of
/// plain HTTP.
pub const VARIABLES: [&str; 6] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY"];

/// A variable that names no proxy. What it says is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` names no proxy: {why}")]
pub struct BadVariable {
    pub name: &'static str,
    pub why: BadServer,
}

impl Upstream {
    /// Reads `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, each in small letters or else in capitals, from an
    /// environment; `None` where none of the first three is there.
    ///
    /// # Errors
    /// The first that names no proxy.
    pub fn from_variables(value: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, BadVariable> {
        let value = |name: &str| value(name).filter(|value| !value.is_empty());
        // Of a program that a web server starts, a client's header `Proxy` makes this one.
        let by_client = |name: &str| name == "HTTP_PROXY" && value("REQUEST_METHOD").is_some();
        let read = |names: &[&'static str]| {
            let found = names.iter().filter(|name| !by_client(name)).find_map(|name| Some((*name, value(name)?)));
            let server = |(name, text): (&'static str, String)| match Server::parse(&text) {
                Ok(server) => Ok((server, name)),
                Err(why) => Err(BadVariable { name, why }),
            };
            found.map(server).transpose()
        };
        let [.., http, capital_http] = VARIABLES;
        let requests = read(&[&[http, capital_http], &VARIABLES[2..4]].concat())?;
        let tunnels = read(&VARIABLES[..4])?;
        if requests.is_none() && tunnels.is_none() {
            return Ok(None);
        }
        let except = Except::parse(&value("no_proxy").or_else(|| value("NO_PROXY")).unwrap_or_default());
        Ok(Some(Self { requests, tunnels, except, silent: Mutex::default() }))
    }

    /// What is said of it to people, without a secret.
    pub fn says(&self) -> String {
        let mut said = String::from("connections go through ");
        let shown =
            |named: &Option<Named>| named.as_ref().map(|(server, name)| format!("the proxy {server} (`{name}`)"));
        match (shown(&self.tunnels), shown(&self.requests)) {
            (Some(all), Some(requests)) if all == requests => said.push_str(&all),
            // Writing into a string does not fail.
            (Some(all), Some(requests)) => drop(write!(said, "{all}, and plain HTTP through {requests}")),
            (Some(all), None) => drop(write!(said, "{all}, but for plain HTTP")),
            (None, requests) => {
                said.clear();
                let _ = write!(said, "plain HTTP goes through {}", requests.unwrap_or_default());
            }
        }
        if [&self.requests, &self.tunnels]
            .iter()
            .any(|named| named.as_ref().is_some_and(|(server, _)| server.resolves()))
        {
            said.push_str(
                ", which looks names up by itself: rules about addresses hold for those that this machine finds",
            );
        }
        let odd = self.except.not_understood();
        if !odd.is_empty() {
            let _ = write!(said, "; what `NO_PROXY` says here is no host: `{}`", odd.join("`, `"));
        }
        said
    }

    /// What a connection to this goes through, if anything.
    pub(super) fn for_tunnel(&self, to: &Authority) -> Option<&Server> {
        self.for_any(self.tunnels.as_ref(), to)
    }

    /// What a request in plain HTTP goes through as such, if anything.
    pub(super) fn for_request(&self, to: &Authority) -> Option<&Server> {
        self.for_any(self.requests.as_ref(), to).filter(|server| server.scheme == Scheme::Http)
    }

    fn for_any<'s>(&self, named: Option<&'s Named>, to: &Authority) -> Option<&'s Server> {
        named.map(|(server, _)| server).filter(|_| !self.except.covers(to))
    }

    /// Whether a name that this machine does not know may be known to the proxy.
    pub(super) fn may_know(&self, name: &Name) -> bool {
        [443, 80].into_iter().any(|port| {
            let to = Authority { host: Host::Name(name.clone()), port };
            [self.for_tunnel(&to), self.for_request(&to)].into_iter().flatten().any(Server::resolves)
        })
    }

    /// Whether this machine's name servers are worth asking.
    pub(super) fn may_ask(&self) -> bool {
        let mut silent = lock(&self.silent);
        *silent = silent.filter(|until| Instant::now() < *until);
        silent.is_none()
    }

    /// They have not answered: they are left alone for as long.
    pub(super) fn leave_alone(&self, time: Duration) {
        *lock(&self.silent) = Some(Instant::now() + time);
    }
}

/// How long a proxy may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to `authority` through `server`, for a program that does nothing else meanwhile.
///
/// # Errors
/// Why there is none, in the proxy's words where it has any.
pub fn connect(server: &Server, authority: &Authority) -> Result<TcpStream, Declined> {
    let to_server = match &server.at.host {
        Host::Address(address) => TcpStream::connect(SocketAddr::new(*address, server.at.port)),
        Host::Name(name) | Host::Localhost(name) => TcpStream::connect((name.as_str(), server.at.port)),
    };
    let stream = to_server.map_err(Declined::Unreachable)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stream = runtime.block_on(async {
        stream.set_nonblocking(true)?;
        let mut stream = tokio::net::TcpStream::from_std(stream)?;
        // Not every system can; the connection is as good without it.
        let _ = stream.set_nodelay(true);
        timeout(PATIENCE, open(&mut stream, server, authority))
            .await
            .unwrap_or_else(|_| Err(Declined::Broken(io::ErrorKind::TimedOut.into())))?;
        Ok::<_, Declined>(stream.into_std()?)
    })?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// What comes of asking a proxy that answers so, for a server that says `tail` after it: what is heard of that.
#[cfg(fuzzing)]
pub async fn fuzzed(server: &Server, answer: &[u8], tail: &[u8]) -> Option<Vec<u8>> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.ok()?;
    let mut stream = tokio::net::TcpStream::connect(listener.local_addr().ok()?).await.ok()?;
    let (mut proxy, _) = listener.accept().await.ok()?;
    let authority = Authority::parse("allowed.test:443", None).ok()?;
    proxy.write_all(&[answer, tail].concat()).await.ok()?;
    proxy.shutdown().await.ok()?;
    open(&mut stream, server, &authority).await.ok()?;
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.ok()?;
    Some(rest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<Upstream>, BadVariable> {
        let value = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Upstream::from_variables(value)
    }

    fn chosen(variables: &[(&str, &str)], to: &str) -> (Option<String>, Option<String>) {
        let upstream = of(variables).unwrap().unwrap();
        let to = Authority::parse(to, Some(443)).unwrap();
        (upstream.for_tunnel(&to).map(ToString::to_string), upstream.for_request(&to).map(ToString::to_string))
    }

    #[test]
    fn each_kind_of_connection_has_its_variable() {
        let (a, b) = (Some("a:1".to_owned()), Some("b:2".to_owned()));
        assert_eq!(chosen(&[("HTTPS_PROXY", "http://a:1")], "x.test"), (a.clone(), None));
        assert_eq!(chosen(&[("http_proxy", "b:2")], "x.test"), (None, b.clone()));
        assert_eq!(chosen(&[("ALL_PROXY", "a:1"), ("http_proxy", "b:2")], "x.test"), (a.clone(), b));
        assert_eq!(chosen(&[("https_proxy", "a:1"), ("HTTPS_PROXY", "b:2")], "x.test"), (a.clone(), None));
        // A request is no different from other connections for SOCKS.
        assert_eq!(chosen(&[("ALL_PROXY", "socks5://a:1")], "x.test"), (a.clone(), None));
        assert!(of(&[("HTTPS_PROXY", ""), ("NO_PROXY", "*")]).unwrap().is_none());
        assert!(of(&[("HTTP_PROXY", "http://evil"), ("REQUEST_METHOD", "GET")]).unwrap().is_none());
        for own in ["localhost", "127.0.0.1", "[::1]", "x.localhost"] {
            assert_eq!(chosen(&[("ALL_PROXY", "a:1")], own), (None, None), "{own}");
        }
    }

    #[test]
    fn what_is_said_has_no_secret() {
        let said = |variables: &[(&str, &str)]| of(variables).unwrap().unwrap().says();
        assert_eq!(
            said(&[("HTTPS_PROXY", "http://u:hunter2@p.corp:3128"), ("NO_PROXY", "a.test,10.0.0.*")]),
            "connections go through the proxy p.corp:3128 (`HTTPS_PROXY`), but for plain HTTP, which looks names up by \
             itself: rules about addresses hold for those that this machine finds; what `NO_PROXY` says here is no host: \
             `10.0.0.*`"
        );
        assert_eq!(
            said(&[("all_proxy", "socks5://u:hunter2@p.corp")]),
            "connections go through the proxy p.corp:1080 (`all_proxy`)"
        );
        let error = of(&[("ALL_PROXY", "https://u:hunter2@p.corp")]).unwrap_err().to_string();
        assert!(error.starts_with("`ALL_PROXY` names no proxy: ") && !error.contains("hunter"), "{error}");
    }
}
