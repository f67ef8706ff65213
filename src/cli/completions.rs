//! `srt completions`: a completion script from the one definition of the command line.

use super::arguments::{Arguments, Completions};
use clap::CommandFactory;

pub fn completions(completions: &Completions) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Arguments::command(), "srt", &mut script);
    use std::io::Write;
    // A closed pipe is how readers say that they have enough.
    let _ = std::io::stdout().write_all(&script);
    0
}
