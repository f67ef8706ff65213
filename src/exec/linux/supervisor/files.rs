//! What the command tries with files though the policy refuses it: told, with the rule that refuses it and the statement that
//! would allow it. Decides nothing: mounts and pid 1 hold the policy.

use super::Decides;
use crate::event::{Event, Outcome, Violation, timestamp};
use crate::exec::linux::control::{Attempt, Word};
use crate::exec::linux::{kernel, wire};
use crate::ir::{Access, FileRules, Kept, Origin, Policy, Rule, Subject, Unset, Why, decide};
use crate::proxy::Rules;
use crate::sets::path::{AbsPath, PathSet, Pattern, target};
use crate::vocabulary::{Effect, Reach, Verb};
use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::time::SystemTime;

/// So many different attempts are remembered with what there is to say of them.
const MOST: usize = 1024;

/// What is worked out once, and only where something is tried.
#[derive(Default)]
pub struct Told {
    /// Every rule, those included that only say why something is denied.
    whole: Option<Kept>,
    known: HashMap<(Verb, Vec<u8>), Violation>,
}

/// The rules about files, as pid 1 takes them.
pub fn rules(decides: &Decides) -> Word {
    let file = || {
        let text = wire::write(&FileRules::from(&*decides.rules.as_ref()?.policy)).ok()?;
        let file = kernel::memory_file(c"rules", &text).ok()?;
        // Of a process that starts no other.
        kernel::close_on_exec(file.as_raw_fd()).ok().map(|()| file)
    };
    Word::Rules(file())
}

impl Told {
    /// Makes an attempt an event.
    pub fn tell(&mut self, decides: &Decides, attempt: Attempt) {
        let Some(rules) = &decides.rules else { return };
        let Attempt { verb, process, name, path, performed } = attempt;
        let key = (verb, path);
        if !self.known.contains_key(&key) {
            let Some(violation) = self.explain(rules, verb, &key.1) else { return };
            if self.known.len() >= MOST {
                self.known.clear();
            }
            self.known.insert(key.clone(), violation);
        }
        let Some(violation) = self.known.get(&key) else { return };
        decides.events.report(Event::Violation(Violation {
            timestamp: timestamp(SystemTime::now()),
            pid: Some(process),
            comm: Some(String::from_utf8_lossy(&name).into_owned()),
            outcome: if performed { Outcome::Refused } else { Outcome::Predicted },
            ..violation.clone()
        }));
    }

    /// `None`: it is allowed, or no rule can name it.
    fn explain(&mut self, rules: &Rules, verb: Verb, path: &[u8]) -> Option<Violation> {
        let path = AbsPath::parse(path).ok()?;
        let whole = self.whole.get_or_insert_with(|| Kept::new(rules.policy.with_idle()));
        let verdict = whole.decide(&access(verb, &path));
        if verdict.allowed {
            return None;
        }
        let told = verdict.decisive.first().map(|id| rules.told_of(whole.policy().rule(*id)));
        let (rule, because) = told.map_or((None, None), |(rule, because)| (Some(rule), because));
        Some(Violation {
            path: Some(path.to_string()),
            why: Some(verdict.why),
            rule,
            because,
            remedy: if verdict.why == Why::Forbidden { None } else { remedy(whole.policy(), verb, &path) },
            ..Violation::refused(&verb.to_string())
        })
    }
}

fn access(verb: Verb, path: &AbsPath) -> Access {
    match verb {
        Verb::Read => Access::Read(path.clone()),
        Verb::Exec => Access::Exec(path.clone()),
        _ => Access::Write(path.clone()),
    }
}

/// The statement that would allow it, if one is enough: proposed only after `decide` has agreed.
fn remedy(policy: &Policy, verb: Verb, path: &AbsPath) -> Option<String> {
    let mut amended = policy.clone();
    // What may be written and not read is no rule.
    let verbs = if verb == Verb::Read || decide(policy, &access(Verb::Read, path)).allowed {
        vec![verb]
    } else {
        vec![Verb::Read, verb]
    };
    amended.rules.extend(verbs.iter().map(|verb| Rule {
        effect: Effect::Allow,
        verb: *verb,
        subject: Subject::Paths(PathSet::from(Pattern::literal(path, Reach::Tree))),
        because: None,
        unset: Unset::Refuse,
        // Never shown: any place of the policy does.
        span: policy.default_read.span,
        origin: Origin::Given,
    }));
    let words: Vec<String> = verbs.iter().map(ToString::to_string).collect();
    let allows = |verb: &Verb| decide(&amended, &access(*verb, path)).allowed;
    let statement = || format!("allow {} {}", words.join(", "), target("", &path.to_string()));
    verbs.iter().all(allows).then(statement)
}
