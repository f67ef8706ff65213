//! [`Plan`] → canonical JSON: the filters in the vocabulary of `netsh wfp show filters`, and the access lists.
//!
//! Canonical: members sorted by name, two blanks a level (of access lists a node a line), one end of line at the end; the same
//! plan is the same text, whatever machine wrote it. Keys follow from what a filter asks, so that a filter that stays keeps its key. The account
//! is a parameter, [`ACCOUNT`], since it exists only where it was made.

mod key;

use super::plan::{Ace, Action, Entry, Family, Filter, Layer, Plan, Reason, Scope, Trustee, rights};
use crate::source::Sources;
use crate::vocabulary::Effect;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Stands for the SID of the command's account.
pub const ACCOUNT: &str = "$ACCOUNT";

/// The provider and the sublayer that all filters belong to: made up once, for good.
const PROVIDER: &str = "{5d0c1a52-6f0e-8f3b-9a41-737274776670}";
const SUBLAYER: &str = "{5d0c1a52-6f0e-8f3b-9a42-737274776670}";

/// The filters of a plan.
pub fn filters(plan: &Plan, sources: &Sources) -> String {
    let filters: Vec<Value> = plan.filters.iter().map(|filter| one(filter, sources)).collect();
    text(&json!({
        "filters": filters,
        "parameters": { ACCOUNT: "the SID of the account that the command runs as" },
        "provider": { "displayData": { "name": "srt" }, "providerKey": PROVIDER },
        "sublayer": {
            "displayData": { "name": "srt" },
            "providerKey": PROVIDER,
            "subLayerKey": SUBLAYER,
            // Asked before every other one. A block is final whatever the rest say; a permit leaves them their say.
            "weight": u16::MAX,
        },
        "version": 1,
    }))
}

fn one(filter: &Filter, sources: &Sources) -> Value {
    let conditions = conditions(filter);
    let (layer, action) = (layer(filter.layer, filter.family), action(filter.action));
    let content = format!("{layer}\n{action}\n{}", Value::from(conditions.clone()));
    let (name, description) = words(filter, sources);
    json!({
        "action": { "type": action },
        "displayData": { "description": description, "name": name },
        "filterCondition": conditions,
        "filterKey": key::of(&content),
        "flags": [],
        "layerKey": layer,
        "providerKey": PROVIDER,
        "subLayerKey": SUBLAYER,
        "weight": { "type": "FWP_UINT64", "uint64": filter.weight },
    })
}

fn layer(layer: Layer, family: Family) -> String {
    let name = match layer {
        Layer::Connect => "AUTH_CONNECT",
        Layer::Listen => "AUTH_LISTEN",
        Layer::Accept => "AUTH_RECV_ACCEPT",
        Layer::Assign => "RESOURCE_ASSIGNMENT",
    };
    let family = if family == Family::V4 { "V4" } else { "V6" };
    format!("FWPM_LAYER_ALE_{name}_{family}")
}

fn action(action: Action) -> &'static str {
    match action {
        Action::Permit => "FWP_ACTION_PERMIT",
        Action::Block => "FWP_ACTION_BLOCK",
    }
}

/// Those of one field stand together, which makes them alternatives; the fields must all hold.
fn conditions(filter: &Filter) -> Vec<Value> {
    let side = if filter.layer == Layer::Connect { "REMOTE" } else { "LOCAL" };
    let mut conditions = vec![condition(
        "FWPM_CONDITION_ALE_USER_ID",
        "FWP_MATCH_EQUAL",
        json!({ "sd": format!("O:LSD:(A;;CC;;;{ACCOUNT})"), "type": "FWP_SECURITY_DESCRIPTOR_TYPE" }),
    )];
    for protocol in &filter.protocols {
        let value = json!({ "type": "FWP_UINT8", "uint8": protocol });
        conditions.push(condition("FWPM_CONDITION_IP_PROTOCOL", "FWP_MATCH_EQUAL", value));
    }
    for range in &filter.addresses {
        let (matching, value) = addresses(*range);
        conditions.push(condition(&format!("FWPM_CONDITION_IP_{side}_ADDRESS"), matching, value));
    }
    for &(low, high) in &filter.ports {
        let port = |port: u16| json!({ "type": "FWP_UINT16", "uint16": port });
        let (matching, value) = if low == high {
            ("FWP_MATCH_EQUAL", port(low))
        } else {
            ("FWP_MATCH_RANGE", range(&port(low), &port(high)))
        };
        conditions.push(condition(&format!("FWPM_CONDITION_IP_{side}_PORT"), matching, value));
    }
    conditions
}

fn condition(field: &str, matching: &str, value: Value) -> Value {
    let mut condition = json!({ "fieldKey": field, "matchType": matching });
    condition["conditionValue"] = value;
    condition
}

fn range(low: &Value, high: &Value) -> Value {
    json!({ "rangeValue": { "valueHigh": high, "valueLow": low }, "type": "FWP_RANGE_TYPE" })
}

/// A network where the range is one, else the range itself.
fn addresses((low, high): (IpAddr, IpAddr)) -> (&'static str, Value) {
    let one = |address: IpAddr| match address {
        IpAddr::V4(v4) => json!({ "type": "FWP_UINT32", "uint32": v4.to_string() }),
        IpAddr::V6(v6) => json!({ "byteArray16": v6.to_string(), "type": "FWP_BYTE_ARRAY16_TYPE" }),
    };
    if low == high {
        return ("FWP_MATCH_EQUAL", one(low));
    }
    match (low, high) {
        (IpAddr::V4(first), IpAddr::V4(last)) => {
            let free = first.to_bits() ^ last.to_bits();
            if free.wrapping_add(1).is_power_of_two() && first.to_bits() & free == 0 || free == u32::MAX {
                let mask = std::net::Ipv4Addr::from_bits(!free);
                let value = json!({ "addr": first.to_string(), "mask": mask.to_string() });
                return ("FWP_MATCH_EQUAL", json!({ "type": "FWP_V4_ADDR_MASK", "v4AddrMask": value }));
            }
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => {
            let free = first.to_bits() ^ last.to_bits();
            if free.wrapping_add(1).is_power_of_two() && first.to_bits() & free == 0 || free == u128::MAX {
                let value = json!({ "addr": first.to_string(), "prefixLength": free.leading_zeros() });
                return ("FWP_MATCH_EQUAL", json!({ "type": "FWP_V6_ADDR_MASK", "v6AddrMask": value }));
            }
        }
        _ => {}
    }
    ("FWP_MATCH_RANGE", range(&one(low), &one(high)))
}

/// What people read: a name, and the lines it comes from.
fn words(filter: &Filter, sources: &Sources) -> (String, String) {
    let plain = |name: &str, description: &str| (name.to_owned(), description.to_owned());
    match &filter.reason {
        Reason::Rules(rules) => {
            let lines: Vec<String> = rules.iter().map(|rule| line(*rule, sources)).collect();
            let name = rules.first().map(|(effect, verb, span)| {
                let part = if filter.layer == Layer::Accept { " (incoming)" } else { "" };
                format!("{effect} {verb} {}{part}", sources.slice(*span))
            });
            (name.unwrap_or_default(), lines.join("; "))
        }
        Reason::Default => plain("default", "what no rule permits is blocked"),
        Reason::Proxy => plain("proxy", "the way to the filtering proxy, which decides by name"),
        Reason::Binding => plain("binding", "a local port may be taken: listening on it is asked about by itself"),
        Reason::ProxyPorts => plain("proxy ports", "the ports of the proxy are not the command's to take"),
        Reason::OwnAddresses => plain("own addresses", "one of this machine's own addresses is denied"),
    }
}

fn line((effect, verb, span): (Effect, crate::vocabulary::Verb, crate::source::Span), sources: &Sources) -> String {
    format!("{}: {effect} {verb} {}", sources.location(span), sources.slice(span))
}

/// The access control entries of a plan.
pub fn access_lists(plan: &Plan, sources: &Sources) -> String {
    let entries: Vec<Value> = plan.files.iter().map(|entry| node(entry, sources)).collect();
    // One node a line: there may be hundreds.
    let entries: Vec<String> = entries.iter().map(|entry| format!("    {}", sorted(entry))).collect();
    let entries = if entries.is_empty() { String::new() } else { format!("\n{}\n  ", entries.join(",\n")) };
    let parameters = sorted(&json!({
        ACCOUNT: "the SID of the account that the command runs as",
        "paths": "a path may start at a variable, whose value is known when a command is started",
    }));
    format!("{{\n  \"entries\": [{entries}],\n  \"parameters\": {parameters},\n  \"version\": 1\n}}\n")
}

fn node(entry: &Entry, sources: &Sources) -> Value {
    let mut reasons: Vec<String> = entry.reasons.iter().map(|rule| line(*rule, sources)).collect();
    reasons.dedup();
    json!({
        "comment": reasons,
        "path": entry.path.to_string(),
        "aces": entry.aces.iter().map(|entry| ace(*entry)).collect::<Vec<_>>(),
    })
}

/// One entry, spelled as in the security descriptor definition language ([MS-DTYP] section 2.5.1), with the rights by name.
fn ace(ace: Ace) -> Value {
    let flags = match ace.scope {
        Scope::Node => "",
        Scope::Tree => "OICI",
        Scope::Below => "OICIIO",
    };
    let kind = if ace.deny { "D" } else { "A" };
    let trustee = match ace.trustee {
        Trustee::Account => ACCOUNT,
        Trustee::Owner => "OW",
    };
    let rights: Vec<&str> = RIGHTS.iter().filter(|(bit, _)| ace.mask & bit != 0).map(|(_, name)| *name).collect();
    json!({ "rights": rights, "sddl": format!("({kind};{flags};{:#x};;;{trustee})", ace.mask) })
}

/// The names of `winnt.h`.
const RIGHTS: &[(u32, &str)] = &[
    (rights::READ_DATA, "FILE_READ_DATA"),
    (rights::WRITE_DATA, "FILE_WRITE_DATA"),
    (rights::APPEND_DATA, "FILE_APPEND_DATA"),
    (rights::READ_EA, "FILE_READ_EA"),
    (rights::WRITE_EA, "FILE_WRITE_EA"),
    (rights::EXECUTE, "FILE_EXECUTE"),
    (rights::DELETE_CHILD, "FILE_DELETE_CHILD"),
    (rights::READ_ATTRIBUTES, "FILE_READ_ATTRIBUTES"),
    (rights::WRITE_ATTRIBUTES, "FILE_WRITE_ATTRIBUTES"),
    (rights::DELETE, "DELETE"),
    (rights::READ_CONTROL, "READ_CONTROL"),
    (rights::WRITE_DAC, "WRITE_DAC"),
    (rights::WRITE_OWNER, "WRITE_OWNER"),
    (rights::SYNCHRONIZE, "SYNCHRONIZE"),
];

fn text(value: &Value) -> String {
    let sorted = sorted(value);
    let mut text = serde_json::to_string_pretty(&sorted).unwrap_or_default();
    text.push('\n');
    text
}

/// Members by name, whatever order the library keeps.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, Value> = members.iter().map(|(name, value)| (name, sorted(value))).collect();
            Value::Object(members.into_iter().map(|(name, value)| (name.clone(), value)).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        _ => value.clone(),
    }
}
