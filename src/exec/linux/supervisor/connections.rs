//! Connections for which the sandbox's network has no way, since the policy lets nothing be connected to: told, with the rule that
//! refuses them and the statement that would allow it. Decides nothing: there is no way.

use super::Decides;
use crate::event::{Event, Violation};
use crate::exec::linux::control::Unreached;
use crate::ir::Why;
use crate::proxy::refusal_of_address;

/// Makes one an event. What a rule allows is not told: it fails for want of redirection, which is announced.
pub fn unreached(decides: &Decides, unreached: &Unreached) {
    let Some(rules) = &decides.rules else { return };
    let violation = match unreached.to {
        Some(to) => refusal_of_address(rules, to.ip(), to.port()),
        // Nobody knows for which name.
        None => Some(Violation { why: Some(Why::Default), ..Violation::refused("resolve") }),
    };
    let Some(violation) = violation else { return };
    decides.events.report(Event::Violation(Violation {
        pid: Some(unreached.process),
        comm: Some(String::from_utf8_lossy(&unreached.name).into_owned()),
        ..violation
    }));
}
