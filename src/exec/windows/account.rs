//! The account that commands run as: made once by an administrator, with a password that nobody knows.
//!
//! The password is one of the system's secrets ("Private Data Object", `LsaStorePrivateData`): only administrators of this machine
//! read it, and it lies in no file of ours.

use super::os::{check, error, wide};
use super::sid::Sid;
use std::io;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::{ERROR_MEMBER_IN_ALIAS, NTSTATUS};
use windows_sys::Win32::NetworkManagement::NetManagement::{
    LOCALGROUP_MEMBERS_INFO_0, NERR_UserExists, NERR_UserNotFound, NetLocalGroupAddMembers, NetUserAdd, NetUserDel,
    NetUserSetInfo, UF_DONT_EXPIRE_PASSWD, UF_PASSWD_CANT_CHANGE, UF_SCRIPT, USER_INFO_1, USER_INFO_1003,
    USER_PRIV_USER,
};
use windows_sys::Win32::Security::Authentication::Identity::{
    LSA_HANDLE, LSA_OBJECT_ATTRIBUTES, LSA_UNICODE_STRING, LsaAddAccountRights, LsaClose, LsaFreeMemory,
    LsaNtStatusToWinError, LsaOpenPolicy, LsaRetrievePrivateData, LsaStorePrivateData, POLICY_CREATE_ACCOUNT,
    POLICY_CREATE_SECRET, POLICY_GET_PRIVATE_INFORMATION, POLICY_LOOKUP_NAMES,
};
use windows_sys::Win32::Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom};

/// Its name; at most 20 letters.
pub const NAME: &str = "srt-sandbox";
const COMMENT: &str = "Commands that srt runs in a sandbox; made and removed by `srt windows`";

/// The secret's name: `L$` is for one that is read on this machine alone.
const SECRET: &str = "L$srt-sandbox";

/// The group of ordinary users, by its identifier, since its name is in the system's language.
const USERS: &str = "S-1-5-32-545";

/// What the account must not do with its password: log on from elsewhere.
const DENIED: [&str; 3] = ["SeDenyNetworkLogonRight", "SeDenyRemoteInteractiveLogonRight", "SeDenyBatchLogonRight"];

/// Letters of a password, of each kind that rules for passwords ask for.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const LENGTH: usize = 48;

/// The account's identifier; `None` where it was not made.
///
/// # Errors
/// What looking it up fails with.
pub fn sid() -> io::Result<Option<Sid>> {
    Sid::of_name(NAME)
}

/// Makes the account, or gives the one that is there a new password.
///
/// # Errors
/// The first step that fails, with its name; it takes the rights of an administrator.
pub fn install() -> io::Result<Sid> {
    let secrets = Secrets::open().map_err(step("open the machine's secrets"))?;
    let password = password().map_err(step("make a password"))?;
    // First, so that there is never an account whose password nobody has.
    secrets.store(Some(&password)).map_err(step("keep the password"))?;
    add(&password).map_err(step("make the account"))?;
    let sid = sid()?.ok_or_else(|| io::Error::other("the account is not there, though it was made"))?;
    join_users(&sid).map_err(step("make the account an ordinary user"))?;
    secrets.deny_logons(&sid).map_err(step("deny the account to log on from elsewhere"))?;
    Ok(sid)
}

/// Removes the account and its password; whether there was one.
///
/// # Errors
/// What removing it fails with.
#[allow(unsafe_code)]
pub fn uninstall() -> io::Result<bool> {
    let name = wide(NAME)?;
    // SAFETY: the name ends in NUL.
    let there = match unsafe { NetUserDel(null(), name.as_ptr()) } {
        code if code == NERR_UserNotFound => false,
        code => {
            check(code)?;
            true
        }
    };
    Secrets::open()?.store(None)?;
    Ok(there)
}

/// The password.
///
/// # Errors
/// Where there is none, or it is not for us to read.
pub fn secret() -> io::Result<String> {
    Secrets::open()?.retrieve()
}

fn step(act: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("cannot {act}: {error}"))
}

#[allow(unsafe_code)]
fn password() -> io::Result<String> {
    let mut random = [0_u8; LENGTH];
    let length = u32::try_from(LENGTH).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the room is as long as is said.
    status(unsafe { BCryptGenRandom(null_mut(), random.as_mut_ptr(), length, BCRYPT_USE_SYSTEM_PREFERRED_RNG) })?;
    Ok(spelled(&random))
}

/// Bytes as letters, 6 bits of each; one of each kind at the end, whatever came.
fn spelled(random: &[u8]) -> String {
    let letters = random.iter().map(|byte| char::from(LETTERS[usize::from(byte & 0x3f)]));
    letters.chain(['A', 'a', '0', '-']).collect()
}

#[allow(unsafe_code)]
fn add(password: &str) -> io::Result<()> {
    let (mut name, mut secret, mut comment) = (wide(NAME)?, wide(password)?, wide(COMMENT)?);
    let user = USER_INFO_1 {
        usri1_name: name.as_mut_ptr(),
        usri1_password: secret.as_mut_ptr(),
        usri1_password_age: 0,
        usri1_priv: USER_PRIV_USER,
        usri1_home_dir: null_mut(),
        usri1_comment: comment.as_mut_ptr(),
        usri1_flags: UF_SCRIPT | UF_DONT_EXPIRE_PASSWD | UF_PASSWD_CANT_CHANGE,
        usri1_script_path: null_mut(),
    };
    // SAFETY: level 1 is this structure; what it points to outlives the call.
    match unsafe { NetUserAdd(null(), 1, (&raw const user).cast(), null_mut()) } {
        code if code == NERR_UserExists => {
            let other = USER_INFO_1003 { usri1003_password: secret.as_mut_ptr() };
            // SAFETY: level 1003 is this structure; what it points to outlives the call.
            check(unsafe { NetUserSetInfo(null(), name.as_ptr(), 1003, (&raw const other).cast(), null_mut()) })
        }
        code => check(code),
    }
}

#[allow(unsafe_code)]
fn join_users(sid: &Sid) -> io::Result<()> {
    let group = wide(&Sid::parse(USERS)?.name()?)?;
    let member = LOCALGROUP_MEMBERS_INFO_0 { lgrmi0_sid: sid.as_ptr() };
    // SAFETY: level 0 is this structure, one of it; what it points to outlives the call.
    match unsafe { NetLocalGroupAddMembers(null(), group.as_ptr(), 0, (&raw const member).cast(), 1) } {
        ERROR_MEMBER_IN_ALIAS => Ok(()),
        code => check(code),
    }
}

/// The result of a call of the local security authority.
#[allow(unsafe_code)]
fn status(status: NTSTATUS) -> io::Result<()> {
    // SAFETY: turns a number into another.
    if status == 0 { Ok(()) } else { Err(error(unsafe { LsaNtStatusToWinError(status) })) }
}

/// The local security authority, which keeps secrets and rights.
struct Secrets(LSA_HANDLE);

impl Drop for Secrets {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: opened by us, and closed once.
        unsafe { LsaClose(self.0) };
    }
}

impl Secrets {
    #[allow(unsafe_code)]
    fn open() -> io::Result<Self> {
        let rights =
            POLICY_GET_PRIVATE_INFORMATION | POLICY_CREATE_SECRET | POLICY_CREATE_ACCOUNT | POLICY_LOOKUP_NAMES;
        // SAFETY: plain data, for which zero is a valid value; the call does not look at it.
        let attributes: LSA_OBJECT_ATTRIBUTES = unsafe { std::mem::zeroed() };
        let mut policy = 0;
        // SAFETY: of the local machine; the call fills in a handle that is ours to close.
        status(unsafe { LsaOpenPolicy(null(), &raw const attributes, rights.cast_unsigned(), &raw mut policy) })?;
        Ok(Self(policy))
    }

    /// Keeps a password, or forgets the one that is kept.
    #[allow(unsafe_code)]
    fn store(&self, password: Option<&str>) -> io::Result<()> {
        /// `STATUS_OBJECT_NAME_NOT_FOUND`: nothing is kept.
        const NOTHING: NTSTATUS = 0xc000_0034_u32.cast_signed();
        let (mut name, mut password) = (Text::new(SECRET)?, password.map(Text::new).transpose()?);
        let name = name.counted()?;
        let password = password.as_mut().map(Text::counted).transpose()?;
        let data = password.as_ref().map_or(null(), std::ptr::from_ref);
        // SAFETY: the policy is open; both texts outlive the call.
        match unsafe { LsaStorePrivateData(self.0, &raw const name, data) } {
            NOTHING if data.is_null() => Ok(()),
            code => status(code),
        }
    }

    #[allow(unsafe_code)]
    fn retrieve(&self) -> io::Result<String> {
        let mut name = Text::new(SECRET)?;
        let name = name.counted()?;
        let mut data: *mut LSA_UNICODE_STRING = null_mut();
        // SAFETY: the policy is open; the call fills in memory that is given back by `LsaFreeMemory`.
        status(unsafe { LsaRetrievePrivateData(self.0, &raw const name, &raw mut data) })?;
        if data.is_null() {
            return Err(io::ErrorKind::NotFound.into());
        }
        // SAFETY: the call has filled in a counted text, whose length is in bytes.
        let text = unsafe {
            let counted = &*data;
            String::from_utf16_lossy(std::slice::from_raw_parts(counted.Buffer, usize::from(counted.Length) / 2))
        };
        // SAFETY: allocated by the call, and given back once.
        unsafe { LsaFreeMemory(data.cast()) };
        Ok(text)
    }

    #[allow(unsafe_code)]
    fn deny_logons(&self, sid: &Sid) -> io::Result<()> {
        for right in DENIED {
            let mut right = Text::new(right)?;
            let right = right.counted()?;
            // SAFETY: the policy is open; one text, which outlives the call, as the identifier does.
            status(unsafe { LsaAddAccountRights(self.0, sid.as_ptr(), &raw const right, 1) })?;
        }
        Ok(())
    }
}

/// A text with its length, as the security authority takes it.
struct Text(Vec<u16>);

impl Text {
    fn new(text: &str) -> io::Result<Self> {
        Ok(Self(wide(text)?))
    }

    /// The structure, which points into this.
    fn counted(&mut self) -> io::Result<LSA_UNICODE_STRING> {
        let bytes =
            |letters: usize| u16::try_from(letters * 2).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
        Ok(LSA_UNICODE_STRING {
            Length: bytes(self.0.len() - 1)?,
            MaximumLength: bytes(self.0.len())?,
            Buffer: self.0.as_mut_ptr(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_password_is_long_and_its_own() {
        let (one, other) = (password().unwrap(), password().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), LENGTH + 4);
        assert!(one.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter)), "{one}");
        assert_eq!(spelled(&[0, 63, 64, 255]), "A_A_Aa0-");
        assert!(NAME.len() <= 20);
    }
}
