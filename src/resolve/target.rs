//! Targets as written → what they are: variables looked up, lists opened, shapes turned into patterns of `sets`.

use super::codes::{ABSTRACT_SOCKET, INVALID_VARIABLE};
use super::item::{Item, Resolved, Unset, trim};
use super::literal;
use super::scope::{Meaning, Scope};
use super::table::Tables;
use crate::diagnostic::Diagnostic;
use crate::sets::{glob, host, name, path};
use crate::source::Span;
use crate::syntax::codes::MISMATCH;
use crate::syntax::{self, ast};
use crate::vocabulary::{Kind, Reach};

/// Resolves the targets of one file.
pub(super) struct Reader<'a, 's, 'l, 'w> {
    pub scope: &'s mut Scope<'a>,
    pub tables: &'s mut Tables<'l, 'w>,
    pub diagnostics: &'s mut Vec<Diagnostic>,
    /// The lets that are being opened, outermost first.
    pub opening: Vec<String>,
}

impl Reader<'_, '_, '_, '_> {
    /// All items of some targets; what could not be understood has been said and is left out.
    pub fn targets(&mut self, targets: &[ast::Target], kind: Kind) -> Vec<Resolved> {
        let mut items = Vec::new();
        for target in targets {
            for shape in &target.shapes {
                self.shape(shape, kind, target.span, &mut items);
            }
        }
        items
    }

    fn shape(&mut self, shape: &ast::Shape, kind: Kind, span: Span, out: &mut Vec<Resolved>) {
        let item = match shape {
            ast::Shape::Path(shape) => return self.path(shape, kind, span, out),
            ast::Shape::Variable(shape) => return self.variable(shape, kind, span, out),
            ast::Shape::Host(shape) => host_item(shape),
            ast::Shape::Address(shape) => Ok(Item::Address(shape.address, shape.prefix, shape.ports.clone())),
            ast::Shape::Name(pieces) => Ok(Item::Name(name_pattern(pieces))),
            ast::Shape::Abstract(name) => {
                let message = format!("`@{name}` is an abstract socket, and connecting to one is always denied");
                let diagnostic = Diagnostic::new(&ABSTRACT_SOCKET, message).label(span, "reserved");
                self.diagnostics.push(diagnostic.help("name a socket by its path"));
                return;
            }
        };
        match item {
            Ok(item) => {
                if self.fits(&item, kind, span) {
                    out.push(Resolved { item, unset: Unset::Refuse, span });
                }
            }
            Err(why) => {
                let diagnostic = Diagnostic::new(&MISMATCH, why).label(span, "not a host name");
                self.diagnostics.push(diagnostic.help("write the name as it is looked up"));
            }
        }
    }

    fn fits(&mut self, item: &Item, kind: Kind, span: Span) -> bool {
        let fits = match item {
            Item::Path(_) | Item::Paths(..) => kind == Kind::Path,
            Item::Host(..) | Item::Hosts(_) => kind == Kind::Peer,
            Item::Localhost(_) | Item::Address(..) | Item::Addresses(_) => matches!(kind, Kind::Peer | Kind::Address),
            Item::Name(_) => matches!(kind, Kind::Variable | Kind::Service),
        };
        if !fits {
            let message = format!("{} stands where the verb takes {}", item.noun(), kind.expected());
            let help = format!("write {} here", kind.expected());
            self.diagnostics.push(Diagnostic::new(&MISMATCH, message).label(span, item.noun()).help(help));
        }
        fits
    }

    /// A path that starts at `/`, a drive, or a variable with something after it.
    fn path(&mut self, shape: &ast::PathShape, kind: Kind, span: Span, out: &mut Vec<Resolved>) {
        let segments = path_segments(&shape.segments);
        let start = match &shape.start {
            ast::Start::Root => path::Start::Root,
            ast::Start::Drive(letter) => path::Start::Drive(*letter),
            ast::Start::Home => path::Start::Variable("HOME".into()),
            ast::Start::Variable(variable) => {
                let bare = ast::VariableShape { variable: variable.clone(), reach: Reach::Tree, ports: None };
                let mut starts = Vec::new();
                self.variable(&bare, kind, span, &mut starts);
                return self.below(starts, &variable.name, shape.reach, &segments, span, out);
            }
        };
        let item = Item::Path(pattern(start, segments, shape.reach));
        if self.fits(&item, kind, span) {
            out.push(Resolved { item, unset: Unset::Refuse, span });
        }
    }

    /// `$NAME/…`: the segments put after the one literal path that the name stands for.
    fn below(
        &mut self,
        mut starts: Vec<Resolved>,
        name: &str,
        reach: Reach,
        segments: &[path::Segment],
        span: Span,
        out: &mut Vec<Resolved>,
    ) {
        let extended = match starts.as_mut_slice() {
            // What is wrong with the name has been said.
            [] => return,
            [one] => {
                let fallback = match &mut one.unset {
                    Unset::Instead(item) => item.extend(reach, segments),
                    Unset::Refuse | Unset::Drop => true,
                };
                one.item.extend(reach, segments) && fallback
            }
            _ => false,
        };
        if extended {
            out.append(&mut starts);
        } else {
            self.no_suffix(name, span);
        }
    }

    fn no_suffix(&mut self, name: &str, span: Span) {
        let message = format!("`${name}` is a list or a pattern, and takes nothing after it");
        let help = "give it one literal target, or write the targets out";
        self.diagnostics.push(Diagnostic::new(&INVALID_VARIABLE, message).label(span, "used with more").help(help));
    }

    /// `$NAME`, with `exact` or `below` before it or ports after it.
    fn variable(&mut self, shape: &ast::VariableShape, kind: Kind, span: Span, out: &mut Vec<Resolved>) {
        let variable = &shape.variable;
        let Some(meaning) = self.scope.meaning(&variable.name, span, self.diagnostics) else { return };
        if (variable.optional || variable.fallback.is_some()) && !matches!(meaning, Meaning::Environment) {
            let message = format!("`${}` always has a value", variable.name);
            let diagnostic =
                Diagnostic::new(&INVALID_VARIABLE, message).label(span, "`?` and `or` are for `$env.NAME`");
            self.diagnostics.push(diagnostic.help("take what follows the name out"));
            return;
        }
        let mut items = Vec::new();
        match meaning {
            Meaning::Let(value, defined) => self.open(&variable.name, value, defined, kind, span, &mut items),
            Meaning::Defined(value) => match literal::item(value, kind) {
                Ok(item) => items.push(Resolved { item, unset: Unset::Refuse, span }),
                Err(why) => {
                    let message = format!("`--define {}={value}` {why}", variable.name);
                    let diagnostic = Diagnostic::new(&INVALID_VARIABLE, message).label(span, "used here");
                    self.diagnostics.push(diagnostic.help(format!("give {}, written out", kind.expected())));
                    return;
                }
            },
            Meaning::BuiltIn | Meaning::Environment | Meaning::Assumed => {
                let item = match kind {
                    Kind::Path => Item::Path(path::Pattern {
                        start: path::Start::Variable(variable.name.as_str().into()),
                        segments: Vec::new(),
                        reach: Reach::Tree,
                    }),
                    Kind::Peer if !matches!(meaning, Meaning::BuiltIn) => {
                        Item::Host(host::Pattern::Variable(variable.name.clone()), None)
                    }
                    _ => {
                        let message = format!("`${}` stands where the verb takes {}", variable.name, kind.expected());
                        let diagnostic = Diagnostic::new(&MISMATCH, message).label(span, "of another kind");
                        self.diagnostics.push(diagnostic.help(format!("write {} here", kind.expected())));
                        return;
                    }
                };
                let Some(unset) = self.fate(variable, kind, span) else { return };
                items.push(Resolved { item, unset, span });
            }
        }
        for item in &mut items {
            item.span = span;
        }
        if shape.reach != Reach::Tree {
            return self.below(items, &variable.name, shape.reach, &[], span, out);
        }
        if let Some(ports) = &shape.ports {
            let fits = match items.as_mut_slice() {
                [] => return,
                [one] => {
                    let fallback = match &mut one.unset {
                        Unset::Instead(item) => item.at(ports),
                        Unset::Refuse | Unset::Drop => true,
                    };
                    one.item.at(ports) && fallback
                }
                _ => false,
            };
            if !fits {
                return self.no_suffix(&variable.name, span);
            }
        }
        out.append(&mut items);
    }

    /// What `?` and `or` say.
    fn fate(&mut self, variable: &ast::Variable, kind: Kind, span: Span) -> Option<Unset> {
        let Some(fallback) = &variable.fallback else {
            return Some(if variable.optional { Unset::Drop } else { Unset::Refuse });
        };
        let mut items = Vec::new();
        let before = self.diagnostics.len();
        self.shape(fallback, kind, span, &mut items);
        match <[Resolved; 1]>::try_from(items) {
            Ok([Resolved { item, unset: Unset::Refuse, .. }]) if !matches!(item, Item::Localhost(_)) => {
                Some(Unset::Instead(Box::new(item)))
            }
            _ => {
                if self.diagnostics.len() == before {
                    let message = format!("what follows `${} or` is not one target", variable.name);
                    let diagnostic = Diagnostic::new(&INVALID_VARIABLE, message).label(span, "after `or`");
                    self.diagnostics.push(diagnostic.help("name one path, domain or address, without `?` or `or`"));
                }
                None
            }
        }
    }

    fn open(
        &mut self,
        name: &str,
        value: &ast::LetValue,
        defined: Span,
        kind: Kind,
        span: Span,
        out: &mut Vec<Resolved>,
    ) {
        if self.opening.iter().any(|open| open == name) {
            let message = format!("`${name}` is defined in terms of itself");
            let diagnostic = Diagnostic::new(&INVALID_VARIABLE, message).label(defined, "defined here");
            self.diagnostics.push(diagnostic.help("give it targets that do not use it"));
            return;
        }
        self.opening.push(name.to_owned());
        match value {
            ast::LetValue::Targets(targets) => {
                for target in targets {
                    match syntax::shapes(&target.text, kind, target.span) {
                        Ok(shapes) => shapes.iter().for_each(|shape| self.shape(shape, kind, target.span, out)),
                        Err(diagnostics) => {
                            let label = format!("used here as {}", kind.expected());
                            self.diagnostics.extend(diagnostics.into_iter().map(|d| d.label(span, label.clone())));
                        }
                    }
                }
            }
            ast::LetValue::Lines(file) => {
                if let Some(item) = self.tables.read(file, self.diagnostics)
                    && self.fits(&item, kind, span)
                {
                    out.push(Resolved { item, unset: Unset::Refuse, span });
                }
            }
        }
        self.opening.pop();
    }
}

fn pattern(start: path::Start, segments: Vec<path::Segment>, reach: Reach) -> path::Pattern {
    let mut pattern = path::Pattern { start, segments, reach };
    trim(&mut pattern);
    pattern
}

fn path_segments(segments: &[ast::Segment]) -> Vec<path::Segment> {
    let segment = |segment: &ast::Segment| match segment {
        ast::Segment::AnyDepth => path::Segment::AnyDepth,
        ast::Segment::Pieces(pieces) => match text(pieces) {
            Some(text) => path::Segment::Literal(path::FileName::from(&text)),
            None => path::Segment::Glob(glob_of(pieces)),
        },
    };
    segments.iter().map(segment).collect()
}

fn name_pattern(pieces: &[ast::Piece]) -> name::Pattern {
    match text(pieces) {
        Some(text) => name::Pattern::Literal(text),
        None => name::Pattern::Glob(glob_of(pieces)),
    }
}

/// The characters, if there are only such.
fn text(pieces: &[ast::Piece]) -> Option<String> {
    pieces.iter().map(|piece| if let ast::Piece::Text(text) = piece { Some(text.as_str()) } else { None }).collect()
}

fn glob_of(pieces: &[ast::Piece]) -> glob::Glob {
    let piece = |piece: &ast::Piece| match piece {
        ast::Piece::Text(text) => glob::Piece::Text(text.clone().into_bytes()),
        ast::Piece::AnyRun => glob::Piece::AnyRun,
        ast::Piece::AnyChar => glob::Piece::AnyChar,
        ast::Piece::Class { negated, ranges } => glob::Piece::Class { negated: *negated, ranges: ranges.clone() },
    };
    glob::Glob(pieces.iter().map(piece).collect())
}

/// A host as written in its canonical form.
fn host_item(shape: &ast::HostShape) -> Result<Item, String> {
    let ast::HostPattern::Labels { below, labels } = &shape.host else {
        return Ok(Item::Host(host::Pattern::Any, shape.ports.clone()));
    };
    let mut canonical = Vec::with_capacity(labels.len());
    for label in labels {
        canonical.push(match text(label) {
            Some(text) => host::Label::Literal(literal::label(&text)?),
            None => host::Label::Glob(literal::lower(&glob_of(label))),
        });
    }
    if literal::is_localhost(&canonical) {
        return Ok(Item::Localhost(shape.ports.clone()));
    }
    Ok(Item::Host(host::Pattern::Labels { below: *below, labels: canonical }, shape.ports.clone()))
}
