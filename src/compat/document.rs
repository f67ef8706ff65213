//! Reading JSON so that each thing said about it has a place: comments and trailing commas are let pass, which editors write.

use super::{Gravity, Place, Said, Statement, Translation};
use crate::diagnostic::nearest;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use std::collections::HashSet;

/// A value and the key it stands under.
#[derive(Clone)]
pub struct At<'v, 't> {
    pub key: String,
    pub value: &'v Value<'t>,
}

/// A string and its place.
#[derive(Debug, Clone)]
pub struct Text {
    pub place: Place,
    pub text: String,
}

/// The text of a file, and what has been made of it so far.
pub struct Reader<'t> {
    text: &'t str,
    pub out: Translation,
}

/// What settings may be written with besides JSON itself.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The tree of a text.
///
/// # Errors
/// One sentence, with line and column.
pub fn parse(text: &str) -> Result<Value<'_>, Said> {
    let said = |place: Place, message: String| Said { place, gravity: Gravity::Refused, message };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options()).map_err(|error| {
        let at = place(text, String::new(), error.range().start);
        let kind = error.kind().to_string();
        let mut chars = kind.chars();
        let first = chars.next().map(|c| c.to_ascii_lowercase());
        said(at, format!("this is not JSON: {}", first.into_iter().chain(chars).collect::<String>()))
    })?;
    parsed.value.ok_or_else(|| said(place(text, String::new(), 0), "this file is empty".to_owned()))
}

/// Line and column of a byte.
pub fn place(text: &str, key: String, at: usize) -> Place {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Place { key, line: number(line), column: number(column) }
}

/// What is said of a key that is not among those that are known.
pub fn no_key(name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    let hint =
        near.map_or_else(|| format!("; the keys are {}", known.join(", ")), |near| format!("; did you mean `{near}`?"));
    format!("there is no key `{name}` here{hint}")
}

impl<'t> Reader<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, out: Translation::default() }
    }

    pub fn place(&self, key: &str, range: Range) -> Place {
        place(self.text, key.to_owned(), range.start)
    }

    pub fn say(&mut self, gravity: Gravity, place: Place, message: impl Into<String>) {
        self.out.said.push(Said { place, gravity, message: message.into() });
    }

    pub fn refuse(&mut self, at: &At<'_, '_>, message: impl Into<String>) {
        let place = self.place(&at.key, at.value.range());
        self.say(Gravity::Refused, place, message);
    }

    pub fn lose(&mut self, at: &At<'_, '_>, message: impl Into<String>) {
        let place = self.place(&at.key, at.value.range());
        self.say(Gravity::Lost, place, message);
    }

    pub fn state(&mut self, place: &Place, lines: Vec<String>) {
        self.out.statements.push(Statement { place: place.clone(), lines });
    }

    /// The members of an object, each under its whole key, with the place of that. What stands there twice is refused:
    /// programs differ in which one they take.
    fn placed<'v>(&mut self, at: &At<'v, 't>) -> Vec<(&'v str, At<'v, 't>, Place)> {
        let Some(object) = self.object(at) else { return Vec::new() };
        let mut seen = HashSet::new();
        let mut members = Vec::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let key = if at.key.is_empty() { name.to_owned() } else { format!("{}.{name}", at.key) };
            let place = self.place(&key, property.range);
            if seen.insert(name) {
                members.push((name, At { key, value: &property.value }, place));
            } else {
                self.say(Gravity::Refused, place, "this key stands here twice");
            }
        }
        members
    }

    /// The members of an object, whatever their keys are.
    pub fn properties<'v>(&mut self, at: &At<'v, 't>) -> Vec<(&'v str, At<'v, 't>)> {
        self.placed(at).into_iter().map(|(name, at, _)| (name, at)).collect()
    }

    /// The members of an object, each of which is among `known`; another one is refused.
    pub fn members<'v>(&mut self, at: &At<'v, 't>, known: &[&str]) -> Vec<(&'v str, At<'v, 't>)> {
        let mut members = Vec::new();
        for (name, at, place) in self.placed(at) {
            if known.contains(&name) {
                members.push((name, at));
            } else {
                self.say(Gravity::Refused, place, no_key(name, known));
            }
        }
        members
    }

    pub fn object<'v>(&mut self, at: &At<'v, 't>) -> Option<&'v Object<'t>> {
        if let Value::Object(object) = at.value {
            return Some(object);
        }
        self.refuse(at, "expected an object, `{ … }`");
        None
    }

    /// The strings of a list.
    pub fn strings(&mut self, at: &At<'_, 't>) -> Vec<Text> {
        let mut strings = Vec::new();
        for element in self.elements(at) {
            strings.extend(self.string(&element));
        }
        strings
    }

    pub fn elements<'v>(&mut self, at: &At<'v, 't>) -> Vec<At<'v, 't>> {
        let Value::Array(array) = at.value else {
            self.refuse(at, "expected a list, `[ … ]`");
            return Vec::new();
        };
        let numbered = array.elements.iter().enumerate();
        numbered.map(|(number, value)| At { key: format!("{}[{number}]", at.key), value }).collect()
    }

    pub fn string(&mut self, at: &At<'_, 't>) -> Option<Text> {
        if let Value::StringLit(text) = at.value {
            return Some(Text { place: self.place(&at.key, text.range), text: text.value.to_string() });
        }
        self.refuse(at, "expected a string");
        None
    }

    pub fn boolean(&mut self, at: &At<'_, 't>) -> Option<bool> {
        if let Value::BooleanLit(boolean) = at.value {
            return Some(boolean.value);
        }
        self.refuse(at, "expected `true` or `false`");
        None
    }
}
