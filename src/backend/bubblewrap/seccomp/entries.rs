//! Which calls are closed, and why: the list that the program, its listing and its tests derive from.

use super::entry::{Action, Entry, Errno, Test};
use super::{Table, files};

// sched.h
const CLONE_NEWTIME: u32 = 0x80;
/// NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. NEWTIME lies within clone's exit signal and is no flag there.
const CLONE_NEW: u32 = 0x7e02_0000;

// linux/personality.h
const PERSONALITY_QUERY: u32 = 0xffff_ffff;
/// PER_LINUX32, UNAME26 and ADDR_NO_RANDOMIZE, which `setarch` and debuggers set.
const PERSONALITY_HARMLESS: u32 = 0x0006_0008;

// asm-generic/ioctls.h
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

/// `BTRFS_IOC_SUBVOL_CREATE`, `SNAP_CREATE`, `SNAP_DESTROY` and their second versions (linux/btrfs.h); of bcachefs
/// `BCH_IOCTL_SUBVOLUME_CREATE` and `DESTROY` (its bcachefs_ioctl.h).
const SUBVOLUMES: [u32; 8] =
    [0x5000_940e, 0x5000_9401, 0x5000_940f, 0x5000_9418, 0x5000_9417, 0x5000_943f, 0x4020_bc10, 0x4020_bc11];

/// `FS_IOC_SETFLAGS`, `SETVERSION`, `FSSETXATTR` (linux/fs.h), ext4's `SETVERSION`, `FS_IOC_ENABLE_VERITY` (linux/fsverity.h),
/// `FS_IOC_SET_ENCRYPTION_POLICY` (linux/fscrypt.h), `FAT_IOCTL_SET_ATTRIBUTES` (linux/msdos_fs.h), `BTRFS_IOC_SUBVOL_SETFLAGS`.
const ATTRIBUTES: [u32; 8] =
    [0x4008_6602, 0x4008_7602, 0x401c_5820, 0x4008_6604, 0x4080_6685, 0x800c_6613, 0x4004_7211, 0x4008_941a];

// linux/socket.h, linux/net.h, linux/in.h, linux/netlink.h
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const SOCK_TYPE_MASK: u32 = 0xf;
const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const SOCK_RAW: u32 = 3;
const SOCK_SEQPACKET: u32 = 5;
const IPPROTO_ICMP: u32 = 1;
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;
const IPPROTO_ICMPV6: u32 = 58;
const IPPROTO_MPTCP: u32 = 262;
const NETLINK_ROUTE: u32 = 0;

const ALL: u32 = u32::MAX;

fn is(argument: u8, mask: u32, values: &[u32]) -> Test {
    Test { argument, mask, values: values.to_vec(), among: true }
}

fn is_not(argument: u8, mask: u32, values: &[u32]) -> Test {
    Test { among: false, ..is(argument, mask, values) }
}

/// The filter as a list. Calls whose arguments are tested come first: the kernel answers the others from a cache.
pub fn entries(table: &Table) -> Vec<Entry> {
    let mut list = Vec::new();
    if table.notified {
        files::watched(&mut list, table);
    }
    terminal(&mut list, table.performed != files::Watch::Nothing);
    sockets(&mut list, table.notified);
    if !table.nest {
        namespaces(&mut list);
        mounts(&mut list);
    }
    unseen_paths(&mut list);
    kernel(&mut list);
    list
}

fn push(list: &mut Vec<Entry>, call: &'static str, tests: Vec<Test>, action: Action, reason: &'static str) {
    list.push(Entry { call, tests, action, reason });
}

fn close(list: &mut Vec<Entry>, calls: &[&'static str], errno: Errno, reason: &'static str) {
    for call in calls {
        push(list, call, Vec::new(), Action::Fail(errno), reason);
    }
}

fn terminal(list: &mut Vec<Entry>, performed: bool) {
    push(
        list,
        "ioctl",
        vec![is(1, ALL, &[TIOCSTI, TIOCLINUX])],
        Action::Fail(Errno::NotPermitted),
        "would type into the caller's terminal",
    );
    if performed {
        push(
            list,
            "ioctl",
            vec![is(1, ALL, &SUBVOLUMES)],
            Action::Fail(Errno::NotPermitted),
            "makes or takes away a directory by a name that is in memory",
        );
        push(
            list,
            "ioctl",
            vec![is(1, ALL, &ATTRIBUTES)],
            Action::Fail(Errno::NotPermitted),
            "changes a file by a descriptor that only reads, whatever its name is",
        );
    }
    push(
        list,
        "personality",
        vec![is_not(0, ALL, &[PERSONALITY_QUERY]), is_not(0, !PERSONALITY_HARMLESS, &[0])],
        Action::Fail(Errno::NotPermitted),
        "other ABIs and weaker memory protection; what `setarch` and debuggers set stays open",
    );
}

fn sockets(list: &mut Vec<Entry>, notified: bool) {
    use Action::{Allow, Fail};
    let inet = || is(0, ALL, &[AF_INET, AF_INET6]);
    push(
        list,
        "socket",
        vec![inet(), is(1, SOCK_TYPE_MASK, &[SOCK_STREAM]), is(2, ALL, &[0, IPPROTO_TCP, IPPROTO_MPTCP])],
        Allow,
        "TCP, in the network namespace of the run",
    );
    push(
        list,
        "socket",
        vec![inet(), is(1, SOCK_TYPE_MASK, &[SOCK_DGRAM]), is(2, ALL, &[0, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6])],
        Allow,
        "UDP and ping, in the network namespace of the run",
    );
    push(
        list,
        "socket",
        vec![inet(), is(1, SOCK_TYPE_MASK, &[SOCK_RAW])],
        Fail(Errno::NotPermitted),
        "raw packets; the answer that a program without privilege always gets",
    );
    push(
        list,
        "socket",
        vec![inet()],
        Fail(Errno::NoSuchProtocol),
        "transports whose devices are in no namespace (SMC), or which only add to what can be attacked (SCTP, DCCP)",
    );
    push(
        list,
        "socket",
        vec![is(0, ALL, &[AF_NETLINK]), is(2, ALL, &[NETLINK_ROUTE])],
        Allow,
        "asking for the interfaces and addresses of the run's own network namespace",
    );
    let connected = || vec![is(0, ALL, &[AF_UNIX]), is(1, SOCK_TYPE_MASK, &[SOCK_STREAM, SOCK_SEQPACKET])];
    if notified {
        push(list, "socket", connected(), Allow, "whom they connect to is decided when they do");
        push(
            list,
            "socket",
            Vec::new(),
            Fail(Errno::NoSuchFamily),
            "families that no namespace holds (vsock), and unix datagrams, which reach the host's services unconnected",
        );
        push(list, "connect", Vec::new(), Action::Notify, "its address is in memory: made by srt, or refused");
        push(list, "listen", Vec::new(), Action::Notify, "so that the command's own unix sockets are known");
    } else {
        push(
            list,
            "socket",
            Vec::new(),
            Fail(Errno::NoSuchFamily),
            "families that no namespace holds (vsock), and unix sockets, by which a service of the host is reached",
        );
    }
    push(list, "socketpair", connected(), Allow, "connected for good: they reach nobody else");
    push(
        list,
        "socketpair",
        Vec::new(),
        Fail(Errno::NoSuchFamily),
        "a datagram socket of a pair sends to any datagram socket of the host by its path",
    );
}

fn namespaces(list: &mut Vec<Entry>) {
    let denied = Action::Fail(Errno::NotPermitted);
    let new =
        "a user namespace of its own gives a command capabilities, and with them mounts: an alias of a denied path";
    push(list, "clone", vec![is_not(0, CLONE_NEW, &[0])], denied, new);
    push(list, "unshare", vec![is_not(0, CLONE_NEW | CLONE_NEWTIME, &[0])], denied, new);
    push(
        list,
        "clone3",
        Vec::new(),
        Action::Fail(Errno::NoSuchCall),
        "its flags are in memory, where no filter sees them; libraries fall back to clone",
    );
    close(list, &["setns"], Errno::NotPermitted, "enters another namespace");
}

fn mounts(list: &mut Vec<Entry>) {
    close(
        list,
        &[
            "mount",
            "umount2",
            "open_tree",
            "open_tree_attr",
            "move_mount",
            "fsopen",
            "fsconfig",
            "fsmount",
            "fspick",
            "mount_setattr",
        ],
        Errno::NotPermitted,
        "mounts are what holds the policy",
    );
    close(list, &["chroot", "pivot_root"], Errno::NotPermitted, "another root gives every path another meaning");
}

fn unseen_paths(list: &mut Vec<Entry>) {
    close(
        list,
        &["io_uring_setup", "io_uring_enter", "io_uring_register"],
        Errno::NoSuchCall,
        "performs other calls where no filter sees them",
    );
    close(list, &["openat2"], Errno::NoSuchCall, "its flags are in memory; programs fall back to openat");
    close(list, &["open_by_handle_at"], Errno::NoSuchCall, "opens a file by its number, past every mount");
}

fn kernel(list: &mut Vec<Entry>) {
    let denied = Errno::NotPermitted;
    close(list, &["add_key", "request_key", "keyctl"], denied, "keyrings are shared with the host's processes");
    close(
        list,
        &["bpf", "perf_event_open", "userfaultfd"],
        denied,
        "often attacked, and needed by no ordinary command",
    );
    close(list, &["kexec_load", "kexec_file_load", "reboot"], denied, "starts another kernel, or ends this one");
    close(list, &["init_module", "finit_module", "delete_module"], denied, "changes the kernel");
    close(
        list,
        &["create_module", "get_kernel_syms", "query_module", "nfsservctl", "lookup_dcookie", "uselib"],
        Errno::NoSuchCall,
        "gone from the kernel, or on the way out",
    );
    close(list, &["acct", "quotactl", "quotactl_fd", "swapon", "swapoff"], denied, "administers the host's disks");
    close(list, &["settimeofday", "clock_settime"], denied, "sets the host's clock");
    close(list, &["syslog"], denied, "the host's kernel log");
    close(list, &["iopl", "ioperm"], denied, "hardware ports");
    close(list, &["vhangup"], denied, "hangs up the caller's terminal");
    close(list, &["fanotify_init"], denied, "watches, and can hold up, whole file systems of the host");
}
