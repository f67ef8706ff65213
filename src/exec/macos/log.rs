//! Lines of `log stream --style ndjson` → what the kernel refused the command.
//!
//! The command chooses names of files, and processes their own names: whatever a line holds, it is read or passed over, and never
//! trusted to be more than a report.

use crate::vocabulary::Verb;
use serde::Deserialize;

/// So long a line is read; a path has 1024 bytes at the most (`PATH_MAX`), and JSON writes each as up to six.
pub const LONGEST: usize = 64 << 10;

/// Something that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub process: i32,
    /// What the process calls itself.
    pub name: String,
    pub verb: Verb,
    /// A path; of `mach` a service.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    event_message: String,
}

/// Reads a line; `None` for what is no refusal of the run with this tag, or about nothing that a rule can name.
pub fn refused(line: &[u8], tag: &str) -> Option<Refused> {
    let Line { event_message } = serde_json::from_slice(line).ok()?;
    // `Sandbox: cat(1234) deny(1) file-read-data /etc/x`, then the tag; a name may hold anything, so that the last line decides.
    let (report, last) = event_message.rsplit_once('\n')?;
    if last.trim() != tag {
        return None;
    }
    let report = report.strip_prefix("Sandbox: ")?;
    let (who, rest) = report.split_once(" deny(")?;
    let (_, rest) = rest.split_once(") ")?;
    let (operation, what) = rest.split_once(' ')?;
    let (name, process) = who.strip_suffix(')')?.rsplit_once('(')?;
    Some(Refused {
        process: process.parse().ok()?,
        name: name.to_owned(),
        verb: verb(operation, what)?,
        what: what.to_owned(),
    })
}

/// The verb by which a rule speaks of an operation of the system's.
fn verb(operation: &str, what: &str) -> Option<Verb> {
    let path = what.starts_with('/');
    match operation {
        "mach-lookup" => Some(Verb::Mach),
        "network-outbound" if path => Some(Verb::Socket),
        "process-exec" | "process-exec-interpreter" | "file-map-executable" if path => Some(Verb::Exec),
        _ if !path => None,
        _ if operation.starts_with("file-read") => Some(Verb::Read),
        _ if operation.starts_with("file-write") || operation == "file-link" => Some(Verb::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const TAG: &str = "srt-00000000000000ff";

    fn line(message: &str) -> String {
        let message = serde_json::Value::from(message);
        format!(
            r#"{{"timestamp":"2026-11-30 12:00:00.000000+0000","subsystem":"com.apple.sandbox.reporting","eventMessage":{message}}}"#
        )
    }

    #[test]
    fn refusals_of_the_run_are_read() {
        let read = |message: &str| refused(line(&format!("Sandbox: {message}\n{TAG}")).as_bytes(), TAG);
        let of = |verb, what: &str| Some(Refused { process: 42, name: "cat".to_owned(), verb, what: what.to_owned() });
        assert_eq!(read("cat(42) deny(1) file-read-data /Users/me/.ssh/id a"), of(Verb::Read, "/Users/me/.ssh/id a"));
        assert_eq!(read("cat(42) deny(1) file-write-create /x"), of(Verb::Write, "/x"));
        assert_eq!(read("cat(42) deny(1) process-exec /bin/x"), of(Verb::Exec, "/bin/x"));
        assert_eq!(
            read("cat(42) deny(1) network-outbound /var/run/docker.sock"),
            of(Verb::Socket, "/var/run/docker.sock")
        );
        assert_eq!(read("cat(42) deny(1) mach-lookup com.apple.trustd"), of(Verb::Mach, "com.apple.trustd"));
        // Of no rule's matter.
        assert_eq!(read("cat(42) deny(1) sysctl-read kern.x"), None);
        assert_eq!(read("cat(42) deny(1) network-outbound 10.0.0.1:80"), None);
        // A process may call itself anything, and a file may be called so that it looks like another line.
        assert_eq!(read("a) deny(1) b(7) deny(1) file-read-data /x").map(|refused| refused.what), None);
        assert_eq!(read("cat(42) deny(1) file-read-data /x\nSandbox: y").unwrap().what, "/x\nSandbox: y");
    }

    #[test]
    fn what_is_anybody_elses_is_passed_over() {
        let other = "Sandbox: cat(42) deny(1) file-read-data /x\nsrt-0000000000000001";
        assert_eq!(refused(line(other).as_bytes(), TAG), None);
        assert_eq!(refused(line("Sandbox: cat(42) deny(1) file-read-data /x").as_bytes(), TAG), None);
        for text in ["", "{}", "[]", "Filtering the log data using \"x\"", r#"{"eventMessage":1}"#] {
            assert_eq!(refused(text.as_bytes(), TAG), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), message in ".{0,80}") {
            let _ = refused(&bytes, TAG);
            let _ = refused(line(&format!("{message}\n{TAG}")).as_bytes(), TAG);
            let _ = refused(line(&format!("Sandbox: {message} deny({message}) {message}\n{TAG}")).as_bytes(), TAG);
        }
    }
}
