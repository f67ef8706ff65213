//! Unix sockets: the command's own work as anywhere; the host's are reached by rules alone, and by bytes alone.

mod host;
mod own;

use crate::support::{Output, Scene, User, users};

/// A test for each engine and user.
fn each(test: impl Fn(&str, User)) {
    for engine in ["native", "bwrap"] {
        for user in users() {
            test(engine, user);
        }
    }
}

fn scene(engine: &str, rules: &str) -> Scene {
    Scene::new().policy(&format!("use std/python\nallow read, write $WORKSPACE\n{rules}")).with(["--engine", engine])
}

/// Runs a Python program that lies in the workspace: some of its modules start it again by its file.
fn python(scene: &Scene, script: &str) -> Output {
    std::fs::write(scene.workspace().join("t.py"), script).unwrap();
    scene.run_command(["python3", "t.py"])
}
