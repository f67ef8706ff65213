//! Bubblewrap's arguments: each text that is written is read back by the program itself, and seeded mistakes of what writes it are
//! all seen.

use crate::documents::files;
use sandbox_runtime::backend::bubblewrap::{Needs, Plan, Watch};
use sandbox_runtime::bind::bind;
use sandbox_runtime::compile::artefact::{Emit, bubblewrap};
use sandbox_runtime::compile::compile;
use sandbox_runtime::host::nominal;
use sandbox_runtime::ir::BoundPolicy;
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::source::Sources;
use sandbox_runtime::verify::bubblewrap::{Form, prove};
use sandbox_runtime::vocabulary::System;
use std::fs;
use std::io;

const FORMS: [(Emit, Form); 3] =
    [(Emit::Bwrap, Form::Lines), (Emit::BwrapNul, Form::Nul), (Emit::BwrapShell, Form::Shell)];

const POLICY: &str = "srt 1
use std/system
default read deny
# lint: allow(start-up-file) reviewed
allow read, write $WORKSPACE
deny read $WORKSPACE/.env
# lint: allow(later-names) they are there
deny write $WORKSPACE/.git/hooks
deny read $WORKSPACE/secret
allow read $WORKSPACE/secret/open
";

const LISTING: &str = "\
f /home/user/workspace/.env
d /home/user/workspace/.git/hooks
d /home/user/workspace/secret/open
d /usr/bin
l /bin -> /usr/bin
f /home/user/workspace/secret/key
";

struct Nothing;

impl Files for Nothing {
    fn read(&self, path: &str) -> io::Result<Text> {
        Err(io::Error::new(io::ErrorKind::NotFound, path.to_owned()))
    }
}

fn bound(text: &str, listing: &str) -> (BoundPolicy, Sources) {
    let mut sources = Sources::default();
    let given = sources.add("agent.policy", text);
    let registry = ("registry".to_owned(), "registry.example.com".to_owned());
    let defines = text.contains("$registry").then_some(registry);
    let options = Options { system: System::Linux, defines: defines.into_iter().collect() };
    let policy = resolve(&[given], &mut sources, &Nothing, &options).0.unwrap();
    let policy = bind(policy, &nominal().with(listing).unwrap()).0.unwrap();
    (policy, sources)
}

fn needs() -> Needs {
    Needs { performs: Watch::Nothing, ..Needs::default() }
}

/// The plan of a policy, and what is written for it in each form that can hold it.
fn written(text: &str, listing: &str) -> (Plan, Vec<(Form, String)>) {
    let (policy, sources) = bound(text, listing);
    let compiled = compile(&policy, &needs());
    let plan = compiled.plan.unwrap_or_else(|| panic!("{text}\n{:?}", compiled.diagnostics));
    let texts = FORMS.iter().filter_map(|(emit, form)| {
        let built = match bubblewrap(&policy, &sources, &[*emit], &needs()) {
            // A descriptor's text has no place among words that are ended by NUL.
            Err(said) if *form == Form::Nul && said.starts_with("bwrap-nul: ") => return None,
            built => built.unwrap(),
        };
        Some((*form, String::from_utf8(built.artefacts.into_iter().next()?.1).unwrap()))
    });
    let texts = texts.collect();
    (plan, texts)
}

#[test]
fn the_shipped_policies_are_written_as_they_are_planned() {
    let mut tried = 0;
    for path in files("policies", "policy") {
        if path.parent().unwrap().ends_with("std") && !path.ends_with("std/default.policy") {
            continue;
        }
        let (plan, texts) = written(&fs::read_to_string(&path).unwrap(), "");
        for (form, text) in &texts {
            assert_eq!(prove(&plan, *form, text.as_bytes()), Ok(()), "{} {form:?}\n{text}", path.display());
        }
        assert!(texts.len() >= 2, "{}", path.display());
        tried += texts.len();
    }
    assert!(tried >= 15, "{tried} texts");
}

/// Something that a line holds, with the lines up to the next option, moved to before another one.
fn moved(text: &str, what: &str, before: &str) -> String {
    let (head, rest) = text.split_once(what).unwrap_or_else(|| panic!("no `{what}` in {text}"));
    let without = format!("{head}{rest}");
    without.replacen(before, &format!("{what}{before}"), 1)
}

/// Its name, and what the right text becomes by one mistake of what writes it.
type Mistake = (&'static str, fn(&str) -> String);

const MISTAKES: &[Mistake] = &[
    ("a mask before the tree that it is in", |text| {
        moved(text, "--ro-bind\n/dev/null\n/home/user/workspace/.env\n", "--bind\n/home/user/workspace\n")
    }),
    ("a mask that is dropped", |text| text.replacen("--ro-bind\n/dev/null\n/home/user/workspace/.env\n", "", 1)),
    ("a mask that is another file", |text| {
        text.replacen("/dev/null\n/home/user/workspace/.env", "/dev/zero\n/home/user/workspace/.env", 1)
    }),
    ("a mask of the name beside", |text| {
        text.replacen("/dev/null\n/home/user/workspace/.env\n", "/dev/null\n/home/user/workspace/.env2\n", 1)
    }),
    ("a tree that is read-only", |text| {
        text.replacen("--bind\n/home/user/workspace\n", "--ro-bind\n/home/user/workspace\n", 1)
    }),
    ("a closed directory that is writable", |text| {
        text.replacen("--ro-bind\n/home/user/workspace/.git/hooks\n", "--bind\n/home/user/workspace/.git/hooks\n", 1)
    }),
    ("a closed directory that is left out", |text| {
        text.replacen("--ro-bind\n/home/user/workspace/.git/hooks\n/home/user/workspace/.git/hooks\n", "", 1)
    }),
    ("a pin that is dropped", |text| {
        text.replacen("--bind\n/home/user/workspace/.git\n/home/user/workspace/.git\n", "", 1)
    }),
    ("a tree that is shown elsewhere", |text| {
        text.replacen("/home/user/workspace\n/home/user/workspace\n", "/home/user\n/home/user/workspace\n", 1)
    }),
    ("an empty directory that is left open", |text| {
        text.replacen("--remount-ro\n/home/user/workspace/secret\n", "", 1)
    }),
    ("an empty directory that is closed too early", |text| {
        moved(text, "--remount-ro\n/home/user/workspace/secret\n", "--bind\n/home/user/workspace/secret/open\n")
    }),
    ("an empty directory that is left out", |text| {
        text.replacen("--perms\n0111\n--tmpfs\n/home/user/workspace/secret\n", "", 1).replacen(
            "--remount-ro\n/home/user/workspace/secret\n",
            "",
            1,
        )
    }),
    ("names that can be listed", |text| {
        text.replacen(
            "--perms\n0111\n--tmpfs\n/home/user/workspace/secret\n",
            "--perms\n0555\n--tmpfs\n/home/user/workspace/secret\n",
            1,
        )
    }),
    ("what is opened again left out", |text| {
        text.replacen("--bind\n/home/user/workspace/secret/open\n/home/user/workspace/secret/open\n", "", 1)
    }),
    ("a root that is left open", |text| text.replacen("--remount-ro\n/\n", "", 1)),
    ("the whole host beneath", |text| text.replacen("--chmod\n", "--ro-bind\n/\n/\n--chmod\n", 1)),
    ("the host's devices", |text| text.replacen("--dev\n/dev\n", "--bind\n/dev\n/dev\n", 1)),
    ("devices that can be added to", |text| text.replacen("--remount-ro\n/dev\n", "", 1)),
    ("the host's processes", |text| text.replacen("--proc\n/proc\n", "--ro-bind\n/proc\n/proc\n", 1)),
    ("the host's network", |text| text.replacen("--unshare-net\n", "", 1)),
    ("a network that is shared again", |text| text.replacen("--as-pid-1\n", "--as-pid-1\n--share-net\n", 1)),
    ("the host's users", |text| text.replacen("--unshare-user\n", "", 1)),
    ("a command that outlives its runner", |text| text.replacen("--die-with-parent\n", "", 1)),
    ("a capability too many", |text| text.replacen("--cap-add\n", "--cap-add\nCAP_SYS_MODULE\n--cap-add\n", 1)),
    ("a private place that is the host's", |text| {
        text.replacen("--perms\n1777\n--tmpfs\n/tmp\n", "--bind\n/tmp\n/tmp\n", 1)
    }),
    ("a link that leads elsewhere", |text| text.replacen("--symlink\n/usr/bin\n", "--symlink\n/home/user\n", 1)),
    ("a file with another text", |text| text.replacen("root:x:0:0", "root::0:0", 1)),
    ("a name that a shell would take apart", |text| {
        text.replacen("\n/home/user/workspace/.env\n", "\n/home/user/work space/.env\n", 1)
    }),
];

#[test]
fn each_mistake_is_seen() {
    let (plan, texts) = written(POLICY, LISTING);
    let (_, right) = texts.iter().find(|(form, _)| *form == Form::Lines).unwrap();
    assert_eq!(prove(&plan, Form::Lines, right.as_bytes()), Ok(()), "{right}");
    let mut missed = Vec::new();
    for (name, mistake) in MISTAKES {
        let wrong = mistake(right);
        if wrong == *right {
            missed.push(format!("{name}: nothing is changed"));
        } else if prove(&plan, Form::Lines, wrong.as_bytes()).is_ok() {
            missed.push(format!("{name}: not seen"));
        }
    }
    assert!(missed.is_empty(), "{}\n{right}", missed.join("\n"));
}
