//! The texts in which bubblewrap's arguments are written, read back into words: one a line, each ended by NUL, or as a command for
//! a shell (POSIX, "Token Recognition", "Quoting", "Here-Document"). What is written in another way than these need is refused.

use std::collections::BTreeMap;

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    Text(Vec<u8>),
    /// A descriptor's number, from which this is read.
    Data(Vec<u8>),
}

type Read<T> = Result<T, String>;

/// Each word ended by NUL.
pub fn nul(text: &[u8]) -> Read<Vec<Word>> {
    match text.split_last() {
        None => Ok(Vec::new()),
        Some((0, words)) => Ok(words.split(|byte| *byte == 0).map(|word| Word::Text(word.to_vec())).collect()),
        Some(_) => Err("the last word is not ended".to_owned()),
    }
}

/// One word a line, quoted as for a shell; `<<` before what a descriptor gives.
pub fn lines(text: &[u8]) -> Read<Vec<Word>> {
    let mut rest = text;
    let mut words = Vec::new();
    while !rest.is_empty() {
        let data = rest.strip_prefix(b"<<");
        rest = data.unwrap_or(rest);
        let word = word(&mut rest)?;
        words.push(if data.is_some() { Word::Data(word) } else { Word::Text(word) });
        rest = rest.strip_prefix(b"\n").ok_or("more than one word in a line")?;
    }
    Ok(words)
}

/// `exec bwrap WORD… -- "$@" N<<'END'…`, with what descriptors give after it.
pub fn shell(text: &[u8]) -> Read<Vec<Word>> {
    let mut rest = text.strip_prefix(b"#!/bin/sh\n").ok_or("it is no script")?;
    while rest.starts_with(b"#") {
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or("a comment without an end")?;
        rest = &rest[end + 1..];
    }
    rest = rest.strip_prefix(b"exec bwrap").ok_or("it does not start bwrap")?;
    let mut words = Vec::new();
    rest = loop {
        rest = blanks(rest);
        if let Some(after) = rest.strip_prefix(b"-- \"$@\"") {
            break after;
        }
        words.push(word(&mut rest)?);
    };
    let mut openings = Vec::new();
    loop {
        rest = blanks(rest);
        let [number, b'<', b'<', after @ ..] = rest else { break };
        if !number.is_ascii_digit() || !after.starts_with(b"'") {
            return Err("a redirection of another kind".to_owned());
        }
        rest = after;
        openings.push((*number, word(&mut rest)?));
    }
    rest = rest.strip_prefix(b"\n").ok_or("more than one command")?;
    let mut bodies = BTreeMap::new();
    for (number, end) in openings {
        let mut body = Vec::new();
        loop {
            let length = rest.iter().position(|byte| *byte == b'\n').ok_or("a text without an end")?;
            let line;
            (line, rest) = rest.split_at(length + 1);
            if line[..length] == end {
                break;
            }
            body.extend(line);
        }
        if bodies.insert(vec![number], body).is_some() {
            return Err("a descriptor is opened twice".to_owned());
        }
    }
    if !rest.is_empty() {
        return Err("more than one command".to_owned());
    }
    // Of its options `--file` alone takes a descriptor.
    let mut told = Vec::with_capacity(words.len());
    for word in words {
        let is_number = told.last() == Some(&Word::Text(b"--file".to_vec()));
        told.push(match bodies.remove(&word).filter(|_| is_number) {
            Some(body) => Word::Data(body),
            None => Word::Text(word),
        });
    }
    if bodies.is_empty() { Ok(told) } else { Err("a descriptor that nothing reads".to_owned()) }
}

/// What separates words of a command that goes on.
fn blanks(mut text: &[u8]) -> &[u8] {
    while let Some(rest) = text.strip_prefix(b" ").or_else(|| text.strip_prefix(b"\\\n")) {
        text = rest;
    }
    text
}

/// One word, up to what ends it.
fn word(rest: &mut &[u8]) -> Read<Vec<u8>> {
    let mut word = Vec::new();
    let before = rest.len();
    loop {
        match *rest {
            [b'\'', after @ ..] => {
                let end = after.iter().position(|byte| *byte == b'\'').ok_or("a quote without an end")?;
                word.extend(&after[..end]);
                *rest = &after[end + 1..];
            }
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                *rest = after;
            }
            [] | [b' ' | b'\n', ..] if rest.len() < before => return Ok(word),
            [byte, after @ ..] if byte.is_ascii_alphanumeric() || b"-_./=:,@+%".contains(byte) => {
                word.push(*byte);
                *rest = after;
            }
            _ => return Err("a word that a shell would read otherwise".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn texts(words: &[&str]) -> Vec<Word> {
        words.iter().map(|word| Word::Text(word.as_bytes().to_vec())).collect()
    }

    #[test]
    fn words_are_what_a_shell_takes_them_for() {
        assert_eq!(lines(b"--dir\n'/a b'\\''c'\n").unwrap(), texts(&["--dir", "/a b'c"]));
        assert_eq!(lines(b"<<'a\nb\n'\n").unwrap(), [Word::Data(b"a\nb\n".to_vec())]);
        assert_eq!(nul(b"--dir\0/a\n\0").unwrap(), texts(&["--dir", "/a\n"]));
        let script =
            b"#!/bin/sh\n# x\nexec bwrap \\\n  --file 3 /a \\\n  --dir '/3 3' \\\n  -- \"$@\" 3<<'END'\nx\ny\nEND\n";
        let read = shell(script).unwrap();
        assert_eq!(read[1], Word::Data(b"x\ny\n".to_vec()));
        assert_eq!(read[3..], texts(&["--dir", "/3 3"]));
        for wrong in [&b"--dir /a\n"[..], b"$HOME\n", b"*\n", b"'a\n", b"a", b"\n", b"a\\b\n", b"~\n", b"a;b\n"] {
            assert!(lines(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
        for wrong in
            ["exec bwrap -- \"$@\"\nreboot\n", "exec bwrap --dir $x -- \"$@\"\n", "exec bwrap 4 -- \"$@\" 3<<'E'\nE\n"]
        {
            assert!(shell(format!("#!/bin/sh\n{wrong}").as_bytes()).is_err(), "{wrong}");
        }
    }
}
