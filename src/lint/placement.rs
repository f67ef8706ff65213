//! Proofs that hold where a variable lies on the nominal machine, and not at every place that an `assume` permits it.
//!
//! Places are tried, not proved of: see the page. Only the policy without a machine is looked at; on one, each proof is made
//! of the real places.

use super::proofs;
use super::undecided::undecided;
use crate::analysis::short;
use crate::diagnostic::codes;
use crate::diagnostic::{Diagnostic, Level};
use crate::ir::{Assume, Policy, Subject};
use crate::sets::path::{AbsPath, PathSet, Pattern, Start};
use crate::source::Span;
use crate::vocabulary::Reach;
use std::collections::BTreeSet;

codes! {
    /// # `placement`
    ///
    /// ## What it says
    /// An `expect` or `within` holds at one place that `assume $X inside …` permits a variable to lie, and does not at another
    /// one. That place is shown with the access.
    ///
    /// ## Why
    /// Without a machine a variable has no value, and a proof is made of the first place that is assumed. A deny is opened by
    /// an allow inside it: where the variable lies inside the deny, a rule that is about the variable may open it.
    ///
    /// What is tried: for each variable that an `assume … inside` names the places among the assumed ones that rules and
    /// expectations begin at, the folders above them, and a place below each; of several such variables also each with each,
    /// where one may lie inside another. That is no proof that none fails at others, and where there are too many it is said
    /// that nothing is known. A variable of which only `outside` is assumed, or nothing, is taken for a place apart from every
    /// other, and none is tried for it; nor for `$TMP`, which always lies apart. `srt run` and `srt check --host` prove everything again with the real
    /// values, and a proof that fails there runs nothing.
    ///
    /// ## Example
    /// ```listing
    /// d /srv/data
    /// d /srv/keys
    /// v env.DATA=/srv/data
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// assume $env.DATA inside /srv
    /// allow read $env.DATA
    /// deny read /srv/keys
    /// expect deny read /srv/keys
    /// ```
    ///
    /// ## Use instead
    /// ```listing
    /// d /srv/data
    /// d /srv/keys
    /// v env.DATA=/srv/data
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// assume $env.DATA inside /srv
    /// assume $env.DATA outside /srv/keys
    /// allow read $env.DATA
    /// deny read /srv/keys
    /// expect deny read /srv/keys
    /// ```
    pub PLACEMENT = "placement", Warning;
}

/// Places that are tried for a variable by itself; past them nothing is claimed.
const MOST: usize = 64;
/// Places of several variables that are tried together; past them nothing is claimed.
const TOGETHER: usize = 256;

/// One finding for each obligation that fails somewhere; of a policy whose variables are unbound.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    if policy.expects.is_empty() && policy.withins.is_empty() {
        return Vec::new();
    }
    // Where paths lie, no list of hosts depends on.
    let policy = &*short(policy);
    let mut named = BTreeSet::new();
    let assumes = policy.assumes.iter().filter(|assume| assume.inside && assume.variable != "TMP");
    let assumes: Vec<&Assume> =
        assumes.filter(|assume| uses(policy, &assume.variable) && named.insert(&assume.variable)).collect();
    let mut search = Search { policy, known: BTreeSet::new(), said: Vec::new() };
    for assume in &assumes {
        search.one(assume);
    }
    if assumes.len() > 1 {
        search.together(&assumes);
    }
    search.said
}

/// Where some variables lie.
type Placed<'p> = Vec<(&'p Assume, AbsPath)>;

struct Search<'p> {
    policy: &'p Policy,
    /// The obligations that have been seen to fail.
    known: BTreeSet<Span>,
    said: Vec<Diagnostic>,
}

impl<'p> Search<'p> {
    /// Each place of one variable, the others apart from everything.
    fn one(&mut self, assume: &'p Assume) {
        // What fails at the place that is taken without a machine is said as what it is.
        if let Some(first) = assumed_place(self.policy, assume) {
            let failed = proofs(&placed(self.policy, &assume.variable, &first));
            let spans: Vec<Span> = failed.iter().filter_map(|failed| self.obligation(failed)).collect();
            self.known.extend(spans);
        }
        let places = places(self.policy, assume);
        if places.len() > MOST {
            let what = format!("whether the proofs hold wherever `${}` may lie", assume.variable);
            self.said.push(undecided(&what, assume.span));
            return;
        }
        for place in places {
            self.prove(&placed(self.policy, &assume.variable, &place), &vec![(assume, place)]);
        }
    }

    /// Places of all variables at once: where one lies inside another, or in what a rule says of another.
    fn together(&mut self, assumes: &[&'p Assume]) {
        let mut left = TOGETHER;
        if self.all(self.policy, assumes, &mut Vec::new(), &mut left).is_none() {
            let names: Vec<String> = assumes.iter().map(|assume| format!("`${}`", assume.variable)).collect();
            let what = format!("whether the proofs hold wherever {} may lie together", names.join(" and "));
            // Each by itself was tried: what is left is no graver than what could be found.
            let mut diagnostic = undecided(&what, assumes[0].span);
            diagnostic.level = Level::Warning;
            self.said.push(diagnostic);
        }
    }

    /// `None` when there are more than are tried.
    fn all(&mut self, policy: &Policy, rest: &[&'p Assume], chosen: &mut Placed<'p>, left: &mut usize) -> Option<()> {
        if rest.is_empty() {
            *left = left.checked_sub(1)?;
            self.prove(policy, chosen);
        }
        // Any of them first: what is said of one may name another.
        for (index, assume) in rest.iter().enumerate() {
            let others: Vec<&Assume> = [&rest[..index], &rest[index + 1..]].concat();
            // What is assumed of it may name one that has its place by now.
            let here = policy.assumes.iter().find(|other| other.span == assume.span).unwrap_or(assume);
            for place in places(policy, here) {
                chosen.push((assume, place.clone()));
                self.all(&placed(policy, &assume.variable, &place), &others, chosen, left)?;
                chosen.pop();
            }
        }
        Some(())
    }

    /// Says which obligations fail at a placement that have not been seen to.
    fn prove(&mut self, placed: &Policy, chosen: &Placed<'p>) {
        for failed in proofs(placed) {
            let Some(span) = self.obligation(&failed).filter(|span| self.known.insert(*span)) else { continue };
            if failed.code == &super::UNDECIDED {
                self.said.push(failed);
                continue;
            }
            let names: Vec<String> = chosen.iter().map(|(assume, _)| format!("`${}`", assume.variable)).collect();
            let at: Vec<String> =
                chosen.iter().map(|(assume, place)| format!("`${}` is `{place}`", assume.variable)).collect();
            let (names, at) = (names.join(" and "), at.join(" and "));
            let verb = if chosen.len() == 1 { "is" } else { "are" };
            let message = format!("this does not hold wherever {names} {verb} assumed to lie");
            let mut diagnostic = Diagnostic::new(&PLACEMENT, message).label(span, format!("not where {at}"));
            for (assume, _) in chosen {
                diagnostic = diagnostic.label(assume.span, "which is assumed to be possible here");
            }
            let witness = failed.witness.as_deref().unwrap_or("everything");
            let (assume, place) = &chosen[0];
            let tree = tree(self.policy, &assume.variable, place);
            let help = format!("add `assume ${} outside {tree}`, or `forbid` what must not be", assume.variable);
            self.said.push(diagnostic.witness(format!("{witness}, where {at}")).help(help));
        }
    }

    /// The obligation that a finding is about.
    fn obligation(&self, failed: &Diagnostic) -> Option<Span> {
        let expects = self.policy.expects.iter().map(|expect| expect.span);
        let spans: Vec<Span> = expects.chain(self.policy.withins.iter().map(|within| within.span)).collect();
        failed.labels.iter().map(|label| label.span).find(|span| spans.contains(span))
    }
}

/// The patterns of all rules and expectations.
fn patterns(policy: &Policy) -> impl Iterator<Item = &Pattern> {
    let rules = policy.rules.iter().map(|rule| &rule.subject);
    let subjects = rules.chain(policy.expects.iter().map(|expect| &expect.subject));
    subjects
        .flat_map(|subject| match subject {
            Subject::Paths(set) => [&set.include[..], &set.exclude],
            _ => [&[][..], &[]],
        })
        .flatten()
}

fn uses(policy: &Policy, variable: &str) -> bool {
    patterns(policy).any(|pattern| starts_at(&pattern.start, variable))
}

fn starts_at(start: &Start, variable: &str) -> bool {
    matches!(start, Start::Variable(name) if **name == *variable)
}

/// The places to try, those with the fewest segments first.
fn places(policy: &Policy, assume: &Assume) -> Vec<AbsPath> {
    let mut places = Vec::new();
    for pattern in patterns(policy).filter(|pattern| !starts_at(&pattern.start, &assume.variable)) {
        let prefix = pattern.literal_prefix();
        places.extend(prefix.ancestors());
        places.push(prefix.join("x"));
        // What a glob is about, as deep as it reaches.
        if let Some(shared) = PathSet::from(pattern.clone()).overlap(&assume.paths) {
            places.push(shared.join("x"));
            places.push(shared);
        }
    }
    places.extend(assumed_place(policy, assume));
    places.retain(|place| !starts_at(&place.start, &assume.variable) && may_be(policy, &assume.variable, place));
    places.sort_by(|a, b| (a.segments.len(), a).cmp(&(b.segments.len(), b)));
    places.dedup();
    places
}

/// Whether the assumptions permit a variable to be there; as `bind` judges a value.
fn may_be(policy: &Policy, variable: &str, place: &AbsPath) -> bool {
    let tree = PathSet::from(Pattern::literal(place, Reach::Tree));
    let assumed =
        policy.assumes.iter().filter(|assume| assume.variable == variable).all(|assume| {
            if assume.inside { assume.paths.contains(place) } else { assume.paths.overlap(&tree).is_none() }
        });
    let root = place.segments.is_empty() && place.start == Start::Root;
    let home = AbsPath::variable("HOME");
    assumed
        && match variable {
            "HOME" => !root,
            "WORKSPACE" => {
                let dotted =
                    place.below(&home).and_then(|below| below.first()).is_some_and(|name| name.starts_with(b"."));
                !root && *place != home && !dotted
            }
            _ => true,
        }
}

/// The policy with one variable somewhere, and its ceilings with it.
fn placed(policy: &Policy, variable: &str, place: &AbsPath) -> Policy {
    let mut placed = policy.clone();
    put(&mut placed, variable, place);
    placed
}

fn put(policy: &mut Policy, variable: &str, place: &AbsPath) {
    let rules = policy.rules.iter_mut().map(|rule| &mut rule.subject);
    let subjects = rules.chain(policy.expects.iter_mut().map(|expect| &mut expect.subject));
    for subject in subjects {
        if let Subject::Paths(set) = subject {
            set.include.iter_mut().chain(&mut set.exclude).for_each(|pattern| pattern.bind(variable, place));
        }
    }
    for assume in &mut policy.assumes {
        assume.paths.include.iter_mut().for_each(|pattern| pattern.bind(variable, place));
    }
    for ceiling in policy.withins.iter_mut().filter_map(|within| within.ceiling.as_deref_mut()) {
        put(ceiling, variable, place);
    }
}

/// Where a variable is taken to lie without a machine: the first place that all that is assumed of it permits.
pub fn assumed_place(policy: &Policy, assume: &Assume) -> Option<AbsPath> {
    let first = assume.paths.shortest()?;
    let below = first.join(assume.variable.replace('.', "-"));
    // Its tree may hold what is assumed outside of it; a place below it seldom does.
    Some(if !may_be(policy, &assume.variable, &first) && may_be(policy, &assume.variable, &below) {
        below
    } else {
        first
    })
}

/// The smallest tree to be left out for a place: that of the rule or expectation which begins there or just above.
fn tree(policy: &Policy, variable: &str, place: &AbsPath) -> AbsPath {
    let others = patterns(policy).filter(|pattern| !starts_at(&pattern.start, variable));
    let prefixes = others.map(Pattern::literal_prefix).filter(|prefix| place.is_inside(prefix));
    prefixes.max_by_key(|prefix| prefix.segments.len()).unwrap_or_else(|| place.clone())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::lint::tests::symbolic;

    /// The witness of each finding.
    fn found(body: &str) -> Vec<String> {
        let policy = symbolic(&format!("srt 1\ndefault read deny\n{body}\n"));
        check(&policy).into_iter().map(|said| said.witness.unwrap_or_else(|| said.code.name.to_owned())).collect()
    }

    #[test]
    fn a_place_inside_a_deny_opens_it() {
        let body = "assume $env.D inside /srv\nallow read $env.D\ndeny read /srv/keys\nexpect deny read /srv/keys";
        assert_eq!(found(body), ["read /srv/keys/x, where `$env.D` is `/srv/keys/x`"]);
        assert_eq!(found(&format!("assume $env.D outside /srv/keys\n{body}")), [""; 0]);
        assert_eq!(found(&body.replace("deny read", "forbid read").replace("expect forbid", "expect deny")), [""; 0]);
        // Nothing is assumed: a place apart.
        assert_eq!(found(&body.replace("inside", "outside")), [""; 0]);
    }

    #[test]
    fn globs_other_variables_and_ceilings_are_places_too() {
        assert_eq!(
            found("assume $env.D inside /srv\nallow read $env.D\ndeny read /srv/*/k\nexpect deny read /srv/*/k"),
            ["read /srv/x/k, where `$env.D` is `/srv/x/k`"]
        );
        // At the home itself, where it is taken to lie first, the expectation fails by itself.
        assert_eq!(found("assume $env.D inside ~\nallow read, write $env.D\nexpect deny write ~/.config"), [""; 0]);
        // A home is not `/`, nor the workspace in a folder of settings.
        assert_eq!(
            found("assume $WORKSPACE inside ~\nallow read $WORKSPACE\ndeny read ~/.ssh\nexpect deny read ~/.ssh"),
            [""; 0]
        );
    }

    #[test]
    fn what_fails_at_the_first_place_is_said_by_the_expectation_itself() {
        assert_eq!(found("assume $env.D inside /srv\nallow read $env.D\nexpect deny read /srv"), [""; 0]);
    }

    #[test]
    fn one_variable_inside_another_is_a_place_too() {
        let body = "assume $env.D inside /srv\nassume $env.E inside /srv\n\
            allow read $env.D\ndeny read $env.E/keys\nexpect deny read $env.E/keys";
        let found = found(body);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("read /srv/") && found[0].contains("`$env.D` is `/srv"), "{found:?}");
        assert!(found[0].contains(" and "), "{found:?}");
    }

    #[test]
    fn too_many_places_are_not_known() {
        let rules: Vec<String> = (0..40).map(|index| format!("deny read /srv/k{index}")).collect();
        let rules = rules.join("\n");
        let body = format!("assume $env.D inside /srv\nallow read $env.D\n{rules}\nexpect deny read /srv/k1");
        assert_eq!(found(&body), ["undecided"]);
    }
}
