//! Ten thousand connections at once from one command: it waits for itself, nobody else does, and memory stays bounded.

use super::srt_command;
use crate::support::{Background, server};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Answers a byte with a byte, of as many connections as there are.
const SERVICE: &str = "
import asyncio, resource
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
async def answer(reader, writer):
    if await reader.read(1): writer.write(b'f')
    await reader.read(1)
    writer.close()
async def main():
    server = await asyncio.start_server(answer, '127.0.0.1', 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
";

/// One half to a service that it may reach, and says nothing; the other to one that it may not. Each process holds as many as
/// it may.
const CROWD: &str = "
import os, resource, socket, sys, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
wanted, share = 10_000, min(most - 100, 2_500)
processes = []
for first in range(0, wanted, share):
    ready, tell = os.pipe()
    process = os.fork()
    if process == 0:
        held = []
        for n in range(first, min(first + share, wanted)):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(('127.0.0.1', ALLOWED) if n % 2 else ('192.0.2.7', 80))
            held.append(s)
        os.write(tell, len(held).to_bytes(4, 'big'))
        time.sleep(600)
    os.close(tell)
    processes.append((process, ready))
print('crowd', sum(int.from_bytes(os.read(ready, 4), 'big') for _, ready in processes), flush=True)
time.sleep(3)
print('settled', flush=True)
sys.stdin.readline()
for process, _ in processes:
    os.kill(process, 9)
    os.waitpid(process, 0)
s = socket.create_connection(('127.0.0.1', ALLOWED), 30)
s.settimeout(30)
s.sendall(b'f')
print('served', s.recv(1).decode(), flush=True)
";

/// As many as the proxy serves at once; each has a descriptor on either side.
const CONNECTIONS: usize = 2048;

/// The most memory that a process has had at once, in MiB (proc(5), `VmHWM`).
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
fn ten_thousand_connections_harm_nobody_else_and_are_got_over() {
    let (_service, port) = Background::that_says(Command::new("/usr/bin/python3").args(["-c", SERVICE]));
    let other = server();
    for engine in ["native", "bwrap"] {
        let script = format!(
            "cat > $TMPDIR/crowd.py <<'E'\n{}\nE\nexec /usr/bin/python3 $TMPDIR/crowd.py",
            CROWD.replace("ALLOWED", &port)
        );
        let mut crowd = srt_command(engine, &format!("allow connect 127.0.0.1:{port}"), &script);
        let mut srt = crowd.process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(srt.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(said.next().as_deref(), Some("crowd 10000"), "{engine}");
        // Another sandbox has its own proxy.
        let begin = std::time::Instant::now();
        let beside = super::srt(
            engine,
            &format!("allow connect 127.0.0.1:{other}"),
            &format!("curl -sS --noproxy '' http://127.0.0.1:{other}/"),
        );
        assert_eq!(String::from_utf8_lossy(&beside.stdout), "hello\n", "{engine}: {beside:?}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{engine}: {:?}", begin.elapsed());
        assert_eq!(said.next().as_deref(), Some("settled"), "{engine}");
        let held = std::fs::read_dir(format!("/proc/{}/fd", srt.id())).unwrap().count();
        assert!((100..2 * CONNECTIONS + 100).contains(&held), "{engine}: {held} descriptors");
        let peak = peak(srt.id());
        assert!(peak < 200, "{engine}: {peak} MiB");
        srt.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert_eq!(said.next().as_deref(), Some("served f"), "{engine}");
        assert!(srt.wait().unwrap().success(), "{engine}");
    }
}
