//! One request: read its target, have it decided, pass it on, pass the answer back (RFC 9110, section 7; RFC 9112).
//!
//! Every request is decided for itself, whatever the connection carried before, and goes out on a connection of its
//! own: nothing of one request can end up in another one's. Bodies are streamed, never kept. No `Via` is added: servers
//! take it for a reason not to compress.

use super::Proxy;
use super::authority::Authority;
use super::dial::{self, Dialled, Route};
use super::limits::Limits;
use super::refusal::Failure;
use super::side::Side;
use super::tunnel;
use super::upstream::Server;
use crate::event::lock;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::Scheme;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Of one connection and the next alone (RFC 9110, section 7.6.1), besides what `Connection` itself names.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    HeaderName::from_static("proxy-authentication-info"),
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

type Answer = Response<Either<Incoming, Full<Bytes>>>;

/// What a connection becomes once hyper has let go of it.
pub(super) enum Tunnel {
    /// After CONNECT: the other side never was HTTP.
    Connect { client: OnUpgrade, upstream: Dialled },
    /// After 101.
    Upgrade { client: OnUpgrade, upstream: OnUpgrade, route: Route },
}

/// The server that a client thinks it speaks to, where that is not a proxy.
pub(super) struct Origin {
    pub authority: Authority,
    /// The connection that was made when nothing had been said yet, if one was: for the first request that is for this server.
    pub dialled: Option<Dialled>,
}

/// A request that was decided, and where it goes.
struct Prepared {
    /// The client's side of a websocket, if it wants one.
    client: Option<OnUpgrade>,
    dialled: Dialled,
    /// The other proxy that takes it.
    through: Option<String>,
}

/// One connection of a client.
pub(super) struct Session {
    proxy: Arc<Proxy>,
    /// Whom requests without a host in their target are for.
    origin: Option<Authority>,
    dialled: Mutex<Option<Dialled>>,
    /// Of the last request.
    route: Mutex<Option<Route>>,
    /// Whether a whole head has come in yet.
    pub(super) served: Arc<AtomicBool>,
    /// What drives the connections to upstream; they end with the session.
    drivers: Mutex<JoinSet<()>>,
    /// What this connection becomes once hyper has sent its last answer.
    tunnel: Mutex<Option<Tunnel>>,
}

impl Session {
    pub(super) fn new(proxy: Arc<Proxy>, served: Arc<AtomicBool>, origin: Option<Origin>) -> Self {
        let (origin, dialled) = origin.map(|origin| (origin.authority, origin.dialled)).unzip();
        Self {
            proxy,
            origin,
            dialled: Mutex::new(dialled.flatten()),
            route: Mutex::default(),
            served,
            drivers: Mutex::default(),
            tunnel: Mutex::default(),
        }
    }

    /// The tunnel that the last request asked for.
    pub(super) fn tunnel(&self) -> Option<Tunnel> {
        lock(&self.tunnel).take()
    }

    /// Ends when the rules in force no longer allow what is under way.
    pub(super) async fn revoked(&self) -> Failure {
        let mut changes = self.proxy.in_force.changes();
        loop {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let route = lock(&self.route).clone();
            if let Some(Err(failure)) = route.map(|route| self.proxy.gate().holds(&route)) {
                return failure;
            }
        }
    }

    /// Answers one request, whatever becomes of it.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Answer {
        self.served.store(true, Ordering::Relaxed);
        let answer =
            if request.method() == Method::CONNECT { self.connect(request).await } else { self.forward(request).await };
        answer.unwrap_or_else(|failure| self.fail(&failure).map(Either::Right))
    }

    fn fail(&self, failure: &Failure) -> Response<Full<Bytes>> {
        failure.response(self.proxy.report(failure).as_ref())
    }

    /// CONNECT (RFC 9110, section 9.3.6): dialled before it is answered, so that a 200 is true.
    async fn connect(&self, mut request: Request<Incoming>) -> Result<Answer, Failure> {
        let uri = request.uri();
        if uri.scheme().is_some() || uri.path_and_query().is_some() {
            return Err(Failure::Request("CONNECT takes host:port"));
        }
        let authority = authority(uri, None)?;
        check_host(request.headers())?;
        if has_content(request.headers()) {
            return Err(Failure::Request("CONNECT has no content"));
        }
        let upstream = dial::connect(&self.proxy, &authority).await?;
        self.become_tunnel(Tunnel::Connect { client: hyper::upgrade::on(&mut request), upstream });
        Ok(Response::new(Either::Right(Full::default())))
    }

    /// A request in absolute form (RFC 9112, section 3.2.2).
    async fn forward(&self, mut request: Request<Incoming>) -> Result<Answer, Failure> {
        let Prepared { client, dialled, through } = match self.prepare(&mut request).await {
            Ok(prepared) => prepared,
            Err(failure) => {
                drain(request, &self.proxy.limits).await;
                return Err(failure);
            }
        };
        let Dialled { stream, route } = dialled;
        let mut response = self.send(request, stream).await?;
        if let (Some(server), StatusCode::PROXY_AUTHENTICATION_REQUIRED) = (through, response.status()) {
            // Not passed on: the command would take it for a word of ours, and has nothing to say to that one.
            return Err(Failure::Dial(io::Error::other(format!("{server}: the proxy says {}", response.status()))));
        }
        coding(response.headers()).map_err(|_| Failure::Upstream("an unknown transfer coding".into()))?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return self.switch(client, response, route);
        }
        strip(response.headers_mut());
        *response.version_mut() = Version::HTTP_11;
        Ok(response.map(Either::Left))
    }

    /// Decides, dials, and makes the request one to the origin.
    async fn prepare(&self, request: &mut Request<Incoming>) -> Result<Prepared, Failure> {
        check_host(request.headers())?;
        let authority = match (request.uri().scheme(), &self.origin) {
            (Some(scheme), _) if *scheme == Scheme::HTTP => authority(request.uri(), Some(80))?,
            (Some(scheme), _) if *scheme == Scheme::HTTPS => {
                return Err(Failure::Request("https goes through CONNECT, so that nobody else can read it"));
            }
            (Some(_), _) => return Err(Failure::Request("only http is forwarded")),
            (None, Some(origin)) => asked_for(request.headers(), origin)?,
            (None, None) => return Err(Failure::Request("this is a proxy: ask for an absolute URI, or use CONNECT")),
        };
        let chunked = coding(request.headers())?;
        let client = wants_websocket(request).then(|| hyper::upgrade::on(&mut *request));
        let (dialled, server) = self.upstream(&authority, client.is_some()).await?;
        *lock(&self.route) = Some(dialled.route.clone());
        // The rules may have changed while it was dialled.
        self.proxy.gate().holds(&dialled.route)?;
        self.proxy.report_connection(&dialled.route, None);
        to_origin(request, &authority, chunked, client.is_some())?;
        if let Some(server) = server {
            to_proxy(request, &authority, server)?;
        }
        Ok(Prepared { client, dialled, through: server.map(ToString::to_string) })
    }

    /// Where a request goes; with it the other proxy, if it is to be asked. A websocket needs a connection to its server.
    async fn upstream(&self, authority: &Authority, websocket: bool) -> Result<(Dialled, Option<&Server>), Failure> {
        if self.origin.as_ref() == Some(authority) {
            let dialled = lock(&self.dialled).take();
            if let Some(dialled) = dialled.filter(|dialled| is_open(&dialled.stream)) {
                return Ok((dialled, None));
            }
        }
        if websocket {
            return Ok((dial::connect(&self.proxy, authority).await?, None));
        }
        dial::connect_for_request(&self.proxy, authority).await
    }

    async fn send(&self, request: Request<Incoming>, upstream: TcpStream) -> Result<Response<Incoming>, Failure> {
        let upstream_failed = |error: hyper::Error| Failure::Upstream(error.to_string());
        let limits = &self.proxy.limits;
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_header_size(limits.head_size)
            .max_buf_size(limits.head_size)
            .max_headers(limits.head_fields)
            .preserve_header_case(true)
            .handshake(TokioIo::new(upstream))
            .await
            .map_err(upstream_failed)?;
        {
            let mut drivers = lock(&self.drivers);
            while drivers.try_join_next().is_some() {}
            drivers.spawn(async move {
                // How it ended is told to whoever sent the request or reads the answer.
                let _ = connection.with_upgrades().await;
            });
        }
        sender.send_request(request).await.map_err(upstream_failed)
    }

    /// 101: both sides speak something else now, if that was asked for.
    fn switch(
        &self,
        client: Option<OnUpgrade>,
        mut response: Response<Incoming>,
        route: Route,
    ) -> Result<Answer, Failure> {
        let protocol = response.headers().get(UPGRADE).cloned();
        let (Some(client), Some(protocol)) = (client, protocol.filter(is_websocket)) else {
            return Err(Failure::Upstream("it changes to a protocol that nobody asked for".into()));
        };
        let upstream = hyper::upgrade::on(&mut response);
        self.become_tunnel(Tunnel::Upgrade { client, upstream, route });
        strip(response.headers_mut());
        set_upgrade(response.headers_mut(), protocol);
        Ok(response.map(|_| Either::Right(Full::default())))
    }

    fn become_tunnel(&self, tunnel: Tunnel) {
        *lock(&self.tunnel) = Some(tunnel);
    }
}

impl Tunnel {
    /// The two sides, once hyper lets go of them, for whom the tunnel was allowed, and whether what is in it was decided.
    ///
    /// # Errors
    /// When one of them has failed meanwhile.
    pub(super) async fn sides(self) -> io::Result<(Side, Side, Route, bool)> {
        match self {
            Tunnel::Connect { client, upstream: Dialled { stream, route } } => {
                Ok((tunnel::client(client).await?, Side::new(stream), route, false))
            }
            Tunnel::Upgrade { client, upstream, route } => {
                let (client, upstream) = tokio::try_join!(tunnel::client(client), tunnel::upstream(upstream))?;
                Ok((client, upstream, route, true))
            }
        }
    }
}

/// Reads the content of a request that goes nowhere, within bounds. A client that waits to be asked for it is not asked.
async fn drain(request: Request<Incoming>, limits: &Limits) {
    if request.headers().contains_key(EXPECT) {
        return;
    }
    let mut content = Limited::new(request.into_body(), limits.drain_size);
    let all = async { while let Some(Ok(_)) = content.frame().await {} };
    // Past the bounds the client is cut off after all.
    let _ = timeout(limits.drain, all).await;
}

fn authority(uri: &Uri, default_port: Option<u16>) -> Result<Authority, Failure> {
    let text = uri.authority().map_or("", |authority| authority.as_str());
    Authority::parse(text, default_port).map_err(Failure::Authority)
}

/// Whom a request of a captured connection is for: the host that it names, at the port of the connection. Where it names
/// none, as HTTP/1.0 may, whom the connection was for.
fn asked_for(headers: &HeaderMap, origin: &Authority) -> Result<Authority, Failure> {
    let Some(host) = headers.get(HOST) else { return Ok(origin.clone()) };
    let text = host.to_str().map_err(|_| Failure::Request("`Host` is no text"))?;
    let host = Authority::parse(text, Some(origin.port)).map_err(Failure::Authority)?.host;
    Ok(Authority { host, port: origin.port })
}

/// Whether the other side has neither ended the connection nor said anything on it yet.
fn is_open(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Two `Host` fields are an attack on whoever reads the other one. What one of them says doesn't matter: the target
/// is the URI's (RFC 9112, section 3.2.2), and `Host` is set from it.
fn check_host(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get_all(HOST).iter().count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::Request("`Host` stands twice")),
    }
}

fn has_content(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0")
}

/// Whether the content is chunked. Other codings would be taken off by nobody.
fn coding(headers: &HeaderMap) -> Result<bool, Failure> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(false),
        (Some(one), None) if one.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(true),
        _ => Err(Failure::Coding),
    }
}

/// Only to a websocket (RFC 6455, section 4.1). `h2c` would carry requests that nobody decides.
fn wants_websocket(request: &Request<Incoming>) -> bool {
    let headers = request.headers();
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && !has_content(headers)
        && headers.get_all(UPGRADE).iter().count() == 1
        && headers.get(UPGRADE).is_some_and(is_websocket)
        && connection_options(headers).any(|option| option.eq_ignore_ascii_case("upgrade"))
}

fn is_websocket(value: &HeaderValue) -> bool {
    value.as_bytes().eq_ignore_ascii_case(b"websocket")
}

fn connection_options(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Makes a request to a proxy one to the origin.
fn to_origin(
    request: &mut Request<Incoming>,
    authority: &Authority,
    chunked: bool,
    websocket: bool,
) -> Result<(), Failure> {
    let protocol = websocket.then(|| request.headers().get(UPGRADE).cloned()).flatten();
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    strip(headers);
    let host = HeaderValue::try_from(authority.host_field(80));
    headers.insert(HOST, host.map_err(|_| Failure::Request("the host fits in no field"))?);
    if chunked {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    if let Some(protocol) = protocol {
        set_upgrade(headers, protocol);
    }
    Ok(())
}

/// Makes a request to the origin one to another proxy (RFC 9112, section 3.2.2).
fn to_proxy(request: &mut Request<Incoming>, authority: &Authority, server: &Server) -> Result<(), Failure> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri = format!("http://{}{}", authority.host_field(80), if path == "*" { "" } else { path });
    *request.uri_mut() = uri.parse().map_err(|_| Failure::Request("the target fits in no request to a proxy"))?;
    if let Some(authorization) = server.authorization() {
        let mut value = HeaderValue::try_from(authorization)
            .map_err(|_| Failure::Request("the user of the proxy fits in no field"))?;
        value.set_sensitive(true);
        request.headers_mut().insert(PROXY_AUTHORIZATION, value);
    }
    Ok(())
}

fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// Takes out what belongs to one hop, and what `Connection` says does.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> =
        connection_options(headers).filter_map(|option| HeaderName::try_from(option).ok()).collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}
