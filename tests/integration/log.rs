//! `srt log`: what runs have told is read back, whatever stands in the file.

use super::support::{Output, Scene, output};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

fn at(second: u32) -> String {
    format!("2026-01-02T03:04:{second:02}.006Z")
}

/// A refused write of `name` in the home, as `srt run` tells it.
fn write(scene: &Scene, second: u32, name: &str) -> Value {
    json!({
        "type": "violation", "timestamp": at(second), "pid": second + 2, "comm": "sh", "operation": "write",
        "path": format!("{}/{name}", scene.home().display()), "outcome": "predicted", "why": "denied",
        "rule": { "file": "/p/agent.policy", "line": 5, "text": "deny write $WORKSPACE/kept" },
        "because": "it is reviewed", "remedy": "allow write x",
    })
}

fn scene() -> Scene {
    let scene = Scene::new();
    let connect = |second: u32, host: &str| {
        json!({
            "type": "violation", "timestamp": at(second), "operation": "connect", "host": host, "port": 443,
            "outcome": "refused", "why": "default", "remedy": format!("allow connect {host}:443"),
        })
    };
    let allowed = json!({
        "type": "connection", "timestamp": at(30), "operation": "connect", "host": "api.example.com", "port": 443,
        "outcome": "allowed", "rule": { "file": "agent.policy", "line": 9, "text": "allow connect *.example.com" },
        "sent": 10, "received": 20, "milliseconds": 5,
    });
    let lines = [
        write(&scene, 1, "work/kept/a"),
        write(&scene, 2, "work/kept/a"),
        write(&scene, 3, "elsewhere/b"),
        connect(10, "evil.test"),
        connect(20, "api.evil.test"),
        allowed.clone(),
        allowed,
        json!({ "type": "dropped", "count": 4 }),
        json!({ "type": "of another version" }),
    ];
    let text: String = lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect();
    scene.folder("elsewhere").file("events", &format!("{text}\u{1b}]0;rubbish\n{}", r#"{"type":"violation","times"#))
}

fn log(scene: &Scene, arguments: &[&str]) -> Output {
    output(&mut scene.srt([&["log", "../events"], arguments].concat()))
}

/// What is said with a filter, without what is said of the file.
fn kept(arguments: &[&str]) -> Vec<String> {
    let scene = scene();
    let said = log(&scene, arguments);
    let home = scene.home().display().to_string();
    said.ok().lines().map(|line| line.replace(&home, "~")).collect()
}

#[test]
fn each_kind_is_one_line_with_the_last_time() {
    let scene = scene();
    let said = log(&scene, &[]);
    let home = scene.home().display();
    let expected = format!(
        "2026-01-02 03:04:02  2 writes to {home}/work/kept/a expected to be refused by /p/agent.policy:5 (because it is reviewed); to allow: `allow write x`
2026-01-02 03:04:03  1 write to {home}/elsewhere/b expected to be refused by /p/agent.policy:5 (because it is reviewed); to allow: `allow write x`
2026-01-02 03:04:10  1 connection to evil.test:443 refused: no rule allows it; to allow: `allow connect evil.test:443`
2026-01-02 03:04:20  1 connection to api.evil.test:443 refused: no rule allows it; to allow: `allow connect api.evil.test:443`
2026-01-02 03:04:30  2 connections to api.example.com:443 allowed by agent.policy:9; 20 bytes sent, 40 received"
    );
    assert_eq!(said.ok(), expected);
    let missing = "srt: 4 events are missing: they were dropped, here or when they happened\n\
                   srt: 2 lines are no events\n\
                   srt: 1 event is of a kind that this version does not know\n";
    assert_eq!(said.stderr, missing);
}

#[test]
fn filters_keep_what_they_say() {
    let words = |arguments: &[&str]| -> Vec<String> {
        let word =
            |line: &String| line.split("  ").nth(1).unwrap().split(' ').skip(1).take(3).collect::<Vec<_>>().join(" ");
        kept(arguments).iter().map(word).collect()
    };
    let (kept_a, elsewhere) = ("writes to ~/work/kept/a", "write to ~/elsewhere/b");
    assert_eq!(words(&["write"]), [kept_a, elsewhere]);
    assert_eq!(words(&["write", "$WORKSPACE/**/kept"]), [kept_a]);
    assert_eq!(words(&["write", "~/elsewhere"]), [elsewhere]);
    assert_eq!(words(&["--workspace", "../elsewhere", "write", "$WORKSPACE/b"]), [elsewhere]);
    assert_eq!(words(&["read"]), [""; 0]);
    assert_eq!(words(&["connect", "*.evil.test"]), ["connection to api.evil.test:443"]);
    assert_eq!(words(&["connect", "[evil.test, *.example.com:443]"]).len(), 2);
    assert_eq!(words(&["--outcome", "refused"]).len(), 2);
    assert_eq!(words(&["--outcome", "allowed"]).len(), 1);
    assert_eq!(words(&["--rule", "5"]).len(), 2);
    assert_eq!(words(&["--rule", "agent.policy:5"]).len(), 2);
    assert_eq!(words(&["--rule", "nt.policy:5"]), [""; 0]);
    assert_eq!(words(&["--pid", "5"]), [elsewhere]);
    assert_eq!(words(&["--since", "2026-01-02T03:04:20"]).len(), 2);
    assert_eq!(words(&["--since", "1d"]), [""; 0]);
    let each = kept(&["--each", "write", "$WORKSPACE"]);
    // Whatever is dropped may have been one of those.
    assert_eq!((each.len(), each[2].trim()), (3, "4 events dropped"), "{each:?}");
    assert!(each[0].starts_with("2026-01-02 03:04:01  sh[3]  1 write to ~/work/kept/a"), "{each:?}");
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let scene = scene();
    for arguments in [
        &["stat"][..],
        &["env", "X"],
        &["write", "work"],
        &["write", "$WORKSPACE because"],
        &["--since", "yesterday"],
        &["--rule", "x"],
        &["--html", "x", "--follow"],
    ] {
        let said = log(&scene, arguments);
        assert_eq!((said.code, &*said.stdout), (2, ""), "{arguments:?}");
    }
    let none = output(&mut scene.srt(["log", "../none"]));
    assert_eq!((none.code, none.stderr.contains("cannot read `../none`")), (2, true));
}

#[test]
fn programs_get_the_same() {
    let scene = scene();
    let value: Value = serde_json::from_str(log(&scene, &["--format", "json"]).ok()).unwrap();
    assert_eq!((&value["dropped"], &value["unread"], &value["unknown"]), (&json!(4), &json!(2), &json!(1)));
    let mut expected = write(&scene, 1, "work/kept/a");
    for field in ["timestamp", "pid", "comm"] {
        expected.as_object_mut().unwrap().remove(field);
    }
    for (field, value) in [("count", json!(2)), ("first", json!(at(1))), ("last", json!(at(2))), ("by", json!(["sh"]))]
    {
        expected[field] = value;
    }
    assert_eq!(value["kinds"][0], expected);
    assert_eq!((&value["kinds"][4]["count"], &value["kinds"][4]["received"]), (&json!(2), &json!(40)));
    // Each event as it was.
    let each = log(&scene, &["--each", "--format", "json", "write"]);
    let events: Vec<Value> = each.ok().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        events[..3],
        [(1, "work/kept/a"), (2, "work/kept/a"), (3, "elsewhere/b")].map(|(s, n)| write(&scene, s, n))
    );
    // Standard input is a file like others.
    let mut from = scene.srt(["log", "-", "--format", "json"]);
    from.stdin(fs::File::open(scene.home().join("events")).unwrap());
    assert_eq!(serde_json::from_str::<Value>(output(&mut from).ok()).unwrap(), value);
}

#[test]
fn a_page_holds_it_all() {
    let scene = scene();
    assert_eq!(log(&scene, &["--html", "../report.html"]).ok(), "");
    let page = fs::read_to_string(scene.home().join("report.html")).unwrap();
    assert_eq!(log(&scene, &["--html", "-"]).stdout, page);
    let home = scene.home().display().to_string();
    for text in [
        "4 events are missing",
        "2 lines are no events",
        &*format!("<code>{home}</code>"),
        "<code>example.com</code>",
        "<code>evil.test</code>",
        "because it is reviewed",
        "20 bytes sent, 40 received",
    ] {
        let text = text.replace("<code>example.com", "<code>api.example.com");
        assert!(page.contains(&text), "{text}\n{page}");
    }
}

/// Who follows sees each event when it is whole, and a file that is begun anew.
#[test]
fn a_file_is_followed() {
    let scene = Scene::new().file("events", "");
    let line = |number: u32| write(&scene, number, &format!("work/{number}")).to_string();
    let path = scene.home().join("events");
    let append = |text: &str| {
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    append(&format!("{}\n", line(1)));
    let mut command = scene.srt(["log", "--follow", "../events", "write"]);
    let mut following = super::support::Background(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(following.0.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().contains("/work/1 "));
    let (first, second) = (line(2), line(3));
    append(&first[..20]);
    append(&format!("{}\n{}", &first[20..], &second[..5]));
    assert!(next().contains("/work/2 "));
    append(&format!("{}\n", &second[5..]));
    assert!(next().contains("/work/3 "));
    fs::write(&path, format!("{}\n", line(4))).unwrap();
    assert!(next().contains("/work/4 "));
}
