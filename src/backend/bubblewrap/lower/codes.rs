//! What lowering says of a policy: each gap between the policy and what Linux holds, and what it refuses.

pub(super) use crate::backend::codes::{GRANT_WITHOUT_READ, PROXY_ONLY, UNENFORCEABLE};
use crate::backend::gap::Kind;
use crate::diagnostic::codes;

/// The message of [`NEST_CONFLICT`].
pub(super) const NEST_CONFLICT_SAYS: &str = "`--nest` cannot hold a rule over names that do not exist yet";

codes! {
    /// # `later-names`
    ///
    /// ## What it says
    /// A rule denies names that do not exist yet, in a place where the command may make files: by a glob, or by a target that is
    /// missing. What `srt compile` emits for bubblewrap denies such a name only if it exists when the command is started; of a rule
    /// about running that is so of `srt run` as well. This is a *looser* gap.
    ///
    /// ## Why
    /// Mounts hold nodes, and there is no node yet. A placeholder would be seen by other programs, and left behind. `srt run`
    /// makes every call that changes files in the command's place, so that no such name can be made, to be written or to be
    /// read; but what runs is not asked for when it is made, and a compiled text has nobody who makes calls. The witness is a path that the command can make, and that the policy denies.
    /// Nothing is silently lost: accept the gap with a reason, or deny the directory. `srt run` holds what a comment accepts, too;
    /// only where it cannot make calls (before Linux 5.19, or in a sandbox that listens to them itself) it then runs with what
    /// mounts hold, and says so.
    ///
    /// ## Example
    /// In what `srt compile` emits for bubblewrap:
    /// ```policy,bwrap
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// deny  write       $WORKSPACE/**/*.lock
    /// ```
    ///
    /// ## Use instead
    /// ```policy,bwrap
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// # lint: allow(later-names) lock files are all committed; a new one is seen in review
    /// deny  write       $WORKSPACE/**/*.lock
    /// ```
    pub LATER_NAMES = "later-names", Error;

    /// # `later-from-outside`
    ///
    /// ## What it says
    /// A rule denies reading paths that do not exist. The command cannot make them, but something outside the sandbox can, while
    /// the command runs; it could then read them.
    ///
    /// ## Why
    /// Mounts hold what exists at the start. Nothing inside the sandbox can use this by itself, so it does not stop a run.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read allow
    /// deny read ~/.no-such-file
    /// ```
    ///
    /// ## Use instead
    /// Reading closed but for what is named, or a comment:
    /// ```policy
    /// srt 1
    /// default read allow
    /// # lint: allow(later-from-outside) no other program of mine makes it
    /// deny read ~/.no-such-file
    /// ```
    pub LATER_FROM_OUTSIDE = "later-from-outside", Note;

    /// # `not-granted`
    ///
    /// ## What it says
    /// A rule allows something at a path that does not exist, in a place that is not otherwise allowed; or the `except` of a rule
    /// that denies leaves such a path open. Nothing is granted there. The same is said of a rule that allows connecting to the
    /// sockets in a directory which the sandbox does not show. This is a *stricter* gap.
    ///
    /// ## Why
    /// What is not there cannot be mounted, and making it would write to the host before the command was even started. What may be
    /// *written* by such a rule `srt run` makes in the command's place, where the directory it is in is shown; what `srt compile`
    /// emits has nobody who does.
    ///
    /// ## Example
    /// ```listing
    /// d /home/user/workspace/src
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read $WORKSPACE/no-such-directory
    /// ```
    ///
    /// ## Use instead
    /// ```listing
    /// d /home/user/workspace/src
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read $WORKSPACE/src
    /// ```
    pub NOT_GRANTED = "not-granted", Note;

    /// # `nest-conflict`
    ///
    /// ## What it says
    /// `--nest` was given with a policy that denies names which do not exist yet, or with `--strict-reads`, which decides each open by
    /// its name.
    ///
    /// ## Why
    /// A command that may mount can give a directory a second name, and make the denied file under that one, or open it.
    ///
    /// ## Example
    /// Under `--nest`:
    /// ```policy,nest
    /// srt 1
    /// use std/system
    /// default read deny
    /// # lint: allow(start-up-file) what it leaves is reviewed before it is opened in an editor
    /// allow read, write $WORKSPACE
    /// deny  write       $WORKSPACE/**/*.lock
    /// ```
    ///
    /// ## Use instead
    /// ```policy,nest
    /// srt 1
    /// use std/system
    /// default read deny
    /// # lint: allow(start-up-file) what it leaves is reviewed before it is opened in an editor
    /// allow read, write $WORKSPACE
    /// ```
    pub NEST_CONFLICT = "nest-conflict", Error;

    /// # `directory-listing`
    ///
    /// ## What it says
    /// What is below a directory may be read, but the directory itself may not. On Linux its names can be listed all the same. This
    /// is a *looser* gap.
    ///
    /// ## Why
    /// A mount shows a directory with what is in it. Names are not secret in this language (existence never is), but a listing of
    /// them was denied.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read below $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub DIRECTORY_LISTING = "directory-listing", Error;

    /// # `directory-attributes`
    ///
    /// ## What it says
    /// What is below a directory may be written, but the directory itself may not. On Linux its mode, owner, times and extended
    /// attributes can be changed. This is a *looser* gap.
    ///
    /// ## Why
    /// A mount is writable or not as a whole. The directory cannot be renamed or deleted: it is a mount point.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow read        $WORKSPACE
    /// allow write below $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// ```
    pub DIRECTORY_ATTRIBUTES = "directory-attributes", Error;

    /// # `directory-alone`
    ///
    /// ## What it says
    /// A directory may be read or written, but not what is below it. On Linux a listing of it shows only what is allowed below, and
    /// its attributes cannot be changed. This is a *stricter* gap.
    ///
    /// ## Why
    /// A mount shows a directory with what is in it, or an empty one.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read exact $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub DIRECTORY_ALONE = "directory-alone", Note;

    /// # `pinned-file`
    ///
    /// ## What it says
    /// A single file may be written in a directory that may not. It can be changed in place, but not deleted, nor replaced by
    /// renaming another file onto it, as many editors do. This is a *stricter* gap.
    ///
    /// ## Why
    /// The file is a mount point, and its directory is read-only.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read  $WORKSPACE
    /// allow write exact $WORKSPACE/Cargo.lock
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// ```
    pub PINNED_FILE = "pinned-file", Note;

    /// # `replaceable-link`
    ///
    /// ## What it says
    /// A rule denies writing a symbolic link that stands in a writable directory. The command can put something else in its place.
    /// This is a *looser* gap.
    ///
    /// ## Why
    /// Nothing can be mounted on a link. Where the link leads is denied as the rule says.
    ///
    /// ## Example
    /// ```listing
    /// d /srv/hooks
    /// l /home/user/workspace/tools/hooks -> /srv/hooks
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// # lint: allow(later-names) all hooks are there
    /// deny  write       $WORKSPACE/**/hooks
    /// ```
    ///
    /// ## Use instead
    /// ```listing
    /// d /srv/hooks
    /// l /home/user/workspace/tools/hooks -> /srv/hooks
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow read        $WORKSPACE
    /// allow read, write $WORKSPACE/src
    /// ```
    pub REPLACEABLE_LINK = "replaceable-link", Error;

    /// # `shown-as-a-whole`
    ///
    /// ## What it says
    /// A rule denies a part of `/proc`, or of `/dev`, that the sandbox shows all the same. This is a *looser* gap.
    ///
    /// ## Why
    /// Both are the sandbox's own: `/proc` shows its own processes alone, and whatever in it reaches the host is covered by
    /// the sandbox by itself, so that denying to write `/proc/sys`, or to read `/proc/kcore`, is no gap. Else they are there
    /// as a whole, or not at all; of the device nodes each is there or not.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// deny read /proc/cpuinfo
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read allow
    /// deny read /proc
    /// ```
    pub SHOWN_AS_A_WHOLE = "shown-as-a-whole", Error;

    /// # `private-place`
    ///
    /// ## What it says
    /// A rule allows a path in `/dev` that the sandbox's own `/dev` does not have, or a part of `/proc` that the sandbox
    /// covers. This is a *stricter* gap.
    ///
    /// ## Why
    /// The sandbox never sees the host's devices, save `null`, `zero`, `full`, `random`, `urandom` and `tty`. In `/proc`
    /// only what is a process's own can be written, since all else there is the host's.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read, write /dev/kvm
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read, write /dev/null
    /// ```
    pub PRIVATE_PLACE = "private-place", Note;

    /// # `exec-by-content`
    ///
    /// ## What it says
    /// A rule denies running files. On Linux that holds the files: a program that the command writes into memory can still be run,
    /// and a script can be read by its interpreter.
    ///
    /// ## Why
    /// The kernel decides on the file that is executed. To run `sh script` is to run `sh` and to read `script`.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// deny  exec        $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// ```
    pub EXEC_BY_CONTENT = "exec-by-content", Note;
}

/// What may differ between a policy and what Linux holds.
pub static GAPS: &[Kind] = &[
    Kind::looser(&LATER_NAMES),
    Kind::looser(&DIRECTORY_LISTING),
    Kind::looser(&DIRECTORY_ATTRIBUTES),
    Kind::looser(&REPLACEABLE_LINK),
    Kind::looser(&SHOWN_AS_A_WHOLE),
    Kind::beside(&LATER_FROM_OUTSIDE),
    Kind::beside(&EXEC_BY_CONTENT),
    Kind::stricter(&NOT_GRANTED),
    Kind::stricter(&DIRECTORY_ALONE),
    Kind::stricter(&PINNED_FILE),
    Kind::stricter(&PRIVATE_PLACE),
    Kind::stricter(&PROXY_ONLY),
];
