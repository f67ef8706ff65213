//! Carrying a plan out: the only stage that acts, the only user of nix, and the only unsafe code.

#[cfg(target_os = "linux")]
pub mod linux;
