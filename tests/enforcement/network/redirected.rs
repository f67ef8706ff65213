//! Kernels that redirect nothing: what is left, and that it is said.

use crate::sandbox::{Run, for_each_native_user};
use crate::support::server;
use sandbox_runtime::exec::linux::Defence;

const CONNECT: &str = "
import socket, sys
for address in ADDRESSES:
    try:
        s = socket.create_connection(address, 5)
        s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        print(s.recv(100).decode().splitlines()[0:1])
    except OSError as error: print(type(error).__name__)
";

#[test]
fn without_redirection_the_ports_of_the_policy_are_listened_on_and_it_is_said() {
    let (port, other) = (server(), server());
    let addresses =
        format!("[('127.0.0.1', {port}), ('192.0.2.7', {port}), ('127.0.0.1', {other}), ('192.0.2.7', {other})]");
    let script = CONNECT.replace("ADDRESSES", &addresses);
    for_each_native_user(|user, workspace| {
        let run = |rules: &str| {
            Run::policy(rules, workspace, "")
                .with_python(&script)
                .as_user_of(user)
                .without(Defence::Redirection)
                .output()
        };
        let few = run(&format!("allow connect 127.0.0.1:{port}"));
        let said = String::from_utf8_lossy(&few.stderr);
        assert_eq!(
            String::from_utf8_lossy(&few.stdout),
            "['HTTP/1.1 200 OK']\nConnectionResetError\nConnectionRefusedError\nConnectionRefusedError\n",
            "{said}"
        );
        assert!(said.contains("connections can't be redirected to the proxy"), "{said}");
        // Too many to be listened on: the proxy alone is left, and nothing is open that should not be.
        let many = run(&format!("allow connect 127.0.0.1:1-{}", u16::MAX - 1));
        let text = String::from_utf8_lossy(&many.stdout).into_owned();
        let said = String::from_utf8_lossy(&many.stderr);
        assert_eq!(text, "ConnectionRefusedError\n".repeat(4), "{said}");
        assert!(said.contains("programs that ignore its variables reach nothing"), "{said}");
    });
}

/// Where only variables are left, they lead to whatever a rule allows, the host's loopback and git over ssh included.
#[test]
fn where_the_proxy_is_alone_its_variables_leave_nothing_out() {
    let port = server();
    let script = format!(
        "
import os, urllib.request
print(urllib.request.urlopen('http://127.0.0.1:{port}/', timeout=10).read().decode(), end='')
print(repr(os.environ.get('NO_PROXY')), os.environ.get('GIT_SSH_COMMAND'))
"
    );
    for_each_native_user(|user, workspace| {
        let run = |rules: &str| {
            let rules = format!("allow connect 127.0.0.1:1-{}\n{rules}", u16::MAX - 1);
            Run::policy(&rules, workspace, "").with_python(&script).as_user_of(user).without(Defence::Redirection)
        };
        let text = run("").succeeds();
        let own = text.strip_prefix("hello\n'' ssh -o ProxyCommand='").unwrap_or_else(|| panic!("{text}"));
        let own = own.strip_suffix(" connect %h %p'\n").unwrap_or_else(|| panic!("{text}"));
        // What may not be read or run is not named, and what the caller has chosen stays.
        assert_eq!(run(&format!("deny exec {own}")).succeeds(), "hello\n'' None\n");
        let mut chosen = run("");
        chosen.environment.push(("GIT_SSH_COMMAND".into(), "ssh -v".into()));
        assert_eq!(chosen.succeeds(), "hello\n'' ssh -v\n");
    });
}
