//! Each code's page shows a policy that raises it and one that does not.

use super::{read, said};
use crate::syntax::CODES;

fn block<'p>(page: &'p str, heading: &str) -> String {
    let section: &'p str = page.split_once(heading).unwrap().1;
    let body = section.split_once("```policy\n").unwrap().1.split_once("```").unwrap().0;
    body.lines().map(|line| line.trim_start_matches(' ')).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn examples_raise_their_code_and_replacements_raise_nothing() {
    for code in CODES {
        let (_, diagnostics) = read(&block(code.page, "## Example"));
        assert!(
            diagnostics.len() == 1 && diagnostics[0].code == *code,
            "`{}`: its example says {:?}",
            code.name,
            said(&diagnostics)
        );
        let (_, diagnostics) = read(&block(code.page, "## Use instead"));
        assert!(diagnostics.is_empty(), "`{}`: its replacement says {:?}", code.name, said(&diagnostics));
    }
}
