//! Sets of paths, host names, addresses and ports, and the exact questions two of them answer: contains, inside,
//! overlap, emptiness, and a shortest witness.
//!
//! A pair of sets is always decided (the limits of the language see to that); questions about whole policies are
//! `analysis`'s. Nothing here knows rules, files or machines.

pub mod address;
pub mod budget;
pub mod glob;
pub mod host;
mod intervals;
pub mod many;
pub mod mistake;
pub mod name;
pub mod path;
pub mod peer;
pub mod port;
mod words;
