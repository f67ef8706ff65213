//! What two sets of names answer. Patterns are searched for; of a table only what a pattern or another table may meet is
//! looked at, and lists of a million entries against each other cost a look-up for each.

use super::absent::{self, Relation};
use super::table::{self, Table};
use super::{Host, HostSet, Label, Name, Pattern, from_units};
use crate::sets::words::letters::Alphabet;
use crate::sets::words::{self, Shape};

/// A search for a member of what is required that nothing refuses.
struct Search<'a> {
    refused: Vec<&'a Pattern>,
    /// Whether any member will do; else one with the fewest labels, and of those a short one.
    any: bool,
    best: Option<((usize, usize), Host)>,
}

fn size(host: &Host) -> (usize, usize) {
    match host {
        Host::Name(name) => (name.labels().count(), name.as_str().len()),
        Host::Variable(name) => (1, name.len()),
    }
}

/// The labels from the right that a pattern fixes, as a key, and whether there is no more to it.
fn fixed(pattern: &Pattern) -> (Vec<u8>, bool) {
    let mut key = Vec::new();
    let Pattern::Labels { below, labels } = pattern else { return (key, false) };
    for label in labels.iter().rev() {
        let Label::Literal(label) = label else {
            return (key, false);
        };
        key.extend_from_slice(label.as_bytes());
        key.push(0);
    }
    if !below {
        key.pop();
    }
    (key, !below)
}

impl<'a> Search<'a> {
    fn new(refused: impl IntoIterator<Item = &'a Pattern>, any: bool) -> Self {
        Self { refused: refused.into_iter().collect(), any, best: None }
    }

    fn is_done(&self) -> bool {
        self.any && self.best.is_some()
    }

    fn beats(&self, size: (usize, usize)) -> bool {
        self.best.as_ref().is_none_or(|(best, _)| size < *best)
    }

    fn offer(&mut self, found: Option<Host>) {
        if let Some(found) = found
            && self.beats(size(&found))
        {
            self.best = Some((size(&found), found));
        }
    }

    /// Looks for what all of one or two patterns hold.
    fn look(&mut self, pattern: &'a Pattern, other: Option<&'a Pattern>) {
        if self.is_done() || self.refused.contains(&&Pattern::Any) {
            return;
        }
        match (pattern, other) {
            (Pattern::Table(own), Some(Pattern::Table(theirs))) => {
                let (few, many) = if own.len() <= theirs.len() { (own, theirs) } else { (theirs, own) };
                for index in 0..few.len() {
                    let key = few.key(index);
                    if many.covering(key).is_some() {
                        self.entry(few, index, None);
                    } else if table::is_below(key) {
                        many.below(key).for_each(|index| self.entry(many, index, None));
                    }
                }
            }
            (Pattern::Table(table), other) => self.table(table, other),
            (pattern, Some(Pattern::Table(table))) => self.table(table, Some(pattern)),
            (pattern, None) => self.plain(&[pattern]),
            (pattern, Some(other)) => self.plain(&[pattern, other]),
        }
    }

    /// Looks among the entries of a table, of those that a pattern may meet.
    fn table(&mut self, table: &'a Table, other: Option<&'a Pattern>) {
        let Some(other) = other else {
            return (0..table.len()).for_each(|index| self.entry(table, index, None));
        };
        if matches!(other, Pattern::Variable(_)) {
            return;
        }
        let (prefix, whole) = fixed(other);
        if table.covering(&prefix).is_some() {
            // All of the pattern is in the table.
            return self.plain(&[other]);
        }
        if !whole {
            // A prefix ends where a label does.
            table.below(&prefix).for_each(|index| self.entry(table, index, Some(other)));
        }
    }

    /// Looks at what one entry holds, and a pattern does too.
    fn entry(&mut self, table: &'a Table, index: usize, other: Option<&'a Pattern>) {
        if self.is_done() || !self.beats(table.size(index)) {
            return;
        }
        let key = table.key(index);
        if self.refused.iter().any(|refused| absent::to_pattern(key, refused) == Relation::Inside) {
            return;
        }
        if let Some(host) = table.literal(index) {
            let Host::Name(name) = &host else { return };
            let held = other.is_none_or(|other| other.contains(name));
            if held && !self.refused.iter().any(|refused| refused.contains(name)) {
                self.offer(Some(host));
            }
            return;
        }
        let own = table::pattern(key);
        let required: Vec<&Pattern> = [&own].into_iter().chain(other).collect();
        let found = plain(&required, &self.refused);
        self.offer(found);
    }

    fn plain(&mut self, required: &[&Pattern]) {
        let found = plain(required, &self.refused);
        self.offer(found);
    }
}

/// A member with the fewest labels of all that is required, of which nothing is a table, and of nothing refused.
///
/// Of a table that refuses, entries are taken in as they turn out to be in the way: each round those that look alike.
fn plain(required: &[&Pattern], refused: &[&Pattern]) -> Option<Host> {
    let tables: Vec<&Table> = refused
        .iter()
        .filter_map(|refused| if let Pattern::Table(table) = refused { Some(&**table) } else { None })
        .collect();
    let shapes: Vec<Shape<'_>> = required.iter().filter_map(|pattern| pattern.shape()).collect();
    let mut out: Vec<Shape<'_>> = refused.iter().filter_map(|pattern| pattern.shape()).collect();
    let keys = required.iter().map(|pattern| fixed(pattern).0);
    if !tables.is_empty() {
        for key in keys {
            if !key.is_empty() && tables.iter().any(|table| table.covering(&key).is_some()) {
                return None;
            }
        }
    }
    loop {
        let found = {
            let (required, out): (Vec<_>, Vec<_>) = (shapes.iter().collect(), out.iter().collect());
            words::find(&required, &out, Alphabet::Label).map(from_units)?
        };
        let Host::Name(name) = &found else { return Some(found) };
        let mut met = false;
        for table in &tables {
            for index in table.alike(name).unwrap_or_default() {
                met = true;
                out.push(super::entry_shape(table.key(index)));
            }
        }
        if !met {
            return Some(found);
        }
    }
}

impl HostSet {
    /// Whether a name is in the set.
    pub fn contains(&self, name: &Name) -> bool {
        self.include.iter().any(|pattern| pattern.contains(name))
            && !self.exclude.iter().any(|pattern| pattern.contains(name))
    }

    /// Whether a name is in the set by a pattern, or an entry of a list, that has no `*`.
    pub fn names(&self, name: &Name) -> bool {
        self.contains(name)
            && self.include.iter().any(|pattern| match pattern {
                Pattern::Table(table) => table.names(name),
                _ => pattern.is_literal() && pattern.contains(name),
            })
    }

    /// The file and the line of the entry by which a list has a name in the set.
    pub fn listed<'s>(&'s self, name: &Name) -> Option<(&'s str, u32)> {
        let line = |pattern: &'s Pattern| {
            if let Pattern::Table(table) = pattern { Some((table.file(), table.line(name)?)) } else { None }
        };
        self.include.iter().find_map(line)
    }

    /// Whether every name in this set is in `other`. Lengths of labels and names are not looked at.
    ///
    /// # Errors
    /// A name with the fewest labels that is not.
    pub fn is_subset(&self, other: &Self) -> Result<(), Host> {
        self.outside(other, false).map_or(Ok(()), Err)
    }

    fn outside(&self, other: &Self, any: bool) -> Option<Host> {
        let mut search = Search::new(self.exclude.iter().chain(&other.include), any);
        for pattern in &self.include {
            search.look(pattern, None);
        }
        search.refused = self.exclude.iter().collect();
        for pattern in &self.include {
            for gone in &other.exclude {
                search.look(pattern, Some(gone));
            }
        }
        search.best.map(|(_, host)| host)
    }

    /// Whether this set is inside `other` and not equal to it.
    pub fn is_strictly_inside(&self, other: &Self) -> bool {
        self.outside(other, true).is_none() && other.outside(self, true).is_some()
    }

    /// A shortest name in both sets.
    pub fn overlap(&self, other: &Self) -> Option<Host> {
        let mut search = Search::new(self.exclude.iter().chain(&other.exclude), false);
        for own in &self.include {
            for theirs in &other.include {
                search.look(own, Some(theirs));
            }
        }
        search.best.map(|(_, host)| host)
    }

    /// A shortest name in the set; `None` when there is none.
    pub fn shortest(&self) -> Option<Host> {
        self.is_subset(&Self::default()).err()
    }

    /// Whether no name is in the set.
    pub fn is_empty(&self) -> bool {
        self.outside(&Self::default(), true).is_none()
    }
}
