//! What the calls of Windows have in common: text in UTF-16, handles and memory that are given back, errors.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{FromRawHandle, OwnedHandle};
use windows_sys::Win32::Foundation::{GetLastError, HANDLE, INVALID_HANDLE_VALUE, LocalFree};
use windows_sys::core::PWSTR;

/// Text for the system, with its NUL. What is after a NUL in it would be lost.
///
/// # Errors
/// Where there is one.
pub fn wide(text: &str) -> io::Result<Vec<u16>> {
    if text.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a text has a NUL character"));
    }
    Ok(text.encode_utf16().chain([0]).collect())
}

/// The result of a call that answers with an error's number.
///
/// # Errors
/// Where it is not 0.
pub fn check(code: u32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(error(code)) }
}

/// An error of the system by its number.
pub fn error(code: u32) -> io::Error {
    io::Error::from_raw_os_error(code.cast_signed())
}

/// The result of a call that answers whether it did it.
///
/// # Errors
/// The thread's last error, where it did not.
pub fn done(answer: i32) -> io::Result<()> {
    if answer != 0 { Ok(()) } else { Err(last()) }
}

/// What the thread's last call failed with.
#[allow(unsafe_code)]
pub fn last() -> io::Error {
    // SAFETY: reads a number of this thread's.
    error(unsafe { GetLastError() })
}

/// Takes a handle over that a call has just given us.
///
/// # Errors
/// Where it gave none: the thread's last error.
#[allow(unsafe_code)]
pub fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(last());
    }
    // SAFETY: the caller has it from a call that made it for us; nothing else closes it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Memory that the system allocated for us, to be given back by `LocalFree`.
pub struct Local(pub *mut c_void);

impl Drop for Local {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: allocated by the call that filled it in, as that call's description says, and given back once.
            unsafe { LocalFree(self.0) };
        }
    }
}

/// The text at a pointer, up to its NUL.
///
/// # Safety
/// The pointer is null, or leads to a text that ends in NUL and stays while this is called.
#[allow(unsafe_code)]
pub unsafe fn text(at: PWSTR) -> String {
    if at.is_null() {
        return String::new();
    }
    let mut length = 0;
    // SAFETY: up to its NUL the text is readable, as the caller promises.
    while unsafe { *at.add(length) } != 0 {
        length += 1;
    }
    // SAFETY: as many units as were just read.
    String::from_utf16_lossy(unsafe { std::slice::from_raw_parts(at, length) })
}
