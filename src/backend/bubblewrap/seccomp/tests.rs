#![allow(clippy::unwrap_used)]

use super::entry::{Action, Entry, Errno, Test};
use super::*;

const MACHINES: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];
const TABLES: [Table; 8] = [
    Table { nest: false, notified: false, watch: Watch::Nothing, performed: Watch::Nothing, runs: false },
    Table { nest: true, notified: false, watch: Watch::Nothing, performed: Watch::Nothing, runs: false },
    Table { nest: false, notified: true, watch: Watch::Nothing, performed: Watch::Nothing, runs: false },
    Table { nest: true, notified: true, watch: Watch::Nothing, performed: Watch::Nothing, runs: false },
    Table { nest: false, notified: true, watch: Watch::Writes, performed: Watch::Nothing, runs: false },
    Table { nest: true, notified: true, watch: Watch::Opens, performed: Watch::Nothing, runs: false },
    Table { nest: false, notified: true, watch: Watch::Nothing, performed: Watch::Writes, runs: false },
    Table { nest: false, notified: true, watch: Watch::Writes, performed: Watch::Opens, runs: true },
];

fn call(architecture: Architecture, number: u32, arguments: [u64; 6]) -> Call {
    Call { number, architecture: architecture.audit(), arguments }
}

fn holds(test: &Test, arguments: [u64; 6]) -> bool {
    let low = (arguments[usize::from(test.argument)] & 0xffff_ffff) as u32 & test.mask;
    test.values.contains(&low) == test.among
}

/// The meaning of the table, without any BPF.
fn meaning(list: &[Entry], architecture: Architecture, number: u32, arguments: [u64; 6]) -> Action {
    if number != u32::MAX {
        if architecture == Architecture::X86_64 && number >= X32_BIT {
            return Action::Kill;
        }
        if number > LAST_REVIEWED {
            return Action::Fail(Errno::NoSuchCall);
        }
    }
    list.iter()
        .filter(|entry| architecture.number(entry.call) == Some(number))
        .find(|entry| entry.tests.iter().all(|test| holds(test, arguments)))
        .map_or(Action::Allow, |entry| entry.action)
}

/// Each constant that the call's tests compare with, its neighbours, and those with bits outside the mask or the low
/// word set.
fn interesting(list: &[Entry], name: &str, argument: u8) -> Vec<u64> {
    let mut values = vec![0, 1, u64::MAX, 1 << 32];
    for test in list.iter().filter(|e| e.call == name).flat_map(|e| &e.tests).filter(|t| t.argument == argument) {
        for value in test.values.iter().chain([&test.mask]) {
            let value = u64::from(*value);
            values.extend([value, value.wrapping_sub(1), value + 1, value | 1 << 32, value | 0xdead_0000_0000]);
            values.extend([value | u64::from(!test.mask), value | 0o4000, value | 0o2_000_000]);
        }
        if test.mask.count_ones() < 32 {
            values.extend((0..32).map(|bit| 1 << bit));
        }
    }
    values.sort_unstable();
    values.dedup();
    values
}

fn compare(number: u32, arguments: [u64; 6]) {
    for table in &TABLES {
        let list = entries(table);
        for machine in MACHINES {
            let program = assemble(&entries(table), machine);
            let got = run(&program, &call(machine, number, arguments)).unwrap();
            let want = meaning(&list, machine, number, arguments).value();
            assert_eq!(got, want, "{machine:?} {table:?} call {number} {arguments:x?}");
        }
    }
}

#[test]
fn program_is_the_table_for_every_number() {
    for number in
        (0..=600).chain([X32_BIT - 1, X32_BIT, X32_BIT + 1, X32_BIT + 41, X32_BIT | 0x208, u32::MAX - 1, u32::MAX])
    {
        for arguments in [[0; 6], [1; 6], [2; 6], [10; 6], [16; 6], [u64::MAX; 6], [1 << 32; 6], [0x7e02_0080; 6]] {
            compare(number, arguments);
        }
    }
}

#[test]
fn program_is_the_table_at_every_compared_constant() {
    for table in &TABLES {
        let list = entries(table);
        for machine in MACHINES {
            let program = assemble(&entries(table), machine);
            let mut tried = 0;
            for name in ["ioctl", "personality", "socket", "socketpair", "clone", "unshare", "open", "openat"] {
                let Some(number) = machine.number(name) else { continue };
                let [first, second, third] = [0, 1, 2].map(|argument| interesting(&list, name, argument));
                for &a in &first {
                    for &b in &second {
                        for &c in &third {
                            let arguments = [a, b, c, 7, 7, 7];
                            let got = run(&program, &call(machine, number, arguments)).unwrap();
                            let want = meaning(&list, machine, number, arguments).value();
                            assert_eq!(got, want, "{machine:?} {table:?} {name} {arguments:x?}");
                            tried += 1;
                        }
                    }
                }
            }
            assert!(tried > 10_000, "{tried}");
        }
    }
}

#[test]
fn a_foreign_architecture_is_killed() {
    for (machine, other) in [(MACHINES[0], MACHINES[1]), (MACHINES[1], MACHINES[0])] {
        let program = assemble(&entries(&TABLES[0]), machine);
        for audit in [other.audit(), 0x4000_0003, 0x4000_0028, 0, machine.audit() ^ 1] {
            let call = Call { number: 39, architecture: audit, arguments: [0; 6] };
            assert_eq!(run(&program, &call), Some(Action::Kill.value()));
        }
    }
}

/// What must come out, said without the table: the mistakes that would make the table itself wrong.
#[test]
fn named_calls_answer_as_promised() {
    let (eperm, enosys, family, protocol, allow) = (0x5_0001, 0x5_0026, 0x5_0061, 0x5_005d, 0x7fff_0000);
    let cases: &[(&str, [u64; 3], u32, u32)] = &[
        // name, arguments, plain, nested
        ("clone", [0x11, 0, 0], allow, allow),
        ("clone", [0x3d_0f00, 0, 0], allow, allow), // pthread_create
        ("clone", [0x2_0011, 0, 0], eperm, allow),
        ("clone", [0x1000_0011, 0, 0], eperm, allow),
        ("clone", [0x200_0011, 0, 0], eperm, allow),
        ("clone", [0x400_0011, 0, 0], eperm, allow),
        ("clone", [0x800_0011, 0, 0], eperm, allow),
        ("clone", [0x2000_0011, 0, 0], eperm, allow),
        ("clone", [0x1_4000_0011, 0, 0], eperm, allow), // a high bit hides nothing
        ("clone3", [0, 0, 0], enosys, allow),
        ("unshare", [0x80, 0, 0], eperm, allow),
        ("unshare", [0x400, 0, 0], allow, allow), // CLONE_FILES
        ("unshare", [0x1_1000_0000, 0, 0], eperm, allow),
        ("setns", [3, 0, 0], eperm, allow),
        ("mount", [0, 0, 0], eperm, allow),
        ("move_mount", [0, 0, 0], eperm, allow),
        ("pivot_root", [0, 0, 0], eperm, allow),
        ("chroot", [0, 0, 0], eperm, allow),
        ("io_uring_setup", [0, 0, 0], enosys, enosys),
        ("openat2", [0, 0, 0], enosys, enosys),
        ("open_by_handle_at", [0, 0, 0], enosys, enosys),
        ("bpf", [0, 0, 0], eperm, eperm),
        ("keyctl", [0, 0, 0], eperm, eperm),
        ("ioctl", [0, 0x5412, 0], eperm, eperm),
        ("ioctl", [0, 0x1_0000_5412, 0], eperm, eperm),
        ("ioctl", [0, 0xffff_ffff_0000_541c, 0], eperm, eperm),
        ("ioctl", [0, 0x5413, 0], allow, allow), // TIOCGWINSZ
        ("personality", [0xffff_ffff, 0, 0], allow, allow),
        ("personality", [0x4_0000, 0, 0], allow, allow),  // gdb
        ("personality", [0x40_0000, 0, 0], eperm, eperm), // READ_IMPLIES_EXEC
        ("socket", [2, 1, 0], allow, allow),
        ("socket", [10, 0x8_0802, 17], allow, allow), // CLOEXEC | NONBLOCK | DGRAM
        ("socket", [2, 1, 262], allow, allow),        // MPTCP
        ("socket", [2, 1, 132], protocol, protocol),  // SCTP
        ("socket", [2, 3, 1], eperm, eperm),
        ("socket", [16, 3, 0], allow, allow),
        ("socket", [16, 3, 4], family, family), // NETLINK_SOCK_DIAG
        ("socket", [16, 0x8_0003, 15], family, family),
        ("socket", [1, 1, 0], family, family),
        ("socket", [1, 2, 0], family, family),
        ("socket", [0x1_0000_0001, 1, 0], family, family),
        ("socket", [17, 3, 0], family, family), // AF_PACKET
        ("socket", [38, 5, 0], family, family), // AF_ALG
        ("socket", [40, 1, 0], family, family), // AF_VSOCK
        ("socketpair", [1, 1, 0], allow, allow),
        ("socketpair", [1, 0x8_0005, 0], allow, allow),
        ("socketpair", [1, 2, 0], family, family),
        ("socketpair", [1, 3, 0], family, family), // the kernel makes a datagram socket of it
        ("socketpair", [30, 1, 0], family, family), // AF_TIPC
    ];
    for machine in MACHINES {
        for (name, [a, b, c], plain, nested) in cases {
            let number = machine.number(name).unwrap();
            let arguments = [*a, *b, *c, 0, 0, 0];
            for (table, want) in TABLES.iter().zip([plain, nested]) {
                let got = run(&assemble(&entries(table), machine), &call(machine, number, arguments)).unwrap();
                assert_eq!(got, *want, "{machine:?} {table:?} {name} {arguments:x?}");
            }
        }
    }
}

/// Where somebody listens, unix sockets that connect are made, and connecting is asked for, whatever the family.
#[test]
fn connecting_is_asked_for() {
    let (family, notify, allow) = (0x5_0061, 0x7fc0_0000, 0x7fff_0000);
    let cases: &[(&str, [u64; 3], u32)] = &[
        ("socket", [1, 1, 0], allow),
        ("socket", [1, 0x8_0805, 0], allow),
        ("socket", [1, 2, 0], family),
        ("socket", [1, 3, 0], family), // the kernel makes a datagram socket of it
        ("socket", [0x1_0000_0001, 2, 0], family),
        ("socketpair", [1, 2, 0], family),
        ("socket", [40, 1, 0], family),
        ("connect", [3, 0, 0], notify),
        ("connect", [u64::MAX, 1, 16], notify),
        ("listen", [3, 128, 0], notify),
        ("accept", [3, 0, 0], allow),
    ];
    for machine in MACHINES {
        for (name, [a, b, c], want) in cases {
            let number = machine.number(name).unwrap_or(if machine == MACHINES[0] { 43 } else { 202 });
            let program = assemble(&entries(&TABLES[2]), machine);
            assert_eq!(run(&program, &call(machine, number, [*a, *b, *c, 0, 0, 0])), Some(*want), "{machine:?} {name}");
        }
    }
}

/// Nobody is told of what only reads, unless that was asked for; of `stat` never, and of nothing where nobody listens.
#[test]
fn files_are_told_of_as_far_as_asked() {
    let (notify, allow) = (0x7fc0_0000, 0x7fff_0000);
    let cases: &[(&str, [u64; 4], [u32; 3])] = &[
        // name, arguments, and the answer where nothing, writes, and all that opens is told of
        ("openat", [0, 1, 0, 0], [allow, allow, notify]),
        ("openat", [0, 1, 0o2_000_000, 0], [allow, allow, notify]), // O_CLOEXEC
        ("openat", [0, 1, 0o10_000_000, 0], [allow, allow, allow]), // O_PATH
        ("openat", [0, 1, 0o10_000_102, 0], [allow, allow, allow]), // and what it makes of no account
        ("openat", [0, 1, 0xdead_0000_0000, 0], [allow, allow, notify]),
        ("openat", [0, 1, 1, 0], [allow, notify, notify]),
        ("openat", [0, 1, 2, 0], [allow, notify, notify]),
        ("openat", [0, 1, 0o100, 0], [allow, notify, notify]),
        ("openat", [0, 1, 0o1000, 0], [allow, notify, notify]), // O_RDONLY | O_TRUNC empties
        ("openat", [0, 1, 0o20_200_000, 0], [allow, notify, notify]), // O_TMPFILE
        ("unlinkat", [0, 1, 0, 0], [allow, notify, notify]),
        ("renameat2", [0, 1, 2, 3], [allow, notify, notify]),
        ("fchmodat2", [0, 1, 2, 3], [allow, notify, notify]),
        ("newfstatat", [0, 1, 2, 3], [allow, allow, allow]),
    ];
    for machine in MACHINES {
        for (name, [a, b, c, d], answers) in cases {
            let stat = if machine == MACHINES[0] { 262 } else { 79 };
            let number = machine.number(name).unwrap_or(stat);
            for (watch, want) in [Watch::Nothing, Watch::Writes, Watch::Opens].into_iter().zip(answers) {
                let answer = |notified| {
                    let program = assemble(
                        &entries(&Table { nest: false, notified, watch, performed: Watch::Nothing, runs: false }),
                        machine,
                    );
                    run(&program, &call(machine, number, [*a, *b, *c, *d, 0, 0]))
                };
                assert_eq!(answer(true), Some(*want), "{machine:?} {watch:?} {name}");
                assert_eq!(answer(false), Some(allow), "{machine:?} {watch:?} {name}");
            }
        }
    }
}

/// Where opens are made for the command, all are; of what it runs somebody is told.
#[test]
fn what_reads_is_performed_where_that_is_wanted() {
    for machine in MACHINES {
        let program = assemble(&entries(&TABLES[7]), machine);
        let answer = |name: &str, flags: u64| {
            run(&program, &call(machine, machine.number(name).unwrap(), [0, 1, flags, 0, 0, 0])).unwrap()
        };
        let (notify, allow) = (0x7fc0_0000, 0x7fff_0000);
        assert_eq!([answer("openat", 0), answer("openat", 1), answer("execve", 0), answer("execveat", 0)], [notify; 4]);
        assert_eq!(answer("openat", 0o10_000_000), allow);
    }
}

/// What changes files is made by whoever listens, by descriptor too; never what only reads.
#[test]
fn what_changes_files_is_performed() {
    let (notify, allow, enosys) = (0x7fc0_0000, 0x7fff_0000, 0x5_0026);
    let cases: &[(&str, [u64; 4], u32)] = &[
        ("openat", [0, 1, 0, 0], allow),
        ("openat", [0, 1, 1, 0], notify),
        ("bind", [0, 1, 2, 0], notify),
        ("fchmod", [0, 1, 2, 0], notify),
        ("fsetxattr", [0, 1, 2, 0], notify),
        ("unlinkat", [0, 1, 2, 0], notify),
        ("setxattrat", [0, 1, 2, 0], enosys),
        ("file_setattr", [0, 1, 2, 0], enosys),
    ];
    for machine in MACHINES {
        let program = assemble(&entries(&TABLES[6]), machine);
        for (name, [a, b, c, d], want) in cases {
            let number = machine.number(name).unwrap();
            assert_eq!(run(&program, &call(machine, number, [*a, *b, *c, *d, 0, 0])), Some(*want), "{name}");
        }
    }
}

#[test]
fn ptrace_and_process_vm_stay_open() {
    for (machine, numbers) in [(MACHINES[0], [101, 310, 311]), (MACHINES[1], [117, 270, 271])] {
        for number in numbers {
            let got = run(&assemble(&entries(&TABLES[0]), machine), &call(machine, number, [0; 6]));
            assert_eq!(got, Some(Action::Allow.value()));
        }
    }
}

#[test]
fn every_number_is_used_and_every_name_has_one() {
    let plain = entries(&TABLES[7]);
    for entry in &plain {
        assert!(MACHINES.iter().any(|machine| machine.number(entry.call).is_some()), "{}", entry.call);
    }
    let names: Vec<_> = numbers::names().collect();
    assert!(names.is_sorted());
    for name in names {
        assert!(plain.iter().any(|entry| entry.call == name), "{name} has a number but no entry");
    }
}

/// Entries of one call stand together: the assembler makes one block of each run.
#[test]
fn entries_of_a_call_are_adjacent() {
    for table in &TABLES {
        let mut calls: Vec<_> = entries(table).iter().map(|entry| entry.call).collect();
        calls.dedup();
        let count = calls.len();
        calls.sort_unstable();
        calls.dedup();
        assert_eq!(count, calls.len());
    }
}

/// The kernel's limits (BPF_MAXINSNS) and check: every jump lands inside.
#[test]
fn programs_are_acceptable_to_the_kernel() {
    for table in &TABLES {
        for machine in MACHINES {
            let program = assemble(&entries(table), machine);
            assert!(program.len() < 4096);
            assert_eq!(program.last().unwrap().code, assemble::RETURN);
            for (at, instruction) in program.iter().enumerate() {
                assert!(at + usize::from(instruction.jt.max(instruction.jf)) < program.len());
            }
        }
    }
}

#[test]
fn listing() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots/bubblewrap"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, table) in [
            ("seccomp", &TABLES[0]),
            ("seccomp_notified", &TABLES[2]),
            ("seccomp_watched", &TABLES[4]),
            ("seccomp_performed", &TABLES[6]),
        ] {
            let lines: Vec<String> = entries(table).iter().map(|e| format!("{e} -- {}", e.reason)).collect();
            insta::assert_snapshot!(name, lines.join("\n"));
        }
    });
}
