//! `srt`: a policy compiler and runner for sandboxes.
//!
//! One way of data: [`source`] → [`syntax`] → [`resolve`] → [`bind`] → [`ir`] → [`backend`] → [`exec`]. The book's
//! architecture chapter has the map.

pub mod backend;
pub mod bind;
pub mod diagnostic;
pub mod event;
pub mod exec;
pub mod host;
pub mod ir;
pub mod proxy;
pub mod resolve;
pub mod sets;
pub mod source;
pub mod syntax;
pub mod vocabulary;
