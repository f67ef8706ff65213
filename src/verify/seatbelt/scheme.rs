//! The text of a profile as forms: just as much of Scheme as a profile needs.

/// One form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    Symbol(String),
    /// The bytes of a cooked string.
    Text(Vec<u8>),
    List(Vec<Form>),
}

/// All forms of a text.
///
/// # Errors
/// A sentence for what is no form.
pub fn forms(text: &str) -> Result<Vec<Form>, String> {
    let mut open: Vec<Vec<Form>> = vec![Vec::new()];
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b' ' | b'\n' => {}
            b';' => {
                while bytes.get(at).is_some_and(|byte| *byte != b'\n') {
                    at += 1;
                }
            }
            b'(' => open.push(Vec::new()),
            b')' => {
                let list = open.pop().unwrap_or_default();
                let Some(outer) = open.last_mut() else { return Err("a `)` too many".to_owned()) };
                outer.push(Form::List(list));
            }
            b'"' => {
                let mut string = Vec::new();
                loop {
                    let byte = *bytes.get(at).ok_or("a string is not closed")?;
                    at += 1;
                    match byte {
                        b'"' => break,
                        b'\\' => {
                            let escaped = *bytes.get(at).ok_or("a string is not closed")?;
                            at += 1;
                            match escaped {
                                b'"' | b'\\' => string.push(escaped),
                                b'x' => {
                                    let digits = bytes.get(at..at + 2).and_then(|two| std::str::from_utf8(two).ok());
                                    let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
                                    string.push(byte.ok_or("a `\\x` without two digits")?);
                                    at += 2;
                                }
                                other => return Err(format!("`\\{}` in a string", char::from(other))),
                            }
                        }
                        byte if byte.is_ascii_control() => return Err("a control character in a string".to_owned()),
                        byte => string.push(byte),
                    }
                }
                push(&mut open, Form::Text(string));
            }
            byte if byte.is_ascii_graphic() && !matches!(byte, b'#' | b'\'' | b'`' | b',' | b'|') => {
                let start = at - 1;
                while bytes.get(at).is_some_and(|byte| byte.is_ascii_graphic() && !b"()\";".contains(byte)) {
                    at += 1;
                }
                push(&mut open, Form::Symbol(text[start..at].to_owned()));
            }
            byte => return Err(format!("the byte {byte:#04x}")),
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(forms), true) => Ok(forms),
        _ => Err("a `(` is not closed".to_owned()),
    }
}

fn push(open: &mut [Vec<Form>], form: Form) {
    if let Some(innermost) = open.last_mut() {
        innermost.push(form);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn forms_and_what_is_none() {
        let read = forms("; (no\n(a \"x\\\\\\\"\\x41;\" b) c").unwrap();
        let text = Form::Text(b"x\\\"A;".to_vec());
        let list = Form::List(vec![Form::Symbol("a".into()), text, Form::Symbol("b".into())]);
        assert_eq!(read, [list, Form::Symbol("c".into())]);
        for wrong in ["(", ")", "\"", "\"\\", "\"\\.\"", "\"\\x4\"", "#\"raw\"", "'a", "\"\n\""] {
            assert!(forms(wrong).is_err(), "{wrong}");
        }
    }
}
