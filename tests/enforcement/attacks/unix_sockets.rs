//! A service of the host is reached by its socket's path, whatever the mounts say: connecting writes no file. A datagram
//! socket from a pair reaches every datagram socket of the host as well, without any call to `socket`.

use crate::sandbox::{Run, for_each_user, give};
use std::os::unix::net::{UnixDatagram, UnixListener};

fn attack(place: &std::path::Path) -> String {
    format!(
        "
import os, socket
def attempt(name, act):
    try:
        act()
        print(name, 'reached')
    except OSError as error:
        print(name, error.errno)
def stream(path):
    return lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect(path)
place = '{0}'
attempt('stream', stream(place + '/stream'))
attempt('relative', stream('stream'))
os.symlink('stream', 'link')
attempt('link', stream('link'))
attempt('root', stream('/proc/self/root' + place + '/stream'))
attempt('directory', stream('/proc/self/cwd/stream'))
attempt('descriptor', stream('/proc/self/fd/%d' % os.open('stream', os.O_PATH)))
attempt('in a directory', stream('/proc/thread-self/fd/%d/stream' % os.open('.', os.O_PATH)))
own = socket.socket(socket.AF_UNIX)
own.bind('own')
own.listen()
os.unlink('own')
attempt('hard link', lambda: (os.link('stream', 'own', follow_symlinks=False), stream('own')()))
os.rename('stream', 'moved')
attempt('moved', stream('moved'))
os.rename('moved', 'stream')
attempt('datagram', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', place + '/datagram'))
",
        place.display()
    )
}

const STREAMS: [&str; 9] =
    ["stream", "relative", "link", "root", "directory", "descriptor", "in a directory", "hard link", "moved"];

#[test]
fn services_of_the_host_are_out_of_reach() {
    for_each_user(|user, scratch| {
        let stream = UnixListener::bind(scratch.join("stream")).unwrap();
        let datagram = UnixDatagram::bind(scratch.join("datagram")).unwrap();
        for name in ["stream", "datagram"] {
            give(&scratch.join(name), user);
        }
        let said = |streams: &str, datagram: &str| {
            for name in ["link", "own"] {
                let _ = std::fs::remove_file(scratch.join(name));
            }
            let streams = STREAMS.map(|name| format!("{name} {streams}\n")).concat();
            format!("{streams}datagram {datagram}\n")
        };
        let run = Run::policy("allow write $WORKSPACE", scratch, "").with_python(&attack(scratch)).as_user_of(user);
        // EACCES, EAFNOSUPPORT.
        let refused = said("13", "97");
        assert_eq!(run.succeeds(), refused);
        let _ = said("", "");
        assert_eq!(run.clone().without_landlock().succeeds(), refused);
        let _ = said("", "");
        let open = run.with_call("connect").with_call("socketpair");
        assert_eq!(open.succeeds(), said("reached", "reached"));
        drop((stream, datagram));
    });
}
