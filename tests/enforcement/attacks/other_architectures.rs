//! The same machine serves the calls of other architectures, by other numbers: a filter that asks for the number alone is
//! passed by `int 0x80`, or by the bit of x32.
//!
//! Kernels without x32 (most) answer its numbers ENOSYS without the filter, so its counter-run shows no more than that.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::exec::linux::Defence;

/// `socket(AF_UNIX, SOCK_STREAM, 0)` by `int 0x80` (`socketcall` is 102, `socket` 359).
const I386: &str = r"
import ctypes, mmap
code = b'\x53\xb8\x67\x01\x00\x00\xbb\x01\x00\x00\x00\xb9\x01\x00\x00\x00\x31\xd2\xcd\x80\x5b\xc3'
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print('a unix socket' if call() > 2 else 'none')
";

const X32: &str = "
import ctypes
print(ctypes.CDLL(None, use_errno=True).syscall(0x40000000 | 39))
";

#[test]
fn calls_by_other_numbers_end_the_process() {
    const SIGSYS: i32 = 128 + 31;
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    for_each_user(|user, _| {
        for attack in [I386, X32] {
            assert_eq!(Run::python(attack).as_user_of(user).status(), SIGSYS);
        }
        let open = Run::python(X32).as_user_of(user).without(Defence::SystemCalls);
        assert_eq!(open.status(), 0);
        let open = Run::python(I386).as_user_of(user).without(Defence::SystemCalls).output();
        // A kernel without the emulation ends it with SIGSEGV.
        if open.status.code() != Some(128 + 11) {
            assert_eq!(String::from_utf8(open.stdout).unwrap(), "a unix socket\n");
        }
    });
}
