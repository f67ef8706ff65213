//! `srt`: a policy compiler and runner for sandboxes.
//!
//! One way of data: [`source`] → [`syntax`] → [`resolve`] → [`bind`] → [`ir`] → [`backend`] → [`exec`]. The book's
//! architecture chapter has the map.

pub mod analysis;
pub mod backend;
pub mod bind;
pub mod check;
pub mod compat;
pub mod compile;
pub mod diagnostic;
pub mod event;
pub mod exec;
pub mod fix;
pub mod host;
pub mod ir;
pub mod lint;
pub mod lsp;
pub mod proxy;
pub mod report;
pub mod resolve;
pub mod sets;
pub mod source;
pub mod suite;
pub mod syntax;
pub mod verify;
pub mod vocabulary;

use diagnostic::Code;

/// Every diagnostic there is, by name: the one table, to which each room adds its own.
pub fn codes() -> Vec<&'static Code> {
    let rooms = [syntax::CODES, resolve::CODES, bind::CODES].into_iter();
    let many = backend::CODES.iter().chain(lint::CODES).copied();
    let mut codes: Vec<_> = rooms.chain(many).flatten().copied().collect();
    codes.sort_by_key(|code| code.name);
    codes
}
