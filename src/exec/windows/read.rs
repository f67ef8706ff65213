//! The texts that were proved → what is set up. The filters' vocabulary is that of `fwpmtypes.h`; entries of access lists are in
//! the security descriptor definition language ([MS-DTYP] section 2.5.1).
//!
//! Nothing is left out: what is not known is an error, and nothing is run.

// Their names are the system's.
#![allow(clippy::struct_field_names)]

use serde::Deserialize;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Stands for the SID of the command's account.
const ACCOUNT: &str = "$ACCOUNT";

/// The version of both texts.
const VERSION: u32 = 1;

/// The filters, and what they belong to.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Filters {
    pub filters: Vec<Filter>,
    pub provider: Provider,
    pub sublayer: SubLayer,
    version: u32,
    #[serde(rename = "parameters")]
    _parameters: serde::de::IgnoredAny,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Provider {
    pub display_data: Display,
    pub provider_key: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubLayer {
    pub display_data: Display,
    pub provider_key: String,
    pub sub_layer_key: String,
    pub weight: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Display {
    pub name: String,
    #[serde(default)]
    pub description: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Filter {
    pub action: Action,
    pub display_data: Display,
    pub filter_condition: Vec<Condition>,
    pub filter_key: String,
    /// None is known.
    flags: [String; 0],
    pub layer_key: String,
    pub provider_key: String,
    pub sub_layer_key: String,
    pub weight: Weight,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    pub r#type: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
pub enum Weight {
    #[serde(rename = "FWP_UINT64")]
    Exact { uint64: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Condition {
    pub field_key: String,
    pub match_type: String,
    pub condition_value: Value,
}

/// A value of a condition; addresses of IPv4 are numbers to the system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
pub enum Value {
    #[serde(rename = "FWP_UINT8")]
    Byte { uint8: u8 },
    #[serde(rename = "FWP_UINT16")]
    Port { uint16: u16 },
    #[serde(rename = "FWP_UINT32")]
    V4 { uint32: Ipv4Addr },
    #[serde(rename = "FWP_BYTE_ARRAY16_TYPE")]
    V6 {
        #[serde(rename = "byteArray16")]
        address: Ipv6Addr,
    },
    #[serde(rename = "FWP_V4_ADDR_MASK")]
    V4Network {
        #[serde(rename = "v4AddrMask")]
        network: V4Network,
    },
    #[serde(rename = "FWP_V6_ADDR_MASK")]
    V6Network {
        #[serde(rename = "v6AddrMask")]
        network: V6Network,
    },
    #[serde(rename = "FWP_SECURITY_DESCRIPTOR_TYPE")]
    Account { sd: String },
    #[serde(rename = "FWP_RANGE_TYPE")]
    Range {
        #[serde(rename = "rangeValue")]
        range: Box<Range>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct V4Network {
    pub addr: Ipv4Addr,
    pub mask: Ipv4Addr,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct V6Network {
    pub addr: Ipv6Addr,
    pub prefix_length: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Range {
    pub value_low: Value,
    pub value_high: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    entries: Vec<Listed>,
    version: u32,
    #[serde(rename = "parameters")]
    _parameters: serde::de::IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    aces: Vec<ListedAce>,
    path: String,
    #[serde(rename = "comment")]
    _comment: serde::de::IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedAce {
    sddl: String,
    #[serde(rename = "rights")]
    _rights: serde::de::IgnoredAny,
}

/// What is put into the access list of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// From a drive, with `/` between names.
    pub path: String,
    /// In the order of the text.
    pub aces: Vec<Ace>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ace {
    pub deny: bool,
    /// `OI`, `CI`, `IO`, two letters each.
    pub flags: String,
    pub mask: u32,
    /// A SID, or two letters that stand for one.
    pub trustee: String,
}

impl Ace {
    pub fn sddl(&self) -> String {
        let kind = if self.deny { "D" } else { "A" };
        format!("({kind};{};{:#x};;;{})", self.flags, self.mask, self.trustee)
    }
}

/// Why a text is none of ours.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    #[error("it is no such text: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it is of version {0}")]
    Version(u32),
    #[error("`{0}` is no entry")]
    Ace(String),
    #[error("`{0}` is no path from a drive")]
    Path(String),
    #[error("the filter `{0}` is for every account")]
    EveryAccount(String),
}

/// The filters, for an account.
///
/// # Errors
/// What is in the text and not known; a filter that is not for the account alone.
pub fn filters(text: &str, sid: &str) -> Result<Filters, Unread> {
    let mut read: Filters = serde_json::from_str(text)?;
    if read.version != VERSION {
        return Err(Unread::Version(read.version));
    }
    for filter in &mut read.filters {
        let mut own = false;
        for condition in &mut filter.filter_condition {
            if let Value::Account { sd } = &mut condition.condition_value {
                own |= sd.contains(ACCOUNT);
                *sd = sd.replace(ACCOUNT, sid);
            }
        }
        if !own {
            return Err(Unread::EveryAccount(filter.filter_key.clone()));
        }
    }
    Ok(read)
}

/// The entries of access lists, for an account.
///
/// # Errors
/// What is in the text and not known; a path whose place is not known.
pub fn access_lists(text: &str, sid: &str) -> Result<Vec<Node>, Unread> {
    let read: Lists = serde_json::from_str(text)?;
    if read.version != VERSION {
        return Err(Unread::Version(read.version));
    }
    let node = |listed: Listed| {
        let place = listed.path.as_bytes();
        if !matches!(place, [drive, b':', b'/', ..] if drive.is_ascii_alphabetic()) {
            return Err(Unread::Path(listed.path));
        }
        let aces = listed.aces.into_iter().map(|listed| ace(&listed.sddl, sid).ok_or(Unread::Ace(listed.sddl)));
        Ok(Node { path: listed.path, aces: aces.collect::<Result<_, _>>()? })
    };
    read.entries.into_iter().map(node).collect()
}

/// `(A;OICI;0x1200a9;;;SID)`
fn ace(sddl: &str, sid: &str) -> Option<Ace> {
    let inner = sddl.strip_prefix('(')?.strip_suffix(')')?;
    let [kind, flags, mask, "", "", trustee] = inner.split(';').collect::<Vec<_>>()[..] else { return None };
    let deny = match kind {
        "A" => false,
        "D" => true,
        _ => return None,
    };
    if !matches!(flags, "" | "OICI" | "OICIIO") {
        return None;
    }
    let trustee = match trustee {
        ACCOUNT => sid,
        "OW" => "OW",
        _ => return None,
    };
    let mask = u32::from_str_radix(mask.strip_prefix("0x")?, 16).ok()?;
    Some(Ace { deny, flags: flags.to_owned(), mask, trustee: trustee.to_owned() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SID: &str = "S-1-5-21-1-2-3-1001";

    #[test]
    fn an_entry_is_read_whole_or_not_at_all() {
        let read = ace("(D;OICI;0x29;;;$ACCOUNT)", SID).unwrap();
        assert_eq!(read.sddl(), "(D;OICI;0x29;;;S-1-5-21-1-2-3-1001)");
        assert_eq!(ace("(A;;0x20000;;;OW)", SID).unwrap().sddl(), "(A;;0x20000;;;OW)");
        for wrong in [
            "",
            "(A;;FA;;;$ACCOUNT)",
            "(A;;0x1;;;WD)",
            "(AU;;0x1;;;OW)",
            "(A;ID;0x1;;;OW)",
            "(A;;0x1;;;OW)(A;;0x1;;;OW)",
        ] {
            assert_eq!(ace(wrong, SID), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_passed_over() {
        let filter = r#"{"action":{"type":"FWP_ACTION_BLOCK"},"displayData":{"name":"default"},"filterCondition":[CONDITION],
            "filterKey":"{k}","flags":[],"layerKey":"L","providerKey":"{p}","subLayerKey":"{s}",
            "weight":{"type":"FWP_UINT64","uint64":0}}"#;
        let account = r#"{"fieldKey":"FWPM_CONDITION_ALE_USER_ID","matchType":"FWP_MATCH_EQUAL",
            "conditionValue":{"type":"FWP_SECURITY_DESCRIPTOR_TYPE","sd":"O:LSD:(A;;CC;;;$ACCOUNT)"}}"#;
        let whole = |filter: &str| {
            format!(
                r#"{{"filters":[{filter}],"parameters":{{}},"provider":{{"displayData":{{"name":"srt"}},"providerKey":"{{p}}"}},
                "sublayer":{{"displayData":{{"name":"srt"}},"providerKey":"{{p}}","subLayerKey":"{{s}}","weight":65535}},"version":1}}"#
            )
        };
        let good = whole(&filter.replace("CONDITION", account));
        let read = filters(&good, SID).unwrap();
        let Value::Account { sd } = &read.filters[0].filter_condition[0].condition_value else { panic!() };
        assert_eq!(sd, "O:LSD:(A;;CC;;;S-1-5-21-1-2-3-1001)");
        assert!(matches!(filters(&whole(&filter.replace("CONDITION", "")), SID), Err(Unread::EveryAccount(_))));
        assert!(matches!(filters(&good.replace("\"version\":1", "\"version\":2"), SID), Err(Unread::Version(2))));
        for (from, to) in [
            ("\"flags\":[]", "\"flags\":[\"FWPM_FILTER_FLAG_CLEAR_ACTION_RIGHT\"]"),
            ("FWP_UINT64", "FWP_EMPTY"),
            ("FWP_SECURITY_DESCRIPTOR_TYPE", "FWP_SID"),
            ("\"layerKey\"", "\"other\":1,\"layerKey\""),
        ] {
            assert!(matches!(filters(&good.replace(from, to), SID), Err(Unread::Json(_))), "{to}");
        }
    }

    #[test]
    fn a_place_that_is_not_known_is_an_error() {
        let text = |path: &str| {
            format!(
                r#"{{"entries":[{{"aces":[{{"rights":[],"sddl":"(A;OICI;0x1200a9;;;$ACCOUNT)"}}],"comment":[],"path":"{path}"}}],
                "parameters":{{}},"version":1}}"#
            )
        };
        assert_eq!(access_lists(&text("C:/w"), SID).unwrap()[0].path, "C:/w");
        for path in ["$WORKSPACE", "/etc", "C:", "w"] {
            assert!(matches!(access_lists(&text(path), SID), Err(Unread::Path(_))), "{path}");
        }
    }
}
