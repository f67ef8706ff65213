//! Entries → classic BPF over `struct seccomp_data` (linux/seccomp.h).
//!
//! The program is a straight line of blocks, one a call: a comparison of the number, and the body that is skipped when
//! it differs. Calls in a row that are answered alike, whatever their arguments, are one block with a comparison for each. A body
//! always returns, so no block depends on another, and no jump leaves its block.

use super::entry::{Action, Entry, Test};
use super::{Architecture, Instruction, LAST_REVIEWED, X32_BIT};

// linux/bpf_common.h
pub(super) const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
pub(super) const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
pub(super) const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
pub(super) const AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
pub(super) const RETURN: u16 = 0x06; // BPF_RET | BPF_K

// struct seccomp_data
pub(super) const NUMBER: u32 = 0;
pub(super) const ARCHITECTURE: u32 = 4;
pub(super) const ARGUMENTS: u32 = 16;

/// What a tracer writes into the number to have a call skipped; the kernel answers it by itself.
const SKIPPED: u32 = u32::MAX;

fn step(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

fn branch(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

impl Action {
    /// The return value (linux/seccomp.h).
    pub fn value(self) -> u32 {
        match self {
            Action::Allow => 0x7fff_0000,
            Action::Fail(errno) => 0x0005_0000 | errno as u32,
            Action::Notify => 0x7fc0_0000,
            Action::Kill => 0x8000_0000,
        }
    }
}

/// The program for a list, as [`entries`](super::entries()) gives it.
///
/// # Panics
/// Never for such a list: its longest body is far below the 255 instructions that a branch can skip.
pub fn assemble(list: &[Entry], architecture: Architecture) -> Vec<Instruction> {
    let kill = step(RETURN, Action::Kill.value());
    let mut program =
        vec![step(LOAD, ARCHITECTURE), branch(EQUAL, architecture.audit(), 1, 0), kill, step(LOAD, NUMBER)];
    if architecture == Architecture::X86_64 {
        program.extend([branch(AT_LEAST, X32_BIT, 0, 2), branch(EQUAL, SKIPPED, 1, 0), kill]);
    }
    let mut rest = list;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|entry| entry.call == first.call).count();
        let (of_call, after) = rest.split_at(same);
        let alike = alike(rest);
        if alike > 1 {
            let numbers = rest[..alike].iter().filter_map(|entry| architecture.number(entry.call));
            program.extend(together(&numbers.collect::<Vec<_>>(), first.action));
            rest = &rest[alike..];
            continue;
        }
        rest = after;
        if let Some(number) = architecture.number(first.call) {
            let body = body(of_call);
            program.push(branch(EQUAL, number, 0, distance(body.len())));
            program.extend(body);
        }
    }
    let unknown = Action::Fail(super::entry::Errno::NoSuchCall).value();
    // A skipped call on aarch64 comes here too and is answered ENOSYS, which the tracer then overwrites.
    program.extend([
        branch(EQUAL, SKIPPED, 2, 0),
        branch(AT_LEAST, LAST_REVIEWED + 1, 0, 1),
        step(RETURN, unknown),
        step(RETURN, Action::Allow.value()),
    ]);
    program
}

/// How many calls from here on are answered as the first one is, whatever their arguments.
fn alike(rest: &[Entry]) -> usize {
    /// As far as a branch skips.
    const MOST: usize = 250;
    let alone = |at: usize| {
        let entry = &rest[at];
        let is_next = rest.get(at + 1).is_some_and(|next| next.call == entry.call);
        entry.tests.is_empty() && !is_next && entry.action == rest[0].action
    };
    (0..rest.len().min(MOST)).take_while(|at| alone(*at)).count()
}

/// Answers these calls alike.
fn together(numbers: &[u32], action: Action) -> Vec<Instruction> {
    let compare = |(at, number): (usize, &u32)| {
        let left = numbers.len() - at - 1;
        branch(EQUAL, *number, distance(left), u8::from(left == 0))
    };
    let answer = (!numbers.is_empty()).then(|| step(RETURN, action.value()));
    numbers.iter().enumerate().map(compare).chain(answer).collect()
}

/// Tries the entries of one call in order and returns.
fn body(entries: &[Entry]) -> Vec<Instruction> {
    let mut body = Vec::new();
    for entry in entries {
        body.extend(attempt(&entry.tests, entry.action));
        if entry.tests.is_empty() {
            return body;
        }
    }
    body.push(step(RETURN, Action::Allow.value()));
    body
}

/// Returns `action` if all tests hold, else falls off its end.
fn attempt(tests: &[Test], action: Action) -> Vec<Instruction> {
    // Built from the end, since a failing test jumps over everything behind it.
    let mut tail = vec![step(RETURN, action.value())];
    for test in tests.iter().rev() {
        let mut block = vec![step(LOAD, ARGUMENTS + 8 * u32::from(test.argument))];
        if test.mask != u32::MAX {
            block.push(step(AND, test.mask));
        }
        let count = test.values.len();
        for (at, value) in test.values.iter().enumerate() {
            let left = count - at - 1; // comparisons behind this one
            let (hit, miss) =
                if test.among { (left, if left == 0 { tail.len() } else { 0 }) } else { (left + tail.len(), 0) };
            block.push(branch(EQUAL, *value, distance(hit), distance(miss)));
        }
        block.append(&mut tail);
        tail = block;
    }
    tail
}

fn distance(instructions: usize) -> u8 {
    u8::try_from(instructions).expect("the bodies of the closed calls are short")
}
