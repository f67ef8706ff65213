//! Sockets whose other end does what it is told outside the sandbox.
//!
//! One closed table, each line with where it is laid down. A socket by another name is not recognised.

use super::granted::{Granted, allows};
use super::place;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::vocabulary::Verb;

codes! {
    /// # `control-socket`
    ///
    /// ## What it says
    /// A rule lets the command connect to a socket whose other end acts for it outside the sandbox: a container engine, an
    /// agent that signs, the desktop's message bus, the display, the service manager.
    ///
    /// ## Why
    /// Whoever may ask a container engine for a container with `/` mounted is root on the host. A message bus starts programs,
    /// the display reads keys and types, an agent signs what it is given. The sandbox holds the command, not what others do for
    /// it. Where that is meant, say so: a comment with a reason accepts it.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// on macos { allow socket ~/.docker/run/docker.sock }
    /// ```
    ///
    /// ## Use instead
    /// The engine's own service, reached over the network with rights of its own; or nothing:
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect builder.example.com:443
    /// ```
    pub CONTROL_SOCKET = "control-socket", Error;
}

/// Sockets of one kind.
struct Kind {
    /// Where they are, as in a policy; of a folder everything in it.
    places: &'static [&'static str],
    /// Who listens.
    who: &'static str,
    /// What whoever connects can have done.
    does: &'static str,
    /// Where that is laid down.
    #[cfg_attr(not(test), allow(dead_code))]
    source: &'static str,
}

const STARTS_CONTAINERS: &str = "starts containers as root, with any directory of the host in them";

/// `$RUNTIME` is `/run/user/UID`, and both are here, since a policy may name either.
const KINDS: &[Kind] = &[
    Kind {
        places: &[
            "/run/docker.sock",
            "/var/run/docker.sock",
            "$RUNTIME/docker.sock",
            "/run/user/*/docker.sock",
            "~/.docker/run",
            "~/.docker/desktop",
            "~/.colima",
            "~/.orbstack/run",
            "~/.rd/docker.sock",
            "/private/var/run/docker.sock",
        ],
        who: "Docker's engine",
        does: STARTS_CONTAINERS,
        source: "Docker Engine: protect the Docker daemon socket; Docker daemon attack surface",
    },
    Kind {
        places: &["/run/podman", "/var/run/podman", "$RUNTIME/podman", "/run/user/*/podman"],
        who: "Podman's service",
        does: "starts containers with the rights of its user",
        source: "podman-system-service(1), SECURITY",
    },
    Kind {
        places: &["/run/containerd", "/var/run/containerd", "/run/k3s/containerd", "$RUNTIME/containerd"],
        who: "containerd",
        does: STARTS_CONTAINERS,
        source: "containerd: ops guide, `[grpc] address`",
    },
    Kind {
        places: &["/run/crio", "/var/run/crio", "/run/cri-dockerd.sock", "/var/run/cri-dockerd.sock"],
        who: "the container runtime of a Kubernetes node",
        does: STARTS_CONTAINERS,
        source: "crio(8), `--listen`; Kubernetes: container runtimes",
    },
    Kind {
        places: &["/run/buildkit", "$RUNTIME/buildkit", "/run/user/*/buildkit"],
        who: "BuildKit",
        does: "runs the steps of a build as root",
        source: "buildkitd: default address",
    },
    Kind {
        places: &[
            "/var/lib/lxd/unix.socket",
            "/var/snap/lxd/common/lxd/unix.socket",
            "/var/lib/incus/unix.socket",
            "/run/incus",
        ],
        who: "LXD, or Incus",
        does: STARTS_CONTAINERS,
        source: "LXD: about security, access to the LXD daemon; Incus: the same chapter",
    },
    Kind {
        places: &["/run/libvirt", "/var/run/libvirt", "$RUNTIME/libvirt", "/run/user/*/libvirt"],
        who: "libvirt",
        does: "starts virtual machines with any disk or directory of the host",
        source: "libvirt: daemon access control, UNIX socket permissions",
    },
    Kind {
        places: &["/var/lib/kubelet", "/run/kubelet"],
        who: "the kubelet",
        does: "tells of the node's pods and takes device plugins in",
        source: "Kubernetes: device plugins, the kubelet's sockets",
    },
    Kind {
        places: &[
            "/run/systemd/private",
            "/run/systemd/io.systemd.*",
            "/run/systemd/userdb",
            "$RUNTIME/systemd",
            "/run/user/*/systemd",
        ],
        who: "systemd",
        does: "starts services outside the sandbox",
        source: "systemd.exec(5), org.freedesktop.systemd1(5)",
    },
    Kind {
        places: &["/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"],
        who: "the system's message bus",
        does: "reaches the services of the whole machine",
        source: "dbus-daemon(1), the well-known system bus",
    },
    Kind {
        places: &["$RUNTIME/bus", "/run/user/*/bus", "$RUNTIME/dbus-1", "$RUNTIME/at-spi", "/run/user/*/at-spi"],
        who: "the session's message bus",
        does: "starts programs, and unlocks the keyring",
        source: "D-Bus specification: message bus addresses; org.freedesktop.systemd1 on the session bus",
    },
    Kind {
        places: &["/run/snapd.socket", "/run/snapd-snap.socket"],
        who: "snapd",
        does: "installs and starts programs",
        source: "snapd REST API",
    },
    Kind {
        places: &["/tmp/.X11-unix", "/private/tmp/.X11-unix", "/tmp/.ICE-unix", "/opt/X11"],
        who: "the X server",
        does: "reads every key that is typed, and types into other windows",
        source: "Xsecurity(7); XTEST extension protocol",
    },
    Kind {
        places: &["$RUNTIME/wayland-*", "/run/user/*/wayland-*", "$RUNTIME/pipewire-*", "/run/user/*/pipewire-*"],
        who: "the Wayland compositor, or PipeWire",
        does: "shows windows of the command's making, and may record the screen",
        source: "wl_display_connect(3), XDG_RUNTIME_DIR; PipeWire: access",
    },
    Kind {
        places: &[
            "$env.SSH_AUTH_SOCK",
            "/tmp/ssh-*",
            "~/.ssh/agent",
            "$RUNTIME/ssh-agent*",
            "$RUNTIME/openssh_agent",
            "$RUNTIME/keyring",
            "$RUNTIME/gcr",
            "/run/user/*/ssh-agent*",
            "/run/user/*/openssh_agent",
            "/run/user/*/keyring",
            "/run/user/*/gcr",
            "~/.1password",
            "/private/tmp/com.apple.launchd.*",
        ],
        who: "an agent that holds SSH keys",
        does: "logs in wherever its keys do",
        source: "ssh-agent(1), `-a` and SSH_AUTH_SOCK; gnome-keyring-daemon(1)",
    },
    Kind {
        places: &["~/.gnupg", "$RUNTIME/gnupg", "/run/user/*/gnupg", "$env.GPG_AGENT_INFO"],
        who: "GnuPG's agent",
        does: "signs and decrypts with its user's keys",
        source: "gpg-agent(1), FILES; gpgconf(1), `--list-dirs`",
    },
    Kind {
        places: &[
            "/tmp/tmux-*",
            "/private/tmp/tmux-*",
            "$RUNTIME/tmux-*",
            "/run/screen",
            "/run/screens",
            "~/.screen",
            "$RUNTIME/zellij",
            "/run/user/*/zellij",
        ],
        who: "a terminal multiplexer",
        does: "types into a terminal outside the sandbox",
        source: "tmux(1), `-L` and TMUX_TMPDIR; screen(1), SCREENDIR",
    },
    Kind {
        places: &[
            "$RUNTIME/emacs",
            "/run/user/*/emacs",
            "/tmp/emacs*",
            "$RUNTIME/nvim.*",
            "/run/user/*/nvim.*",
            "$RUNTIME/vscode-*",
            "/run/user/*/vscode-*",
        ],
        who: "an editor",
        does: "runs its commands",
        source: "emacsclient(1); Neovim: api.txt, `v:servername`; VS Code: VSCODE_IPC_HOOK_CLI",
    },
];

/// One finding for each rule that reaches such a socket.
pub(super) fn check(granted: &Granted<'_, '_>) -> Vec<Diagnostic> {
    let policy = granted.policy();
    let mut found = Vec::new();
    for (id, rule) in allows(policy, Verb::Socket) {
        let reached = KINDS.iter().filter_map(|kind| {
            let places = place::trees(kind.places.iter().copied(), policy);
            Some((kind, granted.path(id, &places, &[])?))
        });
        let mut reached = reached.collect::<Vec<_>>().into_iter();
        let Some((kind, path)) = reached.next() else { continue };
        let others = match reached.len() {
            0 => String::new(),
            1 => ", and 1 more".to_owned(),
            more => format!(", and {more} more"),
        };
        let message = format!("this reaches {}, which {}{others}", kind.who, kind.does);
        let diagnostic = Diagnostic::new(&CONTROL_SOCKET, message).label(rule.span, "hands over the host");
        let diagnostic = diagnostic.witness(format!("{} {path}", Verb::Socket));
        found.push(diagnostic.help(
            "leave the rule out; or accept it with a reason, by `# lint: allow(control-socket) REASON` above the statement",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tests::{asked, bound, lines, symbolic, symbolic_on};
    use crate::vocabulary::System;

    fn said(rules: &str) -> String {
        let text = format!("srt 1\ndefault read deny\n{rules}\n");
        let policy = symbolic(&text);
        lines(&policy, &text, &asked(&policy, check))
    }

    #[test]
    fn each_line_of_the_table_is_recognised_under_its_own_name() {
        for kind in KINDS {
            assert!(!kind.source.is_empty() && !kind.places.is_empty());
            for place in kind.places {
                let text = format!("srt 1\ndefault read deny\nallow socket {place}\n");
                let policy = symbolic_on(System::Linux, &text);
                let found = asked(&policy, check);
                assert_eq!(found.len(), 1, "{place}");
                assert!(found[0].message.contains(kind.who), "{place}: {}", found[0].message);
                lines(&policy, &text, &found);
            }
        }
    }

    #[test]
    fn a_tree_reaches_what_is_in_it_unless_it_is_denied() {
        assert_eq!(
            said("allow socket /run"),
            "error /run: this reaches Docker's engine, which starts containers as root, with any directory of the host in them, \
             and 16 more (socket /run/docker.sock)\n"
        );
        assert_eq!(said("allow socket /run/postgresql\nallow socket $WORKSPACE\nallow socket /tmp/x.sock"), "");
        assert_eq!(said("allow socket $RUNTIME\ndeny socket $RUNTIME/*"), "");
        assert!(said("deny socket $RUNTIME\nallow socket $RUNTIME/bus").contains("message bus"));
        assert_eq!(said("deny socket /run/docker.sock"), "");
    }

    #[test]
    fn it_is_found_on_a_machine_too() {
        let text = "srt 1\ndefault read deny\nallow socket ~/.gnupg/S.gpg-agent\n";
        let policy = bound(text);
        assert!(lines(&policy, text, &asked(&policy, check)).contains("(socket /home/user/.gnupg/S.gpg-agent)"));
    }
}
