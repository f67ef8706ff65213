//! Arguments and variables as Windows takes them: one line of text, and one block.
//!
//! The line is quoted for `CommandLineToArgvW` and the C runtime ("Parsing C++ command-line arguments"), which is how nearly
//! every program takes it apart.

use std::io;

/// The longest line that `CreateProcessWithLogonW` takes, its end included.
pub const LONGEST: usize = 1024;

/// One line of all arguments, the program first.
///
/// # Errors
/// A NUL, or a quote in the name of the program, which no line can say.
pub fn line(arguments: &[String]) -> io::Result<String> {
    let mut line = String::new();
    for (at, argument) in arguments.iter().enumerate() {
        if argument.contains('\0') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an argument has a NUL character"));
        }
        if at == 0 {
            // Of the first nothing is escaped.
            if argument.contains('"') {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "the program's name has a quote"));
            }
            line.push('"');
            line.push_str(argument);
            line.push('"');
        } else {
            line.push(' ');
            quote(&mut line, argument);
        }
    }
    Ok(line)
}

fn quote(line: &mut String, argument: &str) {
    if !argument.is_empty() && !argument.contains([' ', '\t', '\n', '\u{b}', '"']) {
        line.push_str(argument);
        return;
    }
    line.push('"');
    let mut slashes = 0;
    for letter in argument.chars() {
        match letter {
            '\\' => slashes += 1,
            '"' => {
                // Those before a quote are doubled, and it has one more.
                line.extend(std::iter::repeat_n('\\', slashes + 1));
                slashes = 0;
            }
            _ => slashes = 0,
        }
        line.push(letter);
    }
    line.extend(std::iter::repeat_n('\\', slashes));
    line.push('"');
}

/// `NAME=VALUE` each with its NUL, in the order that the system keeps them in (names without case), and a NUL at the end. Of
/// names that differ in case alone the last stays.
///
/// # Errors
/// A name that is empty, or has `=` after its first letter; a NUL.
pub fn block(environment: &[(String, String)]) -> io::Result<Vec<u16>> {
    let mut sorted: Vec<(String, &String, &String)> = Vec::new();
    for (name, value) in environment {
        let wrong = name.is_empty() || name.contains('\0') || value.contains('\0') || name[1..].contains('=');
        if wrong {
            let why = format!("the variable `{}` cannot be passed", name.escape_default());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let folded = name.to_uppercase();
        sorted.retain(|(other, ..)| *other != folded);
        sorted.push((folded, name, value));
    }
    sorted.sort_by(|one, other| one.0.encode_utf16().cmp(other.0.encode_utf16()));
    let mut block: Vec<u16> = Vec::new();
    for (_, name, value) in sorted {
        block.extend(format!("{name}={value}").encode_utf16());
        block.push(0);
    }
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    Ok(block)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn joined(arguments: &[&str]) -> String {
        line(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn arguments_are_quoted_as_they_are_taken_apart() {
        assert_eq!(joined(&[r"C:\a b\x.exe", "plain", "a b", ""]), r#""C:\a b\x.exe" plain "a b" """#);
        assert_eq!(joined(&["x", r#"say "hi""#, r"a\b", r"a b\", r#"\""#]), r#""x" "say \"hi\"" a\b "a b\\" "\\\"""#);
        assert!(line(&["a\"b".to_owned()]).is_err());
        assert!(line(&["a".to_owned(), "b\0".to_owned()]).is_err());
    }

    /// As the C runtime takes a line apart (2008 and later), written from its description alone.
    fn taken_apart(line: &str) -> Vec<String> {
        let letters: Vec<char> = line.chars().collect();
        let mut at = 0;
        let mut arguments = Vec::new();
        // The first: up to its closing quote.
        let mut first = String::new();
        let mut quoted = false;
        while at < letters.len() && (quoted || letters[at] != ' ') {
            if letters[at] == '"' {
                quoted = !quoted;
            } else {
                first.push(letters[at]);
            }
            at += 1;
        }
        arguments.push(first);
        loop {
            while at < letters.len() && matches!(letters[at], ' ' | '\t') {
                at += 1;
            }
            if at == letters.len() {
                return arguments;
            }
            let mut argument = String::new();
            let mut quoted = false;
            while at < letters.len() && (quoted || !matches!(letters[at], ' ' | '\t')) {
                let slashes = letters[at..].iter().take_while(|letter| **letter == '\\').count();
                at += slashes;
                if letters.get(at) == Some(&'"') {
                    argument.extend(std::iter::repeat_n('\\', slashes / 2));
                    at += 1;
                    if slashes % 2 == 1 {
                        argument.push('"');
                    } else if quoted && letters.get(at) == Some(&'"') {
                        argument.push('"');
                        at += 1;
                    } else {
                        quoted = !quoted;
                    }
                } else {
                    argument.extend(std::iter::repeat_n('\\', slashes));
                    if slashes == 0 {
                        argument.push(letters[at]);
                        at += 1;
                    }
                }
            }
            arguments.push(argument);
        }
    }

    proptest! {
        #[test]
        fn whatever_is_passed_arrives(arguments in proptest::collection::vec(r#"[a \\"\t=^%&é-]{0,8}"#, 0..5)) {
            let whole: Vec<String> = [vec!["C:\\x y.exe".to_owned()], arguments].concat();
            prop_assert_eq!(taken_apart(&line(&whole).unwrap()), whole);
        }
    }

    #[test]
    fn variables_are_sorted_without_case_and_there_once() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            block(&pairs).map(|block| String::from_utf16(&block).unwrap())
        };
        let given = [("b", "2"), ("Path", "old"), ("_a", "3"), ("PATH", "new"), ("A", ""), ("=C:", r"C:\x")];
        assert_eq!(of(&given).unwrap(), "=C:=C:\\x\0A=\0b=2\0PATH=new\0_a=3\0\0");
        assert_eq!(of(&[]).unwrap(), "\0\0");
        for name in ["", "a=b", "a\0"] {
            assert!(of(&[(name, "x")]).is_err(), "{name:?}");
        }
    }
}
