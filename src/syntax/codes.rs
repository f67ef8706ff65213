//! The codes that a text can raise by how it is written, and their pages.

crate::diagnostic::codes! {
    /// # `syntax`
    ///
    /// ## What it says
    ///
    /// A line is not a statement of the language, or a bracket, brace or quote is left open.
    ///
    /// ## Why
    ///
    /// A policy is read in full or not at all: a line that cannot be read could have been the one that denies.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// alow read $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub SYNTAX = "syntax", Error;

    /// # `language-version`
    ///
    /// ## What it says
    ///
    /// The first statement does not name a version of the language that this build reads.
    ///
    /// ## Why
    ///
    /// A later version may read the same words otherwise. A file says which it was written in, so that no build guesses.
    ///
    /// ## Example
    ///
    /// ```policy
    /// default read deny
    /// ```
    ///
    /// ## Use instead
    ///
    /// ```policy
    /// srt 1
    /// default read deny
    /// ```
    pub VERSION = "language-version", Error;

    /// # `hidden-character`
    ///
    /// ## What it says
    ///
    /// A character that readers cannot see, or that changes the order in which they see others, stands in the policy.
    ///
    /// ## Why
    ///
    /// A review approves what it sees. Bidirectional controls, no-break spaces and separators of lines that editors do
    /// not show make a file read otherwise than it looks.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read /srv/a b
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read "/srv/a b"
    /// ```
    pub CHARACTER = "hidden-character", Error;

    /// # `token`
    ///
    /// ## What it says
    ///
    /// A word is put together wrongly: `#` or a blank where it would split it, braces without a comma, a variable with
    /// something after it that cannot follow one.
    ///
    /// ## Why
    ///
    /// Each of these could be read in two ways, and one of the two is wider.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny read /srv/notes#private
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny read "/srv/notes#private"
    /// ```
    pub TOKEN = "token", Error;

    /// # `path-spelling`
    ///
    /// ## What it says
    ///
    /// A path does not start at a fixed place, or is not written as the system will see it: `.`, `..`, `//`, a `/` at
    /// its end.
    ///
    /// ## Why
    ///
    /// A path that depends on where a command was started means something else in every directory.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read src
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE/src
    /// ```
    pub PATH = "path-spelling", Error;

    /// # `host-spelling`
    ///
    /// ## What it says
    ///
    /// A domain is not written as labels with `.` between them, with `*.` first or `*` inside a label.
    ///
    /// ## Why
    ///
    /// Connections are decided by name and port. A URL's scheme, user and path play no part, so a rule must not look as
    /// if they did.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny connect https://api.example.com/v1
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny connect api.example.com
    /// ```
    pub HOST = "host-spelling", Error;

    /// # `address-spelling`
    ///
    /// ## What it says
    ///
    /// An address is written in a form that programs read differently, or a network has bits set past its prefix.
    ///
    /// ## Why
    ///
    /// `127.1`, `0x7f.1` and `2130706433` are one address to some programs and a domain to others (inet_aton(3));
    /// `10.0.0.7/8` may have meant the one address or the whole network.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny connect 10.0.0.7/8
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny connect 10.0.0.0/8
    /// ```
    pub ADDRESS = "address-spelling", Error;

    /// # `ports`
    ///
    /// ## What it says
    ///
    /// Ports are missing, not numbers, out of order, or written where none may stand.
    ///
    /// ## Why
    ///
    /// An address has no usual port, so to allow it without one would be to allow all of them.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow connect 10.20.0.7
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow connect 10.20.0.7:5432
    /// ```
    pub PORTS = "ports", Error;

    /// # `pattern-limit`
    ///
    /// ## What it says
    ///
    /// A pattern is larger than the language lets it be: more than three `**` in a path, four `*` in a segment, 256
    /// targets from one target's braces, 64 patterns in an `except`; or `**` is only a part of a segment.
    ///
    /// ## Why
    ///
    /// Which of two rules is more specific is decided exactly, for every pair. Within these bounds that always ends.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny read /srv/**/a/**/b/**/c/**/d
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny read /srv/**/a/**/d
    /// ```
    pub PATTERN = "pattern-limit", Error;

    /// # `limit-value`
    ///
    /// ## What it says
    ///
    /// The amount of a limit has no unit, one that its kind does not have, or cannot be counted.
    ///
    /// ## Why
    ///
    /// `memory 4` is four bytes to one reader and four gigabytes to the next.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// limit memory 4
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// limit memory 4GiB
    /// ```
    pub LIMIT = "limit-value", Error;

    /// # `lint-comment`
    ///
    /// ## What it says
    ///
    /// A `# lint:` comment gives no reason, names no code, or stands above no statement.
    ///
    /// ## Why
    ///
    /// A finding that is silenced stays silenced for years; the reason is what the next reader needs. One that stands in
    /// the wrong place silences nothing.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// # lint: allow(broad-grant)
    /// allow read ~
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// # lint: allow(broad-grant) the backup is of the whole home
    /// allow read ~
    /// ```
    pub SUPPRESSION = "lint-comment", Error;

    /// # `verb-target`
    ///
    /// ## What it says
    ///
    /// The target is not of the sort that the verb takes, or two verbs of one statement take different sorts.
    ///
    /// ## Why
    ///
    /// A statement is about one sort of thing; a target is read according to its verb.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny connect /run/app.sock
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny socket /run/app.sock
    /// ```
    pub MISMATCH = "verb-target", Error;
}
