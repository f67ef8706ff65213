//! A server on the host's loopback (a database, a debugger, an agent's own port) trusts whoever connects.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::exec::linux::Defence;

#[test]
fn the_hosts_loopback_is_not_the_commands() {
    for_each_user(|user, _| {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let attack = format!(
            "
import socket
try:
    socket.create_connection(('127.0.0.1', {}), 5)
    print('reached')
except OSError as error:
    print(error.errno)
",
            server.local_addr().unwrap().port()
        );
        let run = Run::python(&attack).as_user_of(user);
        assert_eq!(run.succeeds(), "111\n");
        if !run.bwrap {
            assert_eq!(run.without(Defence::NetworkNamespace).succeeds(), "reached\n");
        }
    });
}
