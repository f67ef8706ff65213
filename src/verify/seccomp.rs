//! The filter of system calls, read back from the bytes that the kernel would get, and compared with the list of what is closed:
//! over all numbers of both architectures, and each value that the list compares with, with its neighbours.

use super::Fault;
use crate::backend::bubblewrap::seccomp::{Action, Architecture, Entry, LAST_REVIEWED, Table, X32_BIT, entries};

/// `SECCOMP_RET_ALLOW`, `SECCOMP_RET_USER_NOTIF` and `SECCOMP_RET_KILL_PROCESS`, linux/seccomp.h.
const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const KILL: u32 = 0x8000_0000;
/// `SECCOMP_RET_ERRNO`, and `ENOSYS`.
const ENOSYS: u32 = 0x0005_0026;

/// One `struct sock_filter`.
#[derive(Debug, Clone, Copy)]
struct Step {
    code: u16,
    jumps: [u8; 2],
    value: u32,
}

/// What the kernel shows a filter, `struct seccomp_data`.
#[derive(Debug, Clone)]
struct Call {
    number: u32,
    architecture: u32,
    arguments: [u64; 6],
}

/// Proves that both programs, each after its length, close what the table closes and nothing else.
///
/// # Errors
/// The first call that is answered otherwise, or bytes that are no such program.
pub fn prove(table: &Table, bytes: &[u8]) -> Result<(), Fault> {
    let list = entries(table);
    let mut rest = bytes;
    for (architecture, audit) in [(Architecture::X86_64, 0xc000_003e_u32), (Architecture::Aarch64, 0xc000_00b7)] {
        let program = program(&mut rest).map_err(Fault::Unread)?;
        // The other one of ours, and the 32-bit ones that these processors run as well (linux/audit.h).
        for architecture in [audit ^ 0x89, 0x4000_0003, 0x4000_0028, 0, u32::MAX] {
            for number in [0, 59, 221, LAST_REVIEWED] {
                expect(&program, &Call { number, architecture, arguments: [0; 6] }, KILL)?;
            }
        }
        let numbers = (0..=LAST_REVIEWED + 200).chain([
            0x7fff_ffff,
            0x8000_0000,
            0xffff_fffe,
            u32::MAX,
            X32_BIT - 1,
            X32_BIT,
            X32_BIT + 59,
            X32_BIT + 547,
        ]);
        for number in numbers {
            let closed: Vec<&Entry> =
                list.iter().filter(|entry| architecture.number(entry.call) == Some(number)).collect();
            for arguments in arguments(&closed) {
                let call = Call { number, architecture: audit, arguments };
                expect(&program, &call, answer(&closed, architecture, number, &arguments))?;
            }
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(Fault::Unread("bytes behind the programs".to_owned())) }
}

/// What the list says.
fn answer(closed: &[&Entry], architecture: Architecture, number: u32, arguments: &[u64; 6]) -> u32 {
    // What a tracer writes to have a call skipped.
    if number == u32::MAX {
        return ALLOW;
    }
    if architecture == Architecture::X86_64 && number >= X32_BIT {
        return KILL;
    }
    if number > LAST_REVIEWED {
        return ENOSYS;
    }
    let holds = |entry: &&&Entry| {
        entry.tests.iter().all(|test| {
            let low = u32::try_from(arguments[usize::from(test.argument)] & 0xffff_ffff).unwrap_or_default();
            test.values.contains(&(low & test.mask)) == test.among
        })
    };
    match closed.iter().find(holds).map(|entry| entry.action) {
        None | Some(Action::Allow) => ALLOW,
        Some(Action::Fail(errno)) => 0x0005_0000 | errno as u32,
        Some(Action::Notify) => NOTIFY,
        Some(Action::Kill) => KILL,
    }
}

/// Arguments at which an answer may change: every value with its neighbours, inside the mask and outside, with high bits and
/// without.
fn arguments(closed: &[&Entry]) -> Vec<[u64; 6]> {
    let mut all = vec![[0_u64; 6]];
    let tests: Vec<_> = closed.iter().flat_map(|entry| &entry.tests).collect();
    let looked_at: std::collections::BTreeSet<u8> = tests.iter().map(|test| test.argument).collect();
    let few = looked_at.len() < 3;
    for argument in 0..6_u8 {
        let mut values: Vec<u64> = vec![0];
        for test in tests.iter().filter(|test| test.argument == argument) {
            for value in &test.values {
                for near in [value.wrapping_sub(1), *value, value.wrapping_add(1), value | !test.mask] {
                    values.extend([u64::from(near), u64::from(near) | 0xffff_ffff_0000_0000]);
                }
            }
            values.extend([u64::from(test.mask), u64::from(u32::MAX)]);
            if few {
                values.extend((0..32).map(|bit| 1_u64 << bit));
            }
        }
        values.sort_unstable();
        values.dedup();
        let mut next = Vec::new();
        for own in &all {
            for value in &values {
                let mut with = *own;
                with[usize::from(argument)] = *value;
                next.push(with);
            }
        }
        all = next;
    }
    all
}

fn expect(program: &[Step], call: &Call, expected: u32) -> Result<(), Fault> {
    let found = run(program, call).ok_or_else(|| Fault::Unread("a program that runs off its end".to_owned()))?;
    if found == expected {
        return Ok(());
    }
    Err(Fault::Filter { call: format!("{call:x?}"), found, expected })
}

/// Carries a program out (linux/filter.h, the part that seccomp allows and the list needs).
fn run(program: &[Step], call: &Call) -> Option<u32> {
    let (mut accumulator, mut at) = (0_u32, 0_usize);
    loop {
        let Step { code, jumps, value } = *program.get(at)?;
        at += 1;
        let jump = |taken: bool| usize::from(jumps[usize::from(!taken)]);
        match code {
            // BPF_LD | BPF_W | BPF_ABS: a word of the call, little-endian.
            0x20 => {
                accumulator = match value {
                    0 => call.number,
                    4 => call.architecture,
                    16..=63 if value % 4 == 0 => {
                        let argument = call.arguments[usize::try_from((value - 16) / 8).ok()?];
                        let half = if value % 8 == 0 { argument } else { argument >> 32 };
                        u32::try_from(half & 0xffff_ffff).ok()?
                    }
                    _ => return None,
                }
            }
            0x54 => accumulator &= value,
            0x15 => at += jump(accumulator == value),
            0x35 => at += jump(accumulator >= value),
            0x06 => return Some(value),
            _ => return None,
        }
    }
}

fn program(bytes: &mut &[u8]) -> Result<Vec<Step>, String> {
    let short = || "a program that is cut off".to_owned();
    let word = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).map_err(|_| short());
    let (length, rest) = bytes.split_at_checked(4).ok_or_else(short)?;
    let length = usize::try_from(word(length)?).map_err(|_| short())?;
    let (program, rest) = length.checked_mul(8).and_then(|size| rest.split_at_checked(size)).ok_or_else(short)?;
    *bytes = rest;
    let step = |bytes: &[u8]| {
        Ok(Step {
            code: u16::from_le_bytes([bytes[0], bytes[1]]),
            jumps: [bytes[2], bytes[3]],
            value: word(&bytes[4..8])?,
        })
    };
    program.chunks_exact(8).map(step).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::backend::bubblewrap::seccomp::Watch;
    use crate::compile::artefact::bpf;

    #[test]
    fn the_programs_are_the_list() {
        use Watch::{Nothing, Opens, Writes};
        let tables = [
            (false, false, Nothing),
            (true, false, Nothing),
            (false, true, Nothing),
            (false, true, Writes),
            (true, true, Opens),
        ];
        let tables = tables.map(|(nest, notified, watch)| Table {
            nest,
            notified,
            watch,
            performed: if notified && nest { watch } else { Nothing },
            runs: notified,
        });
        for table in &tables {
            for other in &tables {
                assert_eq!(prove(table, &bpf(other)).is_ok(), table == other);
            }
        }
    }

    /// Each value, jump and answer of a program matters, but for those behind which nothing differs.
    #[test]
    fn a_program_with_a_bit_turned_is_another() {
        let table =
            Table { nest: false, notified: false, watch: Watch::Nothing, performed: Watch::Nothing, runs: false };
        let right = bpf(&table);
        let mut unseen = 0;
        let places: Vec<usize> = (4..right.len() / 2).step_by(131).collect();
        for at in &places {
            let mut wrong = right.clone();
            wrong[*at] ^= 1;
            unseen += usize::from(prove(&table, &wrong).is_ok());
        }
        assert!(unseen * 4 < places.len(), "{unseen} of {} are not seen", places.len());
    }
}
