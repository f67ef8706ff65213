//! Seeded mistakes of the emitter: each must be caught by `verify`, or by Guile's verdicts.
//!
//! A mistake is made in the text: what is changed is what an emitter with that mistake would have written.

use super::guile::Machine;
use super::{Compiled, compile, generated, verify};

const POLICY: &str = r#"srt 1
default read deny
allow read /usr
allow read exact /
allow read, write $WORKSPACE
allow read, write $TMP
deny read $WORKSPACE/secrets
allow read $WORKSPACE/secrets/public
deny read $WORKSPACE/**/.env except $WORKSPACE/**/.env.example
deny read $WORKSPACE/**/.env.* except $WORKSPACE/**/.env.example
deny write $WORKSPACE/.git/hooks
deny write "$WORKSPACE/quo\"te"
deny write $WORKSPACE/*.lock
deny read /etc/passwd
allow read /private/etc
deny exec $WORKSPACE/data
allow connect example.com
allow mach com.example.one
allow socket /private/var/run/agent
"#;

/// The name of a mistake, and the text with it.
type Mistake = (&'static str, fn(&str) -> String);

const MISTAKES: &[Mistake] = &[
    ("a denial after what it would leave open", |text| {
        let deny = "(deny process-info*)\n";
        without(text, deny.trim_end()) + deny
    }),
    ("a prefix of every name", |text| text.replacen("(sysctl-name \"hw.byteorder\")", "(sysctl-name-prefix \"\")", 1)),
    ("a deny that is dropped", |text| without(text, "[Hh][Oo][Oo]")),
    ("an allow that is dropped", |text| without(text, "(subpath \"/usr\")")),
    ("a literal for a tree", |text| {
        text.replacen("(subpath (param \"WORKSPACE\"))", "(literal (param \"WORKSPACE\"))", 1)
    }),
    ("a tree for a literal", |text| text.replacen("(literal \"/\") ;", "(subpath \"/\") ;", 1)),
    ("an expression that is not anchored", |text| {
        text.replacen("(regex \"^/etc", "(regex \"/etc", 1).replacen(
            "\"^\" (param \"WORKSPACE.regex\")",
            "(param \"WORKSPACE.regex\")",
            1,
        )
    }),
    ("a tree that is its node", |text| text.replacen("[Tt]([Ss]|\u{17f})(/|$)\"", "[Tt]([Ss]|\u{17f})$\"", 1)),
    ("a tree by its first letters", |text| text.replacen("[Tt]([Ss]|\u{17f})(/|$)\"", "[Tt]([Ss]|\u{17f})\"", 1)),
    ("one spelling alone", |text| text.replacen("\\\\.[Ee][Nn][Vv]", "\\\\.env", 1)),
    ("a letter that folds from outside ASCII forgotten", |text| {
        text.replacen("[Rr][Ee][Tt]([Ss]|\u{17f})", "[Rr][Ee][Tt][Ss]", 1)
    }),
    ("a dot that is any character", |text| text.replacen("\\\\.[Ee]", ".[Ee]", 1)),
    ("a star that crosses a slash", |text| text.replacen("[^/]*\\\\.[Ll]", ".*\\\\.[Ll]", 1)),
    ("`**` that is one directory", |text| text.replacen("(/[^/]+)*/\\\\.[Ee]", "/[^/]+/\\\\.[Ee]", 1)),
    ("a pin that is dropped", |text| without(text, "\"/\\\\.[Gg][Ii][Tt]$\"")),
    ("what is above a variable not pinned", |text| last(text, "      (regex (param \"WORKSPACE.ancestors\"))", "")),
    ("pins that nobody asks", |text| text.replacen("  nameable)", "  writable)", 1)),
    ("unlinking without pins", |text| {
        text.replacen(
            "(allow file-write-create file-write-unlink\n",
            "(allow file-write-unlink writable)\n(allow file-write-create\n",
            1,
        )
    }),
    ("what is denied to read may be written", |text| text.replacen("write-kept read-kept))", "write-kept))", 1)),
    ("what is denied to read may be run", |text| text.replacen("exec-kept read-kept))", "exec-kept))", 1)),
    ("running that is not denied", |text| text.replacen("exec-kept read-kept))", "read-kept))", 1)),
    ("a denial that nothing opens", |text| {
        without(text, "(subpath (string-append (param \"WORKSPACE\") \"/secrets/public\"))\n")
    }),
    ("an exception that is dropped", |text| without(text, "\\\\.env\\\\.example")),
    ("`require-not` that is dropped", |text| text.replacen("(require-not", "(require-any", 1)),
    ("`require-all` for `require-any`", |text| {
        text.replacen("(define read-granted\n  (require-any", "(define read-granted\n  (require-all", 1)
    }),
    ("names that a rename brings in forgotten", |text| without(text, "\"TMP.regex\") \"(/[^/]+)*/\\\\.[Ee]")),
    ("a link's own name for its place", |text| without(text, "/[Pp][Rr][Ii][Vv][Aa][Tt][Ee]/[Ee][Tt][Cc]")),
    ("any host for the proxy", |text| text.replacen("\"localhost:\"", "\"*:\"", 1)),
    ("every port of this machine", |text| {
        text.replacen("(string-append \"localhost:\" (param \"proxy.port\"))", "\"localhost:*\"", 1)
    }),
    ("firmware variables left open", |text| text.replacen("(deny nvram*)\n", "", 1)),
    ("processes of others left open", |text| text.replacen("(deny process-info*)\n", "", 1)),
    ("signals to everyone", |text| text.replacen("(allow signal (target same-sandbox))", "(allow signal)", 1)),
    ("everything allowed first", |text| text.replacen("(deny default", "(allow default", 1)),
    ("a wildcard beside a name", |text| text.replacen("file-read-data file-read-xattr", "file-read*", 1)),
    ("a rule that counts on its place", |text| format!("{text}(deny file-read-data (subpath \"/usr/local\"))\n")),
    ("a string that is not escaped", |text| text.replacen("\\\\\"[Tt]", "\"[Tt]", 1).replacen("\\\"[Tt]", "\"[Tt]", 1)),
    ("an operation that is forgotten", |text| text.replacen("file-write-data ", "", 1)),
    ("a service too many", |text| {
        text.replacen(
            "(global-name \"com.example.one\")",
            "(global-name \"com.example.one\") (global-name \"com.example.two\")",
            1,
        )
    }),
    ("sockets below a socket's place, and above", |text| {
        text.replacen("(subpath \"/private/var/run/agent\")", "(subpath \"/private/var/run\")", 1)
    }),
    ("looking that is denied", |text| text.replacen("\n  readable)\n", ")\n", 1)),
];

/// The text without the filter of the first line that has some words; what the line closes stays.
fn without(text: &str, words: &str) -> String {
    let mut dropped = false;
    let mut lines = String::new();
    for line in text.split_inclusive('\n') {
        if !dropped && line.contains(words.trim_end_matches('\n')) && line.trim_start().starts_with('(') {
            dropped = true;
            let filter = line.split(" ; ").next().unwrap().trim();
            let (mut depth, mut end) = (0, 0);
            let mut quoted = false;
            let mut escaped = false;
            for (at, char) in filter.char_indices() {
                match char {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '"' => quoted = !quoted,
                    '(' if !quoted => depth += 1,
                    ')' if !quoted => {
                        depth -= 1;
                        if depth == 0 {
                            end = at + 1;
                            break;
                        }
                    }
                    _ => {}
                }
            }
            lines += &filter[end..];
            lines.push('\n');
        } else {
            lines += line;
        }
    }
    lines
}

/// The last place with some words, with others.
fn last(text: &str, words: &str, others: &str) -> String {
    let at = text.rfind(words).unwrap_or_else(|| panic!("no `{words}`"));
    format!("{}{others}{}", &text[..at], &text[at + words.len()..])
}

#[test]
fn each_mistake_is_caught() {
    let right = compile("mutants", POLICY).unwrap_or_else(|said| panic!("{said}"));
    let prove = |profile: &str| verify::seatbelt::prove(&right.lowered.policy, &right.lowered.gaps, profile);
    assert_eq!(prove(&right.profile), Ok(()), "{}", right.profile);
    let mut missed = Vec::new();
    let mut by_guile = 0;
    for (name, mistake) in MISTAKES {
        let wrong = mistake(&right.profile);
        if wrong == right.profile {
            missed.push(format!("{name}: nothing is changed"));
            continue;
        }
        let proof = prove(&wrong);
        // Guile is asked as well where there is one: two readers that miss the same would be no two.
        let found = Machine::new().is_some_and(|mut machine| {
            let again = compile("mutants", POLICY).unwrap();
            let wrong = Compiled { profile: wrong, ..again };
            machine.ask(name, &wrong, generated::accesses(&wrong.lowered.policy, 150, 3));
            for (operation, object) in [
                ("network-outbound", "remote:localhost:22"),
                ("nvram-get", "x"),
                ("signal", "x"),
                ("process-info-pidinfo", "x"),
            ] {
                machine.question(name, &wrong, operation, object, false);
            }
            !machine.differences().is_empty()
        });
        by_guile += usize::from(found);
        // What ships is the proof.
        if proof.is_ok() {
            missed.push(format!("{name}: not caught by the proof; Guile: {found}"));
        }
    }
    assert!(missed.is_empty(), "{}\n{}", missed.join("\n"), right.profile);
    assert!(super::guile::found("guile").is_none() || by_guile * 2 >= MISTAKES.len(), "Guile saw {by_guile}");
}
