//! What was emitted for Windows, read back and proved: the filters against the rules about addresses, the access lists against
//! the rules about files.

mod files;
mod filters;

pub use files::prove_access_lists;
pub use filters::prove_filters;
