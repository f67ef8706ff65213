//! What lowering says of a policy on Windows: each kind of gap between the policy and what filters and access lists hold.

use crate::backend::bubblewrap::{EXEC_BY_CONTENT, LATER_NAMES, NOT_GRANTED};
use crate::backend::gap::Kind;
use crate::backend::{LIMIT_NOT_HELD, PINNED_DIRECTORY, PROXY_ONLY};
use crate::diagnostic::Code;
use crate::diagnostic::codes;

codes! {
    /// # `system-resolver`
    ///
    /// ## What it says
    /// On Windows names are looked up by a service of the system, on behalf of everyone. Whatever a policy allows to connect to, a
    /// command can have that service ask for any name, and so tell something to whoever answers for the name.
    ///
    /// ## Why
    /// Filters tell apart the accounts that packets belong to, and these belong to the service. The connection itself is still
    /// decided: what a name leads to is not reached.
    ///
    /// ## Example
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub SYSTEM_RESOLVER = "system-resolver", Note;

    /// # `every-account`
    ///
    /// ## What it says
    /// What a machine opens to each of its accounts is open to the command too, where no rule speaks of it: files that everyone
    /// may read or write, named pipes of services, and unix sockets in places that may be written. The default alone does not close
    /// them.
    ///
    /// ## Why
    /// The command runs as an account of its own. Entries in access lists give it what rules allow and deny it what rules deny;
    /// of what only the default denies there would have to be an entry on every file of the disk. Another person's files are not
    /// open to it, since they are not open to other accounts at all.
    ///
    /// ## Example
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow read $WORKSPACE
    /// on windows { deny read C:/ProgramData }
    /// ```
    pub EVERY_ACCOUNT = "every-account", Note;

    /// # `other-account`
    ///
    /// ## What it says
    /// Reading is open by default, but on Windows the command does not read as you: it reads your home, what rules allow, and what
    /// the machine opens to every account. This is a *stricter* gap.
    ///
    /// ## Why
    /// The command runs as an account of its own, so that filters and access lists can tell it from you.
    ///
    /// ## Example
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read allow
    /// ```
    ///
    /// ## Use instead
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub OTHER_ACCOUNT = "other-account", Note;

    /// # `shared-loopback`
    ///
    /// ## What it says
    /// On Windows there is one loopback for the whole machine. The command's own processes reach each other over it only where a
    /// rule allows to connect there. This is a *stricter* gap.
    ///
    /// ## Why
    /// Filters see addresses and accounts, not whose socket is at the other end: opening loopback to the command would open every
    /// service of the machine that listens there.
    ///
    /// ## Example
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub SHARED_LOOPBACK = "shared-loopback", Note;

    /// # `proxy-ports`
    ///
    /// ## What it says
    /// On Windows the command reaches the filtering proxy at a few fixed ports of the machine's loopback, whatever the rules say of
    /// these ports.
    ///
    /// ## Why
    /// There is no loopback of the command's own to put the proxy in. The proxy decides each connection by the policy again.
    ///
    /// ## Example
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// # lint: allow(proxy-only) the programs know of proxies
    /// allow connect example.com
    /// ```
    ///
    /// ## Use instead
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub PROXY_PORTS = "proxy-ports", Note;

    /// # `kept-ports`
    ///
    /// ## What it says
    /// A rule allows listening on ports that are kept for the filtering proxy. The command cannot listen there. This is a *stricter*
    /// gap.
    ///
    /// ## Why
    /// Who listens where a proxy is looked for is taken for it, by this command's programs and by those of other runs.
    ///
    /// ## Example
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow listen 127.0.0.1:47000-48000
    /// ```
    ///
    /// ## Use instead
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow listen 127.0.0.1:8000
    /// ```
    pub KEPT_PORTS = "kept-ports", Note;

    /// # `no-such-place`
    ///
    /// ## What it says
    /// Rules name places that are none on Windows: they start at no drive and no variable, or have a name that no file can have
    /// there. Of these the rules say nothing.
    ///
    /// ## Why
    /// A policy may be for several systems. What should hold on Windows too starts at a variable, at `~`, or at a drive in an
    /// `on windows` block.
    ///
    /// ## Example
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow read /opt/tools
    /// ```
    ///
    /// ## Use instead
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// on windows { allow read C:/tools }
    /// ```
    pub NO_SUCH_PLACE = "no-such-place", Note;

    /// # `made-inside`
    ///
    /// ## What it says
    /// A rule opens one path for writing, and nothing below it. On Windows the right to write a file is, on a directory, the right
    /// to make files in it: if the path is a directory, the command can do that. This is a *looser* gap.
    ///
    /// ## Why
    /// One bit of an access mask means both, and what a path is is not known when a policy is compiled.
    ///
    /// ## Example
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// allow read, write exact $WORKSPACE/log.txt
    /// ```
    ///
    /// ## Use instead
    /// ```policy,windows
    /// srt 1
    /// # lint: allow(system-resolver) nothing is read that is worth a look-up of a name
    /// # lint: allow(shared-loopback) its processes do not talk to each other
    /// # lint: allow(every-account) nobody else uses this machine
    /// default read deny
    /// # lint: allow(made-inside) it is a file
    /// allow read, write exact $WORKSPACE/log.txt
    /// ```
    pub MADE_INSIDE = "made-inside", Error;
}

/// What may differ between a policy and what Windows holds.
pub static GAPS: &[Kind] = &[
    Kind::looser(&LATER_NAMES),
    Kind::looser(&LIMIT_NOT_HELD),
    Kind::looser(&MADE_INSIDE),
    Kind::beside(&SYSTEM_RESOLVER),
    Kind::beside(&EVERY_ACCOUNT),
    Kind::beside(&EXEC_BY_CONTENT),
    Kind::beside(&NO_SUCH_PLACE),
    Kind::beside(&PROXY_PORTS),
    Kind::stricter(&NOT_GRANTED),
    Kind::stricter(&OTHER_ACCOUNT),
    Kind::stricter(&PINNED_DIRECTORY),
    Kind::stricter(&SHARED_LOOPBACK),
    Kind::stricter(&KEPT_PORTS),
    Kind::stricter(&PROXY_ONLY),
];

/// The kind of a code of the table.
pub(super) fn kind(code: &'static Code) -> &'static Kind {
    GAPS.iter().find(|kind| kind.code == code).expect("every gap that is declared is of a kind in the table")
}
