//! One file a known escape, each shown to succeed when its defence is taken out.

mod alias_by_proc;
mod ancestor_renamed;
mod core_pattern;
mod device_node;
mod directory_descriptor;
mod host_fifo;
mod namespace_inside;
mod other_processes;
mod pid_one;
mod process_group;
mod replaced_before_start;
mod stdin_reopened;
mod system_calls;
mod terminal_input;
