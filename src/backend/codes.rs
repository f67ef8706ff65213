//! What is said of a policy for more than one system.

use crate::diagnostic::codes;

codes! {
    /// # `grant-without-read`
    ///
    /// ## What it says
    /// A rule allows writing or running what the default does not allow to read.
    ///
    /// ## Why
    /// No system can say it: what is not there to be read cannot be opened for writing either, and to run a program is to read it.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow write $WORKSPACE
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
    pub GRANT_WITHOUT_READ = "grant-without-read", Error;

    /// # `unenforceable`
    ///
    /// ## What it says
    /// A rule needs a mechanism that this build does not have for a system, or that the system does not have.
    ///
    /// ## Why
    /// A rule is never ignored: what cannot be enforced does not run. Denying the same is no problem, as everything that is not
    /// allowed is denied.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect ntp.example.com:123/udp
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// deny connect ntp.example.com:123/udp
    /// ```
    pub UNENFORCEABLE = "unenforceable", Error;

    /// # `proxy-only`
    ///
    /// ## What it says
    /// What a rule allows is reached through the sandbox's proxy alone, that is by programs that mind `HTTP_PROXY` and its like: on
    /// Linux the host's loopback, where a rule allows every port of it; on macOS and Windows every name. This is a *stricter* gap.
    ///
    /// ## Why
    /// The proxy decides each connection by the `connect` rules. On Linux connections are redirected to it; but what is said to
    /// the loopback stays there, since the command's own servers are there: only ports that a rule names as the host's are
    /// redirected, and all of them would leave the command none. Other systems redirect nothing.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// # lint: allow(broad-grant) anything may be asked
    /// # lint: allow(metadata-address) there is none on this machine
    /// allow connect 0.0.0.0/0:*
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect [localhost:3000, 10.20.0.0/16:5432]
    /// ```
    pub PROXY_ONLY = "proxy-only", Note;

    /// # `pinned-directory`
    ///
    /// ## What it says
    /// On macOS and on Windows a directory above something that may not be written can be neither renamed nor removed; on macOS
    /// it cannot be made either. This is a *stricter* gap.
    ///
    /// ## Why
    /// These systems decide by the name that a file has at the moment, or by what stands at its directory. Who may rename `.git` may
    /// move it away and make another one, hooks and all; or make one elsewhere and move it here.
    ///
    /// ## Example
    /// ```policy,macos
    /// srt 1
    /// default read deny
    /// # lint: allow(start-up-file) what it leaves is reviewed before it is opened in an editor
    /// allow read, write $WORKSPACE
    /// deny  write $WORKSPACE/2024/01
    /// ```
    ///
    /// ## Use instead
    /// ```policy,macos
    /// srt 1
    /// default read deny
    /// # lint: allow(start-up-file) what it leaves is reviewed before it is opened in an editor
    /// allow read, write $WORKSPACE
    /// # lint: allow(pinned-directory) the directory is there
    /// deny  write $WORKSPACE/2024/01
    /// ```
    pub PINNED_DIRECTORY = "pinned-directory", Note;

    /// # `limit-not-held`
    ///
    /// ## What it says
    /// A limit that a system has no means for: on macOS of memory and of processes, on Windows of open files and of the size of one.
    /// It is not held. This is a *looser* gap.
    ///
    /// ## Why
    /// macOS bounds memory not at all and processes for a user as a whole, whose other programs would be stopped as well; what it
    /// bounds for each process are open files, the size of one, and processor time. Job objects of Windows bound memory, processes
    /// and processor time. The runner bounds time on the clock.
    ///
    /// ## Example
    /// ```policy,macos
    /// srt 1
    /// use std/system
    /// default read deny
    /// limit memory 1GiB
    /// ```
    ///
    /// ## Use instead
    /// ```policy,macos
    /// srt 1
    /// use std/system
    /// default read deny
    /// on linux, windows { limit memory 1GiB }
    /// limit time 10m
    /// ```
    pub LIMIT_NOT_HELD = "limit-not-held", Error;
}
