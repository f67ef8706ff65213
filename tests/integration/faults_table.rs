//! `tests/reported-faults.md` promises tests and findings: they exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The names of the functions that stand below a `#[test]` of some sort, in all files of a folder.
fn tests_in(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_in(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let mut marked = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    marked = true;
                } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| marked) {
                    found.insert(rest.split(['(', '<']).next().unwrap().to_owned());
                    marked = false;
                }
            }
        }
    }
}

#[test]
fn every_test_that_the_table_of_faults_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = BTreeSet::new();
    tests_in(&root.join("src"), &mut tests);
    tests_in(&root.join("tests"), &mut tests);
    let codes: BTreeSet<&str> = sandbox_runtime::codes().iter().map(|code| code.name).collect();
    let table = fs::read_to_string(root.join("tests/reported-faults.md")).unwrap();
    let mut held = 0;
    let mut wrong = String::new();
    for line in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| kind of fault")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, state, what] = cells[..] else {
            wrong.push_str(&format!("not three cells: {line}\n"));
            continue;
        };
        match state {
            "waits for" => {}
            "held by" => {
                held += 1;
                let mut named = what.split('`').skip(1).step_by(2).peekable();
                if named.peek().is_none() {
                    wrong.push_str(&format!("held by nothing: {line}\n"));
                }
                for name in named.filter(|name| !tests.contains(*name) && !codes.contains(name)) {
                    wrong.push_str(&format!("no test and no finding is called `{name}`\n"));
                }
            }
            other => wrong.push_str(&format!("neither held nor waiting: `{other}`\n")),
        }
    }
    assert!(held > 40, "only {held} rows were read: is this test reading the table?");
    assert!(wrong.is_empty(), "{wrong}");
}
