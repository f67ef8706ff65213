//! Addresses as people write them, and the one spelling that is read: RFC 4632 for CIDRs, RFC 4291 for IPv6, and for
//! IPv4 four decimal numbers without leading zeros. Anything else that some program would take for an address
//! (inet_aton(3)) is refused with the address it stands for.

use crate::syntax::codes;
use crate::syntax::fault::Fault;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a host's last label makes it an address, as the URL standard says ("ends in a number").
pub(super) fn ends_in_number(text: &str) -> bool {
    let last = text.strip_suffix('.').unwrap_or(text).rsplit('.').next().unwrap_or_default();
    !last.is_empty() && (last.bytes().all(|b| b.is_ascii_digit()) || number(last).is_some())
}

pub(super) fn v4(text: &str) -> Result<Ipv4Addr, Fault> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let message = format!("`{text}` is not how an address is written");
    let octal = text.split('.').any(|part| part.len() > 1 && part.starts_with('0') && !part.starts_with("0x"));
    Err(match (loose(text, 8), loose(text, 10)) {
        (Some(one), Some(other)) if octal && one != other => Fault::new(
            &codes::ADDRESS,
            message,
            format!("write `{other}` or `{one}`: programs differ on what a leading zero means"),
        ),
        (Some(address), _) | (None, Some(address)) => {
            Fault::new(&codes::ADDRESS, message, format!("write `{address}`, which some programs read it as"))
                .instead(text, address.to_string())
        }
        (None, None) => Fault::new(
            &codes::ADDRESS,
            format!("`{text}` ends in a number and is no address"),
            "write four numbers from 0 to 255, as in `10.0.0.7`, or a domain",
        ),
    })
}

/// inet_aton(3): one to four numbers, the last filling what is left.
fn loose(text: &str, zero_radix: u32) -> Option<Ipv4Addr> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let parts: Vec<u64> = text.split('.').map(|part| radix_number(part, zero_radix)).collect::<Option<_>>()?;
    let (last, front) = parts.split_last()?;
    if front.len() > 3 || front.iter().any(|part| *part > 255) {
        return None;
    }
    let room = 4 - front.len();
    if *last >= 1_u64 << (8 * room) {
        return None;
    }
    let mut all = *last;
    for (at, part) in front.iter().enumerate() {
        all |= part << (8 * (3 - at));
    }
    u32::try_from(all).ok().map(Ipv4Addr::from)
}

fn number(text: &str) -> Option<u64> {
    radix_number(text, 8)
}

fn radix_number(text: &str, zero_radix: u32) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return if hex.is_empty() { Some(0) } else { digits(hex, 16) };
    }
    if text.len() > 1 && text.starts_with('0') {
        return digits(&text[1..], zero_radix);
    }
    digits(text, 10)
}

fn digits(text: &str, radix: u32) -> Option<u64> {
    // `from_str_radix` takes a sign, which no part has.
    if text.bytes().all(|b| b.is_ascii_alphanumeric()) { u64::from_str_radix(text, radix).ok() } else { None }
}

pub(super) fn v6(text: &str) -> Result<Ipv6Addr, Fault> {
    text.parse().map_err(|_| {
        Fault::new(
            &codes::ADDRESS,
            format!("`[{text}]` is not an IPv6 address"),
            "write eight groups of hexadecimal digits, or `::` for a run of zeros, as in `[2001:db8::1]`",
        )
    })
}

/// The prefix length, checked against the address: bits past it are a mistake in one of the two.
pub(super) fn prefix(address: IpAddr, text: &str) -> Result<u8, Fault> {
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = match text.parse::<u8>() {
        Ok(length) if length <= longest && (text == "0" || !text.starts_with('0')) => length,
        _ => {
            return Err(Fault::new(
                &codes::ADDRESS,
                format!("`/{text}` is not a prefix length"),
                format!("write a number from 0 to {longest}"),
            ));
        }
    };
    let network = match address {
        IpAddr::V4(address) => {
            IpAddr::V4(Ipv4Addr::from(u32::from(address) & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)))
        }
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(
            u128::from(address) & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0),
        )),
    };
    if network != address {
        let network = if network.is_ipv6() { format!("[{network}]") } else { network.to_string() };
        let single = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
        return Err(Fault::new(
            &codes::ADDRESS,
            format!("`{single}/{length}` names one address and a whole network"),
            format!("write `{network}/{length}` for the network, or `{single}` for the address"),
        ));
    }
    Ok(length)
}
