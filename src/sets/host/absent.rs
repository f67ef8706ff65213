//! Which entries of long lists stand for the others of their kind, and the names of those others.

use super::table::{self, Table};
use super::{Label, Name, Pattern, entry_shape};
use crate::sets::words::Shape;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What some lists are left without, when of the entries that nothing tells apart one is kept.
#[derive(Debug)]
pub struct Absent {
    tables: Vec<Arc<Table>>,
    kept: HashSet<Box<[u8]>>,
}

/// How an entry lies to a pattern or another list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Inside,
    Apart,
    /// Some of its names are in it, and some are not, or may be not.
    Partial,
}

pub(super) fn to_pattern(entry: &[u8], pattern: &Pattern) -> Relation {
    let (below, labels) = match pattern {
        Pattern::Any => return Relation::Inside,
        Pattern::Variable(_) => return Relation::Apart,
        Pattern::Table(table) => return to_table(entry, table),
        Pattern::Labels { below, labels } => (*below, labels),
    };
    let mut own = table::shape(entry);
    let mut theirs = labels.iter().rev();
    loop {
        match (own.next(), theirs.next()) {
            (Some(label), Some(Label::Literal(literal))) if label == literal.as_bytes() => {}
            (Some(label), Some(Label::Glob(glob))) if glob.matches(label) => {}
            (Some(_), Some(_)) => return Relation::Apart,
            (Some(_), None) => return if below { Relation::Inside } else { Relation::Apart },
            (None, Some(_)) => return if table::is_below(entry) { Relation::Partial } else { Relation::Apart },
            (None, None) => {
                return match (table::is_below(entry), below) {
                    (true, true) | (false, false) => Relation::Inside,
                    _ => Relation::Apart,
                };
            }
        }
    }
}

fn to_table(entry: &[u8], table: &Table) -> Relation {
    if table.covering(entry).is_some() {
        Relation::Inside
    } else if table::is_below(entry) && !table.below(entry).is_empty() {
        Relation::Partial
    } else {
        Relation::Apart
    }
}

/// Patterns by their two rightmost labels, so that an entry is compared with few.
struct Nearby<'a> {
    named: HashMap<(&'a [u8], &'a [u8]), Vec<u32>>,
    /// Those that have no two that are fixed.
    wide: Vec<u32>,
}

impl<'a> Nearby<'a> {
    fn new(patterns: &[&'a Pattern]) -> Self {
        let mut nearby = Self { named: HashMap::new(), wide: Vec::new() };
        for (pattern, number) in patterns.iter().zip(0..) {
            match pattern {
                Pattern::Labels { labels, .. } => match &labels[..] {
                    [.., Label::Literal(second), Label::Literal(first)] => {
                        nearby.named.entry((first.as_bytes(), second.as_bytes())).or_default().push(number);
                    }
                    _ => nearby.wide.push(number),
                },
                _ => nearby.wide.push(number),
            }
        }
        nearby
    }

    /// The patterns that an entry may have a name in common with.
    fn of<'s>(&'s self, entry: &'s [u8]) -> impl Iterator<Item = u32> + use<'s, 'a> {
        let mut labels = table::shape(entry);
        let (named, each) = match (labels.next(), labels.next()) {
            _ if self.named.is_empty() => (None, None),
            (Some(first), Some(second)) => (self.named.get(&(first, second)), None),
            // Of one label: each is looked at.
            _ => (None, Some(self.named.values().flatten())),
        };
        self.wide.iter().chain(named.into_iter().flatten()).chain(each.into_iter().flatten()).copied()
    }
}

/// What tells entries apart.
#[derive(Default, Clone, PartialEq, Eq, Hash)]
struct Class {
    /// Whether the entry has a `*`: one without opens private addresses.
    below: bool,
    /// For each list whether it holds the entry, and whether it names it.
    lists: Vec<(bool, bool)>,
    /// The patterns that hold it.
    patterns: Vec<u32>,
}

impl Class {
    /// Makes this the class of an entry of a list. `false` where something holds a part of its names: then it is of none.
    fn set(
        &mut self,
        (table, entry): (&Arc<Table>, &[u8]),
        tables: &[Arc<Table>],
        patterns: &[&Pattern],
        nearby: &Nearby<'_>,
    ) -> bool {
        self.below = table::is_below(entry);
        self.lists.clear();
        for other in tables {
            if Arc::ptr_eq(table, other) {
                self.lists.push((true, true));
                continue;
            }
            match to_table(entry, other) {
                Relation::Partial => return false,
                relation => self.lists.push((relation == Relation::Inside, other.has(entry))),
            }
        }
        self.patterns.clear();
        for number in nearby.of(entry) {
            match to_pattern(entry, patterns[number as usize]) {
                Relation::Inside => self.patterns.push(number),
                Relation::Apart => {}
                Relation::Partial => return false,
            }
        }
        self.patterns.sort_unstable();
        true
    }
}

impl Absent {
    /// Chooses for some lists and all patterns that they are asked about with.
    pub fn new(tables: Vec<Arc<Table>>, patterns: &[&Pattern]) -> Self {
        let nearby = Nearby::new(patterns);
        let mut kept: HashSet<Box<[u8]>> = HashSet::new();
        // The smallest entry of each class: its table, its index, its size.
        let mut smallest: Vec<(&Table, usize, (usize, usize))> = Vec::new();
        let mut known: HashMap<Class, usize> = HashMap::new();
        // Neighbours are mostly of one class: then nothing is looked up, and nothing allocated.
        let (mut class, mut last) = (Class::default(), (Class::default(), None));
        for table in &tables {
            for index in 0..table.len() {
                let entry = table.key(index);
                if !class.set((table, entry), &tables, patterns, &nearby) {
                    kept.insert(entry.into());
                    continue;
                }
                let size = table.size(index);
                let as_before = last.1.filter(|_| last.0 == class);
                let number = as_before.or_else(|| known.get(&class).copied()).unwrap_or_else(|| {
                    known.insert(class.clone(), smallest.len());
                    smallest.push((&**table, index, size));
                    smallest.len() - 1
                });
                if size < smallest[number].2 {
                    smallest[number] = (&**table, index, size);
                }
                std::mem::swap(&mut class, &mut last.0);
                last.1 = Some(number);
            }
        }
        kept.extend(smallest.into_iter().map(|(table, index, _)| table.key(index).into()));
        Self { tables, kept }
    }

    /// The entries of a list that are kept, as patterns.
    pub fn kept_of(&self, table: &Table) -> Vec<Pattern> {
        let mut kept: Vec<&[u8]> = self.kept.iter().map(|key| &key[..]).filter(|key| table.has(key)).collect();
        kept.sort_unstable();
        kept.into_iter().map(table::pattern).collect()
    }

    /// Where a name is of those that are left out: its entry, and those that look alike.
    pub(in crate::sets) fn around(&self, name: &Name) -> Vec<Shape<'_>> {
        let mut around = Vec::new();
        for table in &self.tables {
            let Some(at) = table.covering(&table::key(name)) else { continue };
            if self.kept.contains(table.key(at)) {
                continue;
            }
            let alike = table.alike(name).unwrap_or_default();
            let keys = alike.into_iter().map(|index| table.key(index)).filter(|key| !self.kept.contains(*key));
            around.extend(keys.map(entry_shape));
        }
        around
    }
}
