//! Whether the command may connect to a unix socket of the host: decided by the policy alone, and told.

use super::Decides;
use crate::event::{Connection, Event, Violation};
use crate::exec::linux::control::Question;
use crate::ir::{Access, Node, NodeKind, Verdict, Why, decide};
use crate::proxy::Rules;
use crate::sets::path::{AbsPath, target};

/// Says in an event that it may not, or to whoever asks for that, that it may.
pub fn may_connect(decides: &Decides, question: &Question) -> bool {
    let Some(rules) = &decides.rules else { return false };
    let Ok(path) = AbsPath::parse(&question.path) else {
        // What no policy can name.
        let shown = String::from_utf8_lossy(&question.path).into_owned();
        decides.events.report(Event::Violation(violation(Some(shown), Some("no rule can name it".into()))));
        return false;
    };
    let verdict = decide(&rules.policy, &Access::Socket(path.clone()));
    let detail = if verdict.allowed {
        if !replaced(rules, &path, question) {
            if decides.events.wants_connections() {
                let rule = verdict.decisive.first().map(|id| rules.told(*id).0);
                let path = Some(path.to_string());
                decides.events.report(Event::Connection(Connection { path, rule, ..Connection::allowed("socket") }));
            }
            return true;
        }
        Some("the command may write there, and no rule named this socket when it was started".to_owned())
    } else {
        None
    };
    let mut refused = violation(Some(path.to_string()), detail);
    if !verdict.allowed {
        explain(&mut refused, rules, &path, &verdict);
    }
    decides.events.report(Event::Violation(refused));
    false
}

/// Told for the command, which has been refused already.
pub fn unseen(decides: &Decides, what: String) {
    decides.events.report(Event::Violation(violation(None, Some(what))));
}

/// Whether the command may have put another socket of the host where a rule allows one: it may write there, and this is not the
/// socket that was there when it was started.
fn replaced(rules: &Rules, path: &AbsPath, question: &Question) -> bool {
    let asked = Node { kind: NodeKind::Socket, device: question.device, inode: question.inode };
    decide(&rules.policy, &Access::Write(path.clone())).allowed && rules.policy.facts.nodes.get(path) != Some(&asked)
}

fn explain(refused: &mut Violation, rules: &Rules, path: &AbsPath, verdict: &Verdict) {
    refused.why = Some(verdict.why);
    if let Some(id) = verdict.decisive.first() {
        let (rule, because) = rules.told(*id);
        (refused.rule, refused.because) = (Some(rule), because);
    } else if verdict.why == Why::Default {
        refused.remedy = Some(format!("allow socket {}", target("", &path.to_string())));
    }
}

fn violation(path: Option<String>, detail: Option<String>) -> Violation {
    Violation { path, detail, ..Violation::refused("socket") }
}
