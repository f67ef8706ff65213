//! The token rules as a table: one statement a row, and what it spells or how it is refused.

use super::read;
use crate::syntax::ast::{Shape, StatementKind, Target};

/// `ok`: the debug form of the shapes, shortened; `no`: a code and words of its message.
enum Expected {
    Ok(&'static str),
    No(&'static str, &'static str),
}
use Expected::{No, Ok};

/// A short form of shapes, so that rows stay one line.
fn short(shape: &Shape) -> String {
    use crate::syntax::ast::{HostPattern, Piece, Ports, Segment, Start, Variable};
    use crate::vocabulary::Reach;
    fn pieces(all: &[Piece]) -> String {
        all.iter()
            .map(|piece| match piece {
                Piece::Text(text) => format!("'{text}'"),
                Piece::AnyRun => "*".to_owned(),
                Piece::AnyChar => "?".to_owned(),
                Piece::Class { negated, ranges } => {
                    let ranges: String = ranges
                        .iter()
                        .map(|(low, high)| if low == high { low.to_string() } else { format!("{low}..{high}") })
                        .collect::<Vec<_>>()
                        .join(" ");
                    format!("[{}{ranges}]", if *negated { "not " } else { "" })
                }
            })
            .collect()
    }
    fn ports(ports: Option<&Ports>) -> String {
        ports.map_or(String::new(), |ports| format!(" ports {:?}{}", ports.ranges, if ports.udp { " udp" } else { "" }))
    }
    fn reach(reach: Reach) -> &'static str {
        match reach {
            Reach::Tree => "",
            Reach::Exact => "exact ",
            Reach::Below => "below ",
        }
    }
    fn variable(variable: &Variable) -> String {
        let fallback = variable.fallback.as_ref().map_or(String::new(), |shape| format!(" or {}", short(shape)));
        format!("${}{}{fallback}", variable.name, if variable.optional { "?" } else { "" })
    }
    match shape {
        Shape::Path(path) => {
            let start = match &path.start {
                Start::Root => "/".to_owned(),
                Start::Home => "~".to_owned(),
                Start::Variable(of) => variable(of),
                Start::Drive(letter) => format!("{letter}:"),
            };
            let segments: Vec<String> = path
                .segments
                .iter()
                .map(|segment| match segment {
                    Segment::AnyDepth => "**".to_owned(),
                    Segment::Pieces(all) => pieces(all),
                })
                .collect();
            format!("{}path {start} {}", reach(path.reach), segments.join(" ")).trim_end().to_owned()
        }
        Shape::Host(host) => match &host.host {
            HostPattern::Any => format!("any host{}", ports(host.ports.as_ref())),
            HostPattern::Labels { below, labels } => {
                let labels: Vec<String> = labels.iter().map(|label| pieces(label)).collect();
                format!("host {}{}{}", if *below { "below " } else { "" }, labels.join(" "), ports(host.ports.as_ref()))
            }
        },
        Shape::Address(shape) => format!("{}/{}{}", shape.address, shape.prefix, ports(shape.ports.as_ref())),
        Shape::Name(all) => format!("name {}", pieces(all)),
        Shape::Variable(shape) => {
            format!("{}{}{}", reach(shape.reach), variable(&shape.variable), ports(shape.ports.as_ref()))
        }
        Shape::Abstract(name) => format!("abstract {name}"),
    }
}

fn spelled(targets: &[Target]) -> String {
    targets.iter().flat_map(|target| target.shapes.iter().map(short)).collect::<Vec<_>>().join("; ")
}

#[test]
fn tokens() {
    #[rustfmt::skip]
    let table: &[(&str, Expected)] = &[
        // Comments and quotes.
        ("allow read /a # c", Ok("path / 'a'")),
        ("allow read /a#b", No("token", "`#` stands inside `/a#b`")),
        (r#"allow read "/a#b""#, Ok("path / 'a#b'")),
        (r"allow read /a\#b", Ok("path / 'a#b'")),
        (r#"allow read "/a b""#, Ok("path / 'a b'")),
        (r"allow read /a\ b", Ok("path / 'a b'")),
        (r#"allow read "/a, ] }""#, Ok("path / 'a, ] }'")),
        (r#"allow read "~/a b/*.{x,y}""#, Ok("path ~ 'a b' *'.x'; path ~ 'a b' *'.y'")),
        (r#"allow read "$WORKSPACE/a b""#, Ok("path $WORKSPACE 'a b'")),
        (r#"allow read "/a\"b""#, Ok("path / 'a\"b'")),
        (r#"allow read /a"b""#, No("syntax", "a quote stands inside a word")),
        (r#"allow read "/a"b"#, No("syntax", "")),
        (r#"allow read "/a"#, No("syntax", "this `\"` is not closed")),
        (r"allow read /a\*b", Ok("path / 'a*b'")),
        (r"allow read /\[a]", No("syntax", "closes nothing")),
        (r"allow read /\[a\]", Ok("path / '[a]'")),
        (r"allow read \~/a", No("path-spelling", "expected a path")),
        // Lists, classes and addresses.
        ("allow read [/a, /b]", Ok("path / 'a'; path / 'b'")),
        ("allow read [/a, /b,]", Ok("path / 'a'; path / 'b'")),
        ("allow read [\n  /a, # one\n  # two\n  /b\n]", Ok("path / 'a'; path / 'b'")),
        ("allow read []", No("syntax", "expected a path")),
        ("allow read [/a /b]", No("syntax", "expected `,` or `]`")),
        ("allow read [/a", No("syntax", "this `[` is not closed")),
        ("allow read [/a,[/b]]", No("syntax", "")),
        ("allow read /a]", No("syntax", "this `]` closes nothing")),
        ("allow read /a}", No("syntax", "this `}` closes nothing")),
        ("allow read /[a-z]x", Ok("path / [a..z]'x'")),
        ("allow read /[!a-z_]", Ok("path / [not a..z _]")),
        ("allow read /[]a]", Ok("path / [] a]")),
        ("allow read /[a b]", Ok("path / [a   b]")),
        ("allow read /[^a]", No("path-spelling", "starts with `^`")),
        ("allow read /[a/b]", No("path-spelling", "holds `/`")),
        ("allow read /[z-a]", No("path-spelling", "is empty")),
        ("allow read /[a", No("syntax", "this `[` is not closed")),
        ("allow connect [::1]:443", Ok("::1/128 ports [(443, 443)]")),
        ("allow connect [2001:db8::]/32:443", Ok("2001:db8::/32 ports [(443, 443)]")),
        ("allow connect [[::1]:443, a.b]", Ok("::1/128 ports [(443, 443)]; host 'a' 'b'")),
        ("allow connect [a.b, c.d:22]", Ok("host 'a' 'b'; host 'c' 'd' ports [(22, 22)]")),
        ("allow connect [::1", No("syntax", "this `[` is not closed")),
        ("allow connect 2001:db8::1", No("address-spelling", "without brackets")),
        ("allow connect [::g:1]:443", No("syntax", "")),
        ("allow connect [1:2:3]:443", No("address-spelling", "not an IPv6 address")),
        // Braces.
        ("allow read /{a,b}/c", Ok("path / 'a' 'c'; path / 'b' 'c'")),
        ("allow read /{a}", No("token", "hold no comma")),
        ("allow read /{1..3}", No("token", "hold no comma")),
        ("allow read /{a,b", No("syntax", "this `{` is not closed")),
        ("allow read /{a, b}", No("token", "a blank stands inside the braces")),
        (r"allow read /\{a\}", Ok("path / '{a}'")),
        ("allow read /{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", No("pattern-limit", "more than 256")),
        ("allow env {A,B}_*", Ok("name 'A_'*; name 'B_'*")),
        // Paths.
        ("allow read /", Ok("path /")),
        ("allow read ~", Ok("path ~")),
        ("allow read ~/.ssh/**", Ok("path ~ '.ssh' **")),
        ("allow read **/.env", Ok("path / ** '.env'")),
        ("allow read exact $WORKSPACE/a", Ok("exact path $WORKSPACE 'a'")),
        ("allow read below ~/a", Ok("below path ~ 'a'")),
        ("allow read exact $HOME", Ok("exact $HOME")),
        ("allow read /a?b*c", Ok("path / 'a'?'b'*'c'")),
        ("allow read src", No("path-spelling", "found `src`")),
        ("allow read ./src", No("path-spelling", "found `./src`")),
        ("allow read ../src", No("path-spelling", "found `../src`")),
        ("allow read /a/", No("path-spelling", "ends in `/`")),
        ("allow read ~/", No("path-spelling", "ends in `/`")),
        ("allow read $HOME/", No("path-spelling", "ends in `/`")),
        ("allow read /a//b", No("path-spelling", "`//` stands in")),
        ("allow read /a/../b", No("path-spelling", "`..` is a segment")),
        ("allow read /a/./b", No("path-spelling", "`.` is a segment")),
        (r"allow read /a/\.\./b", No("path-spelling", "`..` is a segment")),
        (r"allow read /a\/b", No("path-spelling", "which no file has")),
        ("allow read ~root/a", No("path-spelling", "starts with `~` and a name")),
        ("allow read /a**", No("pattern-limit", "only a part of the segment")),
        ("allow read **a", No("pattern-limit", "only a part of the first segment")),
        ("allow read **", No("path-spelling", "`**` alone")),
        ("allow read /a/**/b/**/c/**/d", Ok("path / 'a' ** 'b' ** 'c' ** 'd'")),
        ("allow read /a/**/b/**/c/**/d/**", No("pattern-limit", "more than 3 `**`")),
        ("allow read /*a*b*c*", Ok("path / *'a'*'b'*'c'*")),
        ("allow read /*a*b*c*d*", No("pattern-limit", "more than 4 `*`")),
        ("allow read /home/$USER/a", No("path-spelling", "`$` stands inside")),
        ("allow read C:/x", No("path-spelling", "starts with a drive")),
        ("on windows { allow read c:/x }", Ok("path C: 'x'")),
        ("on windows { allow read C:/ }", Ok("path C:")),
        ("on linux, windows { allow read C:/x }", No("path-spelling", "starts with a drive")),
        (r"on windows { allow read C:\x }", No("path-spelling", "expected a path")),
        ("allow read https://a.b", No("path-spelling", "found the URL")),
        ("allow read read", No("syntax", "expected a path, found `read`")),
        (r#"allow connect "read""#, Ok("host 'read'")),
        // Variables.
        ("allow connect $llm", Ok("$llm")),
        ("allow connect $llm:22", Ok("$llm ports [(22, 22)]")),
        ("allow read $WORKSPACE/**/.env", Ok("path $WORKSPACE ** '.env'")),
        ("allow read ${HOME}/a", No("token", "without braces")),
        ("allow read $HOME.x", No("token", "`.x` follows the variable `$HOME`")),
        ("allow read $", No("token", "before no name")),
        ("allow read $HOME?", No("token", "only `$env.NAME` may be unset")),
        ("allow socket $env.SSH_AUTH_SOCK?", Ok("$env.SSH_AUTH_SOCK?")),
        ("allow read $env.X/a", Ok("path $env.X 'a'")),
        ("allow read $env.X or ~/x", Ok("$env.X or path ~ 'x'")),
        ("allow read $env.X or $env.Y or /z", Ok("$env.X or $env.Y or path / 'z'")),
        ("allow read exact $env.X or ~/x", Ok("exact $env.X or exact path ~ 'x'")),
        ("allow read /a or /b", No("token", "`or` follows `/a`")),
        ("allow read $env.X/a or /b", No("token", "`or` follows")),
        // Domains.
        ("allow connect example.com", Ok("host 'example' 'com'")),
        ("allow connect example.com.", Ok("host 'example' 'com'")),
        ("allow connect *.example.com", Ok("host below 'example' 'com'")),
        ("allow connect api-*.example.com", Ok("host 'api-'* 'example' 'com'")),
        ("allow connect *", Ok("any host")),
        ("allow connect *:22", Ok("any host ports [(22, 22)]")),
        ("allow connect a.*.com", No("host-spelling", "is a whole label")),
        ("allow connect *.*.com", No("host-spelling", "is a whole label")),
        ("allow connect a..b", No("host-spelling", "has an empty label")),
        ("allow connect .a.b", No("host-spelling", "has an empty label")),
        ("allow connect bücher.example", Ok("host 'bücher' 'example'")),
        ("allow connect a!b.com", No("host-spelling", "which holds `!`")),
        ("allow connect https://a.b/c", No("host-spelling", "found the URL")),
        ("allow connect a.b/c", No("host-spelling", "a connection has no path")),
        ("allow connect a.b/24", No("host-spelling", "not an address")),
        ("allow connect /run/x.sock", No("verb-target", "found the path")),
        ("allow connect exact a.b", No("verb-target", "`exact` stands before")),
        // Ports.
        ("allow connect a.b:{80,443}", Ok("host 'a' 'b' ports [(80, 80), (443, 443)]")),
        ("allow connect {a,b}.c:{80,443}", Ok("host 'a' 'c' ports [(80, 80), (443, 443)]; host 'b' 'c' ports [(80, 80), (443, 443)]")),
        ("allow connect a.b:8000-8999", Ok("host 'a' 'b' ports [(8000, 8999)]")),
        ("allow connect a.b:*", Ok("host 'a' 'b' ports [(1, 65535)]")),
        ("allow connect a.b:53/udp", Ok("host 'a' 'b' ports [(53, 53)] udp")),
        ("allow connect a.b:0", No("ports", "`0` is not a port")),
        ("allow connect a.b:65536", No("ports", "is not a port")),
        ("allow connect a.b:9-8", No("ports", "are none")),
        ("allow connect a.b:https", No("ports", "found `:https`")),
        ("allow connect a.b:53/tcp", No("ports", "`/tcp` is what is meant")),
        ("allow connect a.b/udp", No("ports", "follows no ports")),
        ("deny connect * except a.b:22", No("ports", "in `except` has ports")),
        ("deny connect * except a.b", Ok("any host")),
        // Addresses.
        ("allow connect 10.0.0.7:5432", Ok("10.0.0.7/32 ports [(5432, 5432)]")),
        ("allow connect 10.0.0.0/8:*", Ok("10.0.0.0/8 ports [(1, 65535)]")),
        ("deny connect 0.0.0.0/0", Ok("0.0.0.0/0")),
        ("allow connect 10.0.0.7", No("ports", "allowed without ports")),
        ("allow connect 10.0.0.7/8:1", No("address-spelling", "names one address and a whole network")),
        ("allow connect [2001:db8::1]/32:1", No("address-spelling", "names one address and a whole network")),
        ("allow connect 10.0.0.0/33:1", No("address-spelling", "not a prefix length")),
        ("allow connect 127.1:80", No("address-spelling", "`127.1` is not how")),
        ("allow connect 0x7f.1:80", No("address-spelling", "`0x7f.1` is not how")),
        ("allow connect 2130706433:80", No("address-spelling", "`2130706433` is not how")),
        ("allow connect 010.0.0.1:80", No("address-spelling", "`010.0.0.1` is not how")),
        ("allow connect 1.2.3.456:80", No("address-spelling", "is no address")),
        ("allow listen 127.0.0.1:3000-3010", Ok("127.0.0.1/32 ports [(3000, 3010)]")),
        ("allow listen localhost:3000", No("host-spelling", "expected an address")),
        ("allow listen 0.0.0.0", No("ports", "allowed without ports")),
        // Names and sockets.
        ("allow env [AWS_*, HOME]", Ok("name 'AWS_'*; name 'HOME'")),
        ("allow env a/b", No("token", "which holds `/`")),
        ("allow env A=1", No("token", "holds `=`")),
        ("on macos { allow mach com.apple.SecurityServer }", Ok("name 'com.apple.SecurityServer'")),
        ("allow mach com.apple.*", No("token", "named in full")),
        ("allow socket @app/x", Ok("abstract app/x")),
        ("allow read @app", No("verb-target", "only `socket` takes one")),
        // Verbs.
        ("allow read, write /a", Ok("path / 'a'")),
        ("allow read, connect /a", No("verb-target", "`read` takes a path")),
        ("allow read, read /a", No("verb-target", "stands twice")),
        ("allow read write /a", No("syntax", "found `write`")),
        // Hidden characters.
        ("allow read /a\u{a0}b", No("hidden-character", "U+00A0")),
        ("allow read /a\u{202e}b", No("hidden-character", "U+202E")),
        ("allow read /a # \u{2028}", No("hidden-character", "U+2028")),
        ("allow read /a\u{85}", No("hidden-character", "U+0085")),
        ("allow read /a\u{0}", No("hidden-character", "U+0000")),
        ("allow read /a\rallow read /b", No("hidden-character", "U+000D")),
        ("\u{feff}", No("hidden-character", "U+FEFF")),
        ("allow read /a\r", Ok("path / 'a'")),
    ];
    let mut wrong = Vec::new();
    for (line, expected) in table {
        let (file, diagnostics) = read(&format!("srt 1\n{line}\n"));
        let got = super::said(&diagnostics);
        let fits = match expected {
            No(code, words) => {
                diagnostics.len() == 1 && diagnostics[0].code.name == *code && diagnostics[0].message.contains(words)
            }
            Ok(shapes) => {
                let rule = file.statements.get(1).map(|statement| match &statement.kind {
                    StatementKind::On { body, .. } => body.first().map(|inner| inner.kind.clone()),
                    kind => Some(kind.clone()),
                });
                diagnostics.is_empty()
                    && matches!(&rule, Some(Some(StatementKind::Rule(rule))) if spelled(&rule.targets) == *shapes)
            }
        };
        let helped = diagnostics.iter().all(|d| d.span().is_some() && d.help.as_deref().is_some_and(|h| !h.is_empty()));
        if !fits || !helped {
            let shapes: Vec<String> = file
                .statements
                .iter()
                .filter_map(
                    |s| if let StatementKind::Rule(rule) = &s.kind { Some(spelled(&rule.targets)) } else { None },
                )
                .collect();
            wrong.push(format!("{line}\n   {got:?} {shapes:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}
