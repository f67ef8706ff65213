//! What lowering says of a policy for macOS: each gap between the policy and what the system holds.

pub(super) use crate::backend::codes::{GRANT_WITHOUT_READ, PROXY_ONLY, UNENFORCEABLE};
use crate::backend::gap::Kind;
use crate::backend::{LIMIT_NOT_HELD, PINNED_DIRECTORY};
use crate::diagnostic::codes;

codes! {
    /// # `other-spellings`
    ///
    /// ## What it says
    /// On macOS what a rule denies is denied in every spelling of its name. This is a *stricter* gap.
    ///
    /// ## Why
    /// File systems there find `.SSH` where a program asks for `.ssh`, while the sandbox compares the letters of the name that a
    /// file has. A deny that held one spelling alone could be walked around by making the file in another. What is allowed is
    /// allowed as it is spelled.
    ///
    /// ## Example
    /// ```policy,macos
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read $WORKSPACE
    /// deny  read $WORKSPACE/private
    /// ```
    ///
    /// ## Use instead
    /// ```policy,macos
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read $WORKSPACE
    /// # lint: allow(other-spellings) that is what is wanted
    /// deny  read $WORKSPACE/private
    /// ```
    pub OTHER_SPELLINGS = "other-spellings", Note;

    /// # `moved-names`
    ///
    /// ## What it says
    /// A rule denies names at any depth of a writable place. On macOS the same names are denied in every other place that may be
    /// written too. This is a *stricter* gap.
    ///
    /// ## Why
    /// A directory can be renamed from one place to another with all that is in it, and the sandbox looks at the directory's name
    /// alone. So what is denied here must not come from there, nor be read there.
    ///
    /// ## Example
    /// ```policy,macos
    /// srt 1
    /// use std/system
    /// default read deny
    /// # lint: allow(start-up-file) what it leaves is reviewed before it is opened in an editor
    /// allow read, write $WORKSPACE
    /// # lint: allow(pinned-directory) the workspace stays where it is
    /// deny  read $WORKSPACE/**/007
    /// ```
    ///
    /// ## Use instead
    /// ```policy,macos
    /// srt 1
    /// use std/system
    /// default read deny
    /// # lint: allow(start-up-file) what it leaves is reviewed before it is opened in an editor
    /// allow read, write $WORKSPACE
    /// # lint: allow(pinned-directory) the workspace stays where it is
    /// # lint: allow(moved-names) nothing of that name is made elsewhere
    /// deny  read $WORKSPACE/**/007
    /// ```
    pub MOVED_NAMES = "moved-names", Note;

    /// # `moved-directory`
    ///
    /// ## What it says
    /// A rule denies names at any depth of a directory, in a writable place that is larger. On macOS a directory can be renamed
    /// into it or out of it with such a file in it. This is a *looser* gap.
    ///
    /// ## Why
    /// The sandbox looks at the name of the directory that is renamed, not at what is in it. Where such names are denied in the
    /// whole of a writable place, they are denied in all others as well (see `moved-names`); here that would deny them where the
    /// policy allows them.
    ///
    /// ## Example
    /// ```policy,macos
    /// srt 1
    /// default read deny
    /// # lint: allow(start-up-file) what it leaves is reviewed before it is opened in an editor
    /// allow read, write $WORKSPACE
    /// # lint: allow(pinned-directory) the directory is there
    /// deny  write $WORKSPACE/2024/**/01
    /// ```
    ///
    /// ## Use instead
    /// ```policy,macos
    /// srt 1
    /// default read deny
    /// # lint: allow(start-up-file) what it leaves is reviewed before it is opened in an editor
    /// allow read, write $WORKSPACE
    /// # lint: allow(pinned-directory) the directory is there
    /// deny  write $WORKSPACE/2024
    /// ```
    pub MOVED_DIRECTORY = "moved-directory", Error;

    /// # `second-root`
    ///
    /// ## What it says
    /// On macOS nothing can be reached below `/System/Volumes/Data`. This is a *stricter* gap.
    ///
    /// ## Why
    /// It is another name of the directories in which all data are (`/Users`, `/private`, `/Applications`): what a rule denies
    /// there would be open here.
    ///
    /// ## Example
    /// ```policy,macos
    /// srt 1
    /// default read allow
    /// ```
    ///
    /// ## Use instead
    /// ```policy,macos
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub SECOND_ROOT = "second-root", Note;
}

/// What may differ between a policy and what macOS holds.
pub static GAPS: &[Kind] = &[
    Kind::stricter(&OTHER_SPELLINGS),
    Kind::stricter(&PINNED_DIRECTORY),
    Kind::stricter(&MOVED_NAMES),
    Kind::stricter(&SECOND_ROOT),
    Kind::stricter(&PROXY_ONLY),
    Kind::looser(&MOVED_DIRECTORY),
    Kind::looser(&LIMIT_NOT_HELD),
];

/// The entry of a code in the table.
pub(super) fn kind(code: &crate::diagnostic::Code) -> &'static Kind {
    GAPS.iter().find(|kind| kind.code == code).expect("every gap that is declared is of a kind in the table")
}
