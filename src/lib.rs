//! `srt`: a policy compiler and runner for sandboxes.
//!
//! One way of data: [`source`] → [`syntax`] → [`resolve`] → [`bind`] → [`ir`] → [`backend`] → [`exec`]. The book's
//! architecture chapter has the map. What a program that embeds it calls:
//!
//! | to | call | with, and what comes out |
//! |---|---|---|
//! | parse | [`syntax::parse`] | a text → its tree, and what is wrong with it |
//! | check | [`check::check`] | texts → everything that `srt check` says of them |
//! | resolve | [`resolve::resolve`] | texts and what they use → an [`ir::Policy`], whose variables have no values yet |
//! | bind | [`bind::bind`] | a policy and a [`host::Host`] → an [`ir::BoundPolicy`] |
//! | decide | [`ir::decide()`] | a policy and an [`ir::Access`] → the verdict and the rules that made it |
//! | lower | [`compile::enforced()`] | a bound policy → what carries it out on its system, and the gaps; [`compile::artefact`] for texts alone |
//! | run | [`exec::run`] | that and an [`exec::Launch`] → how the command ended; before any thread exists |
//!
//! `examples/embed.rs` does each of these. Findings are [`diagnostic::Diagnostic`]s: a stage returns its product and what
//! there is to say; the product of a stage that said an error must not be used.

pub mod analysis;
pub mod backend;
pub mod bind;
pub mod check;
pub mod compat;
pub mod compile;
pub mod diagnostic;
pub mod draft;
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
