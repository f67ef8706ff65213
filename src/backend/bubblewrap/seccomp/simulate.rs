//! An interpreter of the classic BPF that seccomp accepts, as far as [`assemble`](super::assemble()) uses it: what a
//! filter does is found by running it, without a kernel.

use super::Instruction;
use super::assemble::{AND, ARCHITECTURE, ARGUMENTS, AT_LEAST, EQUAL, LOAD, NUMBER, RETURN};

/// One system call, as the kernel shows it to a filter (`struct seccomp_data`; the instruction pointer is 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub number: u32,
    pub architecture: u32,
    pub arguments: [u64; 6],
}

/// The value that the program returns for a call. `None` if the kernel would not have accepted the program: an unknown
/// instruction, a load outside the data, or no return at its end.
pub fn run(program: &[Instruction], call: &Call) -> Option<u32> {
    let mut accumulator = 0;
    let mut at = 0;
    loop {
        let instruction = program.get(at)?;
        at += 1;
        let taken = match instruction.code {
            LOAD => {
                accumulator = word(call, instruction.k)?;
                continue;
            }
            AND => {
                accumulator &= instruction.k;
                continue;
            }
            RETURN => return Some(instruction.k),
            EQUAL => accumulator == instruction.k,
            AT_LEAST => accumulator >= instruction.k,
            _ => return None,
        };
        at += usize::from(if taken { instruction.jt } else { instruction.jf });
    }
}

/// The 32-bit word at an offset of the data; both architectures are little endian.
fn word(call: &Call, offset: u32) -> Option<u32> {
    match offset {
        NUMBER => Some(call.number),
        ARCHITECTURE => Some(call.architecture),
        8 | 12 => Some(0),
        _ => {
            let from = offset.checked_sub(ARGUMENTS)?;
            let argument = call.arguments.get(usize::try_from(from / 8).ok()?)?;
            match from % 8 {
                0 => u32::try_from(argument & u64::from(u32::MAX)).ok(),
                4 => u32::try_from(argument >> 32).ok(),
                _ => None,
            }
        }
    }
}
