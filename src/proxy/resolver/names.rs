//! Which address stands for which name: given on asking, from 198.18.0.0/15 (RFC 2544, for tests of networks), and never
//! taken back while the run lasts.

use crate::event::lock;
use crate::sets::host::Name;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// 198.18.0.16: those below are for what stands inside itself.
const FIRST: u32 = 0xc612_0010;
/// How many names get an address; there are 131 056.
const MOST: usize = 100_000;
/// How many names that nobody has asked for yet are looked up in a second.
const RATE: usize = 500;
const SECOND: Duration = Duration::from_secs(1);
/// How long what was found is taken for what there is: from the question to the connection.
const FRESH: Duration = Duration::from_secs(5);

/// The names of one run.
#[derive(Default)]
pub struct Names {
    given: Mutex<Given>,
}

#[derive(Default)]
struct Given {
    numbers: HashMap<Name, u32>,
    entries: Vec<Entry>,
    /// When the second began in which names are counted, and how many there were.
    second: Option<(Instant, usize)>,
    told: bool,
}

struct Entry {
    name: Name,
    /// Where it leads, and when that was found.
    addresses: Vec<IpAddr>,
    found: Instant,
}

/// Why a name gets no address.
#[derive(Debug, PartialEq, Eq)]
pub enum Flood {
    /// The first time in this run: what there is too much of.
    First(&'static str),
    Again,
}

impl Names {
    /// The name behind an address, and where it leads, where that was found just now; else nothing.
    pub fn at(&self, address: IpAddr) -> Option<(Name, Vec<IpAddr>)> {
        let IpAddr::V4(address) = address else { return None };
        let number = u32::from(address).checked_sub(FIRST)?;
        let given = self.lock();
        let entry = given.entries.get(usize::try_from(number).ok()?)?;
        let addresses = if entry.found.elapsed() < FRESH { entry.addresses.clone() } else { Vec::new() };
        Some((entry.name.clone(), addresses))
    }

    /// The address of a name that was looked up just now.
    pub fn fresh(&self, name: &Name) -> Option<Ipv4Addr> {
        let given = self.lock();
        let number = *given.numbers.get(name)?;
        let entry = given.entries.get(usize::try_from(number).ok()?)?;
        (entry.found.elapsed() < FRESH).then(|| address(number))
    }

    /// Whether this name may be looked up.
    ///
    /// # Errors
    /// Where there are too many new ones.
    pub fn admit(&self, name: &Name) -> Result<(), Flood> {
        self.admit_at(name, Instant::now())
    }

    fn admit_at(&self, name: &Name, now: Instant) -> Result<(), Flood> {
        let mut given = self.lock();
        if given.numbers.contains_key(name) {
            return Ok(());
        }
        let (begin, count) = given.second.filter(|(begin, _)| now - *begin < SECOND).unwrap_or((now, 0));
        given.second = Some((begin, count + 1));
        let what = if given.entries.len() >= MOST {
            "the command has asked for 100000 names"
        } else if count >= RATE {
            "the command asks for more than 500 new names a second"
        } else {
            return Ok(());
        };
        Err(if std::mem::replace(&mut given.told, true) { Flood::Again } else { Flood::First(what) })
    }

    /// The address of a name that leads there; `None` where there is none left.
    pub fn give(&self, name: &Name, addresses: Vec<IpAddr>) -> Option<Ipv4Addr> {
        let mut given = self.lock();
        let found = Instant::now();
        if let Some(number) = given.numbers.get(name).copied() {
            let entry = given.entries.get_mut(usize::try_from(number).ok()?)?;
            (entry.addresses, entry.found) = (addresses, found);
            return Some(address(number));
        }
        let number = given.entries.len();
        if number >= MOST {
            return None;
        }
        let number = u32::try_from(number).ok()?;
        given.entries.push(Entry { name: name.clone(), addresses, found });
        given.numbers.insert(name.clone(), number);
        Some(address(number))
    }

    /// In spite of a panic elsewhere: what is behind the lock is whole between two calls.
    fn lock(&self) -> MutexGuard<'_, Given> {
        lock(&self.given)
    }
}

fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST + number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    #[test]
    fn a_name_keeps_its_address_and_an_address_its_name() {
        let names = Names::default();
        let leads: Vec<IpAddr> = vec!["192.0.2.7".parse().unwrap()];
        let first = names.give(&name("a.test"), leads.clone()).unwrap();
        let second = names.give(&name("b.test"), vec![]).unwrap();
        assert_eq!((first, second), ("198.18.0.16".parse().unwrap(), "198.18.0.17".parse().unwrap()));
        assert_eq!(names.give(&name("a.test"), leads.clone()), Some(first));
        assert_eq!(names.at(first.into()), Some((name("a.test"), leads)));
        assert_eq!(names.fresh(&name("a.test")), Some(first));
        for nobody in ["198.18.0.15", "198.18.0.18", "0.0.0.0", "255.255.255.255", "::1"] {
            assert_eq!(names.at(nobody.parse().unwrap()), None, "{nobody}");
        }
    }

    #[test]
    fn a_flood_is_told_once() {
        let names = Names::default();
        let now = Instant::now();
        let asked = |number: usize, at| names.admit_at(&name(&format!("n{number}.test")), at);
        assert!((0..RATE).all(|number| asked(number, now).is_ok()));
        assert!(matches!(asked(RATE, now), Err(Flood::First(_))));
        assert_eq!(asked(RATE + 1, now), Err(Flood::Again));
        names.give(&name("known.test"), vec![]);
        assert_eq!(names.admit_at(&name("known.test"), now), Ok(()), "who is known is not new");
        assert_eq!(asked(RATE + 2, now + SECOND), Ok(()), "another second");
    }

    #[test]
    fn addresses_run_out_in_good_order() {
        let names = Names::default();
        for number in 0..MOST {
            names.give(&name(&format!("n{number}.test")), vec![]).unwrap();
        }
        assert_eq!(names.give(&name("more.test"), vec![]), None);
        assert_eq!(names.admit(&name("more.test")), Err(Flood::First("the command has asked for 100000 names")));
        let last = Ipv4Addr::from(FIRST + u32::try_from(MOST).unwrap() - 1);
        assert_eq!(names.at(last.into()).unwrap().0, name(&format!("n{}.test", MOST - 1)));
        assert!(last.octets()[1] <= 19, "{last}");
    }
}
