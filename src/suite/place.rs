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
