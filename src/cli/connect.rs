//! `srt connect HOST PORT`: standard input and output joined to a connection through the proxy of the sandbox that this runs
//! in, as ssh wants of a `ProxyCommand`.
//!
//! It has no rights of its own: the proxy decides, and what it says of a refusal is printed where ssh's user reads it.

use super::arguments::Connect;
use super::{output, status};
use sandbox_runtime::event::printable;
use sandbox_runtime::exec;
use sandbox_runtime::proxy::{Authority, upstream};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

pub fn connect(arguments: &Connect) -> u8 {
    let Connect { host, port } = arguments;
    // ssh says `%h` without brackets.
    let bracketed = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.clone() };
    let authority = match Authority::parse(&format!("{bracketed}:{port}"), None) {
        Ok(authority) => authority,
        Err(error) => return mistake(&format!("`{host}` is no host: {error}")),
    };
    let value = |name: &'static str| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?));
    let Some((name, proxy)) = upstream::VARIABLES.into_iter().find_map(value) else {
        return mistake("no variable names a proxy: this is for commands in a sandbox that may connect somewhere");
    };
    let server = match upstream::Server::parse(&proxy) {
        Ok(server) => server,
        Err(error) => return mistake(&format!("`{name}` names no proxy: {error}")),
    };
    match upstream::connect(&server, &authority) {
        Ok(stream) => match relay(&stream) {
            Ok(()) => 0,
            Err(error) => fail(&format!("the connection to {authority} broke: {error}")),
        },
        Err(upstream::Declined::Http { text: Some(text), .. }) => {
            for line in text.lines() {
                output::tell(&format!("srt: {}\n", printable(line.strip_prefix("srt: ").unwrap_or(line))));
            }
            status::FINDINGS
        }
        Err(declined) => fail(&format!("cannot connect to {authority}: {declined}")),
    }
}

fn mistake(message: &str) -> u8 {
    output::complain(printable(message));
    status::USAGE
}

fn fail(message: &str) -> u8 {
    output::complain(printable(message));
    status::FINDINGS
}

/// Both directions, each to its own end: what one side has finished saying, the other is told.
///
/// # Errors
/// What ended it before the server was done.
fn relay(stream: &TcpStream) -> io::Result<()> {
    let mut to_server = stream.try_clone()?;
    // Not waited for: once the server is done, whoever reads our output decides how long to go on talking, and ends us.
    let speaking = std::thread::spawn(move || {
        let ended = copy(&mut io::stdin().lock(), &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
        ended
    });
    let mut from_server = stream;
    copy(&mut from_server, &mut io::stdout().lock())?;
    // The reader is told; a server that hears no more than it says is heard to its end all the same.
    exec::end_output()?;
    match speaking.join() {
        // The server took no more: it had said all it wanted.
        Ok(_) => Ok(()),
        Err(_) => Err(io::ErrorKind::Other.into()),
    }
}

/// Without a buffer that waits to be full.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        match to.write_all(&buffer[..count]).and_then(|()| to.flush()) {
            // Whoever listens has heard enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            done => done?,
        }
    }
}
