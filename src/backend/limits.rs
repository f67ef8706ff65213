//! The limits of a policy, as plain numbers. What of them a system can hold is its own matter.

use crate::ir::Policy;
use crate::vocabulary::LimitKind;

/// In the units of [`LimitKind`].
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    pub memory: Option<u64>,
    pub processes: Option<u64>,
    pub files: Option<u64>,
    pub filesize: Option<u64>,
    pub cpu: Option<u64>,
    pub time: Option<u64>,
}

impl Limits {
    /// Whether some limit is of what all processes of a command have together.
    pub fn of_tree(&self) -> bool {
        self.memory.is_some() || self.processes.is_some() || self.cpu.is_some()
    }

    /// The limit of a kind.
    pub fn value(&self, kind: LimitKind) -> Option<u64> {
        match kind {
            LimitKind::Memory => self.memory,
            LimitKind::Processes => self.processes,
            LimitKind::Files => self.files,
            LimitKind::Filesize => self.filesize,
            LimitKind::Cpu => self.cpu,
            LimitKind::Time => self.time,
        }
    }

    pub fn of(policy: &Policy) -> Self {
        let value = |kind| policy.limits.get(&kind).map(|limit| limit.value);
        Self {
            memory: value(LimitKind::Memory),
            processes: value(LimitKind::Processes),
            files: value(LimitKind::Files),
            filesize: value(LimitKind::Filesize),
            cpu: value(LimitKind::Cpu),
            time: value(LimitKind::Time),
        }
    }
}
