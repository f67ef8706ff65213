//! The binary: hands over to the sandbox's inner half where it is started as that, else to the command line.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    sandbox_runtime::exec::begin();
    cli::main()
}
