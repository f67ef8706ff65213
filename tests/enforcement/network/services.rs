//! Real servers of protocols in which a proxy is not known: PostgreSQL, Redis, SSH. An allowed name, a denied one, an allowed
//! address, others, and a wrong port, by the client that people use.

use super::world::{BARE, Client, elsewhere, expected, matrix, try_native};
use crate::support::{Background, Scene, am_root, skip};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A server at a port, and what it keeps.
struct Service {
    process: Background,
    port: u16,
    folder: tempfile::TempDir,
}

/// A port that was free a moment ago.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A folder that every user may enter.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Starts a server, and waits until it takes connections.
fn serve(mut command: Command, port: u16, folder: tempfile::TempDir) -> Service {
    let log = fs::File::create(folder.path().join("log")).unwrap();
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).current_dir(folder.path());
    let mut service = Service { process: Background(command.spawn().unwrap()), port, folder };
    let since = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = service.process.0.try_wait().unwrap();
        let said = || fs::read_to_string(service.folder.path().join("log")).unwrap();
        assert!(ended.is_none() && since.elapsed() < Duration::from_secs(60), "{command:?}: {ended:?} {}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
    service
}

/// The script told of the proxy and not, with the native engine, by everybody.
fn check(service: &Service, clients: &[Client], make: impl Fn() -> Scene) {
    let wrong = elsewhere(service.port);
    for bare in ["", BARE] {
        let script = format!("{bare}{}", matrix(service.port, wrong, clients));
        try_native(&make, &script, |done, who| {
            assert_eq!(done.ok(), expected(clients), "{who:?}, {bare:?}: {}", done.stderr);
        });
    }
}

fn allowed(service: &Service) -> String {
    let port = service.port;
    format!("allow read, write $WORKSPACE\nallow connect [a.test:{port}, 127.0.0.1:{port}]")
}

#[test]
fn redis_is_reached_by_name_and_address() {
    let (folder, port) = (folder(), free());
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    if Command::new("redis-server").arg("--version").output().is_err() {
        return skip("Redis", "there is no `redis-server`");
    }
    let service = serve(command, port, folder);
    check(&service, &[("redis", "redis-cli -h HOST -p PORT echo hello")], || Scene::new().policy(&allowed(&service)));
}

/// Where distributions keep what is not for everybody's `PATH`.
fn postgres() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders.chain([PathBuf::from("/usr/bin")]).find(|folder| folder.join("initdb").exists())
}

/// In the clear, and by TLS that begins after a word in the clear.
#[test]
fn postgresql_is_reached_by_name_and_address() {
    let Some(programs) = postgres().filter(|_| am_root()) else {
        return skip("PostgreSQL", "there is no `initdb`, or it is not root who tests");
    };
    let (folder, port) = (folder(), free());
    let data = folder.path().join("data");
    // It refuses root, and wants a user that has a name.
    let user = Command::new("id").args(["-u", "postgres"]).output().unwrap();
    let user = if user.status.success() { "postgres" } else { "nobody" };
    let by_user = |program: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", user, "--clear-groups", "--pdeathsig", "keep"]).arg(program);
        command
    };
    fs::create_dir(&data).unwrap();
    let prepare = "chown $1 data; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem \
        -out cert.pem -days 2 -subj /CN=a.test 2>/dev/null; chmod 600 key.pem; chown $1 key.pem cert.pem";
    let done = Command::new("sh").args(["-ec", prepare, "sh", user]).current_dir(folder.path()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let mut make = by_user(&programs.join("initdb"));
    make.args(["-A", "trust", "-U", "postgres", "-D"]).arg(&data).current_dir("/");
    let done = make.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let mut command = by_user(&programs.join("postgres"));
    command.arg("-D").arg(&data).args(["-p", &port.to_string()]);
    for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", "ssl=on", "fsync=off"] {
        command.args(["-c", setting]);
    }
    command.arg("-c").arg(format!("ssl_cert_file={}", folder.path().join("cert.pem").display()));
    command.arg("-c").arg(format!("ssl_key_file={}", folder.path().join("key.pem").display()));
    let service = serve(command, port, folder);
    let clients = [
        (
            "psql",
            "psql \"host=HOST port=PORT user=postgres sslmode=disable connect_timeout=10\" -Atc \"select \\$\\$hello\\$\\$\"",
        ),
        (
            "psql-tls",
            "psql \"host=HOST port=PORT user=postgres sslmode=require connect_timeout=10\" -Atc \"select \\$\\$hello\\$\\$\"",
        ),
    ];
    check(&service, &clients, || Scene::new().policy(&allowed(&service)));
}

/// A shell on the other side, and a repository.
#[test]
fn ssh_and_git_over_it_reach_what_is_allowed() {
    if !am_root() || !Path::new("/usr/sbin/sshd").exists() {
        return skip("SSH", "there is no `sshd`, or it is not root who tests");
    }
    let (folder, port) = (folder(), free());
    let prepare = "umask 077; ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f key
        git init -q repo; cd repo; printf hello > file; git add file
        git -c user.name=x -c user.email=x@a.test commit -qm first";
    let done = Command::new("sh").args(["-ec", prepare]).current_dir(folder.path()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let (key, home) = (fs::read_to_string(folder.path().join("key")).unwrap(), folder.path().display().to_string());
    // Its place for those who have not logged in yet is the machine's, and may not be there.
    let inside = "mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-ec", inside, "sh", "/usr/sbin/sshd", "-D", "-e", "-f"]);
    command.args(["/dev/null", "-p", &port.to_string(), "-h", &format!("{home}/host")]);
    let keys = format!("AuthorizedKeysFile={home}/key.pub");
    for setting in
        ["ListenAddress=127.0.0.1", &keys, "StrictModes=no", "PidFile=none", "PermitRootLogin=yes", "UsePAM=no"]
    {
        command.args(["-o", setting]);
    }
    let service = serve(command, port, folder);
    let ssh =
        "ssh -i key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -o ConnectTimeout=10";
    let over: &'static str = format!("{ssh} -p PORT root@HOST echo hello").leak();
    let clone = format!(
        "rm -rf copy; git -c core.sshCommand=\"{ssh}\" clone -q ssh://root@HOST:PORT{home}/repo copy && cat copy/file"
    );
    let clients = [("ssh", over), ("git", &*clone.leak())];
    check(&service, &clients, || {
        let scene = Scene::new().policy(&format!("use std/git-init\n{}", allowed(&service))).file("work/key", &key);
        fs::set_permissions(scene.workspace().join("key"), fs::Permissions::from_mode(0o600)).unwrap();
        scene
    });
}
