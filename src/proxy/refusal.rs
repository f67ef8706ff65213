//! What the proxy answers itself: 403 with the rule that made it, and why something allowed could not be done.
//!
//! The command and whoever reads its output see this text, so it names no address that the policy keeps to itself: only
//! the one that was decided.

use super::Rules;
use super::authority::Malformed;
use crate::event::Violation;
use crate::ir::{RuleId, Verdict, Why};
use crate::sets::host::Name;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::fmt::Write;
use std::io;
use std::net::IpAddr;

/// RFC 9209.
const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// A connection that the policy does not allow.
#[derive(Debug)]
pub struct Refused {
    /// As it was asked for, canonical, an IPv6 address without brackets.
    pub host: String,
    /// The name that was decided, if there was one.
    pub name: Option<Name>,
    /// The address that was decided, if the name alone was not enough.
    pub address: Option<IpAddr>,
    pub port: u16,
    pub verdict: Verdict,
}

/// Why a request is answered by the proxy itself.
#[derive(Debug)]
pub enum Failure {
    /// 400: not a request to a proxy.
    Request(&'static str),
    /// 400
    Authority(Malformed),
    /// 403
    Refused(Box<Refused>),
    /// 403: another proxy would find the address of the name, this machine does not, and this rule is about addresses.
    Unseen { name: Name, port: u16, rule: RuleId },
    /// 501
    Coding,
    /// 502, or 504 where it took too long.
    Resolve(io::Error),
    /// 502, or 504 where it took too long.
    Dial(io::Error),
    /// 502: what was reached does not speak HTTP/1.1.
    Upstream(String),
}

impl Refused {
    /// The event of this refusal; `remedy` is the statement that would have allowed it.
    pub fn violation(&self, rules: &Rules, remedy: Option<String>) -> Violation {
        let decisive = self.verdict.decisive.first().copied();
        // Where an address is in the way, the rule that allowed the name is not what refused.
        let rule = decisive.filter(|_| self.verdict.why != Why::Special);
        let (rule, because) = rule
            .map(|id| {
                let (mut text, because) = rules.told(id);
                let listed = self.name.as_ref().and_then(|name| rules.policy.rule(id).subject.listed(name));
                if let Some((file, line)) = listed {
                    // Writing into a string does not fail.
                    let _ = write!(text.text, " ({file}:{line})");
                }
                (text, because)
            })
            .unzip();
        Violation {
            host: Some(self.host.clone()),
            port: Some(self.port),
            address: self.name.as_ref().and(self.address).map(|address| address.to_string()),
            why: Some(self.verdict.why),
            rule,
            because: because.flatten(),
            remedy,
            ..Violation::refused("connect")
        }
    }
}

/// The body of a 403.
pub fn text(violation: &Violation) -> String {
    let host = violation.host.as_deref().unwrap_or_default();
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let mut text = format!("srt: connecting to {bracketed}:{} is refused\n", violation.port.unwrap_or_default());
    // Writing into a string does not fail.
    if let (Some(rule), Some(detail)) = (&violation.rule, &violation.detail) {
        let _ = writeln!(text, "{}:{} says: {}\n{detail}", rule.file, rule.line, rule.text);
        return text;
    }
    let _ = match (&violation.rule, &violation.address, violation.why) {
        (_, Some(address), Some(Why::Special)) => writeln!(
            text,
            "the name is allowed, but it leads to {address}: a special or private address, which no rule allows"
        ),
        (Some(rule), _, _) => writeln!(text, "{}:{} says: {}", rule.file, rule.line, rule.text),
        (None, _, _) => writeln!(text, "no rule allows it"),
    };
    if let Some(because) = &violation.because {
        let _ = writeln!(text, "because: {because}");
    }
    let _ = match (&violation.remedy, violation.why) {
        (Some(statement), _) => writeln!(text, "to allow it, add: {statement}"),
        (None, Some(Why::Forbidden)) => writeln!(text, "nothing opens a `forbid`: to allow it, change that rule"),
        (None, _) => writeln!(text, "to allow it, change that rule: no more specific one can be written"),
    };
    text
}

impl Failure {
    /// The answer to the command; `violation` is that of a refusal.
    pub(super) fn response(&self, violation: Option<&Violation>) -> Response<Full<Bytes>> {
        let (status, error, said) = match self {
            Failure::Request(what) => (StatusCode::BAD_REQUEST, "http_request_error", format!("srt: {what}\n")),
            Failure::Authority(why) => {
                (StatusCode::BAD_REQUEST, "http_request_error", format!("srt: the target is no host and port: {why}\n"))
            }
            Failure::Refused(_) | Failure::Unseen { .. } => {
                (StatusCode::FORBIDDEN, "http_request_denied", violation.map(text).unwrap_or_default())
            }
            Failure::Coding => (
                StatusCode::NOT_IMPLEMENTED,
                "http_request_error",
                "srt: only the transfer coding `chunked` is known\n".into(),
            ),
            Failure::Resolve(error) => {
                let (status, kind) = slow(error, "dns_error", "dns_timeout");
                (status, kind, format!("srt: allowed, but the name can't be resolved: {error}\n"))
            }
            Failure::Dial(error) => {
                let (status, kind) = slow(error, "connection_refused", "connection_timeout");
                (status, kind, format!("srt: allowed, but the host can't be reached: {error}\n"))
            }
            Failure::Upstream(why) => (
                StatusCode::BAD_GATEWAY,
                "http_protocol_error",
                format!("srt: allowed, but the answer is no HTTP/1.1: {why}\n"),
            ),
        };
        let status_field = proxy_status(error, &said);
        let mut response = Response::new(Full::new(Bytes::from(said)));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        response.headers_mut().insert(PROXY_STATUS, status_field);
        response
    }
}

fn slow(error: &io::Error, failed: &'static str, late: &'static str) -> (StatusCode, &'static str) {
    match error.kind() {
        io::ErrorKind::TimedOut => (StatusCode::GATEWAY_TIMEOUT, late),
        _ => (StatusCode::BAD_GATEWAY, failed),
    }
}

/// For clients that show the head of a refused CONNECT alone. The details are a string of RFC 9651: visible ASCII.
fn proxy_status(error: &str, said: &str) -> HeaderValue {
    let mut value = format!("srt; error={error}; details=\"");
    for character in said.trim_end().chars() {
        match character {
            '\n' => value.push_str("; "),
            '"' | '\\' => value.extend(['\\', character]),
            ' '..='~' => value.push(character),
            _ => value.push('?'),
        }
    }
    value.push('"');
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("srt"))
}
