//! Amounts: `4GiB`, `30m`, `512`, in the unit of their kind.

use super::ast::Limit;
use super::codes;
use super::fault::Fault;
use super::grammar::{Pair, Rule};
use super::reader::Reader;
use crate::vocabulary::LimitKind;

const BYTES: &[(&str, u64)] = &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
/// Of the wall clock, in milliseconds.
const WALL: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
/// Of processor time, in seconds.
const PROCESSOR: &[(&str, u64)] = &[("s", 1), ("m", 60), ("h", 3600)];

/// From a `limit` pair; `None` if it has a fault, which is said by then.
pub(super) fn read(reader: &mut Reader, pair: Pair<'_>) -> Option<Limit> {
    let mut kind = None;
    let mut value = None;
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::limit_kind => kind = Some(reader.spanned(&part, LimitKind::from_word(part.as_str())?)),
            Rule::quantity => match amount(part.as_str(), kind.as_ref()?.value) {
                Ok(amount) => value = Some(reader.spanned(&part, amount)),
                Err(fault) => {
                    let span = reader.span(&part);
                    reader.complain(fault, span);
                }
            },
            _ => {}
        }
    }
    Some(Limit { kind: kind?, value: value? })
}

fn amount(text: &str, kind: LimitKind) -> Result<u64, Fault> {
    let (units, example): (&[(&str, u64)], _) = match kind {
        LimitKind::Memory | LimitKind::Filesize => (BYTES, "`512KiB`, `64MiB` or `4GiB`"),
        LimitKind::Time => (WALL, "`500ms`, `30s`, `10m` or `2h`"),
        LimitKind::Cpu => (PROCESSOR, "`30s`, `10m` or `2h`"),
        LimitKind::Processes | LimitKind::Files => (&[("", 1)], "a whole number, as in `512`"),
    };
    let wrong = |message: String| Fault::new(&codes::LIMIT, message, format!("write {example}"));
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(unit_at);
    let Some((_, factor)) = units.iter().find(|(known, _)| *known == unit) else {
        return Err(wrong(match (unit, units) {
            ("", _) => format!("`{kind} {text}` has no unit"),
            (_, [("", _)]) => format!("`{kind} {text}` has a unit, and `{kind}` is a count"),
            _ => format!("`{unit}` is not a unit of `{kind}`"),
        }));
    };
    // Past what the system's own counters hold, no limit is what is meant.
    let value = digits
        .parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(*factor))
        .filter(|value| i64::try_from(*value).is_ok());
    match value {
        None => Err(wrong(format!("`{kind} {text}` is more than can be counted"))),
        Some(0) => Err(wrong(format!("`{kind} {text}` lets nothing run"))),
        Some(value) => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn amounts_come_in_the_unit_of_their_kind() {
        for (text, kind, value) in [
            ("4GiB", LimitKind::Memory, 4 << 30),
            ("1KiB", LimitKind::Filesize, 1024),
            ("512", LimitKind::Processes, 512),
            ("30m", LimitKind::Time, 1_800_000),
            ("500ms", LimitKind::Time, 500),
            ("2h", LimitKind::Cpu, 7200),
        ] {
            assert_eq!(amount(text, kind).unwrap(), value, "{kind} {text}");
        }
        for (text, kind, words) in [
            ("4", LimitKind::Memory, "no unit"),
            ("4GB", LimitKind::Memory, "not a unit"),
            ("512KiB", LimitKind::Files, "is a count"),
            ("0s", LimitKind::Time, "nothing run"),
            ("99999999999GiB", LimitKind::Memory, "can be counted"),
            ("5ms", LimitKind::Cpu, "not a unit"),
            ("1.5h", LimitKind::Time, "not a unit"),
        ] {
            let fault = amount(text, kind).unwrap_err();
            assert!(fault.message.contains(words), "{kind} {text}: {}", fault.message);
        }
    }
}
