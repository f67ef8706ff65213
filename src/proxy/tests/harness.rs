//! A proxy under test, what it may reach, and a client that says any bytes.

use super::super::upstream::Upstream;
use super::super::{Doors, InForce, Limits, Lookup, Means, Resolve, Rules, serve};
use crate::event::{Connection, Event, RuleText, Sink, Violation};
use crate::ir::{BoundPolicy, Origin, Policy, Rule, Setting, Subject, Unset};
use crate::sets::address::parse_network;
use crate::sets::host::{HostSet, Name, Pattern};
use crate::sets::peer::{Endpoint, PeerSet};
use crate::sets::port::PortSet;
use crate::source::{Sources, Span};
use crate::vocabulary::{Effect, System, Verb};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

/// Long enough for anything on the loopback, short enough for a test that fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Ports of a rule.
pub const ANY: RangeInclusive<u16> = 1..=65535;

pub fn port(port: u16) -> RangeInclusive<u16> {
    port..=port
}

/// What a policy and the world look like.
pub struct Setup {
    rules: Vec<(Rule, String)>,
    names: BTreeMap<String, Vec<Vec<IpAddr>>>,
    pub limits: Limits,
    own_addresses: Vec<IpAddr>,
    variables: Vec<(String, String)>,
}

impl Setup {
    pub fn new() -> Self {
        Self {
            rules: Vec::new(),
            names: BTreeMap::new(),
            limits: Limits::STANDARD,
            own_addresses: vec![],
            variables: vec![],
        }
    }

    /// A rule about names: `a.test`, `*.test` or `*`.
    pub fn host(self, effect: Effect, host: &str, ports: RangeInclusive<u16>) -> Self {
        let set = HostSet { include: vec![host_pattern(host)], exclude: vec![] };
        self.rule(effect, host, Endpoint::Hosts(set), ports)
    }

    /// A rule about one network.
    pub fn net(self, effect: Effect, net: &str, ports: RangeInclusive<u16>) -> Self {
        let set = parse_network(net).unwrap();
        self.rule(effect, net, Endpoint::Addresses(set), ports)
    }

    fn rule(mut self, effect: Effect, target: &str, endpoint: Endpoint, ports: RangeInclusive<u16>) -> Self {
        let ports = PortSet::from_ranges([ports]);
        let udp = effect != Effect::Allow;
        let subject = Subject::Peers(PeerSet { endpoint, tcp: true, udp, ports });
        let text = format!("{effect} connect {target}");
        let rule = Rule {
            effect,
            verb: Verb::Connect,
            subject,
            because: None,
            unset: Unset::Refuse,
            span: nowhere(),
            origin: Origin::Given,
        };
        self.rules.push((rule, text));
        self
    }

    /// The reason of the last rule.
    pub fn because(mut self, text: &str) -> Self {
        self.rules.last_mut().unwrap().0.because = Some(text.into());
        self
    }

    /// What a name leads to: the first answer to the first look-up, and so on; the last one stays.
    pub fn name(mut self, name: &str, answers: &[&[&str]]) -> Self {
        let read = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        self.names.insert(name.into(), answers.iter().map(read).collect());
        self
    }

    pub fn own_address(mut self, address: &str) -> Self {
        self.own_addresses.push(address.parse().unwrap());
        self
    }

    /// A variable of the environment that the proxy was started in.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub fn rules(&self) -> Arc<Rules> {
        let (rules, texts): (Vec<Rule>, Vec<String>) = self.rules.iter().cloned().unzip();
        let mut policy = Policy::new(System::Linux, Setting { value: Effect::Deny, span: nowhere() });
        policy.rules.clone_from(&rules);
        policy.facts.own_addresses.clone_from(&self.own_addresses);
        let texts = move |rule: &Rule| {
            let same =
                |known: &Rule| (known.effect, known.verb, &known.subject) == (rule.effect, rule.verb, &rule.subject);
            let number = rules.iter().position(same).unwrap();
            RuleText {
                file: "test.policy".into(),
                line: u32::try_from(number).unwrap() + 1,
                text: texts[number].clone(),
            }
        };
        Arc::new(Rules { policy: BoundPolicy(policy), texts: Box::new(texts) })
    }

    pub async fn start(self) -> Running {
        self.start_with(Doors::from).await
    }

    /// The same, to which every connection was meant for somebody else.
    pub async fn start_captured(self, target: &str) -> Running {
        let target: SocketAddr = target.parse().unwrap();
        self.start_with(|listener| Doors::new(vec![listener], vec![], Arc::new(move |_| Ok(Some(target))))).await
    }

    async fn start_with(self, doors: impl FnOnce(TcpListener) -> Doors) -> Running {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut doors = doors(listener);
        let datagrams = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let questions = datagrams.local_addr().unwrap();
        doors.datagrams.push(datagrams);
        let events = Arc::new(Recorder::default());
        let in_force = Arc::new(InForce::new(self.rules()));
        let resolver = Arc::new(Names { answers: self.names, asked: Mutex::default() });
        let variable = |name: &str| self.variables.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
        let upstream = Upstream::from_variables(variable).unwrap();
        let means = Means { resolver: resolver.clone(), upstream, limits: self.limits };
        let serving = serve(doors, in_force.clone(), events.clone(), means);
        Running { at, questions, events, resolver, in_force, serving: tokio::spawn(serving) }
    }
}

/// The usual world: `upstream` is allowed under the name `a.test` at the loopback.
pub fn to(upstream: SocketAddr) -> Setup {
    Setup::new()
        .host(Effect::Allow, "a.test", port(upstream.port()))
        .net(Effect::Allow, "127.0.0.1/32", port(upstream.port()))
        .name("a.test", &[&["127.0.0.1"]])
}

pub fn host_pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

fn nowhere() -> Span {
    Span::new(Sources::default().add("test.policy", ""), 0..0)
}

/// A proxy that is serving.
pub struct Running {
    pub at: SocketAddr,
    /// Where it answers questions for names.
    pub questions: SocketAddr,
    events: Arc<Recorder>,
    resolver: Arc<Names>,
    pub in_force: Arc<InForce>,
    pub serving: JoinHandle<io::Result<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Running {
    /// What the resolver says to a question for an address, or another type: its status, and the address.
    pub async fn ask(&self, name: &str, kind: u16) -> (u8, Option<String>) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.send_to(&question(name, kind), self.questions).await.unwrap();
        let mut answer = [0; 512];
        let (length, _) = within(socket.recv_from(&mut answer)).await.unwrap();
        read_answer(&answer[..length])
    }

    /// Waits until as many events as this have come, and gives them.
    pub async fn events(&self, count: usize) -> Vec<Violation> {
        let come = async {
            while self.violations().len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(come).await;
        self.violations()
    }

    /// Connects to the proxy.
    pub async fn client(&self) -> Client {
        Client { stream: TcpStream::connect(self.at).await.unwrap(), unread: Vec::new() }
    }

    /// One request on a connection of its own: says `head` and then nothing; everything that comes back until the
    /// proxy closes.
    pub async fn say(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = self.client().await;
        client.send(bytes).await;
        client.rest().await
    }

    /// A GET that asks to close afterwards.
    pub async fn get(&self, uri: &str) -> String {
        self.say(format!("GET {uri} HTTP/1.1\r\nHost: x.test\r\nConnection: close\r\n\r\n")).await
    }

    pub fn violations(&self) -> Vec<Violation> {
        let events = self.events.0.lock().unwrap();
        let violation = |event: &Event| match event {
            Event::Violation(violation) => Some(violation.clone()),
            Event::Connection(_) | Event::Limit(_) | Event::Dropped { .. } => None,
        };
        events.iter().filter_map(violation).collect()
    }

    /// What was allowed, once there are as many as this.
    pub async fn connections(&self, count: usize) -> Vec<Connection> {
        let connections = || {
            let events = self.events.0.lock().unwrap();
            let connection = |event: &Event| match event {
                Event::Connection(connection) => Some(connection.clone()),
                Event::Violation(_) | Event::Limit(_) | Event::Dropped { .. } => None,
            };
            events.iter().filter_map(connection).collect::<Vec<_>>()
        };
        let come = async {
            while connections().len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(come).await;
        connections()
    }

    /// The names that were looked up.
    pub fn asked(&self) -> Vec<String> {
        self.resolver.asked.lock().unwrap().clone()
    }
}

/// A question as a library sends it.
pub fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes
}

/// The status of an answer, and the address in it.
pub fn read_answer(answer: &[u8]) -> (u8, Option<String>) {
    assert_eq!(answer[..2], [0x12, 0x34]);
    let address = (answer[7] == 1).then(|| {
        let at: [u8; 4] = *answer.last_chunk().unwrap();
        IpAddr::from(at).to_string()
    });
    (answer[3] & 0xf, address)
}

/// A connection to anything, read by hand.
pub struct Client {
    pub stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    pub fn over(stream: TcpStream) -> Self {
        Self { stream, unread: Vec::new() }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // A server may close while a hostile client still talks.
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    async fn more(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let count = within(self.stream.read(&mut buffer)).await.unwrap_or(0);
        self.unread.extend_from_slice(&buffer[..count]);
        count > 0
    }

    /// Everything up to and including `end`.
    pub async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end.as_bytes()) {
                let rest = self.unread.split_off(at + end.len());
                return String::from_utf8_lossy(&std::mem::replace(&mut self.unread, rest)).into_owned();
            }
            assert!(self.more().await, "closed before {end:?}: {:?}", String::from_utf8_lossy(&self.unread));
        }
    }

    pub async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            assert!(self.more().await, "closed early: {:?}", String::from_utf8_lossy(&self.unread));
        }
        let rest = self.unread.split_off(count);
        std::mem::replace(&mut self.unread, rest)
    }

    pub async fn head(&mut self) -> String {
        self.until("\r\n\r\n").await
    }

    /// A response whose body has a `Content-Length`.
    pub async fn response(&mut self) -> String {
        let head = self.head().await;
        let length = field(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        head + &String::from_utf8(self.exactly(length).await).unwrap()
    }

    /// Everything until the end of the other side.
    pub async fn rest(&mut self) -> String {
        while self.more().await {}
        String::from_utf8_lossy(&std::mem::take(&mut self.unread)).into_owned()
    }
}

/// The value of a field of a head.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(n, _)| n.eq_ignore_ascii_case(name))
        .map(|(_, v)| v.trim())
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("took too long")
}

/// A server on the loopback that hands each connection to `serve`.
pub async fn upstream<F>(serve: impl Fn(Client) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    serving(TcpListener::bind("127.0.0.1:0").await.unwrap(), serve)
}

fn serving<F>(listener: TcpListener, serve: impl Fn(Client) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(Client::over(stream)));
        }
    });
    at
}

/// A server that answers each request with the head it got, and the content if there is a `Content-Length`.
pub async fn echo() -> SocketAddr {
    upstream(|mut client| async move {
        let head = client.head().await;
        let length = field(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        let content = String::from_utf8(client.exactly(length).await).unwrap();
        let body = head + &content;
        client.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
    })
    .await
}

/// A server that must not be reached.
pub async fn unreachable() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    unreachable_at(listener)
}

/// The same, where it must not be reached.
pub fn unreachable_at(listener: TcpListener) -> SocketAddr {
    serving(listener, |mut client| async move {
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nREACHED").await;
    })
}

#[derive(Default)]
struct Recorder(Mutex<Vec<Event>>);

impl Sink for Recorder {
    fn report(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }

    fn wants_connections(&self) -> bool {
        true
    }
}

struct Names {
    answers: BTreeMap<String, Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Resolve for Names {
    fn resolve(&self, name: &Name) -> Lookup {
        let mut asked = self.asked.lock().unwrap();
        let before = asked.iter().filter(|before| *before == name.as_str()).count();
        asked.push(name.as_str().to_owned());
        let answers = self.answers.get(name.as_str());
        let answer = answers.map(|answers| answers[before.min(answers.len() - 1)].clone());
        Box::pin(async move {
            match answer {
                // A look-up that never ends is written as an empty answer.
                Some(answer) if answer.is_empty() => std::future::pending().await,
                Some(answer) => Ok(answer),
                None => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
            }
        })
    }
}
