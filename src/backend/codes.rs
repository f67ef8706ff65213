//! What is said of a policy for more than one system.

use crate::codes;

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
    /// allow listen 127.0.0.1:3000
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// deny listen 127.0.0.1:3000
    /// ```
    pub UNENFORCEABLE = "unenforceable", Error;

    /// # `proxy-only`
    ///
    /// ## What it says
    /// Connections are allowed, and reach the network through the sandbox's proxy alone: by the variables `HTTP_PROXY` and their
    /// like. A program that ignores these connects to nothing. This is a *stricter* gap.
    ///
    /// ## Why
    /// The command has a network of its own in which only the proxy stands. It decides each connection by the `connect` rules.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect example.com
    /// ```
    ///
    /// ## Use instead
    /// Programs that speak to a proxy; say so in a comment:
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// # lint: allow(proxy-only) curl reads these variables
    /// allow connect example.com
    /// ```
    pub PROXY_ONLY = "proxy-only", Note;
}
