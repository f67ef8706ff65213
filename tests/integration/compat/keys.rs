//! Every key of the settings' schema is honoured, or refused with what to write instead; none is passed over.

use super::{PLACES, alone, policy, shown, translated};
use sandbox_runtime::compat::{Gravity, Places, Text as Part, Translation, claude, codex, settings};
use sandbox_runtime::ir::{Access, decide, special};
use sandbox_runtime::sets::{host::Name, path::AbsPath, peer::Protocol};
use sandbox_runtime::source::{Sources, Span};
use sandbox_runtime::vocabulary::System;
use std::path::Path;

/// A fragment of settings for each key, by the key's path in the schema. Keys of lists' entries stand below the list's.
const KEYS: &[(&str, &str)] = &[
    (
        "network.allowedDomains",
        r#"{"network":{"allowedDomains":["github.com","*.npmjs.org:443","10.0.0.7:5432","[::1]:8080","localhost:3000"]}}"#,
    ),
    (
        "network.allowedDomains",
        r#"{"network":{"allowedDomains":["*","*.com","localhost","https://example.com/x","::1","a.b:0","intranet","a b.c"]}}"#,
    ),
    ("network.deniedDomains", r#"{"network":{"deniedDomains":["evil.example","*","*:22","10.0.0.7"]}}"#),
    (
        "network.deniedDomainReasons",
        r#"{"network":{"deniedDomains":["evil.example"],"deniedDomainReasons":{"evil.example":"it is \"bad\"","evil.exampel":"x"}}}"#,
    ),
    ("network.strictAllowlist", r#"{"network":{"strictAllowlist":true}}"#),
    (
        "network.deniedResolvedAddresses",
        r#"{"network":{"deniedResolvedAddresses":["10.1.2.3/8","fc00::1/7","192.0.2.1","10.0.0.0/33","x"]}}"#,
    ),
    ("network.allowUnixSockets", r#"{"network":{"allowUnixSockets":["/run/a.sock","~/b.sock"]}}"#),
    ("network.allowAllUnixSockets", r#"{"network":{"allowAllUnixSockets":true}}"#),
    ("network.allowLocalBinding", r#"{"network":{"allowLocalBinding":true}}"#),
    ("network.allowMachLookup", r#"{"network":{"allowMachLookup":["com.example.one","com.example.*","*"]}}"#),
    ("network.httpProxyPort", r#"{"network":{"httpProxyPort":3128}}"#),
    ("network.socksProxyPort", r#"{"network":{"socksProxyPort":1080}}"#),
    ("network.mitmProxy", r#"{"network":{"mitmProxy":{"socketPath":"/run/m.sock","domains":["a.example"]}}}"#),
    ("network.filterRequest", r#"{"network":{"filterRequest":"x"}}"#),
    ("network.tlsTerminate", r#"{"network":{"tlsTerminate":{}}}"#),
    ("network.parentProxy", r#"{"network":{"parentProxy":{"http":"http://proxy:3128"}}}"#),
    ("filesystem.disabled", r#"{"filesystem":{"disabled":true}}"#),
    ("filesystem.denyRead", r#"{"filesystem":{"denyRead":["~/.ssh","/a/*/b","**/.env","/data/**","c/","/d*/"]}}"#),
    (
        "filesystem.denyRead",
        r#"{"filesystem":{"denyRead":["","~other/x","a**","[!a]","[a","/a/[x-z]?","with space","$HOME","{a,b}"]}}"#,
    ),
    (
        "filesystem.allowRead",
        r#"{"filesystem":{"denyRead":["/home","/x/**","/same"],"allowRead":[".","/x/y","/same/"]}}"#,
    ),
    ("filesystem.allowWrite", r#"{"filesystem":{"allowWrite":[".","src/","/tmp","/","../other"]}}"#),
    ("filesystem.allowWrite", r#"{"filesystem":{"allowWrite":[".vscode","~/.bashrc",".git/hooks/x"]}}"#),
    ("filesystem.denyWrite", r#"{"filesystem":{"allowWrite":["."],"denyWrite":[".env","secrets/**","*.lock"]}}"#),
    ("filesystem.allowGitConfig", r#"{"filesystem":{"allowWrite":["."],"allowGitConfig":true}}"#),
    (
        "credentials.files",
        r#"{"credentials":{"files":[{"path":"~/.netrc","mode":"deny","injectHosts":["a.example"]},{"path":"t","mode":"mask"},{"path":"u"}]}}"#,
    ),
    (
        "credentials.envVars",
        r#"{"credentials":{"envVars":[{"name":"TOKEN","mode":"deny"},{"name":"KEY","mode":"mask","extract":"(x)"},{"name":"1X","mode":"deny"},{"name":"A","mode":"dney"}]}}"#,
    ),
    ("credentials.allowPlaintextInject", r#"{"credentials":{"allowPlaintextInject":true}}"#),
    ("credentials.awsPairs", r#"{"credentials":{"awsPairs":[]}}"#),
    ("credentials.sigv4", r#"{"credentials":{"sigv4":{}}}"#),
    ("ignoreViolations", r#"{"ignoreViolations":{"*":["/usr/bin","x"],"git push":["/usr/bin"]}}"#),
    ("enableWeakerNestedSandbox", r#"{"enableWeakerNestedSandbox":true}"#),
    ("enableWeakerNetworkIsolation", r#"{"enableWeakerNetworkIsolation":true}"#),
    ("allowAppleEvents", r#"{"allowAppleEvents":true}"#),
    ("ripgrep", r#"{"ripgrep":{"command":"rg"}}"#),
    ("mandatoryDenySearchDepth", r#"{"mandatoryDenySearchDepth":5}"#),
    ("allowPty", r#"{"allowPty":false}"#),
    ("seccomp", r#"{"seccomp":{"applyPath":"/x"}}"#),
    ("bwrapPath", r#"{"bwrapPath":"/usr/bin/bwrap"}"#),
    ("socatPath", r#"{"socatPath":"/usr/bin/socat"}"#),
    ("javaAgentJarPath", r#"{"javaAgentJarPath":"/x.jar"}"#),
    ("windows", r#"{"windows":{"sandboxUser":"x"}}"#),
    ("git.safeDirectories", r#"{"git":{"safeDirectories":["/srv/repo","/srv/a \"b\""]}}"#),
];

/// What a file may be that is not as its schema has it.
const WRONG: &[&str] = &[
    "",
    "  // nothing\n",
    "[]",
    "{\"network\": {\"allowedDomains\": \"x.example\"}}",
    "{\"network\": {\"alowedDomains\": []}}",
    "{\"netwrok\": {}}",
    "{\"network\": {}, \"network\": {}}",
    "{\"network\": {\"allowedDomains\": [1]}}",
    "{\"filesystem\": {\"allowWrite\": [\".\"],}}",
    "{\"filesystem\": {\"allowWrite\": [\".\"]",
    "{'filesystem': {}}",
    "{\"allowPty\": \"yes\"}",
];

#[track_caller]
fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/compat"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn every_key_is_honoured_or_refused() {
    let mut text = String::new();
    for (key, json) in KEYS {
        let found = translated(json);
        let said = shown(&found);
        // The one key that has nothing to say: nobody is asked here, whatever it says.
        assert!(!said.is_empty() || *key == "network.strictAllowlist", "{key} is passed over");
        text.push_str(&format!("{json}\n{said}\n"));
        if !found.refused() {
            for system in System::ALL {
                policy(found.texts("s.json"), *system);
            }
        }
    }
    for json in WRONG {
        let found = translated(json);
        text.push_str(&format!("{json}\n{}\n", shown(&found)));
    }
    snapshot("settings", &text);
}

/// A key that is off, or a list that is empty, asks for nothing.
#[test]
fn what_is_off_says_nothing() {
    let json = r#"{
        "network": { "allowedDomains": [], "deniedDomains": [], "allowUnixSockets": [], "allowAllUnixSockets": false,
            "allowLocalBinding": false, "strictAllowlist": false },
        "filesystem": { "disabled": false, "denyRead": [], "allowRead": [], "allowWrite": [], "denyWrite": [],
            "allowGitConfig": false },
        "credentials": { "files": [], "envVars": [], "allowPlaintextInject": false },
        "ignoreViolations": {}, "enableWeakerNestedSandbox": false, "enableWeakerNetworkIsolation": false,
        "allowAppleEvents": false, "allowPty": true, "git": { "safeDirectories": [] }
    }"#;
    assert_eq!(shown(&translated(json)), "");
}

#[test]
fn a_statement_stands_on_the_line_of_its_key() {
    let places = |json: &str| -> Vec<String> {
        let mut sources = Sources::default();
        let place = |part: Part| {
            let start = part.text.find("forbid").unwrap();
            let id = part.add_to(&mut sources);
            let span = Span::new(id, start..start + 1);
            assert_eq!(sources.extent(span).line, sources.location(span).line);
            sources.location(span).to_string()
        };
        translated(json).texts("s.json").into_iter().skip(1).map(place).collect()
    };
    let json = "{\n  \"filesystem\": {\n    \"denyWrite\": [\n\n      \"/srv/x\",\n      \"/srv/y\"\n    ]\n  }\n}\n";
    assert_eq!(places(json), ["s.json#filesystem.denyWrite[0]:5", "s.json#filesystem.denyWrite[1]:6"]);
    let json = "{\"filesystem\":{\"denyWrite\":[\"/srv/x\"]}}";
    assert_eq!(places(json), ["s.json#filesystem.denyWrite[0]:1"]);
}

/// However many lines stand before a key, its statement is as long.
#[test]
fn a_long_file_is_not_much_text() {
    let entries: Vec<_> = (0..10_000).map(|number| format!("\n\"h{number}.example.com:443\"")).collect();
    let json = format!("{{\"network\":{{\"allowedDomains\":[{}]}}}}", entries.join(","));
    let all: usize = translated(&json).texts("s.json").iter().map(|part| part.text.len()).sum();
    assert!(all < 10_000 * 100, "{all}");
}

#[test]
fn the_settings_themselves_are_not_written() {
    let own =
        settings::translate("{\"filesystem\":{\"allowWrite\":[\"/srv\"]}}", Places::default(), Some("/srv/s.json"));
    assert!(
        own.statements.iter().any(|one| one.lines.iter().any(|line| line.starts_with("forbid write /srv/s.json ")))
    );
    for name in ["/srv/[a]*?/s.json", "/srv/a,b {c}/$s\\.json", "/srv/~/[s.json", "/srv/*"] {
        let own = settings::translate("{\"filesystem\":{\"allowWrite\":[\"/srv\"]}}", PLACES, Some(name));
        let policy = policy(own.texts("s.json"), System::Linux);
        let write = |path: &str| decide(&policy, &Access::Write(AbsPath::parse(path).unwrap())).allowed;
        assert!(!write(name) && write("/srv/a/s.json"), "{name}");
    }
    assert!(settings::translate("{}", PLACES, Some("/srv/a\u{202e}.json")).refused());
}

#[test]
fn claude_code_and_codex_are_read() {
    let claude = claude::translate(
        r#"{
  "permissions": {
    "allow": ["Read", "Read(~/docs/**)", "Edit(/src/**)", "Edit(//opt/x)", "WebFetch(domain:docs.rs)", "Bash(npm test:*)", "mcp__x", "WebFetch(domain:*)"],
    "deny": ["Read(./.env)", "Read(secrets)", "Edit(~/.config)", "WebFetch(domain:evil.example)", "Bash(curl:*)", "WebFetch"],
    "ask": ["Bash(git push:*)"],
    "additionalDirectories": ["../shared", "/data"],
    "defaultMode": "acceptEdits",
    "alow": []
  },
  "sandbox": {
    "enabled": true,
    "excludedCommands": ["docker"],
    "network": { "allowedDomains": ["github.com"], "allowLocalBinding": true },
    "filesystem": { "denyRead": ["~/.aws"] }
  },
  "env": { "CI": "1", "A B": "x", "CI": "2" },
  "model": "any"
}"#,
    );
    let codex = |text: &str| shown(&codex::translate(text));
    let text = [
        shown(&claude),
        codex(
            "sandbox_mode = \"workspace-write\"\napproval_policy = \"never\"\n\n[sandbox_workspace_write]\nwritable_roots = [\"/data\", \"a/*\"]\nnetwork_access = true\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n\n[shell_environment_policy]\ninherit = \"core\"\nignore_default_excludes = false\nexclude = [\"AWS_*\", \"a-b\"]\nset = { CI = \"1\" }\n",
        ),
        codex("model = \"x\"\n"),
        codex("sandbox_mode = \"danger-full-access\"\n"),
        codex("sandbox_mode = \"workspace-wirte\"\n[sandbox_workspace_write]\nwritable_root = []\n"),
        codex(
            "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nwritable_root = []\nnetwork_access = 1\n",
        ),
        codex("sandbox_mode = [\n"),
        codex("[shell_environment_policy]\ninherit = \"none\"\ninclude_only = [\"PATH\"]\n"),
        codex(
            "[shell_environment_policy]\nignore_default_excludes = true\nexclude = [\"github_token\", \"*a*a*a*a*a*\"]\ninclude_only = [\"Path\", \"GITHUB_*\"]\nset = { path = \"/bin\", CI = \"1\", \"1X\" = \"\" }\n",
        ),
    ];
    snapshot("others", &text.join("\n"));
    for translation in [
        claude,
        claude::translate(
            r#"{"permissions":{"allow":["Edit(//opt/x)"],"deny":["Read","Edit","WebFetch","Grep(.env)"],"ask":["Edit(/a)"]}}"#,
        ),
        codex::translate(
            "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nwritable_roots = [\"/data\"]\nnetwork_access = true\n[shell_environment_policy]\ninherit = \"core\"\nexclude = [\"AWS_*\"]\n",
        ),
    ] {
        let usable = translation.policy("x.json");
        for system in System::ALL {
            policy(alone(usable.clone()), *system);
        }
    }
}

fn decided(translation: &Translation, access: &Access) -> bool {
    assert!(!translation.refused(), "{:#?}", translation.said);
    decide(&policy(alone(translation.policy("x")), System::Linux), access).allowed
}

/// What Claude Code denies, or asks about, is closed whatever else its file opens; what cannot be closed is said.
#[test]
fn no_deny_of_claude_code_comes_out_weaker() {
    let write = |path: &str| Access::Write(AbsPath::parse(path).unwrap());
    let read = |path: &str| Access::Read(AbsPath::parse(path).unwrap());
    let fetch = |port| Access::Connect {
        name: Some(Name::parse("evil.example").unwrap()),
        address: special::NOMINAL,
        port,
        protocol: Protocol::Tcp,
    };
    let everything = || vec![write("/opt/x/a"), write("/data/a")];
    let closed: [(&str, Vec<Access>); 13] = [
        ("\"deny\":[\"Edit\"]", everything()),
        ("\"deny\":[\"Write(*)\"]", everything()),
        ("\"ask\":[\"MultiEdit\"]", everything()),
        ("\"defaultMode\":\"plan\"", everything()),
        ("\"deny\":[\"NotebookEdit\"]", vec![write("/opt/x/a.ipynb"), write("/data/b/.ipynb")]),
        ("\"ask\":[\"Edit(//opt/x/a)\"]", vec![write("/opt/x/a")]),
        ("\"deny\":[\" MultiEdit( //opt/x/** ) \"]", vec![write("/opt/x"), write("/opt/x/a/b")]),
        ("\"deny\":[\"Read(//opt/x/*.pem)\"]", vec![read("/opt/x/a.pem"), write("/opt/x/a.pem")]),
        ("\"deny\":[\"Grep(//opt/x/a)\"]", vec![read("/opt/x/a")]),
        ("\"deny\":[\"WebFetch(domain:evil.example)\"]", vec![fetch(443), fetch(22)]),
        ("\"ask\":[\"WebFetch(domain:evil.example)\"]", vec![fetch(443), fetch(22)]),
        ("\"deny\":[\"WebFetch\"]", vec![fetch(443), fetch(22)]),
        ("\"ask\":[\"WebFetch(*)\"]", vec![fetch(443), fetch(22)]),
    ];
    let file = |rule: &str| {
        claude::translate(&format!(
            "{{\"permissions\":{{\"allow\":[\"Edit(//opt/x)\"],\"additionalDirectories\":[\"/data\"]{rule}}},\
             \"sandbox\":{{\"network\":{{\"allowedDomains\":[\"evil.example\"]}}}}}}"
        ))
    };
    let said = |translation: &Translation| -> Vec<String> {
        translation.wrong().map(|said| format!("{:?} {}", said.gravity, said.message)).collect()
    };
    let asks = "Looser without this key Claude Code asks before it edits, and a run asks nobody: the workspace is written \
        without a question";
    let own = "Looser a command writes its own temporary directory and the devices, so that those stay open";
    let open = file("");
    assert_eq!(said(&open), [asks]);
    for (rule, accesses) in closed {
        let translation = file(&format!(",{rule}"));
        // What stays open where nothing is edited, and else that nobody is asked: nothing more is looser.
        let no_edits = accesses == everything();
        assert_eq!(said(&translation), [if no_edits { own } else { asks }], "{rule}");
        for access in accesses {
            assert!(decided(&open, &access), "{access} without {rule}");
            assert!(!decided(&translation, &access), "{access} with {rule}");
        }
    }
    for rule in ["Bash(curl:*)", "mcp__x", "Task", "Read"] {
        for list in ["deny", "ask"] {
            let translation = file(&format!(",\"{list}\":[\"{rule}\"],\"defaultMode\":\"acceptEdits\""));
            let looser = translation.said.iter().filter(|said| said.gravity == Gravity::Looser).count();
            assert!(looser == 1 && !translation.refused(), "{list} {rule}: {:#?}", translation.said);
        }
    }
    // Whether the workspace is written without a question there too.
    for (rest, looser) in [
        (",\"defaultMode\":\"default\"", true),
        (",\"defaultMode\":\"dontAsk\"", true),
        (",\"defaultMode\":\"acceptEdit\"", true),
        (",\"defaultMode\":\"acceptEdits\"", false),
        (",\"defaultMode\":\"bypassPermissions\"", false),
    ] {
        assert_eq!(file(rest).wrong().count(), usize::from(looser), "{rest}");
    }
    assert_eq!(claude::translate("{\"permissions\":{\"allow\":[\"Edit\"]}}").wrong().count(), 0);
    assert_eq!(said(&claude::translate("{\"sandbox\":{\"enabled\":true}}")), [asks]);
    for rule in ["Edit(a", "Edit(a)b", "Edit)", "Bash(curl"] {
        for list in ["allow", "deny", "ask"] {
            let text = format!("{{\"permissions\":{{\"{list}\":[\"{rule}\"]}}}}");
            assert!(claude::translate(&text).refused(), "{list} {rule}");
        }
    }
    for rule in ["Edit(!a)", "Read(a\\\\*)", "Edit()", "Edit(../a)"] {
        assert!(file(&format!(",\"deny\":[\"{rule}\"]")).refused(), "{rule}");
    }
    for twice in [
        "{\"permissions\":{},\"permissions\":{}}",
        "{\"permissions\":{\"deny\":[\"Edit\"],\"deny\":[]}}",
        "{\"env\":{\"A\":\"1\",\"\\u0041\":\"2\"}}",
        "{\"model\":1,\"model\":2}",
        "{\"sandbox\":{\"network\":{\"deniedDomains\":[\"a.b\"],\"deniedDomainReasons\":{\"a.b\":\"x\",\"a.b\":\"y\"}}}}",
    ] {
        assert!(claude::translate(twice).refused(), "{twice}");
    }
}

/// The steps that Codex takes, one after another.
fn codex_keeps(inherit: &str, exclude: &[&str], only: &[&str], name: &str) -> bool {
    let core = ["HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"];
    let matched = |pattern: &&str| {
        let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
        match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(_), Some(_)) => name.contains(pattern.trim_matches('*')),
            (Some(end), None) => name.ends_with(end),
            (None, Some(start)) => name.starts_with(start),
            (None, None) => name == pattern,
        }
    };
    let inherited = match inherit {
        "all" => true,
        "core" => core.contains(&name),
        _ => false,
    };
    inherited && !exclude.iter().any(matched) && (only.is_empty() || only.iter().any(matched))
}

#[test]
fn codex_lets_in_what_each_of_its_steps_leaves() {
    let patterns: [&[&str]; 6] = [&[], &["path"], &["*key*"], &["Aws_*", "HOME"], &["github_token"], &["*r"]];
    let names = [
        "PATH",
        "Path",
        "path",
        "HOME",
        "USER",
        "user",
        "AWS_X",
        "aws_x",
        "aWs_x",
        "MY_KEY_1",
        "my_Key",
        "GITHUB_TOKEN",
        "github_token",
        "GitHub_Token",
        "GITHUB_ACTOR",
        "X",
    ];
    let mut open = 0;
    for inherit in ["all", "core", "none"] {
        for exclude in patterns {
            for only in patterns {
                let list = |of: &[&str]| of.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
                let text = format!(
                    "[shell_environment_policy]\ninherit = \"{inherit}\"\nignore_default_excludes = true\n\
                     exclude = [{}]\ninclude_only = [{}]\n",
                    list(exclude),
                    list(only)
                );
                let translation = codex::translate(&text);
                let policy = policy(alone(translation.policy("x")), System::Linux);
                let exact = translation.said.is_empty();
                for name in names {
                    let expected = codex_keeps(inherit, exclude, only, name);
                    let allowed = decide(&policy, &Access::Env(name.to_owned())).allowed;
                    // Never looser; stricter where that is said.
                    assert!(allowed == expected || !allowed && !exact, "{name}: {allowed} of\n{text}");
                    open += usize::from(allowed);
                }
            }
        }
    }
    assert!(open > 150, "{open}");
}
