#![allow(clippy::unwrap_used)]

use super::*;
use crate::diagnostic::{Diagnostic, Fix, Level};
use crate::resolve;
use crate::source::Span;

const TEXT: &str = "srt 1\r\n# ä𝄞\nallow read \"$WORKSPACE/𝄞\" # x\nallow read [\n  /a,\n]\n";

/// Findings at awkward places: after characters that UTF-16 has two units for, over several lines, in a module, nowhere.
fn files() -> Vec<Checked> {
    let mut sources = Sources::default();
    let source = sources.add("/top/dir/a b,c:%.policy", TEXT);
    let module = sources.add_embedded("std/system", "srt 1\n");
    let flag = sources.add("--within", "srt 1\n");
    let at = |what: &str| {
        let start = TEXT.find(what).unwrap();
        Span::new(source, start..start + what.len())
    };
    let code = resolve::CODES[0];
    let one = |level, message: &str| Diagnostic { level, ..Diagnostic::new(code, message) };
    let said = vec![
        one(Level::Error, "100% `wrong`: this, that\r\nand <more> \u{1} & \"so\"")
            .label(at("# x"), "here")
            .label(Span::new(module, 0..5), "because of this")
            .help("write it otherwise")
            .witness("read /a"),
        one(Level::Warning, "several lines").label(at("[\n  /a,\n]"), "these"),
        one(Level::Note, "about the whole file"),
        one(Level::Note, "from a flag").label(Span::new(flag, 0..3), "this"),
        one(Level::Error, "again").label(at("𝄞\n"), "here").fix(Fix::Replace {
            span: at("\"$WORKSPACE/𝄞\""),
            was: "𝄞".to_owned(),
            by: "b".to_owned(),
        }),
    ];
    vec![
        Checked { file: "./a b,c:%.policy".to_owned(), said: Ok((said, sources)) },
        Checked { file: "/elsewhere/ü.policy".to_owned(), said: Ok((Vec::new(), Sources::default())) },
        Checked { file: "none".to_owned(), said: Err("cannot read `none`".to_owned()) },
    ]
}

#[test]
fn sarif_has_what_its_schema_requires() {
    let log = sarif(&files(), "/top/dir");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "srt");
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 1);
    for field in ["shortDescription", "fullDescription", "help"] {
        let text = rules[0][field]["text"].as_str().unwrap();
        assert!(text.len() > 10 && !text.starts_with(' '), "{field}: {text:?}");
    }
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 5);
    for result in results {
        assert!(result["message"]["text"].is_string());
        assert!(matches!(result["level"].as_str(), Some("note" | "warning" | "error")));
        let rule = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[rule]["id"], result["ruleId"]);
        assert_eq!(result["locations"].as_array().unwrap().len(), 1);
    }
    // The blank and everything that ends a scheme or a path are escaped; the tree's root is left out.
    let place = |result: usize| &results[result]["locations"][0]["physicalLocation"];
    assert_eq!(place(0)["artifactLocation"]["uri"], "a%20b,c%3A%25.policy");
    assert_eq!(place(0)["artifactLocation"]["uriBaseId"], "%SRCROOT%");
    // 25 characters before it, one of which is two units of UTF-16.
    let region = serde_json::json!({ "startLine": 3, "startColumn": 28, "endLine": 3, "endColumn": 31 });
    assert_eq!(place(0)["region"], region);
    let region = serde_json::json!({ "startLine": 4, "startColumn": 12, "endLine": 6, "endColumn": 2 });
    assert_eq!(place(1)["region"], region);
    assert_eq!(place(2)["region"], serde_json::json!({ "startLine": 1 }));
    // The remedy is where its word is, not where the finding is; what has none says nothing of one.
    assert!(results[..4].iter().all(|result| result.get("fixes").is_none()));
    let fix = &results[4]["fixes"][0];
    assert_eq!(fix["description"]["text"], "write `b` instead of `𝄞`");
    let region = serde_json::json!({ "startLine": 3, "startColumn": 24, "endLine": 3, "endColumn": 26 });
    assert_eq!(fix["artifactChanges"][0]["artifactLocation"]["uri"], "a%20b,c%3A%25.policy");
    let replacement = serde_json::json!([{ "deletedRegion": region, "insertedContent": { "text": "b" } }]);
    assert_eq!(fix["artifactChanges"][0]["replacements"], replacement);
    let module = &results[0]["relatedLocations"][0];
    assert_eq!(module["logicalLocations"][0]["fullyQualifiedName"], "std/system");
    assert!(module.get("physicalLocation").is_none());
    assert_eq!(run["columnKind"], "utf16CodeUnits");
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    assert_eq!(run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"], "cannot read `none`");
}

#[test]
fn commands_cannot_be_broken_out_of() {
    let text = github(&files(), "/top/dir");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert_eq!(
        lines[0],
        format!(
            "::error file=a b%2Cc%3A%25.policy,line=3,endLine=3,col=28,endColumn=30,title={}::100%25 `wrong`: this, that%0D%0A\
             and <more> \u{1} & \"so\"%0Ahelp: write it otherwise%0Afor example: read /a",
            resolve::CODES[0].name
        )
    );
    // No columns where there are several lines.
    assert!(lines[1].starts_with("::warning file=a b%2Cc%3A%25.policy,line=4,endLine=6,title="), "{text}");
    assert!(lines[2].starts_with("::notice file=a b%2Cc%3A%25.policy,title="), "{text}");
    assert!(lines[3].starts_with("::notice file=a b%2Cc%3A%25.policy,title="), "{text}");
    assert_eq!(lines[5], "::error file=none::cannot read `none`");
}

#[test]
fn junit_is_xml_with_a_case_for_each_file() {
    let text = junit::junit(&files(), "/top/dir");
    assert!(
        text.contains("<testsuites name=\"srt check\" tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\">"),
        "{text}"
    );
    assert_eq!(text.matches("<testcase ").count(), 3);
    assert!(text.contains("&lt;more&gt; \\u{1} &amp; &quot;so&quot;"), "{text}");
    assert!(text.contains("(and 1 more)"), "{text}");
    assert!(text.contains("a b,c:%.policy:3:27: error["), "{text}");
    assert!(text.contains("<error message=\"cannot read `none`\"/>"), "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
}
