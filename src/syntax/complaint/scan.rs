//! What quotes, brackets and braces some lines leave open: enough to tell where a broken statement ends.

/// What stands open in some lines, quotes and comments heeded.
#[derive(Debug, Default)]
pub(in crate::syntax) struct Scan {
    /// The first `"` without its other half on the line.
    pub open_quote: Option<usize>,
    /// The outermost `[` that is not closed.
    pub open_list: Option<usize>,
    /// The first `{` that is not closed on its line.
    pub open_brace: Option<usize>,
    /// The first `]` or `}` that closes nothing.
    pub stray: Option<usize>,
    /// The last line ends in a `{` that stands apart: the head of a block.
    pub opens_block: bool,
    /// How many `[` are not closed, and how many `]` close nothing.
    pub opened_lists: usize,
    pub closed_lists: usize,
    /// A `}` that closes nothing stands apart from what is before it.
    pub closes: bool,
}

pub(in crate::syntax) fn scan(region: &str) -> Scan {
    let mut scan = Scan::default();
    let mut lists: Vec<usize> = Vec::new();
    let mut braces: Vec<usize> = Vec::new();
    let mut quote: Option<usize> = None;
    let mut previous = '\n';
    let mut last = '\n';
    let mut characters = region.char_indices();
    while let Some((at, character)) = characters.next() {
        let blank_before = previous.is_whitespace();
        previous = character;
        if !character.is_whitespace() {
            last = character;
        }
        if character == '\n' {
            scan.open_quote = scan.open_quote.or(quote.take());
            scan.open_brace = scan.open_brace.or(braces.first().copied());
            braces.clear();
            continue;
        }
        if character == '\\' {
            characters.next();
            continue;
        }
        match (character, quote) {
            ('"', Some(_)) => quote = None,
            ('"', None) => quote = Some(at),
            (_, Some(_)) => {}
            ('#', None) if blank_before => {
                let rest = &region[at..];
                let end = rest.find('\n').unwrap_or(rest.len());
                while characters.as_str().len() > rest.len() - end {
                    characters.next();
                }
                last = if last == '#' { '\n' } else { last };
            }
            ('[', None) => lists.push(at),
            (']', None) if lists.pop().is_none() => {
                scan.stray = scan.stray.or(Some(at));
                scan.closed_lists += 1;
            }
            ('{', None) => braces.push(at),
            ('}', None) if braces.pop().is_none() => {
                scan.stray = scan.stray.or(Some(at));
                scan.closes |= blank_before;
            }
            _ => {}
        }
    }
    scan.open_quote = scan.open_quote.or(quote);
    scan.open_list = lists.first().copied();
    scan.opened_lists = lists.len();
    let apart = braces.last().is_some_and(|at| {
        *at == 0 || region[..*at].ends_with([' ', '\t']) && !region[*at + 1..].trim_start().starts_with(|c| c != '#')
    });
    scan.opens_block = apart && (last == '{' || region.trim_end().ends_with('{'));
    scan.open_brace = scan.open_brace.or(braces.first().copied());
    scan
}
