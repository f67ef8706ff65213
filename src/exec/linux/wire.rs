//! How the plan and the command cross from the supervisor to the processes inside, which are this same program: written and
//! read by the same build, so no version is told.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

pub fn write(value: &impl Serialize) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(io::Error::from)
}

/// `None` for anything but what [`write()`] makes of such a value.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
