//! A filter as a formula over sets, and as a [`Permission`].

use crate::analysis::Kind;
use crate::analysis::permission::{Permission, Refused};
use crate::ir::Subject;
use crate::sets::name::{self, NameSet};
use crate::sets::path::{PathSet, Pattern};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a filter holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Formula {
    Path(Pattern),
    Name(name::Pattern),
    /// Each directory above the place of a variable: not a set of the language's, where no variable is above another.
    Above(String),
    /// Something else, as it is written.
    Other(String),
    // A profile names its filters, and speaks of them again and again.
    All(Arc<[Formula]>),
    Any(Arc<[Formula]>),
    Not(Arc<Formula>),
}

/// One set less another, as patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sets<P> {
    include: Vec<P>,
    exclude: Vec<P>,
}

/// One of these, or not one of those.
#[derive(Debug, Clone)]
struct Clause<P> {
    one_of: Vec<Sets<P>>,
    none_of: Option<Vec<P>>,
}

/// What is permitted where a formula holds.
#[derive(Debug)]
pub struct Read {
    pub permission: Permission,
    /// The variables above which nothing is permitted.
    pub above: BTreeSet<String>,
}

/// The permission of a formula over paths.
///
/// # Errors
/// A sentence for a formula that no permission says.
pub fn of_paths(formula: &Formula) -> Result<Read, String> {
    let leaf = |formula: &Formula| match formula {
        Formula::Path(pattern) => Some(pattern.clone()),
        _ => None,
    };
    read(formula, &leaf, Kind::Paths, |include, exclude| Subject::Paths(PathSet { include, exclude }))
}

/// The permission of a formula over names.
///
/// # Errors
/// A sentence for a formula that no permission says.
pub fn of_names(formula: &Formula) -> Result<Read, String> {
    let leaf = |formula: &Formula| match formula {
        Formula::Name(pattern) => Some(pattern.clone()),
        _ => None,
    };
    read(formula, &leaf, Kind::Names, |include, exclude| Subject::Names(NameSet { include, exclude }))
}

fn read<P: Clone>(
    formula: &Formula,
    leaf: &dyn Fn(&Formula) -> Option<P>,
    kind: Kind,
    subject: impl Fn(Vec<P>, Vec<P>) -> Subject,
) -> Result<Read, String> {
    let mut above = BTreeSet::new();
    let formula = without_above(formula, &mut above)?;
    let mut permission = Permission::none(kind);
    let mut granted = false;
    for clause in clauses(&formula, leaf)? {
        let one_of = clause.one_of.into_iter().map(|sets| subject(sets.include, sets.exclude));
        match clause.none_of {
            Some(refused) => {
                // Each by itself: the policy refuses most of them so, and few lie near what a question is about.
                let lifted_by: Arc<[_]> = one_of.collect();
                let apart = refused.into_iter().map(|pattern| subject(vec![pattern], Vec::new()));
                permission.refusals.extend(apart.map(|set| Refused { set, lifted_by: lifted_by.clone() }));
            }
            None if granted => return Err("two unions of which both must hold".to_owned()),
            None => {
                granted = true;
                permission.grants = one_of.collect();
            }
        }
    }
    permission.everything = !granted;
    Ok(Read { permission, above })
}

/// Takes `(require-not (require-any … above …))` apart: what is above a variable is noted, and left out. Anywhere else it is
/// refused.
fn without_above(formula: &Formula, above: &mut BTreeSet<String>) -> Result<Formula, String> {
    Ok(match formula {
        Formula::All(parts) => {
            Formula::All(parts.iter().map(|part| without_above(part, above)).collect::<Result<_, _>>()?)
        }
        Formula::Not(part) => match &**part {
            Formula::Any(parts) => {
                let mut rest = Vec::new();
                for part in &parts[..] {
                    match part {
                        Formula::Above(name) => {
                            above.insert(name.clone());
                        }
                        other => rest.push(other.clone()),
                    }
                }
                Formula::Not(Arc::new(Formula::Any(rest.into())))
            }
            _ => formula.clone(),
        },
        _ => formula.clone(),
    })
}

/// A formula that is one set, or the union of some, less others.
fn sets<P: Clone>(formula: &Formula, leaf: &dyn Fn(&Formula) -> Option<P>) -> Option<Sets<P>> {
    match formula {
        Formula::Any(parts) => {
            let mut include = Vec::new();
            for part in &parts[..] {
                let part = sets(part, leaf).filter(|part| part.exclude.is_empty())?;
                include.extend(part.include);
            }
            Some(Sets { include, exclude: Vec::new() })
        }
        Formula::All(parts) => {
            let (first, rest) = parts.split_first()?;
            let Sets { include, mut exclude } = sets(first, leaf)?;
            for part in rest {
                let Formula::Not(part) = part else { return None };
                exclude.extend(sets(part, leaf).filter(|part| part.exclude.is_empty())?.include);
            }
            Some(Sets { include, exclude })
        }
        leaf_of => Some(Sets { include: vec![leaf(leaf_of)?], exclude: Vec::new() }),
    }
}

/// A formula as clauses that must all hold.
fn clauses<P: Clone>(formula: &Formula, leaf: &dyn Fn(&Formula) -> Option<P>) -> Result<Vec<Clause<P>>, String> {
    let positive = |sets: Sets<P>| Clause { one_of: vec![sets], none_of: None };
    match formula {
        Formula::All(parts) => {
            let mut all = Vec::new();
            for part in &parts[..] {
                all.extend(clauses(part, leaf)?);
            }
            Ok(all)
        }
        Formula::Not(part) => {
            if let Some(sets) = sets(part, leaf).filter(|sets| sets.exclude.is_empty()) {
                return Ok(vec![Clause { one_of: Vec::new(), none_of: Some(sets.include) }]);
            }
            match &**part {
                Formula::Not(inner) => clauses(inner, leaf),
                Formula::Any(parts) => {
                    let parts = parts.iter().map(|part| Formula::Not(Arc::new(part.clone())));
                    clauses(&Formula::All(parts.collect()), leaf)
                }
                Formula::All(parts) => {
                    let parts = parts.iter().map(|part| Formula::Not(Arc::new(part.clone())));
                    clauses(&Formula::Any(parts.collect()), leaf)
                }
                other => Err(format!("a filter that is no set: {other:?}")),
            }
        }
        Formula::Any(parts) => {
            let mut product: Vec<Clause<P>> = vec![Clause { one_of: Vec::new(), none_of: None }];
            for part in &parts[..] {
                let part = match sets(part, leaf) {
                    Some(sets) => vec![positive(sets)],
                    None => clauses(part, leaf)?,
                };
                let mut next = Vec::new();
                for own in &product {
                    for other in &part {
                        let none_of = match (&own.none_of, &other.none_of) {
                            (Some(_), Some(_)) => return Err("a choice between two refusals".to_owned()),
                            (one, other) => one.clone().or_else(|| other.clone()),
                        };
                        next.push(Clause { one_of: [&own.one_of[..], &other.one_of].concat(), none_of });
                    }
                }
                product = next;
            }
            Ok(product)
        }
        other => match leaf(other) {
            Some(own) => Ok(vec![positive(Sets { include: vec![own], exclude: Vec::new() })]),
            None => Err(format!("a filter that is no set: {other:?}")),
        },
    }
}
