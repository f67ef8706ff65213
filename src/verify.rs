//! What a back end emitted is read back and proved equal to the policy, but for the gaps that were declared.
//!
//! Each target has a reader of its own here, which shares no code with the emitter. What it finds, as sets, is compared with
//! the policy's by `analysis`, over all paths and names. Anything else, or what is not known, is a [`Fault`]: an error of this
//! program, with a witness, after which nothing is written. Nothing here reads files.

pub mod bubblewrap;
pub mod seatbelt;
pub mod seccomp;
pub mod wfp;

use crate::analysis::permission::{self, Prepared};
use crate::analysis::{Answer, Budget, Member};
use crate::backend::gap::{Direction, Gap, Operation};
use crate::ir::Subject;

/// Steps for one question; the largest shipped policy takes a thousandth.
const STEPS: u64 = 200_000_000;

/// What was emitted is not what was to be emitted: never the policy's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the artefact permits {operation} of `{witness}`, which the policy denies")]
    Looser { operation: Operation, witness: String },
    #[error("the artefact denies {operation} of `{witness}`, which the policy permits")]
    Stricter { operation: Operation, witness: String },
    #[error("the gap `{gap}` does not hold for {operation} of `{witness}`")]
    Gap { gap: &'static str, operation: Operation, witness: String },
    #[error("the gap `{gap}` is declared, and there is none")]
    NoGap { gap: &'static str },
    #[error("it is not known whether the artefact is the policy for {operation}")]
    Unknown { operation: Operation },
    #[error("the artefact cannot be read back: {0}")]
    Unread(String),
    #[error("the filter answers {call} with {found:#x}, and not {expected:#x}")]
    Filter { call: String, found: u32, expected: u32 },
    #[error("the artefact lacks {0}")]
    Lacks(String),
}

/// Proves that what an artefact permits of an operation is what the policy permits, but for the gaps; and that the gaps are
/// where they are said to be.
///
/// # Errors
/// The first difference, or what is not known.
pub fn equal(operation: Operation, policy: &Prepared<'_>, artefact: &Prepared<'_>, gaps: &[Gap]) -> Result<(), Fault> {
    within_gaps(operation, policy, artefact, gaps, None)?;
    for gap in gaps {
        for region in regions_of(gap, operation) {
            let budget = &mut Budget::new(STEPS);
            let refuted = match gap.kind.direction {
                Direction::Beside => Answer::None,
                way => permission::some_of(artefact, way == Direction::Stricter, region, budget),
            };
            if let Some(witness) = witness(operation, refuted)? {
                return Err(Fault::Gap { gap: gap.kind.code.name, operation, witness });
            }
        }
    }
    Ok(())
}

/// Proves that an artefact differs from the policy in the sets of the gaps alone, each in its direction; `nowhere` is what no
/// access is ever about.
///
/// # Errors
/// The first difference, or what is not known.
pub fn within_gaps(
    operation: Operation,
    policy: &Prepared<'_>,
    artefact: &Prepared<'_>,
    gaps: &[Gap],
    nowhere: Option<&Subject>,
) -> Result<(), Fault> {
    let regions = |direction| -> Vec<&Subject> {
        let gaps = gaps.iter().filter(|gap| gap.kind.direction == direction);
        gaps.flat_map(|gap| regions_of(gap, operation)).chain(nowhere).collect()
    };
    let (looser, stricter) = (regions(Direction::Looser), regions(Direction::Stricter));
    let more = permission::excess(artefact, Some(policy), None, &looser, &mut Budget::new(STEPS));
    if let Some(witness) = witness(operation, more)? {
        return Err(Fault::Looser { operation, witness });
    }
    let less = permission::excess(policy, Some(artefact), None, &stricter, &mut Budget::new(STEPS));
    if let Some(witness) = witness(operation, less)? {
        return Err(Fault::Stricter { operation, witness });
    }
    Ok(())
}

/// The witness of an answer, if there is one.
fn witness(operation: Operation, answer: Answer<Member>) -> Result<Option<String>, Fault> {
    match answer {
        Answer::None => Ok(None),
        Answer::Some(member) => Ok(Some(shown(&member))),
        Answer::Unknown => Err(Fault::Unknown { operation }),
    }
}

/// Proves that a gap is one: that something in its sets is decided otherwise than the policy, of which `policy` gives what it
/// permits of each operation. A gap without sets is about more than one access, and not looked at.
///
/// # Errors
/// When there is no such thing, or it is not known.
pub fn is_a_gap<'p>(gap: &'p Gap, policy: impl Fn(Operation) -> &'p Prepared<'p>) -> Result<(), Fault> {
    if gap.kind.direction == Direction::Beside || gap.region.is_empty() {
        return Ok(());
    }
    for (operation, region) in &gap.region {
        let stricter = gap.kind.direction == Direction::Stricter;
        let found = permission::some_of(policy(*operation), stricter, region, &mut Budget::new(STEPS));
        match found {
            Answer::Some(_) => return Ok(()),
            Answer::None => {}
            Answer::Unknown => return Err(Fault::Unknown { operation: *operation }),
        }
    }
    Err(Fault::NoGap { gap: gap.kind.code.name })
}

fn regions_of(gap: &Gap, operation: Operation) -> impl Iterator<Item = &Subject> {
    gap.region.iter().filter(move |(of, _)| *of == operation).map(|(_, region)| region)
}

fn shown(member: &Member) -> String {
    match member {
        Member::Path(path) => path.to_string(),
        Member::Host(host) => format!("{host:?}"),
        Member::Name(name) => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::analysis::permission::Permission;
    use crate::backend::gap::Kind;
    use crate::backend::{GRANT_WITHOUT_READ, PROXY_ONLY};
    use crate::diagnostic::Diagnostic;
    use crate::sets::path::{AbsPath, PathSet, Pattern};
    use crate::vocabulary::Reach;

    static STRICTER: Kind = Kind::stricter(&PROXY_ONLY);
    static LOOSER: Kind = Kind::looser(&GRANT_WITHOUT_READ);

    fn tree(path: &str) -> Subject {
        Subject::Paths(PathSet::from(Pattern::literal(&AbsPath::parse(path).unwrap(), Reach::Tree)))
    }

    fn permits(path: &str) -> Permission {
        Permission { grants: vec![tree(path)], ..Permission::none(crate::analysis::Kind::Paths) }
    }

    fn gap(kind: &'static Kind, path: &str) -> Gap {
        Gap { kind, said: Diagnostic::new(kind.code, ""), region: vec![(Operation::Read, tree(path))] }
    }

    #[test]
    fn a_difference_must_be_the_declared_one() {
        let operation = Operation::Read;
        let fault = |policy: &str, artefact: &str, gaps: &[Gap]| {
            equal(operation, &Prepared::new(&permits(policy)), &Prepared::new(&permits(artefact)), gaps)
                .map_err(|fault| fault.to_string())
        };
        assert_eq!(fault("/a", "/a", &[]), Ok(()));
        assert_eq!(
            fault("/a", "/a/b", &[]),
            Err("the artefact denies read of `/a`, which the policy permits".to_owned())
        );
        assert_eq!(
            fault("/a/b", "/a", &[]),
            Err("the artefact permits read of `/a`, which the policy denies".to_owned())
        );
        assert_eq!(fault("/a/b", "/a", &[gap(&LOOSER, "/a")]), Ok(()));
        assert!(fault("/a", "/a/b", &[gap(&LOOSER, "/a")]).is_err(), "the wrong way");
        let broad = fault("/a", "/a", &[gap(&STRICTER, "/")]);
        assert_eq!(broad, Err("the gap `proxy-only` does not hold for read of `/a`".to_owned()));
        let broad = fault("/a", "/a", &[gap(&LOOSER, "/")]);
        assert_eq!(broad, Err("the gap `grant-without-read` does not hold for read of `/`".to_owned()));
    }

    #[test]
    fn a_gap_that_is_none_is_a_fault() {
        let permission = permits("/a");
        let policy = Prepared::new(&permission);
        for (kind, path, is) in
            [(&STRICTER, "/a", true), (&STRICTER, "/b", false), (&LOOSER, "/a", false), (&LOOSER, "/", true)]
        {
            assert_eq!(is_a_gap(&gap(kind, path), |_| &policy).is_ok(), is, "{path}");
        }
    }
}
