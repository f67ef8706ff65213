//! A list of literal and `*.` names as one pattern: however long, asked by a search in a sorted table.
//!
//! Keys are labels from the right, a zero byte between two, and one at the end where every name below is meant: what lies
//! below a name is a run of keys. What another entry covers is left out, so the keys of one set are always the same ones,
//! and the entry that holds a name is the greatest key that is not greater than the name's. A name that stands in the list
//! beside a `*.` that covers it is no less named, though: those make a table of their own.

use super::{Host, Label, Name, Pattern};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Sorted entries of a list. Two are equal where they hold the same names, whatever their files.
#[derive(Clone)]
pub struct Table {
    keys: Box<[u8]>,
    /// Where each key ends.
    ends: Box<[u32]>,
    /// The line of the file that each entry is on, from one.
    lines: Box<[u32]>,
    file: Arc<str>,
    /// The entries without `*` that others cover.
    covered: Option<Arc<Table>>,
    repeated: Option<Repeated>,
}

/// That a list says something twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// The first line that says what an earlier one does.
    pub line: u32,
    pub earlier: u32,
    /// How many more lines do.
    pub more: usize,
}

impl Repeated {
    /// One more such line.
    pub fn add(known: &mut Option<Self>, line: u32, earlier: u32) {
        let first = Self { line, earlier, more: 0 };
        *known = Some(match known.take() {
            None => first,
            Some(known) if line < known.line => Self { more: known.more + 1, ..first },
            Some(known) => Self { more: known.more + 1, ..known },
        });
    }
}

/// Collects the entries of a [`Table`].
#[derive(Default)]
pub struct Builder {
    keys: Vec<u8>,
    /// Where each key starts, how long it is, and its line.
    entries: Vec<(u32, u32, u32)>,
}

impl Builder {
    /// Adds an entry: the name, or where `below` every name below it.
    ///
    /// # Errors
    /// When the entries take more than 4 GiB.
    pub fn push(&mut self, below: bool, name: &Name, line: u32) -> Result<(), &'static str> {
        let start = u32::try_from(self.keys.len()).map_err(|_| "is one entry too many")?;
        write_key(name, &mut self.keys);
        if below {
            self.keys.push(0);
        }
        let end = u32::try_from(self.keys.len()).map_err(|_| "is one entry too many")?;
        self.entries.push((start, end - start, line));
        Ok(())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The table; of two entries for the same names the first line stands.
    pub fn finish(self, file: Arc<str>) -> Table {
        let Builder { keys: raw, entries } = self;
        let mut sorted: Vec<Row> =
            entries.into_iter().map(|(start, length, line)| Row { head: 0, start, length, line }).collect();
        sort(&mut sorted, &raw, 0);
        let mut repeated = None;
        sorted.dedup_by(|b, a| {
            let same = a.key(&raw) == b.key(&raw);
            if same {
                Repeated::add(&mut repeated, b.line, a.line);
            }
            same
        });
        let mut covered = Vec::new();
        let mut last: Option<&[u8]> = None;
        sorted.retain(|row| {
            let own = row.key(&raw);
            if last.is_some_and(|last| covers(last, own)) {
                if !is_below(own) {
                    covered.push((own, row.line));
                }
                return false;
            }
            last = Some(own);
            true
        });
        let sorted = sorted.iter().map(|row| (row.key(&raw), row.line)).collect::<Vec<_>>();
        let covered = (!covered.is_empty()).then(|| Arc::new(Table::new(&covered, Arc::clone(&file), None)));
        Table { repeated, ..Table::new(&sorted, file, covered) }
    }
}

/// An entry while the list is sorted.
struct Row {
    /// The bytes of the key that are compared now, as a number that sorts alike.
    head: u128,
    start: u32,
    length: u32,
    line: u32,
}

impl Row {
    fn key<'a>(&self, keys: &'a [u8]) -> &'a [u8] {
        &keys[self.start as usize..(self.start + self.length) as usize]
    }
}

/// How many bytes of a key are compared at once.
const HEAD: usize = 16;

/// Sorts by key and line keys that are the same before `depth`. What is compared lies beside each other: the names of a list
/// begin alike, and to fetch each from where it stands took most of the time.
fn sort(rows: &mut [Row], keys: &[u8], depth: usize) {
    for row in &mut *rows {
        let mut head = [0; HEAD];
        let rest = row.key(keys).get(depth..).unwrap_or_default();
        let length = rest.len().min(HEAD);
        head[..length].copy_from_slice(&rest[..length]);
        row.head = u128::from_be_bytes(head);
    }
    let next = depth + HEAD;
    let goes_on = |row: &Row| row.length as usize > next;
    rows.sort_unstable_by_key(|row| (row.head, (row.length as usize).min(next + 1), row.line));
    for alike in rows.chunk_by_mut(|a, b| a.head == b.head && goes_on(a) && goes_on(b)) {
        if alike.len() > 1 {
            sort(alike, keys, next);
        }
    }
}

fn write_key(name: &Name, key: &mut Vec<u8>) {
    for (index, label) in name.labels().rev().enumerate() {
        if index > 0 {
            key.push(0);
        }
        key.extend_from_slice(label.as_bytes());
    }
}

/// The key of a name.
pub(super) fn key(name: &Name) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.as_str().len() + 1);
    write_key(name, &mut key);
    key
}

/// Whether a key stands for every name below.
pub(super) fn is_below(key: &[u8]) -> bool {
    key.last() == Some(&0)
}

/// Whether all that one key stands for is in what another does.
fn covers(whole: &[u8], own: &[u8]) -> bool {
    whole == own || is_below(whole) && own.starts_with(whole)
}

/// The labels of a key, the rightmost first.
pub(super) fn shape(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    key.split(|byte| *byte == 0).filter(|label| !label.is_empty())
}

/// The name that a key names, or names all below of.
pub(super) fn name(key: &[u8]) -> Name {
    let labels: Vec<_> = shape(key).map(String::from_utf8_lossy).collect();
    Name(labels.into_iter().rev().collect::<Vec<_>>().join("."))
}

/// One entry as a pattern of its own.
pub(super) fn pattern(key: &[u8]) -> Pattern {
    let mut labels: Vec<_> =
        shape(key).map(|label| Label::Literal(String::from_utf8_lossy(label).into_owned())).collect();
    labels.reverse();
    Pattern::Labels { below: is_below(key), labels }
}

impl Table {
    /// Of sorted keys, of which none covers another, and their lines.
    fn new(entries: &[(&[u8], u32)], file: Arc<str>, covered: Option<Arc<Self>>) -> Self {
        let mut keys = Vec::with_capacity(entries.iter().map(|(key, _)| key.len()).sum());
        let (mut ends, mut lines) = (Vec::with_capacity(entries.len()), Vec::with_capacity(entries.len()));
        let mut end = 0;
        for (key, line) in entries {
            keys.extend_from_slice(key);
            // The builder counted that they fit.
            end += u32::try_from(key.len()).unwrap_or(u32::MAX);
            ends.push(end);
            lines.push(*line);
        }
        Self { keys: keys.into(), ends: ends.into(), lines: lines.into(), file, covered, repeated: None }
    }

    /// All that the list says, as patterns of one set: the table, and one of the names that it has beside a `*.` that
    /// covers them, since who writes a name means it (see [`HostSet::names`](super::HostSet::names)).
    pub fn all(self: &Arc<Self>) -> Vec<Pattern> {
        [Some(self), self.covered.as_ref()]
            .into_iter()
            .flatten()
            .map(|table| Pattern::Table(Arc::clone(table)))
            .collect()
    }

    /// How many entries there are, less those that others cover.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether a line of the list says what an earlier one does.
    pub fn repeated(&self) -> Option<Repeated> {
        self.repeated
    }

    /// The file it was read from.
    pub fn file(&self) -> &str {
        &self.file
    }

    pub(super) fn key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.keys[start as usize..self.ends[index] as usize]
    }

    /// The entry that holds all that a key stands for.
    pub(super) fn covering(&self, key: &[u8]) -> Option<usize> {
        let index = self.first(|own| own > key).checked_sub(1)?;
        covers(self.key(index), key).then_some(index)
    }

    /// The entries below a prefix, which ends with a zero byte or is empty.
    pub(super) fn below(&self, prefix: &[u8]) -> Range<usize> {
        let start = self.first(|own| own >= prefix);
        start..self.first(|own| own > prefix && !own.starts_with(prefix))
    }

    /// The first entry from which on something is so.
    fn first(&self, holds: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if holds(self.key(middle)) { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Whether a name is in the list, or below a `*.` of it.
    pub fn contains(&self, name: &Name) -> bool {
        self.covering(&key(name)).is_some()
    }

    /// Whether an entry is this name itself.
    pub fn names(&self, name: &Name) -> bool {
        self.has(&key(name))
    }

    /// Whether a key is an entry of its own.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.covering(key).is_some_and(|index| self.key(index) == key)
    }

    /// The line of the entry that holds a name.
    pub fn line(&self, name: &Name) -> Option<u32> {
        self.covering(&key(name)).map(|index| self.lines[index])
    }

    /// The entries as patterns.
    pub fn patterns(&self) -> impl Iterator<Item = Pattern> + '_ {
        (0..self.len()).map(|index| pattern(self.key(index)))
    }

    /// The entries that are every name below one.
    pub fn wildcards(&self) -> impl Iterator<Item = Pattern> + '_ {
        (0..self.len()).map(|index| self.key(index)).filter(|key| is_below(key)).map(pattern)
    }

    /// The entries that are written in other letters than those of ASCII.
    pub fn international(&self) -> impl Iterator<Item = Pattern> + '_ {
        let foreign = |key: &&[u8]| shape(key).any(|label| label.starts_with(b"xn--"));
        (0..self.len()).map(|index| self.key(index)).filter(foreign).map(pattern)
    }

    /// The entry that holds a name, and of an exact one those of the same parent and as many bytes: what a search for short
    /// names meets next. `None` where no entry holds it.
    pub(super) fn alike(&self, host: &Name) -> Option<Vec<usize>> {
        let key = key(host);
        let at = self.covering(&key)?;
        let own = self.key(at);
        if is_below(own) {
            return Some(vec![at]);
        }
        let parent = own.iter().rposition(|byte| *byte == 0).map_or(0, |dot| dot + 1);
        let alike = self.below(&own[..parent]).filter(|index| {
            let other = self.key(*index);
            other.len() == own.len() && !other[parent..].contains(&0)
        });
        Some(alike.collect())
    }

    /// How long the shortest name of an entry is: its labels, then its bytes.
    pub(super) fn size(&self, index: usize) -> (usize, usize) {
        let key = self.key(index);
        let (labels, more) = (shape(key).count(), usize::from(is_below(key)));
        (labels + more, key.len() + more)
    }

    pub(super) fn literal(&self, index: usize) -> Option<Host> {
        let key = self.key(index);
        (!is_below(key)).then(|| Host::Name(name(key)))
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.ends == other.ends && self.keys == other.keys
    }
}

impl Eq for Table {}

impl PartialOrd for Table {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Table {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        if std::ptr::eq(self, other) {
            return std::cmp::Ordering::Equal;
        }
        self.ends.cmp(&other.ends).then_with(|| self.keys.cmp(&other.keys))
    }
}

impl Hash for Table {
    /// Of a part: equality looks at all of it.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ends.len().hash(state);
        self.keys[..self.keys.len().min(64)].hash(state);
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.patterns().take(8).map(|pattern| pattern.to_string())).finish()?;
        write!(f, " of {}", self.len())
    }
}

/// Entries and their lines, and the file.
type Plain = (String, Vec<(bool, String, u32)>);

impl serde::Serialize for Table {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entry = |index: usize| {
            let key = self.key(index);
            (is_below(key), name(key).0, self.lines[index])
        };
        let plain: Plain = (self.file.to_string(), (0..self.len()).map(entry).collect());
        plain.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Table {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (file, entries) = Plain::deserialize(deserializer)?;
        let mut builder = Builder::default();
        for (below, name, line) in entries {
            let name = Name::parse(&name).map_err(serde::de::Error::custom)?;
            builder.push(below, &name, line).map_err(serde::de::Error::custom)?;
        }
        Ok(builder.finish(file.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However long the keys are that begin alike.
        #[test]
        fn rows_are_sorted_as_their_keys_are(
            keys in prop::collection::vec((0..50_usize, prop::collection::vec(0..3_u8, 0..4)), 0..40)
        ) {
            let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
            let (mut all, mut rows) = (Vec::new(), Vec::new());
            for ((same, other), line) in keys.into_iter().zip(1_u32..) {
                let key = [vec![1; same], other].concat();
                rows.push(Row { head: 0, start: length(all.len()), length: length(key.len()), line });
                all.extend(key);
            }
            let mut plain: Vec<(Vec<u8>, u32)> = rows.iter().map(|row| (row.key(&all).to_vec(), row.line)).collect();
            plain.sort();
            sort(&mut rows, &all, 0);
            let sorted: Vec<(Vec<u8>, u32)> = rows.iter().map(|row| (row.key(&all).to_vec(), row.line)).collect();
            prop_assert_eq!(sorted, plain);
        }
    }
}
