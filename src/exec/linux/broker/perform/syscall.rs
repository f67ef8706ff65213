//! The calls that nix does not wrap, or wraps with a path of its own kind. Decides nothing; every function is one call.

use crate::exec::linux::kernel::checked;
use nix::errno::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};

#[allow(unsafe_code)]
pub fn mknod(directory: &OwnedFd, last: &CStr, mode: u32, device: u64) -> Result<(), Errno> {
    // SAFETY: the name is a valid C string.
    checked(libc::c_long::from(unsafe { libc::mknodat(directory.as_raw_fd(), last.as_ptr(), mode, device) })).map(drop)
}

#[allow(unsafe_code)]
pub fn rename(from: &OwnedFd, old: &CStr, to: &OwnedFd, new: &CStr, flags: u32) -> Result<(), Errno> {
    // SAFETY: both names are valid C strings.
    checked(unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            from.as_raw_fd(),
            old.as_ptr(),
            to.as_raw_fd(),
            new.as_ptr(),
            libc::c_ulong::from(flags),
        )
    })
    .map(drop)
}

#[allow(unsafe_code)]
pub fn bind(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the address is valid for its length.
    checked(libc::c_long::from(unsafe { libc::bind(socket.as_raw_fd(), address.as_ptr().cast(), length) })).map(drop)
}

/// `None`: now.
#[allow(unsafe_code)]
pub fn set_times(place: &OwnedFd, times: Option<&[libc::timespec; 2]>) -> Result<(), Errno> {
    let times = times.map_or(std::ptr::null(), |times| times.as_ptr());
    // SAFETY: the path is a valid C string, and the times are null or two of them.
    checked(unsafe { libc::syscall(libc::SYS_utimensat, place.as_raw_fd(), c"".as_ptr(), times, libc::AT_EMPTY_PATH) })
        .map(drop)
}

/// `path` is looked up from the current directory.
#[allow(unsafe_code)]
pub fn set_attribute(path: &str, name: &CStr, value: &[u8], flags: i32) -> Result<(), Errno> {
    let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
    // SAFETY: path and name are valid C strings, and the value is valid for its length.
    checked(libc::c_long::from(unsafe {
        libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags)
    }))
    .map(drop)
}

/// `path` is looked up from the current directory.
#[allow(unsafe_code)]
pub fn remove_attribute(path: &str, name: &CStr) -> Result<(), Errno> {
    let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
    // SAFETY: path and name are valid C strings.
    checked(libc::c_long::from(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) })).map(drop)
}
