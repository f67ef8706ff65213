//! Numbers of the system calls that the filter names, for each architecture. Our own table, so that a filter for either
//! is made on any machine. Sources: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.

use super::Architecture;

/// Name, number on `x86_64`, number on aarch64.
type Line = (&'static str, Option<u32>, Option<u32>);

const fn both(name: &'static str, x86_64: u32, aarch64: u32) -> Line {
    (name, Some(x86_64), Some(aarch64))
}

/// Calls since Linux 5.1 have one number everywhere.
const fn same(name: &'static str, number: u32) -> Line {
    (name, Some(number), Some(number))
}

const fn x86(name: &'static str, number: u32) -> Line {
    (name, Some(number), None)
}

/// In the order of the names.
static NUMBERS: &[Line] = &[
    both("acct", 163, 89),
    both("add_key", 248, 217),
    both("bind", 49, 200),
    both("bpf", 321, 280),
    x86("chmod", 90),
    x86("chown", 92),
    both("chroot", 161, 51),
    both("clock_settime", 227, 112),
    both("clone", 56, 220),
    same("clone3", 435),
    both("connect", 42, 203),
    x86("creat", 85),
    x86("create_module", 174),
    both("delete_module", 176, 106),
    both("execve", 59, 221),
    both("execveat", 322, 281),
    both("fanotify_init", 300, 262),
    both("fchmod", 91, 52),
    both("fchmodat", 268, 53),
    same("fchmodat2", 452),
    both("fchown", 93, 55),
    both("fchownat", 260, 54),
    same("file_setattr", 469),
    both("finit_module", 313, 273),
    both("fremovexattr", 199, 16),
    same("fsconfig", 431),
    both("fsetxattr", 190, 7),
    same("fsmount", 432),
    same("fsopen", 430),
    same("fspick", 433),
    x86("futimesat", 261),
    x86("get_kernel_syms", 177),
    both("init_module", 175, 105),
    same("io_uring_enter", 426),
    same("io_uring_register", 427),
    same("io_uring_setup", 425),
    both("ioctl", 16, 29),
    x86("ioperm", 173),
    x86("iopl", 172),
    both("kexec_file_load", 320, 294),
    both("kexec_load", 246, 104),
    both("keyctl", 250, 219),
    x86("lchown", 94),
    x86("link", 86),
    both("linkat", 265, 37),
    both("listen", 50, 201),
    both("lookup_dcookie", 212, 18),
    both("lremovexattr", 198, 15),
    both("lsetxattr", 189, 6),
    x86("mkdir", 83),
    both("mkdirat", 258, 34),
    x86("mknod", 133),
    both("mknodat", 259, 33),
    both("mount", 165, 40),
    same("mount_setattr", 442),
    same("move_mount", 429),
    both("nfsservctl", 180, 42),
    x86("open", 2),
    both("open_by_handle_at", 304, 265),
    same("open_tree", 428),
    same("open_tree_attr", 467),
    both("openat", 257, 56),
    same("openat2", 437),
    both("perf_event_open", 298, 241),
    both("personality", 135, 92),
    both("pivot_root", 155, 41),
    x86("query_module", 178),
    both("quotactl", 179, 60),
    same("quotactl_fd", 443),
    both("reboot", 169, 142),
    both("removexattr", 197, 14),
    same("removexattrat", 466),
    x86("rename", 82),
    both("renameat", 264, 38),
    both("renameat2", 316, 276),
    both("request_key", 249, 218),
    x86("rmdir", 84),
    both("setns", 308, 268),
    both("settimeofday", 164, 170),
    both("setxattr", 188, 5),
    same("setxattrat", 463),
    both("socket", 41, 198),
    both("socketpair", 53, 199),
    both("swapoff", 168, 225),
    both("swapon", 167, 224),
    x86("symlink", 88),
    both("symlinkat", 266, 36),
    both("syslog", 103, 116),
    both("truncate", 76, 45),
    both("umount2", 166, 39),
    x86("unlink", 87),
    both("unlinkat", 263, 35),
    both("unshare", 272, 97),
    x86("uselib", 134),
    both("userfaultfd", 323, 282),
    x86("utime", 132),
    both("utimensat", 280, 88),
    x86("utimes", 235),
    both("vhangup", 153, 58),
];

/// See [`Architecture::number`].
pub(super) fn number(architecture: Architecture, name: &str) -> Option<u32> {
    let at = NUMBERS.binary_search_by(|line| line.0.cmp(name)).ok()?;
    match architecture {
        Architecture::X86_64 => NUMBERS[at].1,
        Architecture::Aarch64 => NUMBERS[at].2,
    }
}

/// Every name of the table, for tests of completeness.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NUMBERS.iter().map(|line| line.0)
}
