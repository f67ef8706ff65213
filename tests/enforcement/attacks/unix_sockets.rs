//! A service of the host is reached by its socket's path, whatever the mounts say: connecting writes no file. A datagram
//! socket from a pair reaches every datagram socket of the host as well, without any call to `socket`.

use crate::sandbox::{Run, for_each_user, give};
use std::os::unix::net::{UnixDatagram, UnixListener};

fn attack(place: &std::path::Path) -> String {
    format!(
        "
import socket
def attempt(name, act):
    try:
        act()
        print(name, 'reached')
    except OSError as error:
        print(name, error.errno)
attempt('stream', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect('{0}/stream'))
attempt('datagram', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', '{0}/datagram'))
",
        place.display()
    )
}

#[test]
fn services_of_the_host_are_out_of_reach() {
    for_each_user(|user, scratch| {
        let stream = UnixListener::bind(scratch.join("stream")).unwrap();
        let datagram = UnixDatagram::bind(scratch.join("datagram")).unwrap();
        for name in ["stream", "datagram"] {
            give(&scratch.join(name), user);
        }
        let run = Run::policy("allow write $WORKSPACE", scratch, "").with_python(&attack(scratch)).as_user_of(user);
        const EAFNOSUPPORT: &str = "stream 97\ndatagram 97\n";
        assert_eq!(run.succeeds(), EAFNOSUPPORT);
        assert_eq!(run.clone().without_landlock().succeeds(), EAFNOSUPPORT);
        let open = run.with_call("socket").with_call("socketpair");
        assert_eq!(open.succeeds(), "stream reached\ndatagram reached\n");
        drop((stream, datagram));
    });
}
