//! pest, and the one place where its rules get names that people know.

use pest::Parser;
use pest::iterators::Pair as PestPair;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The parser that `grammar/policy.pest` describes.
#[derive(pest_derive::Parser)]
#[grammar = "grammar/policy.pest"]
struct PolicyGrammar;

pub(super) type Pair<'t> = PestPair<'t, Rule>;
pub(super) type Pairs<'t> = pest::iterators::Pairs<'t, Rule>;

/// Where a text stopped following a rule, and what could have stood there.
#[derive(Debug)]
pub(super) struct Breach {
    /// Byte offset into the text.
    pub at: usize,
    pub expected: Vec<Rule>,
    /// The parser gave up before the end: nested too deeply, or too much work.
    pub exhausted: bool,
}

/// Reads all of `text` as `rule`.
pub(super) fn read(rule: Rule, text: &str) -> Result<Pairs<'_>, Breach> {
    limit_work(text.len());
    PolicyGrammar::parse(rule, text).map_err(|error| {
        let at = match error.location {
            pest::error::InputLocation::Pos(at) | pest::error::InputLocation::Span((at, _)) => at,
        };
        match error.variant {
            pest::error::ErrorVariant::ParsingError { positives, .. } => {
                Breach { at, expected: positives, exhausted: false }
            }
            pest::error::ErrorVariant::CustomError { .. } => Breach { at, expected: Vec::new(), exhausted: true },
        }
    })
}

/// Bounds the calls of one parse: a text costs at most four calls a byte, so sixteen times that and a constant is
/// never reached by work that ends. The limit is one for the process, so it only ever grows to fit the longest text.
fn limit_work(length: usize) {
    static LONGEST: AtomicUsize = AtomicUsize::new(0);
    static SETTING: Mutex<()> = Mutex::new(());
    const FREE: usize = 1_000_000;
    if length <= LONGEST.load(Ordering::Acquire) {
        return;
    }
    let _one_at_a_time = SETTING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if length <= LONGEST.load(Ordering::Acquire) {
        return;
    }
    // Rounded up, so that the limit is set a few times in a process and not for every longer token.
    let longest = length.max(1 << 16).next_power_of_two();
    pest::set_call_limit(NonZeroUsize::new(longest.saturating_mul(64).saturating_add(FREE)));
    LONGEST.store(longest, Ordering::Release);
}

/// What a message says was expected where a rule did not match; `None` for rules that are never what a message is
/// about, because a wider one around them is.
pub(super) fn noun(rule: Rule) -> Option<&'static str> {
    match rule {
        Rule::statement | Rule::strict | Rule::item | Rule::file => Some("a statement"),
        Rule::ruling => Some("a rule"),
        Rule::open => Some("an `on` block"),
        Rule::close => Some("`}`"),
        Rule::end | Rule::EOI => Some("the end of the line"),
        Rule::version => Some("`srt 1`"),
        Rule::inclusion => Some("a `use` statement"),
        Rule::definition => Some("a `let` statement"),
        Rule::closure => Some("a `default` statement"),
        Rule::assignment => Some("a `set` statement"),
        Rule::bound => Some("a `limit` statement"),
        Rule::ceiling => Some("a `within` statement"),
        Rule::expectation => Some("an `expect` statement"),
        Rule::silence => Some("an `ignore` statement"),
        Rule::assumption => Some("an `assume` statement"),
        Rule::except => Some("`except`"),
        Rule::because => Some("`because`"),
        Rule::lines => Some("`lines(\"FILE\")`"),
        Rule::limit | Rule::limit_kind => Some("a kind of limit"),
        Rule::verbs | Rule::verb => Some("a verb"),
        Rule::effect => Some("an effect"),
        Rule::answer => Some("`allow` or `deny`"),
        Rule::system => Some("a system"),
        Rule::subject => Some("`read` or `env`"),
        Rule::relation => Some("`inside` or `outside`"),
        Rule::open_brace => Some("`{`"),
        Rule::equals => Some("`=`"),
        Rule::number => Some("a number"),
        Rule::quantity => Some("an amount"),
        Rule::identifier => Some("a name"),
        Rule::std_name => Some("`std/NAME`"),
        Rule::targets | Rule::target | Rule::bare | Rule::bare_alone => Some("a path, a domain or an address"),
        Rule::list => Some("a list"),
        Rule::comma => Some("`,`"),
        Rule::list_end => Some("`]`"),
        Rule::string => Some("a text in quotes"),
        Rule::value | Rule::value_alone => Some("a value"),
        Rule::variable | Rule::variable_name => Some("a variable"),
        Rule::reach => Some("`exact` or `below`"),
        Rule::ports | Rule::port_set | Rule::port_range | Rule::every_port => Some("ports"),
        Rule::prefix => Some("a prefix length"),
        Rule::protocol => Some("`udp`"),
        Rule::path => Some("a path"),
        Rule::peer | Rule::peer_name => Some("a domain or an address"),
        Rule::v6_address | Rule::v6_text | Rule::v6 => Some("an IPv6 address"),
        Rule::name | Rule::name_piece | Rule::name_text => Some("a name"),
        // Parts of tokens: the token is what was expected.
        Rule::path_start
        | Rule::home
        | Rule::drive
        | Rule::any_start
        | Rule::root
        | Rule::segment
        | Rule::piece
        | Rule::stars
        | Rule::any_char
        | Rule::escaped
        | Rule::text
        | Rule::class
        | Rule::negation
        | Rule::class_first
        | Rule::first_bracket
        | Rule::bracket_char
        | Rule::class_item
        | Rule::class_char
        | Rule::optional
        | Rule::run_of_string
        | Rule::part
        | Rule::part_but_bracket
        | Rule::plain
        | Rule::stop
        | Rule::braces
        | Rule::class_text
        | Rule::keyword
        | Rule::word
        | Rule::escape => None,
        // After every target.
        Rule::or => None,
        // Blanks and comments may stand in so many places that naming them helps nobody.
        Rule::sp | Rule::newline | Rule::comment | Rule::ws | Rule::gap | Rule::bad => None,
    }
}
