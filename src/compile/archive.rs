//! A compiled policy: one JSON file with the resolved rules for each system, where they come from, and the artefacts for review.
//!
//! What runs is bound and lowered from the rules in it, by the same code as from text; the artefacts beside them are for
//! reading. The texts it was made from are in it too, so that what is said at a run names their lines.

use super::artefact::GapText;
use crate::ir::{Policy, Rule};
use crate::source::Sources;
use crate::vocabulary::System;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Whether a file is a compiled policy, by the ending of its name.
pub fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "srtc")
}

/// The version of the format: one that is not this one is refused.
const FORMAT: u32 = 1;

/// Why a file is no compiled policy.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("it is no compiled policy")]
    Other,
    #[error("it is of format {found}, and this is the srt for format {FORMAT}: compile it again")]
    Version { found: u64 },
    #[error("it is damaged or was changed: its digest is not that of what is in it; compile it again")]
    Digest,
    #[error("it has no rules for {0}: compile it with `--target all`")]
    System(System),
    #[error("it cannot be read, though nothing is missing: {0}")]
    Body(#[from] serde_json::Error),
}

/// What is said of one system.
pub struct Part<'a> {
    pub policy: &'a Policy,
    /// Texts, by what they are.
    pub artefacts: Vec<(&'a str, String)>,
    pub gaps: Vec<GapText>,
}

#[derive(serde::Serialize)]
struct SourceText<'a> {
    name: &'a str,
    sha256: String,
    text: &'a str,
}

#[derive(serde::Deserialize)]
struct Body<'a> {
    sources: Vec<OwnSource>,
    #[serde(borrow)]
    policies: BTreeMap<System, &'a RawValue>,
}

#[derive(serde::Deserialize)]
struct OwnSource {
    name: String,
    text: String,
}

#[derive(serde::Deserialize)]
struct Stored {
    head: Policy,
    rules: Vec<Rule>,
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The text of a compiled policy: a rule, a source, a gap on each line. `sources` are those of every part.
///
/// # Errors
/// When something in it has no form in JSON, which no policy has.
pub fn write(parts: &[Part<'_>], sources: &Sources) -> Result<String, serde_json::Error> {
    fn list(items: impl Iterator<Item = Result<String, serde_json::Error>>) -> Result<String, serde_json::Error> {
        Ok(format!("[\n{}\n]", items.collect::<Result<Vec<_>, _>>()?.join(",\n")))
    }
    let texts = sources.all().iter().map(|source| {
        let text = source.text();
        serde_json::to_string(&SourceText { name: source.name(), sha256: hex(text.as_bytes()), text })
    });
    let mut body = format!("\"sources\":{},\n\"policies\":{{", list(texts)?);
    for (at, part) in parts.iter().enumerate() {
        let mut head = part.policy.clone();
        let rules = std::mem::take(&mut head.rules);
        let rules = list(rules.iter().map(serde_json::to_string))?;
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(
            body,
            "{comma}\n\"{}\":{{\"head\":{},\n\"rules\":{rules}}}",
            part.policy.system,
            serde_json::to_string(&head)?
        );
    }
    body.push_str("\n},\n\"gaps\":{");
    for (at, part) in parts.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let gaps = list(part.gaps.iter().map(serde_json::to_string))?;
        let _ = write!(body, "{comma}\n\"{}\":{gaps}", part.policy.system);
    }
    body.push_str("\n},\n\"artefacts\":{");
    let artefacts = parts.iter().flat_map(|part| &part.artefacts);
    for (at, (name, text)) in artefacts.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let lines = list(text.lines().map(serde_json::to_string))?;
        let _ = write!(body, "{comma}\n\"{name}\":{lines}");
    }
    body.push_str("\n}}\n");
    Ok(format!("{{\"srt_compiled_policy\":{FORMAT},\n\"sha256\":\"{}\",\n{body}", hex(body.as_bytes())))
}

/// The rules for one system, and the texts that they came from.
///
/// # Errors
/// See [`Unusable`].
pub fn read(text: &str, system: System) -> Result<(Policy, Sources), Unusable> {
    let rest = text.strip_prefix("{\"srt_compiled_policy\":").ok_or(Unusable::Other)?;
    let (version, rest) = rest.split_once(",\n").ok_or(Unusable::Digest)?;
    match version.parse::<u64>() {
        Ok(found) if found == u64::from(FORMAT) => {}
        Ok(found) => return Err(Unusable::Version { found }),
        Err(_) => return Err(Unusable::Other),
    }
    let rest = rest.strip_prefix("\"sha256\":\"").ok_or(Unusable::Digest)?;
    let (digest, body) = rest.split_once("\",\n").ok_or(Unusable::Digest)?;
    if digest != hex(body.as_bytes()) {
        return Err(Unusable::Digest);
    }
    let body = format!("{{{body}");
    let body: Body<'_> = serde_json::from_str(&body)?;
    let mut sources = Sources::default();
    for source in body.sources {
        sources.add(source.name, source.text);
    }
    let stored = body.policies.get(&system).ok_or(Unusable::System(system))?;
    let Stored { head, rules } = serde_json::from_str(stored.get())?;
    Ok((Policy { rules, ..head }, sources))
}
