//! What Linux alone has a use for, on the other systems: it is there, and does nothing.

use crate::backend::bubblewrap::User;

/// Nothing can be made before the compiled policy is there.
#[derive(Debug)]
pub struct Prepared;

pub fn prepare(_: &[i32]) -> Prepared {
    Prepared
}

/// The program has one part alone.
pub fn begin() {}

/// The system's allocator is left as it is.
pub fn keep_memory() {}

pub fn caller() -> User {
    User::default()
}
