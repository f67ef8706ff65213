//! One file a known escape, each shown to succeed when its defence is taken out.

mod alias_by_proc;
mod ancestor_renamed;
mod connect_raced;
mod core_dump;
mod core_pattern;
mod device_node;
mod directory_descriptor;
mod flipped_in_between;
mod hard_link;
mod host_fifo;
mod host_loopback;
mod io_uring;
mod keyring;
mod loader;
mod mask_taken_off;
mod name_moved;
mod name_raced;
mod namespace_inside;
mod other_architectures;
mod other_mount;
mod other_processes;
mod other_terminal;
mod pid_one;
mod process_file;
mod process_group;
mod read_only_submount;
mod replaced_before_start;
mod setuid_program;
mod shared_memory;
mod stdin_reopened;
mod supervisor_killed;
mod system_calls;
mod temporary_places;
mod terminal_input;
mod unix_sockets;

use std::path::Path;

/// What the counter-runs use is named nowhere in the program but where it is made.
#[test]
fn no_verb_takes_a_defence_out() {
    fn search(folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("exec") {
                search(&path);
            } else if path.is_file() {
                let text = std::fs::read(&path).unwrap();
                let text = String::from_utf8_lossy(&text);
                assert!(!text.contains("run_without") && !text.contains("Defence::"), "{}", path.display());
            }
        }
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    search(&source);
    let exec = std::fs::read_to_string(source.join("exec/linux.rs")).unwrap();
    assert!(exec.contains("    run_without(plan, launch, &[])\n"));
    assert_eq!(exec.matches("run_without(").count(), 2, "its definition, and the one call, with nothing taken out");
}
