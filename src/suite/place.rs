//! Where a value of a YAML text stands. The reader gives places of errors alone, so the value is read to, and refused.

use super::Error;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// One step on the way to a value.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Line and column of the value at the end of the steps, from one.
pub fn of(text: &str, steps: &[Step<'_>]) -> Option<(u32, u32)> {
    let deserializer = serde_yaml::Deserializer::from_str(text);
    let error = Walk(steps).deserialize(deserializer).err()?;
    at(&error)
}

/// Line and column of each of the values of a list, which has so many, from one.
///
/// Each that is looked up costs a reading of the whole text, so that of a list that is written as usual, one dash below the
/// other, the first alone is.
pub fn of_each(text: &str, list: &str, count: usize) -> Vec<(u32, u32)> {
    let one = |number| of(text, &[Step::Key(list), Step::Index(number)]).unwrap_or((1, 1));
    if count == 0 {
        return Vec::new();
    }
    match dashes(text, one(0)).filter(|dashes| dashes.len() == count) {
        Some(dashes) => {
            let places = dashes.into_iter().enumerate();
            places.map(|(number, place)| place.unwrap_or_else(|| one(number))).collect()
        }
        None => (0..count).map(one).collect(),
    }
}

/// Where the values of a list stand whose first is at `first`, by its dashes; of a value that does not begin after its dash,
/// nothing. What is no entry may be among them, by its looks; an entry is never left out.
fn dashes(text: &str, first: (u32, u32)) -> Option<Vec<Option<(u32, u32)>>> {
    let (row, column) = (first.0 as usize - 1, first.1 as usize - 1);
    let line = text.lines().nth(row)?;
    let before: String = line.chars().take(column).collect();
    let blank = before.find('-')?;
    let dash = &before[..=blank];
    if !before[..blank].chars().all(|c| c == ' ') || !before[blank + 1..].chars().all(|c| c == ' ') {
        return None;
    }
    let entry = |(number, line): (usize, &str)| {
        let rest = line.strip_prefix(dash).filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))?;
        let value = rest.trim_start_matches(' ');
        let plain = value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '{');
        let place = (u32::try_from(number + 1).ok()?, u32::try_from(line.len() - value.len() + 1).ok()?);
        Some(plain.then_some(place))
    };
    Some(text.lines().enumerate().skip(row).filter_map(entry).collect())
}

/// What a reader's error says, and where.
pub fn error(text: &str, error: &serde_yaml::Error) -> Error {
    let whole = error.to_string();
    // The place is told apart from the words; ours are without a capital.
    let message = whole.split(" at line ").next().unwrap_or(&whole);
    let message = message.replace("unknown field", "there is no key");
    let place = at(error).or_else(|| text.trim().is_empty().then_some((1, 1)));
    Error { message, place }
}

fn at(error: &serde_yaml::Error) -> Option<(u32, u32)> {
    let location = error.location()?;
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Some((number(location.line()), number(location.column())))
}

struct Walk<'a>(&'a [Step<'a>]);

const FOUND: &str = "found";

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0.first() {
            // Whatever it is, it is looked at, which is where the error points.
            None => deserializer.deserialize_any(Here),
            Some(Step::Key(_)) => deserializer.deserialize_map(self),
            Some(Step::Index(_)) => deserializer.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if matches!(self.0.first(), Some(Step::Key(wanted)) if *wanted == key) {
                map.next_value_seed(Walk(&self.0[1..]))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some(Step::Index(wanted)) = self.0.first() else { return Ok(()) };
        for _ in 0..*wanted {
            if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        seq.next_element_seed(Walk(&self.0[1..])).map(|_| ())
    }
}

struct Here;

impl<'de> Visitor<'de> for Here {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FOUND)
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom(FOUND))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// However a list is written, each place is that of the reader; as usual or not.
    #[test]
    fn each_value_is_found_where_the_reader_has_it() {
        for (list, count) in [
            ("cases:\n  - allow: read /x\n  - { deny: read /y }\n\n  # - no\n  -   name: z\n      # x\n", 3),
            ("cases:\n- a: |\n    - no\n    - no\n- b: x\nafter:\n  - no\n", 2),
            (
                "after:\n  - no\ncases:\n  -\n    a: b\n  - &x\n    a: b\n  - *x\n  - !t { a: b }\n  - # c\n    a: b\n",
                5,
            ),
            ("cases: [{ a: b }, { c: d },\n  { e: f }]\n", 3),
            ("cases:\n  - a: \"x\n  - y\"\n  - b: c\n", 2),
            ("cases:\n  - - - a\n    - b\n  - c: d\n", 2),
            ("cases:\n  - a: é\n  - é: b\r\n  - b: c\r\nafter:\n- a: b\n- a: b\n", 3),
            ("cases:\n- a: b\n- a: c\nafter:\n- no: b\n", 2),
            ("cases: []\n", 0),
        ] {
            let expected: Vec<_> =
                (0..count).map(|n| of(list, &[Step::Key("cases"), Step::Index(n)]).unwrap()).collect();
            assert_eq!(of_each(list, "cases", count), expected, "{list}");
        }
    }

    /// A text is read a few times, and not once for each of its values.
    #[test]
    fn a_long_list_is_read_at_once() {
        let list =
            "cases:\n".to_owned() + &"  - { allow: read /srv/some/where, reason: it is asked for }\n".repeat(20_000);
        let dashes = dashes(&list, (2, 5)).unwrap();
        assert!(dashes.iter().all(Option::is_some) && dashes.len() == 20_000);
        assert_eq!(of_each(&list, "cases", 20_000).last(), Some(&(20_001, 5)));
    }
}
