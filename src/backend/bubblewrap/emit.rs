//! [`Plan`] → bubblewrap's arguments.

use super::Plan;

/// What bubblewrap cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    #[error("the plan has {count} mounts, and bubblewrap takes {limit} at the most")]
    TooManyMounts { count: usize, limit: usize },
}

/// The arguments up to, not including, `--` and the command.
///
/// # Errors
/// See [`Unsupported`].
pub fn arguments(plan: &Plan) -> Result<Vec<Vec<u8>>, Unsupported> {
    let _ = plan;
    todo!()
}
