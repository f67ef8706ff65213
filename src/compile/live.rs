//! What is asked of a run that goes on: a line of JSON that changes its network rules.
//!
//! Reads a request, whatever the bytes, and nothing else; what the rules in it mean is for the stages that read a policy.

use serde_json::Value;

/// The longest line that is read, in bytes.
pub const LONGEST: usize = 1 << 20;

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What the answer repeats: a string or a number.
    pub id: Option<Value>,
    pub change: Change,
}

/// What is to hold from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// These statements beside those that hold.
    Add(String),
    /// These statements alone.
    Rules(String),
    /// The `connect` rules of the policy in this file alone.
    Policy(String),
}

/// Why a line is no request; with its `id`, if that much could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct BadRequest {
    pub id: Option<Value>,
    pub why: String,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: Option<Value>,
    add: Option<String>,
    rules: Option<String>,
    policy: Option<String>,
}

impl Request {
    /// Reads one line, with or without its end.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(line: &[u8]) -> Result<Self, BadRequest> {
        let bad = |id: Option<Value>, why: String| BadRequest { id, why };
        if line.len() > LONGEST {
            return Err(bad(None, format!("the line has more than {LONGEST} bytes")));
        }
        let Line { id, add, rules, policy } = serde_json::from_slice(line).map_err(|error| {
            // Where it is an object, its id says whose it is.
            let id =
                serde_json::from_slice::<Value>(line).ok().and_then(|mut object| object.get_mut("id").map(Value::take));
            bad(id.filter(is_id), format!("the line is no request: {error}"))
        })?;
        if id.as_ref().is_some_and(|id| !is_id(id)) {
            return Err(bad(None, "`id` is neither a string nor a number".to_owned()));
        }
        let change = match (add, rules, policy) {
            (Some(text), None, None) => Change::Add(text),
            (None, Some(text), None) => Change::Rules(text),
            (None, None, Some(path)) => Change::Policy(path),
            _ => return Err(bad(id, "a request has one of `add`, `rules` and `policy`".to_owned())),
        };
        if let Change::Policy(path) = &change
            && (path.is_empty() || path.contains('\0'))
        {
            return Err(bad(id, "`policy` names no file".to_owned()));
        }
        Ok(Self { id, change })
    }
}

/// What an answer can repeat at little cost.
fn is_id(id: &Value) -> bool {
    match id {
        Value::Number(_) => true,
        Value::String(text) => text.len() <= 256,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_read() {
        let read = |line: &str| Request::read(line.as_bytes()).unwrap();
        let text = || "deny connect a.test".to_owned();
        assert_eq!(read(r#"{"add": "deny connect a.test"}"#), Request { id: None, change: Change::Add(text()) });
        let request = read("{\"id\": 7, \"rules\": \"deny connect a.test\"}\n");
        assert_eq!(request, Request { id: Some(json!(7)), change: Change::Rules(text()) });
        let request = read(r#"{"policy": "/x.policy", "id": "a"}"#);
        assert_eq!(request, Request { id: Some(json!("a")), change: Change::Policy("/x.policy".into()) });
    }

    #[test]
    fn what_is_no_request_is_said_with_its_id() {
        for (line, id, says) in [
            ("", None, "no request"),
            ("add", None, "no request"),
            ("[]", None, "no request"),
            (r#"{"id": 3}"#, Some(json!(3)), "one of"),
            (r#"{"id": 3, "add": "x", "rules": "y"}"#, Some(json!(3)), "one of"),
            (r#"{"id": 3, "ad": "x"}"#, Some(json!(3)), "unknown field `ad`"),
            (r#"{"id": 3, "add": 4}"#, Some(json!(3)), "no request"),
            (r#"{"id": [3], "add": "x"}"#, None, "`id`"),
            (r#"{"add": "x", "add": "y"}"#, None, "duplicate"),
            (r#"{"add": "x"} {"add": "y"}"#, None, "no request"),
            (r#"{"id": 3, "policy": ""}"#, Some(json!(3)), "names no file"),
        ] {
            let bad = Request::read(line.as_bytes()).unwrap_err();
            assert_eq!(bad.id, id, "{line}");
            assert!(bad.why.contains(says), "{line}: {}", bad.why);
        }
        assert!(Request::read(&vec![b'['; LONGEST]).is_err());
        assert!(Request::read(&vec![b' '; LONGEST + 1]).unwrap_err().why.contains("bytes"));
        assert!(Request::read(b"{\"add\": \"\xff\"}").is_err());
    }
}
