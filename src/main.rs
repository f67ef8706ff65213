//! The binary: hands over to the sandbox's inner half where it is started as that, else to the command line.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    sandbox_runtime::exec::linux::inner_main();
    cli::main()
}
