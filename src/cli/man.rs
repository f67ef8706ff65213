//! `srt man`: a page for the program and for each verb, from the one definition of the command line.

use super::arguments::{Arguments, Man};
use super::{output, status};
use clap::CommandFactory;

pub fn man(man: &Man) -> u8 {
    // The pages of verbs are called as they are typed, `srt-run`; what is not for people has none.
    let command = Arguments::command().disable_help_subcommand(true);
    let written =
        std::fs::create_dir_all(&man.directory).and_then(|()| clap_mangen::generate_to(command, &man.directory));
    match written {
        Ok(()) => 0,
        Err(error) => {
            output::complain(format_args!("cannot write to `{}`: {error}", man.directory.display()));
            status::USAGE
        }
    }
}
