//! What is said where the kernel lacks something that a command runs without.

use super::Decides;
use crate::exec::linux::control::Missing;
use nix::errno::Errno;

pub(super) fn not_redirected(missing: &Missing) -> String {
    let reached = if missing.alone {
        "reach nothing".to_owned()
    } else if missing.unheard.is_empty() {
        "reach the ports that the policy names, and no others".to_owned()
    } else {
        let ports: Vec<String> = missing.unheard.iter().map(u16::to_string).collect();
        format!("reach the ports that the policy names, but for {}, which cannot be listened on", ports.join(", "))
    };
    format!(
        "connections can't be redirected to the proxy ({}): programs that ignore its variables {reached}; see `srt doctor`",
        missing.errno.desc()
    )
}

pub(super) fn not_performed(errno: Errno, decides: &Decides) -> String {
    let why = match errno {
        Errno::EBUSY => "another sandbox around this one listens to system calls",
        Errno::EINVAL | Errno::ENOSYS => "Linux 5.19 or newer is needed",
        Errno::EPERM => "nothing here may look into another process",
        errno => errno.desc(),
    };
    let untold = if decides.watches { ", and what it is refused of files is not told" } else { "" };
    let later = if decides.performs { "; rules hold for files that exist now, as their comments accept" } else { "" };
    format!("unix sockets are closed to the command, its own too{untold}{later} ({why}); see `srt doctor`")
}
