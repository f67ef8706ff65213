//! The words of the language with a line about each, for hover and completion. What they mean is defined elsewhere; here they
//! are only explained.

/// Words that begin a statement.
pub(super) const STATEMENTS: &[(&str, &str)] = &[
    ("allow", "permits; opens a `deny` that it is more specific than"),
    ("deny", "denies; a more specific `allow` may open it again"),
    ("forbid", "denies; nothing opens it"),
    ("srt", "the language version, the first statement: `srt 1`"),
    ("use", "the union with another file's rules: `use std/NAME`, or `use \"PATH\"` relative to this file"),
    ("let", "a name for targets of this file, used as `$NAME`"),
    ("default", "what a read, or a variable of the environment, is that no rule matches"),
    ("set", "a variable of the command's environment: `set NAME=VALUE`"),
    ("limit", "bounds of the run: `memory`, `processes`, `files`, `filesize`, `cpu`, `time`"),
    ("on", "statements for some systems alone: `on linux, macos { … }`"),
    ("within", "a proof: this policy permits nothing that the other one does not"),
    ("expect", "a proof: every access in the targets is decided so"),
    ("ignore", "refusals in the targets are not told; they are refused all the same"),
    ("assume", "what holds for a variable away from a machine: `assume $X inside TARGETS`"),
];

/// Words behind the targets of a rule.
pub(super) const TAILS: &[(&str, &str)] =
    &[("except", "takes targets out of a rule"), ("because", "the reason of a rule, which is shown where it decides")];

/// Words before a path.
pub(super) const REACHES: &[(&str, &str)] =
    &[("exact", "the node alone, without what is below it"), ("below", "what is below a node, without the node")];

/// Words between targets.
pub(super) const JOINTS: &[(&str, &str)] = &[("or", "the target where the variable before it has no value")];

pub(super) const VERBS: &[(&str, &str)] = &[
    ("read", "opening a path for reading; listing a directory is reading it"),
    ("write", "creating, changing, renaming, linking and deleting a path"),
    ("exec", "running a path as a program; by default what may be read may be run"),
    ("connect", "outgoing connections to a domain or an address, with ports"),
    ("listen", "being reached from outside of the sandbox at an address, with ports"),
    ("socket", "connecting to a unix socket"),
    ("env", "a variable of the caller's environment passing in"),
    ("mach", "mach services of macOS"),
];

pub(super) const VARIABLES: &[(&str, &str)] = &[
    ("WORKSPACE", "where the run was started, or what `--workspace` says"),
    ("HOME", "the home of whoever runs it"),
    ("TMP", "a directory made for the run and gone with it"),
    ("GIT_COMMON_DIR", "the git directory that the workspace's worktrees share"),
    ("CONFIG", "where programs keep their settings: `XDG_CONFIG_HOME`, or the system's own place"),
    ("CACHE", "where programs keep what they can make again: `XDG_CACHE_HOME`, or the system's own place"),
    ("DATA", "where programs keep their data: `XDG_DATA_HOME`, or the system's own place"),
    ("RUNTIME", "where programs keep sockets: `XDG_RUNTIME_DIR`, or the system's own place"),
];

/// What there is to say of a word.
pub(super) fn about(list: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    list.iter().find(|(known, _)| *known == word).map(|(_, said)| *said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{BUILT_IN, Verb};

    #[test]
    fn every_verb_and_variable_is_explained() {
        let words = |list: &[(&'static str, &'static str)]| list.iter().map(|(word, _)| *word).collect::<Vec<_>>();
        assert_eq!(words(VERBS), Verb::ALL.iter().map(|verb| verb.word()).collect::<Vec<_>>());
        let (mut ours, mut all) = (words(VARIABLES), BUILT_IN.to_vec());
        ours.sort_unstable();
        all.sort_unstable();
        assert_eq!(ours, all);
    }
}
