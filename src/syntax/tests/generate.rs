//! Policies made at random: every statement, sloppy blanks, comments wherever one may stand. All of them are right.

use proptest::prelude::*;
use proptest::sample::select;

fn blank() -> impl Strategy<Value = String> {
    select(vec![" ", " ", "  ", "\t"]).prop_map(str::to_owned)
}

fn name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9]{0,6}x"
}

fn comment() -> impl Strategy<Value = String> {
    "# ?[a-z \"\\[{}#]{0,12}[a-z]"
}

/// A blank, or a newline with comments, as they may stand inside a list and before `except`.
fn gap() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => blank(),
        1 => Just("\n".to_owned()),
        1 => Just("\n\n\n  ".to_owned()),
        1 => comment().prop_map(|c| format!(" {c}\n")),
        1 => (comment(), comment()).prop_map(|(c, d)| format!(" {c}\n  {d}\n ")),
    ]
}

fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => name(),
        1 => Just("*".to_owned()),
        1 => name().prop_map(|n| format!("*.{n}")),
        1 => name().prop_map(|n| format!("{{{n},{{b,c}}}}")),
        1 => name().prop_map(|n| format!("[!a-c]?{n}")),
        1 => name().prop_map(|n| format!("\\ {n}\\#")),
    ]
}

/// Written bare or in quotes.
fn token(bare: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (bare, any::<bool>()).prop_map(|(bare, quoted)| if quoted { format!("\"{bare}\"") } else { bare })
}

fn path() -> impl Strategy<Value = String> {
    let start = select(vec!["", "~", "$WORKSPACE", "$env.X", "**", "/a/**"]);
    let bare =
        (start, prop::collection::vec(segment(), 1..4)).prop_map(|(start, rest)| format!("{start}/{}", rest.join("/")));
    let only_quoted = name().prop_map(|n| format!("\"/{n} b, {n}]#\""));
    let reach = select(vec!["", "", "exact ", "below  "]);
    prop_oneof![
        6 => (reach, token(bare)).prop_map(|(reach, token)| format!("{reach}{token}")),
        1 => only_quoted,
        1 => name().prop_map(|n| format!("$env.A  or $env.B or \"/{n}\"")),
        1 => select(vec!["/", "~", "$HOME", "$env.A?"]).prop_map(str::to_owned),
    ]
}

fn ports() -> impl Strategy<Value = String> {
    select(vec![":22", ":{80,443}", ":8000-8999", ":*", ":53/udp"]).prop_map(str::to_owned)
}

fn peer() -> impl Strategy<Value = String> {
    let host = (select(vec!["", "*.", "api-*.", "{a,b}."]), name(), prop::option::of(ports()))
        .prop_map(|(front, name, ports)| format!("{front}{name}.example{}", ports.unwrap_or_default()));
    let address = (select(vec!["10.0.0.7", "10.0.0.0/8", "[::1]", "[2001:db8::]/32"]), ports())
        .prop_map(|(address, ports)| format!("{address}{ports}"));
    prop_oneof![3 => token(host), 2 => token(address), 1 => Just("$llm:22".to_owned()), 1 => Just("\"read\"".to_owned())]
}

fn list(of: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    short_list(of, 8)
}

fn short_list(of: impl Strategy<Value = String>, most: usize) -> impl Strategy<Value = String> {
    let item = (of, gap(), gap()).prop_map(|(item, before, after)| format!("{before}{item}{after}"));
    (prop::collection::vec(item, 1..=most), any::<bool>(), gap()).prop_map(|(items, comma, end)| {
        format!("[{}{}]", items.join(","), if comma { format!(",{end}") } else { String::new() })
    })
}

/// Few enough that their braces stay within the bound of an `except`.
fn exceptions(of: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = String> {
    prop_oneof![of.clone(), short_list(of, 2)]
}

fn targets(of: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = String> {
    prop_oneof![of.clone(), list(of)]
}

fn rule() -> impl Strategy<Value = String> {
    let effect = select(vec!["allow", "deny", "forbid", "expect allow", "expect deny", "ignore"]);
    let paths = (
        select(vec!["read", "read , write", "exec", "write,read"]),
        targets(path().boxed()),
        prop::option::of((gap(), exceptions(path().boxed()))),
    );
    let hosts = prop_oneof![Just("*.example"), Just("10.0.0.0/8")].prop_map(str::to_owned);
    let peers = (Just("connect"), targets(peer().boxed()), prop::option::of((gap(), exceptions(hosts.boxed()))));
    let names = (
        select(vec!["env"]),
        targets(select(vec!["A_*", "{B,C}", "\"PATH\""]).prop_map(str::to_owned).boxed()),
        Just(None),
    );
    let body = prop_oneof![3 => paths.boxed(), 2 => peers.boxed(), 1 => names.boxed()];
    let because = prop::option::of((gap(), "[a-z #,]{0,40}[a-z]"));
    (effect, blank(), body, because).prop_map(|(effect, blank, (verbs, targets, except), because)| {
        // Of variables nothing is told.
        let effect = if effect == "ignore" && verbs == "env" { "deny" } else { effect };
        let except = except.map_or(String::new(), |(gap, targets)| format!("{gap}except {targets}"));
        let because = because
            .filter(|_| !effect.starts_with("expect"))
            .map_or(String::new(), |(gap, text)| format!("{gap}because \"{text}\""));
        format!("{effect}{blank}{verbs} {targets}{except}{because}")
    })
}

/// What may stand in a block too.
fn inner() -> impl Strategy<Value = String> {
    let lint = (name(), rule()).prop_map(|(reason, rule)| format!("# lint: allow(dead-rule) {reason}\n{rule}"));
    prop_oneof![
        6 => rule(),
        1 => lint,
        1 => select(vec!["use std/git", "use  \"a b.policy\"", "set A=1", "set C=\"x y\"", "set D=\"1\""])
            .prop_map(str::to_owned),
        1 => Just("limit memory  4GiB , processes 512,time 30m".to_owned()),
    ]
}

fn outer() -> impl Strategy<Value = String> {
    let body = prop::collection::vec((inner(), line_end()), 0..4)
        .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| [line, end]).collect::<String>());
    let block = (select(vec!["linux", "linux ,macos", "macos,windows"]), line_end(), body)
        .prop_map(|(systems, end, body)| format!("on {systems} {{{end}{body}}}"));
    prop_oneof![
        8 => inner(),
        2 => block,
        1 => (name(), targets(prop_oneof![path(), peer()].boxed())).prop_map(|(name, targets)| format!("let {name}={targets}")),
        1 => Just("let files  = lines(\"a b.txt\")".to_owned()),
        1 => select(vec!["default read deny", "default  env allow", "within \"a\"", "assume $CACHE inside [~/a, /b]"]).prop_map(str::to_owned),
    ]
}

fn line_end() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("\n".to_owned()),
        1 => Just("  \n\n\n".to_owned()),
        1 => comment().prop_map(|c| format!(" {c}\n")),
        1 => comment().prop_map(|c| format!("\n\n  {c}\n\n")),
    ]
}

pub(super) fn policy() -> impl Strategy<Value = String> {
    (line_end(), prop::collection::vec((outer(), line_end()), 0..8)).prop_map(|(end, lines)| {
        let body: String = lines.into_iter().flat_map(|(line, end)| [line, end]).collect();
        format!("srt  1{end}{body}")
    })
}
