//! The system calls that are closed: a readable list of entries, and the BPF program made from it.
//!
//! Mounts, namespaces and Landlock say which files and hosts there are; this filter closes the calls by which a command
//! would make new ones of these, or reach the kernel by a door that nothing else guards. It decides nothing about a
//! policy: no path and no host name is seen here.

mod assemble;
mod entries;
mod entry;
mod files;
mod numbers;
mod simulate;
#[cfg(test)]
mod tests;

pub use assemble::assemble;
pub use entries::entries;
pub use entry::{Action, Entry, Errno, Test};
pub use files::{Act, FILE_CALLS, FileCall, Last, Operand, WRITE_INTENT, Watch};
pub use simulate::{Call, run};

/// What the filter holds to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Table {
    /// Namespaces and mounts inside are permitted.
    pub nest: bool,
    /// Somebody listens to the filter and makes each connection for the command, so that unix sockets may be made. A filter
    /// that nobody listens to closes them.
    pub notified: bool,
    /// Of which calls about files somebody who listens is told.
    pub watch: Watch,
    /// Which calls about files are made by whoever listens: rules speak of names that are not there yet.
    pub performed: Watch,
    /// Somebody who listens is told of what is run.
    pub runs: bool,
}

/// The machine the filter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    /// The `AUDIT_ARCH_…` value (linux/audit.h): the ELF machine, with the bits for 64 bit and little endian.
    pub fn audit(self) -> u32 {
        match self {
            Architecture::X86_64 => 0xc000_003e,
            Architecture::Aarch64 => 0xc000_00b7,
        }
    }

    /// The number of a system call there; `None` where it does not exist.
    pub fn number(self, name: &str) -> Option<u32> {
        numbers::number(self, name)
    }
}

/// The last number that this table was reviewed for (`file_setattr`, Linux 6.17; the same on both architectures).
/// What comes after it answers ENOSYS, as it would on an older kernel, so that a call that does not exist yet cannot
/// open what is closed here. It also covers 512–547, the private numbers of x32, which old kernels served to 64-bit
/// programs as well.
pub const LAST_REVIEWED: u32 = 469;

/// The bit that makes a number on `x86_64` one of the x32 ABI.
pub const X32_BIT: u32 = 0x4000_0000;

/// One instruction of classic BPF, laid out as `struct sock_filter` (linux/filter.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}
