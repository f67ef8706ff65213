//! `srt windows`: the account that commands run as on Windows.

use super::arguments::{Windows, WindowsVerb};
use super::{output, status};
use sandbox_runtime::exec::{Act, account};

pub fn windows(windows: &Windows) -> u8 {
    let act = match windows.verb {
        WindowsVerb::Install => Act::Install,
        WindowsVerb::Uninstall => Act::Uninstall,
        WindowsVerb::Status => Act::Status,
    };
    match account(act) {
        Ok(said) => {
            output::print(&said);
            0
        }
        Err(error) => {
            output::complain(&error);
            status::FINDINGS
        }
    }
}
