//! Security identifiers: of an account by its name, of the process that this is, and as text.

use super::os::{Local, done, last, owned, text, wide};
use std::io;
use std::os::windows::io::AsRawHandle;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::ERROR_INSUFFICIENT_BUFFER;
use windows_sys::Win32::Security::Authorization::{ConvertSidToStringSidW, ConvertStringSidToSidW};
use windows_sys::Win32::Security::{
    EqualSid, GetTokenInformation, LookupAccountNameW, LookupAccountSidW, PSID, TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// A security identifier, aligned as its structure is.
#[derive(Debug, Clone)]
pub struct Sid(Vec<u32>);

impl Sid {
    /// Of an account or a group of this machine; `None` where it has none of that name.
    ///
    /// # Errors
    /// What looking it up fails with otherwise.
    #[allow(unsafe_code)]
    pub fn of_name(name: &str) -> io::Result<Option<Self>> {
        const NONE_MAPPED: i32 = 1332;
        let name = wide(name)?;
        let (mut bytes, mut letters, mut kind) = (0, 0, 0);
        // SAFETY: without room the call says how much it needs; all pointers are to our own.
        unsafe {
            LookupAccountNameW(
                null(),
                name.as_ptr(),
                null_mut(),
                &raw mut bytes,
                null_mut(),
                &raw mut letters,
                &raw mut kind,
            )
        };
        let why = last();
        match why.raw_os_error() {
            Some(NONE_MAPPED) => return Ok(None),
            Some(code) if code.cast_unsigned() == ERROR_INSUFFICIENT_BUFFER => {}
            _ => return Err(why),
        }
        let mut sid = vec![0_u32; (bytes as usize).div_ceil(4)];
        let mut domain = vec![0_u16; letters as usize];
        // SAFETY: both have the room that the call just asked for.
        done(unsafe {
            LookupAccountNameW(
                null(),
                name.as_ptr(),
                sid.as_mut_ptr().cast(),
                &raw mut bytes,
                domain.as_mut_ptr(),
                &raw mut letters,
                &raw mut kind,
            )
        })?;
        Ok(Some(Self(sid)))
    }

    /// `S-1-5-…`
    ///
    /// # Errors
    /// Where it is none.
    #[allow(unsafe_code)]
    pub fn parse(written: &str) -> io::Result<Self> {
        let written = wide(written)?;
        let mut sid: PSID = null_mut();
        // SAFETY: the text ends in NUL; the call fills in a pointer that is given back by `LocalFree`.
        done(unsafe { ConvertStringSidToSidW(written.as_ptr(), &raw mut sid) })?;
        let sid = Local(sid);
        // SAFETY: the call has just made it.
        Ok(unsafe { Self::copied(sid.0) })
    }

    /// Of whom this process is.
    ///
    /// # Errors
    /// Whatever asking fails with.
    #[allow(unsafe_code)]
    pub fn own() -> io::Result<Self> {
        let mut token = null_mut();
        // SAFETY: the process's own pseudo-handle; the call fills in a handle that is ours to close.
        done(unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) })?;
        let token = owned(token)?;
        let mut length = 0;
        // SAFETY: without room the call says how much it needs.
        unsafe { GetTokenInformation(token.as_raw_handle(), TokenUser, null_mut(), 0, &raw mut length) };
        let mut room = vec![0_u64; (length as usize).div_ceil(8)];
        // SAFETY: the room is as large as was asked for, and aligned for the structure.
        done(unsafe {
            GetTokenInformation(token.as_raw_handle(), TokenUser, room.as_mut_ptr().cast(), length, &raw mut length)
        })?;
        // SAFETY: the call has filled in a `TOKEN_USER`, whose SID is in the same room.
        Ok(unsafe { Self::copied((*room.as_ptr().cast::<TOKEN_USER>()).User.Sid) })
    }

    /// A copy of one that the system shows.
    ///
    /// # Safety
    /// The pointer leads to a valid identifier.
    #[allow(unsafe_code)]
    pub unsafe fn copied(sid: PSID) -> Self {
        // SAFETY: valid, as the caller promises.
        let length = unsafe { windows_sys::Win32::Security::GetLengthSid(sid) } as usize;
        let mut copy = vec![0_u32; length.div_ceil(4)];
        // SAFETY: an identifier is that many bytes, and the copy has room for them.
        unsafe { std::ptr::copy_nonoverlapping(sid.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), length) };
        Self(copy)
    }

    /// For calls, which only read it.
    pub fn as_ptr(&self) -> PSID {
        self.0.as_ptr().cast_mut().cast()
    }

    /// Whether the identifier at a pointer is the same.
    ///
    /// # Safety
    /// The pointer leads to a valid identifier.
    #[allow(unsafe_code)]
    pub unsafe fn is(&self, other: PSID) -> bool {
        // SAFETY: ours is valid, and the other one, as the caller promises.
        unsafe { EqualSid(self.as_ptr(), other) != 0 }
    }

    /// The name of the account or group, in the system's language, without its domain.
    ///
    /// # Errors
    /// Whatever looking it up fails with.
    #[allow(unsafe_code)]
    pub fn name(&self) -> io::Result<String> {
        let (mut letters, mut domain, mut kind) = (0, 0, 0);
        // SAFETY: without room the call says how much it needs.
        unsafe {
            LookupAccountSidW(
                null(),
                self.as_ptr(),
                null_mut(),
                &raw mut letters,
                null_mut(),
                &raw mut domain,
                &raw mut kind,
            )
        };
        let (mut name, mut place) = (vec![0_u16; letters as usize], vec![0_u16; domain as usize]);
        // SAFETY: both have the room that the call just asked for.
        done(unsafe {
            LookupAccountSidW(
                null(),
                self.as_ptr(),
                name.as_mut_ptr(),
                &raw mut letters,
                place.as_mut_ptr(),
                &raw mut domain,
                &raw mut kind,
            )
        })?;
        // SAFETY: the call has written a text that ends in NUL.
        Ok(unsafe { text(name.as_mut_ptr()) })
    }
}

impl std::fmt::Display for Sid {
    #[allow(unsafe_code)]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut written = null_mut();
        // SAFETY: ours is valid; the call fills in a text that is given back by `LocalFree`.
        if unsafe { ConvertSidToStringSidW(self.as_ptr(), &raw mut written) } == 0 {
            return Err(std::fmt::Error);
        }
        let memory = Local(written.cast());
        // SAFETY: a text that ends in NUL, as the call has made it.
        f.write_str(&unsafe { text(memory.0.cast()) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn identifiers_are_written_and_read() {
        let everyone = Sid::parse("S-1-1-0").unwrap();
        assert_eq!(everyone.to_string(), "S-1-1-0");
        assert!(Sid::parse("nobody").is_err());
        let own = Sid::own().unwrap();
        assert_eq!(Sid::parse(&own.to_string()).unwrap().to_string(), own.to_string());
        assert!(Sid::of_name("no account has this name").unwrap().is_none());
    }
}
