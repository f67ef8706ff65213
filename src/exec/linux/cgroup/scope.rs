//! A group by leave of systemd: a scope that its manager, the user's or for root the machine's, makes and moves processes of ours into
//! (org.freedesktop.systemd1(5), `StartTransientUnit`; systemd's CGROUP_DELEGATION.md). It is gone when its last process is, and what it
//! counted with it: so one is in it that outlives the command.
//!
//! systemd is asked by its own `busctl`: `systemd-run --scope` would have the scope begin with another program than the one in the sandbox,
//! and a client of D-Bus in this program would be as large as the rest of this room, for one call.

use super::Lack;
use super::place::{Hierarchy, Place};
use crate::backend::limits::Limits;
use crate::exec::linux::program::program;
use nix::unistd::{Pid, geteuid};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a manager may take to answer, and then to move the process.
const PATIENCE: Duration = Duration::from_secs(5);

/// The group of a new scope that these processes, and nothing else, are in.
pub fn ask(processes: [Pid; 2], limits: &Limits, hierarchy: &Hierarchy) -> Result<Place, Lack> {
    // Of another process namespace it would take our numbers for other processes.
    let is_first = || super::read("/proc/1/comm".into()).is_ok_and(|name| name == "systemd");
    if !hierarchy.has_systemd() || !is_first() {
        return Err(Lack::new("no systemd runs here that could make a scope"));
    }
    let busctl = program("busctl", std::env::var_os("PATH"))
        .ok_or_else(|| Lack::new("there is no `busctl` on PATH to ask systemd with"))?;
    let unit = format!("srt-{}.scope", nix::unistd::getpid());
    // Where scopes are made by default.
    let among = if geteuid().is_root() {
        "system.slice".to_owned()
    } else {
        format!("user.slice/user-{user}.slice/user@{user}.service/app.slice", user = geteuid())
    };
    let Place { limits, .. } = hierarchy.without_leaving(hierarchy.below(&among), limits)?;
    let mut command = Command::new(busctl);
    if geteuid().is_root() {
        command.arg("--system");
    } else {
        command.arg("--user");
        // Of whoever has become this user without a session.
        if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
            command.env("XDG_RUNTIME_DIR", format!("/run/user/{}", geteuid()));
        }
    }
    command.args(["--quiet", &format!("--timeout={}", PATIENCE.as_secs()), "call"]);
    command.args(["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]);
    command.args(["StartTransientUnit", "ssa(sv)a(sa(sv))", &unit, "fail", "4"]);
    command.args(["Description", "s", "A command that srt runs"]);
    command.args(["PIDs", "au", "2"]).args(processes.map(|process| process.to_string()));
    command.args(["Delegate", "b", "true"]);
    command.args(["CollectMode", "s", "inactive-or-failed", "0"]);
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| Lack::new(format!("cannot run `busctl`: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("it does not say why").trim();
        return Err(Lack::new(format!("systemd makes no scope: {said}")));
    }
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let [one, other] =
            processes.map(|process| hierarchy.of_process(process).filter(|group| group.ends_with(&unit)));
        if let Some(group) = one.filter(|_| other.is_some()) {
            return Ok(Place { group, limits });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Lack::new(format!("systemd did not move the sandbox into {unit}")))
}
