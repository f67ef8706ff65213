//! The column of ours in the book's table beside the npm peer is what happens.

use crate::support::{output, srt};
use std::path::Path;
use std::process::Command;

#[test]
fn what_the_table_beside_the_peer_says_of_ours_is_so() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat/beside");
    let said = output(Command::new(script).arg(srt()).arg("--ours"));
    assert_eq!((said.code, &*said.stdout, &*said.stderr), (0, "", ""));
}
