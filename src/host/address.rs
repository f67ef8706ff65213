//! The machine's own addresses, from `/proc/net/fib_trie` and `/proc/net/if_inet6`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that the two tables show, each once.
pub(super) fn parse(fib_trie: &str, if_inet6: &str) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    let mut last = None;
    for line in fib_trie.lines() {
        let line = line.trim_start();
        if let Some(leaf) = line.strip_prefix("|-- ") {
            last = leaf.trim().parse::<Ipv4Addr>().ok();
        } else if line.starts_with("/32 host LOCAL") {
            addresses.extend(last.map(IpAddr::V4));
        }
    }
    for line in if_inet6.lines() {
        let digits = line.split_whitespace().next().filter(|digits| digits.len() == 32);
        let bits = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
        addresses.extend(bits.map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits))));
    }
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_local_addresses_alone() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.0\n        /24 link UNICAST\n     |-- 10.0.0.5\n        \
                    /32 host LOCAL\n     |-- 10.0.0.255\n        /32 link BROADCAST\nLocal:\n     |-- 10.0.0.5\n        \
                    /32 host LOCAL\n";
        let six =
            "fe800000000000000042acfffe110002 02 40 20 80     eth0\n00000000000000000000000000000001 01 80 10 80 lo\n";
        let shown: Vec<_> = parse(trie, six).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.5", "::1", "fe80::42:acff:fe11:2"]);
    }
}
