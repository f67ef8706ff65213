//! Access control lists of files: read, made anew with entries more or less, and set.
//!
//! Only entries of a node's own are touched: what it inherits the system works out, for it and for all that is below it.

use super::os::{Local, check, done, wide};
use super::read::Ace;
use super::sid::Sid;
use std::io;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::{ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, GetEffectiveRightsFromAclW, GetNamedSecurityInfoW,
    NO_MULTIPLE_TRUSTEE, SDDL_REVISION_1, SE_FILE_OBJECT, SetNamedSecurityInfoW, TRUSTEE_IS_SID, TRUSTEE_IS_USER,
    TRUSTEE_W,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, ACL_REVISION, AddAce, DACL_SECURITY_INFORMATION, GetAce,
    GetSecurityDescriptorDacl, INHERITED_ACE, InitializeAcl, OWNER_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID,
};
use windows_sys::Win32::System::SystemServices::{ACCESS_ALLOWED_ACE_TYPE, ACCESS_DENIED_ACE_TYPE, MAXDWORD};

/// A list, with the memory that it is in.
pub struct List {
    // What the list and the owner are in.
    _memory: Local,
    acl: *const ACL,
    owner: PSID,
}

/// One entry of a list that is being looked at.
pub struct Entry<'l> {
    header: &'l ACE_HEADER,
}

impl Entry<'_> {
    pub fn is_inherited(&self) -> bool {
        u32::from(self.header.AceFlags) & INHERITED_ACE != 0
    }

    /// Whether it is for what is below alone.
    pub fn is_below(&self) -> bool {
        const INHERIT_ONLY: u8 = 8;
        self.header.AceFlags & INHERIT_ONLY != 0
    }

    /// Whether it allows or denies, the mask, and of whom; `None` for entries of other kinds.
    #[allow(unsafe_code)]
    fn plain(&self) -> Option<(bool, u32, PSID)> {
        let deny = match u32::from(self.header.AceType) {
            ACCESS_ALLOWED_ACE_TYPE => false,
            ACCESS_DENIED_ACE_TYPE => true,
            _ => return None,
        };
        let entry: *const ACCESS_ALLOWED_ACE = std::ptr::from_ref(self.header).cast();
        // SAFETY: both kinds have this layout, in a list that the system has made; the identifier is its end.
        unsafe { Some((deny, (*entry).Mask, (&raw const (*entry).SidStart).cast_mut().cast())) }
    }

    /// Whether it is of an account's.
    #[allow(unsafe_code)]
    pub fn is_of(&self, sid: &Sid) -> bool {
        // SAFETY: the identifier is in an entry of a list that the system has made.
        self.plain().is_some_and(|(.., own)| unsafe { sid.is(own) })
    }

    /// The rights that it gives; `None` where it gives none.
    pub fn gives(&self) -> Option<u32> {
        self.plain().and_then(|(deny, mask, _)| (!deny).then_some(mask))
    }
}

impl List {
    /// The list of a node and its owner; `None` where there is no such node.
    ///
    /// # Errors
    /// Whatever reading fails with; a node without a list, on which everybody may do everything.
    #[allow(unsafe_code)]
    pub fn of(path: &str) -> io::Result<Option<Self>> {
        let path = native(path)?;
        let (mut owner, mut list, mut memory) = (null_mut(), null_mut(), null_mut());
        // SAFETY: the path ends in NUL; the call fills in pointers into memory that is given back by `LocalFree`.
        let code = unsafe {
            GetNamedSecurityInfoW(
                path.as_ptr(),
                SE_FILE_OBJECT,
                DACL_SECURITY_INFORMATION | OWNER_SECURITY_INFORMATION,
                &raw mut owner,
                null_mut(),
                &raw mut list,
                null_mut(),
                &raw mut memory,
            )
        };
        if matches!(code, ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND) {
            return Ok(None);
        }
        check(code)?;
        let memory = Local(memory);
        if list.is_null() {
            return Err(io::Error::other("it has no access list: everybody may do everything with it"));
        }
        Ok(Some(Self { _memory: memory, acl: list, owner }))
    }

    /// The list that entries make, in their order.
    ///
    /// # Errors
    /// An entry that is none.
    #[allow(unsafe_code)]
    fn made(aces: &[Ace]) -> io::Result<Self> {
        let text: String = aces.iter().map(Ace::sddl).collect();
        let text = wide(&format!("D:{text}"))?;
        let mut memory: PSECURITY_DESCRIPTOR = null_mut();
        // SAFETY: the text ends in NUL; the call fills in memory that is given back by `LocalFree`.
        done(unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &raw mut memory,
                null_mut(),
            )
        })?;
        let memory = Local(memory);
        let (mut present, mut list, mut defaulted) = (0, null_mut(), 0);
        // SAFETY: a descriptor that was just made; the list is in it.
        done(unsafe { GetSecurityDescriptorDacl(memory.0, &raw mut present, &raw mut list, &raw mut defaulted) })?;
        if present == 0 || list.is_null() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { _memory: memory, acl: list, owner: null_mut() })
    }

    /// Whether the node is owned by one of these.
    #[allow(unsafe_code)]
    pub fn is_owned_by(&self, sids: &[Sid]) -> bool {
        // SAFETY: the owner is in the memory that the system has filled in.
        !self.owner.is_null() && sids.iter().any(|sid| unsafe { sid.is(self.owner) })
    }

    #[allow(unsafe_code)]
    pub fn entries(&self) -> io::Result<Vec<Entry<'_>>> {
        // SAFETY: a list that the system has made, in memory that is there as long as this is.
        let count = unsafe { (*self.acl).AceCount };
        (0..u32::from(count))
            .map(|at| {
                let mut entry = null_mut();
                // SAFETY: as above; the call fills in a pointer into the list.
                done(unsafe { GetAce(self.acl, at, &raw mut entry) })?;
                // SAFETY: an entry begins with its header.
                Ok(Entry { header: unsafe { &*entry.cast::<ACE_HEADER>() } })
            })
            .collect()
    }

    /// What an account may do by this list, its groups' rights included; `None` where that cannot be told.
    #[allow(unsafe_code)]
    pub fn rights_of(&self, sid: &Sid) -> Option<u32> {
        let trustee = TRUSTEE_W {
            pMultipleTrustee: null_mut(),
            MultipleTrusteeOperation: NO_MULTIPLE_TRUSTEE,
            TrusteeForm: TRUSTEE_IS_SID,
            TrusteeType: TRUSTEE_IS_USER,
            ptstrName: sid.as_ptr().cast(),
        };
        let mut rights = 0;
        // SAFETY: the list and the identifier are ours, and only read.
        let code = unsafe { GetEffectiveRightsFromAclW(self.acl, &raw const trustee, &raw mut rights) };
        (code == 0).then_some(rights)
    }

    /// The same list with more entries of the node's own, without those that are dropped: denials first.
    ///
    /// # Errors
    /// Where the system takes no such list.
    #[allow(unsafe_code)]
    pub fn with(&self, aces: &[Ace], drop: impl Fn(&Entry<'_>) -> bool) -> io::Result<Made> {
        let entries = self.entries()?;
        let more = if aces.is_empty() { None } else { Some(Self::made(aces)?) };
        let more = more.as_ref().map_or(Ok(Vec::new()), Self::entries)?;
        let (denials, grants): (Vec<&Entry<'_>>, Vec<&Entry<'_>>) =
            more.iter().partition(|entry| entry.gives().is_none());
        let kept = entries.iter().filter(|entry| !entry.is_inherited() && !drop(entry));
        let inherited = entries.iter().filter(|entry| entry.is_inherited());
        // The order that the system calls canonical, where the list had it.
        let all: Vec<&Entry<'_>> = denials.into_iter().chain(kept).chain(grants).chain(inherited).collect();
        let size = size_of::<ACL>() + all.iter().map(|entry| usize::from(entry.header.AceSize)).sum::<usize>();
        let length = u32::try_from(size.next_multiple_of(4)).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut room = vec![0_u32; length as usize / 4];
        let list: *mut ACL = room.as_mut_ptr().cast();
        // SAFETY: the room is as long as is said, and aligned as the structure is.
        done(unsafe { InitializeAcl(list, length, ACL_REVISION) })?;
        for entry in all {
            let header = std::ptr::from_ref(entry.header).cast();
            // SAFETY: the entry is as long as its header says, in memory that the system has filled in.
            done(unsafe { AddAce(list, ACL_REVISION, MAXDWORD, header, u32::from(entry.header.AceSize)) })?;
        }
        Ok(Made(room))
    }
}

/// A list of ours.
pub struct Made(Vec<u32>);

impl Made {
    /// Gives it to a node; the system passes on what is inherited.
    ///
    /// # Errors
    /// Whatever setting it fails with.
    #[allow(unsafe_code)]
    pub fn set(&self, path: &str) -> io::Result<()> {
        let path = native(path)?;
        // SAFETY: the path ends in NUL; the list was made by `List::with`. The call only reads both.
        check(unsafe {
            SetNamedSecurityInfoW(
                path.as_ptr(),
                SE_FILE_OBJECT,
                DACL_SECURITY_INFORMATION,
                null_mut(),
                null_mut(),
                self.0.as_ptr().cast(),
                null(),
            )
        })
    }
}

/// A policy's path in the system's own form, which may be of any length.
fn native(path: &str) -> io::Result<Vec<u16>> {
    wide(&format!(r"\\?\{}", path.replace('/', r"\")))
}
