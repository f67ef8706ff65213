//! The findings `bind` raises. Each doc comment is the finding's page in the book.

crate::diagnostic::codes! {
    /// # `unset-variable`
    ///
    /// ## What it says
    /// A rule uses a variable that has no value on this machine.
    ///
    /// ## Why
    /// Without a value the rule would match nothing: an `allow` would do nothing, a `deny` would deny nothing.
    ///
    /// ## Example
    /// This is found when the policy meets a machine, as here one where `CARGO_HOME` is not set:
    /// ```listing
    /// d /home/user/.cargo
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $env.CARGO_HOME
    /// ```
    ///
    /// ## Use instead
    /// `or` gives another target. (`?` after the variable drops an `allow` where it is unset, with a note.)
    /// ```listing
    /// d /home/user/.cargo
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $env.CARGO_HOME or ~/.cargo
    /// ```
    pub UNSET_VARIABLE = "unset-variable", Error;

    /// # `variable-value`
    ///
    /// ## What it says
    /// A variable's value is not one literal, absolute, normalised path (or host), or lies where the policy may assume
    /// that it does not: `$HOME` is `/`; `$WORKSPACE` is `/`, `$HOME`, above it, or in a dot-directory of it; an
    /// `assume` does not hold.
    ///
    /// ## Why
    /// What was proved about the policy was proved under these assumptions. A workspace that is the home directory
    /// would make a rule for the workspace a rule for everything you own.
    ///
    /// ## Example
    /// `cd ~ && srt run --policy agent.policy -- agent`: the workspace is the home.
    /// ```listing
    /// v HOME=/home/user
    /// v WORKSPACE=/home/user
    /// ```
    /// ```policy
    /// srt 1
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// Start in a project's directory, or give `--workspace ~/project`:
    /// ```listing
    /// d /home/user/project
    /// v HOME=/home/user
    /// v WORKSPACE=/home/user/project
    /// ```
    /// ```policy
    /// srt 1
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// ```
    pub VARIABLE_VALUE = "variable-value", Error;

    /// # `dropped-rule`
    ///
    /// ## What it says
    /// A rule or expectation with `?` is left out here, since its variable has no value.
    ///
    /// ## Why
    /// That is what `?` asks for; it is said so that a missing permission can be explained.
    ///
    /// ## Example
    /// Where `VIRTUAL_ENV` is not set:
    /// ```listing
    /// d /home/user/workspace/.venv
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $env.VIRTUAL_ENV?
    /// ```
    ///
    /// ## Use instead
    /// Set the variable, or give another target by `or`.
    /// ```listing
    /// d /home/user/workspace/.venv
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $env.VIRTUAL_ENV or $WORKSPACE/.venv
    /// ```
    pub DROPPED_RULE = "dropped-rule", Note;

    /// # `link-in-writable`
    ///
    /// ## What it says
    /// A target leads through a symbolic link that lies in a place this policy makes writable.
    ///
    /// ## Why
    /// The command can put another link there. One run replaces `build` by a link to `../secret`; the next run, which is
    /// allowed to write `build/out`, writes into it. Such a link is never followed.
    ///
    /// ## Example
    /// ```listing
    /// d /data/build/out
    /// l /home/user/workspace/build -> /data/build
    /// ```
    /// ```policy
    /// srt 1
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// # lint: allow(write-and-run) the build runs what it has made
    /// allow read, write $WORKSPACE/build/out
    /// ```
    ///
    /// ## Use instead
    /// The place that the link leads to, by its own name:
    /// ```listing
    /// d /data/build/out
    /// l /home/user/workspace/build -> /data/build
    /// ```
    /// ```policy
    /// srt 1
    /// use std/shell-config
    /// default read deny
    /// allow read, write $WORKSPACE
    /// # lint: allow(write-and-run) the build runs what it has made
    /// allow read, write /data/build/out
    /// ```
    pub LINK_IN_WRITABLE = "link-in-writable", Error;

    /// # `link-loop`
    ///
    /// ## What it says
    /// A target leads through symbolic links that never end, or through a directory that can't be looked into.
    ///
    /// ## Why
    /// Where it leads can't be known, so neither can what the rule governs.
    ///
    /// ## Example
    /// ```listing
    /// l /srv/a -> /srv/b
    /// l /srv/b -> /srv/a
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read /srv/a
    /// ```
    ///
    /// ## Use instead
    /// The place that was meant, or mend the links.
    /// ```listing
    /// l /srv/a -> /srv/b
    /// d /srv/b
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read /srv/a
    /// ```
    pub LINK_LOOP = "link-loop", Error;

    /// # `unanchored-glob`
    ///
    /// ## What it says
    /// To hold a pattern, every name on the disk has to be looked at when the sandbox starts.
    ///
    /// ## Why
    /// On Linux a pattern over what exists is held by finding what it matches. `**/.env` under `default read allow`
    /// matches anywhere. Past four million names the start is refused.
    ///
    /// ## Example
    /// This is found when the policy meets a machine:
    /// ```policy
    /// srt 1
    /// default read allow
    /// # lint: allow(later-from-outside) nobody else makes such files meanwhile
    /// deny read **/.env
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read allow
    /// # lint: allow(later-from-outside) nobody else makes such files meanwhile
    /// deny read $WORKSPACE/**/.env
    /// ```
    pub UNANCHORED_GLOB = "unanchored-glob", Warning;

    /// # `unlisted-directory`
    ///
    /// ## What it says
    /// A directory that a pattern reaches could not be listed.
    ///
    /// ## Why
    /// What cannot be listed by you can't be listed by the command either, but a name in it that the command knows may
    /// be opened there, and the pattern does not hold for it.
    ///
    /// ## Example
    /// Where `inbox` may be entered, and not be listed:
    /// ```listing
    /// x /home/user/workspace/inbox
    /// ```
    /// ```policy
    /// srt 1
    /// default read allow
    /// # lint: allow(later-from-outside) nobody else makes such files meanwhile
    /// deny read $WORKSPACE/**/.env
    /// ```
    ///
    /// ## Use instead
    /// `chmod u+r` on the directory, or a rule that denies it as a whole:
    /// ```listing
    /// x /home/user/workspace/inbox
    /// ```
    /// ```policy
    /// srt 1
    /// default read allow
    /// deny read $WORKSPACE/inbox
    /// ```
    pub UNLISTED_DIRECTORY = "unlisted-directory", Note;
}
