//! The `std/` modules, embedded in the binary: their names and texts, nothing more.

/// Name and text of each module, in the order of the names.
pub const MODULES: &[(&str, &str)] = &[
    ("default", include_str!("../../policies/std/default.policy")),
    ("git", include_str!("../../policies/std/git.policy")),
    ("git-init", include_str!("../../policies/std/git-init.policy")),
    ("node", include_str!("../../policies/std/node.policy")),
    ("python", include_str!("../../policies/std/python.policy")),
    ("rust", include_str!("../../policies/std/rust.policy")),
    ("secrets", include_str!("../../policies/std/secrets.policy")),
    ("shell-config", include_str!("../../policies/std/shell-config.policy")),
    ("system", include_str!("../../policies/std/system.policy")),
];

/// The text of `std/NAME`.
pub fn text(name: &str) -> Option<&'static str> {
    MODULES.iter().find(|(module, _)| *module == name).map(|(_, text)| *text)
}
