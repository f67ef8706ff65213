//! The findings `resolve` raises. Each doc comment is the finding's page in the book.

crate::diagnostic::codes! {
    /// # `include`
    ///
    /// ## What it says
    /// A `use` (or a `lines(…)`) names a file that can't be taken in: it is missing or unreadable, the chain of uses
    /// comes back to where it started or is deeper than 16, or `std/` has no module of that name.
    ///
    /// ## Why
    /// A policy without one of its parts is another policy; nothing runs under it.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/sytem
    /// default read deny
    /// ```
    /// And a file that comes back to where it started:
    /// ```policy,file-team.policy
    /// srt 1
    /// use "example.policy"
    /// ```
    /// ```policy
    /// srt 1
    /// use "team.policy"
    /// default read deny
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// ```
    /// And what two files need in a third:
    /// ```policy,file-team.policy
    /// srt 1
    /// deny read ~/.ssh
    /// ```
    /// ```policy
    /// srt 1
    /// use "team.policy"
    /// default read deny
    /// ```
    pub INCLUDE = "include", Error;

    /// # `writable-include`
    ///
    /// ## What it says
    /// A used file, or a directory on the way to it, may be changed by someone other than you and the system's owner.
    ///
    /// ## Why
    /// Who can change a part of the policy decides what the policy allows.
    ///
    /// ## Example
    /// The file `shared.policy` has mode 0666:
    /// ```policy,file-shared.policy,writable
    /// srt 1
    /// deny write ~/.ssh
    /// ```
    /// ```policy
    /// srt 1
    /// use "shared.policy"
    /// default read allow
    /// ```
    ///
    /// ## Use instead
    /// The same after `chmod go-w shared.policy`, or with the file in a directory of your own:
    /// ```policy,file-shared.policy
    /// srt 1
    /// deny write ~/.ssh
    /// ```
    /// ```policy
    /// srt 1
    /// use "shared.policy"
    /// default read allow
    /// ```
    pub WRITABLE_INCLUDE = "writable-include", Error;

    /// # `unknown-variable`
    ///
    /// ## What it says
    /// A `$NAME` is neither built in, nor a `let` of the same file, nor given by `--define`, nor named by an `assume`.
    ///
    /// ## Why
    /// A variable without a meaning would make the rule match nothing, silently. A `let` of a used file is known in
    /// that file alone, so that two files can't change each other's names.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPCE
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub UNKNOWN_VARIABLE = "unknown-variable", Error;

    /// # `invalid-variable`
    ///
    /// ## What it says
    /// A variable is defined or used in a way that has no meaning: a `let` with the name of a built-in, defined twice,
    /// or in terms of itself; a suffix after a list or a pattern; `?` where dropping the rule would permit more; a value
    /// that is not one literal.
    ///
    /// ## Why
    /// Each of these could be read in two ways, and one of the two would permit more than the other.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// let HOME = /srv/agent
    /// allow read $HOME
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// let agent = /srv/agent
    /// allow read $agent
    /// ```
    pub INVALID_VARIABLE = "invalid-variable", Error;

    /// # `unused-variable`
    ///
    /// ## What it says
    /// A `let` of this file, or a `--define`, is used by no statement.
    ///
    /// ## Why
    /// Most often a rule was meant to use it and names something else.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// let ads = [ads.example.com]
    /// deny connect tracker.example.com
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// let ads = [ads.example.com]
    /// deny connect $ads
    /// ```
    pub UNUSED_VARIABLE = "unused-variable", Warning;

    /// # `list-file`
    ///
    /// ## What it says
    /// A line of the file that `lines(…)` names is not one literal path, host, `*.` host or address, or is of another
    /// kind than the lines before it.
    ///
    /// ## Why
    /// Such files are tables with a million lines: they hold plain names, and every line counts.
    ///
    /// ## Example
    /// The file `ads.txt`:
    /// ```text,file-ads.txt
    /// ads.example.com
    /// tracker-*.example.net
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// let ads = lines("ads.txt")
    /// deny connect $ads
    /// ```
    ///
    /// ## Use instead
    /// A rule of the policy for each pattern:
    /// ```text,file-ads.txt
    /// ads.example.com
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// let ads = lines("ads.txt")
    /// deny connect $ads
    /// deny connect tracker-*.example.net
    /// ```
    pub LIST_FILE = "list-file", Error;

    /// # `duplicate-entry`
    ///
    /// ## What it says
    /// A line of the file that `lines(…)` names says what an earlier line of it does.
    ///
    /// ## Why
    /// Who takes one of the two out to open something, or to close it, finds that nothing changes.
    ///
    /// ## Example
    /// The file `ads.txt`:
    /// ```text,file-ads.txt
    /// ads.example.com
    /// tracker.example.net
    /// ADS.example.com
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// let ads = lines("ads.txt")
    /// deny connect $ads
    /// ```
    ///
    /// ## Use instead
    /// ```text,file-ads.txt
    /// ads.example.com
    /// tracker.example.net
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// let ads = lines("ads.txt")
    /// deny connect $ads
    /// ```
    pub DUPLICATE_ENTRY = "duplicate-entry", Note;

    /// # `missing-default`
    ///
    /// ## What it says
    /// A policy that was given to a command does not say what a read is that no rule matches.
    ///
    /// ## Why
    /// Both answers are common, and guessing one surprises whoever meant the other. Where several policies are given,
    /// `deny` wins.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// allow read $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub MISSING_DEFAULT = "missing-default", Error;

    /// # `except-kind`
    ///
    /// ## What it says
    /// An `except` takes host names from addresses, or addresses from host names.
    ///
    /// ## Why
    /// A name is in no set of addresses, nor an address in a set of names: the exception would have no effect.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny connect 10.0.0.0/8 except db.example.com
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny connect 10.0.0.0/8 except 10.0.0.7
    /// ```
    pub EXCEPT_KIND = "except-kind", Error;

    /// # `abstract-socket`
    ///
    /// ## What it says
    /// An `allow socket` names an abstract unix socket (`@NAME`).
    ///
    /// ## Why
    /// Abstract sockets have no owner and no mode; the notation is reserved, and connecting to one is always denied.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow socket @bus
    /// ```
    ///
    /// ## Use instead
    /// A socket that has a path:
    /// ```policy
    /// srt 1
    /// default read deny
    /// on macos { allow socket $WORKSPACE/server.sock }
    /// ```
    pub ABSTRACT_SOCKET = "abstract-socket", Error;

    /// # `set-conflict`
    ///
    /// ## What it says
    /// Two `set` statements give one environment variable different values.
    ///
    /// ## Why
    /// Order never changes what a policy means, so neither can win.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// set CI=1
    /// set CI=true
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// set CI=1
    /// ```
    pub SET_CONFLICT = "set-conflict", Error;

    /// # `loopback-conflict`
    ///
    /// ## What it says
    /// An `allow connect` and an `allow listen` meet on a loopback address and port.
    ///
    /// ## Why
    /// Addresses are the host's: connecting there reaches the host's service, listening there publishes the command's.
    /// One port can't be both.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow connect 127.0.0.1:3000
    /// allow listen  127.0.0.1:3000
    /// ```
    ///
    /// ## Use instead
    /// One of the two:
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow connect 127.0.0.1:3000
    /// ```
    pub LOOPBACK_CONFLICT = "loopback-conflict", Error;
}
