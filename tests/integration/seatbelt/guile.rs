//! Guile carries profiles out (`oracle.scm`): questions, and whether its answers are those of `decide`, gaps aside.

use super::super::documents::root;
use super::Compiled;
use sandbox_runtime::backend::gap::{Direction, Operation};
use sandbox_runtime::ir::{Access, Decider, Subject};
use sandbox_runtime::sets::path::{AbsPath, Start};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Where a program is; `None`, said loudly, where it is not, which `.ci/setup test` mends. Fatal where the sandbox is required too.
pub fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    if found.is_none() {
        assert!(std::env::var_os("REQUIRE_SANDBOX").is_none(), "`{program}` is not installed: run `.ci/setup test`");
        eprintln!("SKIPPED: `{program}` is not installed: run `.ci/setup test`");
    }
    found
}

/// Where the variables of a policy lie: apart from each other and from all that tests name.
fn place(variable: &str) -> String {
    match variable {
        "HOME" => "/Users/j.doe".to_owned(),
        "WORKSPACE" => "/Volumes/work (1)/p".to_owned(),
        "TMP" => "/private/var/folders/zz/t+mp".to_owned(),
        other => format!("/Volumes/{}", other.to_lowercase()),
    }
}

/// The path as a kernel sees it.
fn concrete(path: &AbsPath) -> String {
    let mut text = match &path.start {
        Start::Variable(name) => place(name),
        _ => String::new(),
    };
    for segment in &path.segments {
        text.push('/');
        text.push_str(std::str::from_utf8(segment).unwrap());
    }
    if text.is_empty() { "/".to_owned() } else { text }
}

/// What the profile is given: the value, the value quoted, and the directories above it.
fn parameters() -> String {
    let names =
        ["HOME", "WORKSPACE", "TMP", "GIT_COMMON_DIR", "CONFIG", "CACHE", "DATA", "RUNTIME", "env.SSH_AUTH_SOCK"];
    let quoted = |text: &str| {
        text.chars().fold(String::new(), |mut quoted, char| {
            if !char.is_alphanumeric() && char != '/' {
                quoted.push('\\');
            }
            quoted.push(char);
            quoted
        })
    };
    let mut lines = "proxy.port=3128\nlog.tag=srt-1\n".to_owned();
    for name in names {
        let place = place(name);
        let above: Vec<String> = place.match_indices('/').map(|(at, _)| quoted(&place[..at.max(1)])).collect();
        let _ = writeln!(
            lines,
            "{name}={place}\n{name}.regex={}\n{name}.ancestors=^({})$",
            quoted(&place),
            above.join("|")
        );
    }
    lines
}

/// What answers came to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Reached {
    pub verdicts: usize,
    pub allowed: usize,
    /// Denied by a gap alone.
    pub by_gap: usize,
}

struct Question {
    about: String,
    expected: bool,
}

pub struct Machine {
    program: PathBuf,
    folder: tempfile::TempDir,
    cases: String,
    questions: Vec<Question>,
    count: usize,
    reached: Reached,
}

impl Machine {
    pub fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("parameters"), parameters()).unwrap();
        Some(Self {
            program: found("guile")?,
            folder,
            cases: String::new(),
            questions: Vec::new(),
            count: 0,
            reached: Reached::default(),
        })
    }

    /// Each access as each operation of the system that it needs.
    pub fn ask(&mut self, name: &str, compiled: &Compiled, accesses: Vec<Access>) {
        let policy = &compiled.lowered.policy;
        let decider = Decider::new(policy);
        let mut lines = String::new();
        for access in accesses {
            let allowed = decider.decide(&access).allowed;
            let (path, operations): (&AbsPath, &[(Operation, &str)]) = match &access {
                Access::Read(path) => {
                    (path, &[(Operation::Read, "file-read-data"), (Operation::Read, "file-read-xattr")])
                }
                Access::Write(path) => (
                    path,
                    &[
                        (Operation::Write, "file-write-data"),
                        (Operation::Write, "file-write-mode"),
                        (Operation::Write, "file-link"),
                        (Operation::Rename, "file-write-create"),
                        (Operation::Rename, "file-write-unlink"),
                    ],
                ),
                Access::Exec(path) => {
                    (path, &[(Operation::Exec, "process-exec"), (Operation::Exec, "file-map-executable")])
                }
                Access::Socket(path) => (path, &[(Operation::Socket, "network-outbound")]),
                Access::Mach(service) => {
                    self.add(&mut lines, name, "mach-lookup", &format!("name:{service}"), allowed);
                    continue;
                }
                other => panic!("no question about {other:?}"),
            };
            for (operation, word) in operations {
                let in_gap =
                    compiled.lowered.gaps.iter().filter(|gap| gap.kind.direction == Direction::Stricter).any(|gap| {
                        gap.region.iter().any(|(of, set)| {
                            of == operation && matches!(set, Subject::Paths(set) if set.contains(path))
                        })
                    });
                self.reached.by_gap += usize::from(allowed && in_gap);
                self.add(&mut lines, name, word, &concrete(path), allowed && !in_gap);
            }
        }
        self.close(compiled, &lines);
    }

    /// One question of its own.
    pub fn question(&mut self, name: &str, compiled: &Compiled, operation: &str, object: &str, allowed: bool) {
        let mut lines = String::new();
        self.add(&mut lines, name, operation, object, allowed);
        self.close(compiled, &lines);
    }

    fn add(&mut self, lines: &mut String, name: &str, operation: &str, object: &str, expected: bool) {
        let _ = writeln!(lines, "{operation} {object}");
        self.reached.verdicts += 1;
        self.reached.allowed += usize::from(expected);
        self.questions.push(Question { about: format!("{name}: {operation} {object}"), expected });
    }

    fn close(&mut self, compiled: &Compiled, lines: &str) {
        let count = self.count;
        self.count += 1;
        let at = |word: &str| self.folder.path().join(format!("{word}-{count}"));
        fs::write(at("profile"), &compiled.profile).unwrap();
        fs::write(at("questions"), lines).unwrap();
        let given = self.folder.path().join("parameters");
        let _ = writeln!(self.cases, "{} {} {}", at("profile").display(), given.display(), at("questions").display());
    }

    /// The answers that are not the expected ones.
    pub fn differences(&self) -> Vec<String> {
        let cases = self.folder.path().join("cases");
        fs::write(&cases, &self.cases).unwrap();
        let out = Command::new(&self.program)
            .arg("-s")
            .arg(root().join("tests/integration/seatbelt/oracle.scm"))
            .arg(&cases)
            // It compiles itself once, somewhere that is gone afterwards.
            .env("XDG_CACHE_HOME", self.folder.path())
            .output()
            .unwrap();
        if !out.status.success() {
            return vec![String::from_utf8_lossy(&out.stderr).into_owned()];
        }
        let answers = String::from_utf8(out.stdout).unwrap();
        let answers: Vec<&str> = answers.lines().collect();
        assert_eq!(answers.len(), self.questions.len());
        let wrong = self
            .questions
            .iter()
            .zip(answers)
            .filter(|(question, answer)| *answer != if question.expected { "allow" } else { "deny" });
        wrong.map(|(question, answer)| format!("{}: {answer}", question.about)).collect()
    }

    pub fn compare(&self) -> Reached {
        let differences = self.differences();
        let shown: Vec<_> = differences.iter().take(10).cloned().collect();
        assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), shown.join("\n"));
        self.reached
    }
}
