//! `io_uring` performs other calls where no filter sees them: a socket of any family, for one.

use crate::sandbox::{Run, for_each_user};

/// One IORING_OP_SOCKET (45), for AF_UNIX (linux/io_uring.h).
const ATTACK: &str = "
import ctypes, mmap, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
parameters = ctypes.create_string_buffer(120)
ring = libc.syscall(425, 1, parameters)
if ring < 0:
    print('errno', ctypes.get_errno())
    sys.exit()
words = struct.unpack_from('<30I', parameters)
sq, cq = words[10:20], words[20:30]
rings = mmap.mmap(ring, max(sq[6] + 4 * words[0], cq[5] + 16 * words[1]), offset=0)
entries = mmap.mmap(ring, 64 * words[0], offset=0x10000000)
entries[:64] = struct.pack('<BBHiQQIIQHHiQQ', 45, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
struct.pack_into('<I', rings, sq[6], 0)
struct.pack_into('<I', rings, sq[1], 1)
libc.syscall(426, ring, 1, 1, 1, 0, 0)
(result,) = struct.unpack_from('<i', rings, cq[5] + 8)
print('a unix socket' if result > 2 else result)
";

#[test]
fn no_call_is_made_past_the_filter() {
    // Some machines have closed it themselves (kernel.io_uring_disabled): then there is nothing to show.
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").is_ok_and(|text| text.trim() != "0");
    for_each_user(|user, _| {
        let run = Run::python(ATTACK).as_user_of(user);
        assert_eq!(run.succeeds(), "errno 38\n");
        if !disabled {
            assert_eq!(run.with_call("io_uring_setup").with_call("io_uring_enter").succeeds(), "a unix socket\n");
        }
    });
}
