//! The job that a command and all its processes are in: they end with it, and have its limits.

use super::super::Error;
use super::os::{done, owned};
use crate::backend::limits::Limits;
use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, OwnedHandle};
use std::ptr::{from_ref, null};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
    JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION, JOB_OBJECT_LIMIT_JOB_MEMORY, JOB_OBJECT_LIMIT_JOB_TIME,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOB_OBJECT_UILIMIT_DESKTOP, JOB_OBJECT_UILIMIT_DISPLAYSETTINGS,
    JOB_OBJECT_UILIMIT_EXITWINDOWS, JOB_OBJECT_UILIMIT_GLOBALATOMS, JOB_OBJECT_UILIMIT_HANDLES,
    JOB_OBJECT_UILIMIT_READCLIPBOARD, JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS, JOB_OBJECT_UILIMIT_WRITECLIPBOARD,
    JOBOBJECT_BASIC_UI_RESTRICTIONS, JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JOBOBJECTINFOCLASS,
    JobObjectBasicUIRestrictions, JobObjectExtendedLimitInformation, SetInformationJobObject, TerminateJobObject,
};

/// What the user's other windows, clipboard and desktop are kept from: the command is on the same desktop.
const WINDOWS: u32 = JOB_OBJECT_UILIMIT_DESKTOP
    | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS
    | JOB_OBJECT_UILIMIT_EXITWINDOWS
    | JOB_OBJECT_UILIMIT_GLOBALATOMS
    | JOB_OBJECT_UILIMIT_HANDLES
    | JOB_OBJECT_UILIMIT_READCLIPBOARD
    | JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS
    | JOB_OBJECT_UILIMIT_WRITECLIPBOARD;

/// Ends all processes in it when it is closed, by whatever ends this one.
#[derive(Debug)]
pub struct Job(OwnedHandle);

impl Job {
    /// Makes one with the limits that a job can hold. Those of files none can; that is a gap, which was accepted.
    ///
    /// # Errors
    /// Whatever the system does not take.
    #[allow(unsafe_code)]
    pub fn new(limits: &Limits) -> Result<Self, Error> {
        let setup = |source| Error::Setup { act: "make a job for the command".into(), source };
        // SAFETY: without a name, with the usual security; the call gives a handle that is ours to close.
        let job = Self(owned(unsafe { CreateJobObjectW(null(), null()) }).map_err(setup)?);
        job.set(JobObjectExtendedLimitInformation, &extended(limits).map_err(setup)?).map_err(setup)?;
        let windows = JOBOBJECT_BASIC_UI_RESTRICTIONS { UIRestrictionsClass: WINDOWS };
        job.set(JobObjectBasicUIRestrictions, &windows).map_err(setup)?;
        Ok(job)
    }

    #[allow(unsafe_code)]
    fn set<T>(&self, class: JOBOBJECTINFOCLASS, what: &T) -> io::Result<()> {
        let length = u32::try_from(size_of::<T>()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let what: *const c_void = from_ref(what).cast();
        // SAFETY: the job is open; the structure is the one of this class, and as long as is said.
        done(unsafe { SetInformationJobObject(self.0.as_raw_handle(), class, what, length) })
    }

    /// Puts a process into it, and with it all that it starts.
    ///
    /// # Errors
    /// Whatever that fails with: the process must not be let go on.
    #[allow(unsafe_code)]
    pub fn take(&self, process: impl AsHandle) -> io::Result<()> {
        // SAFETY: both are open.
        done(unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process.as_handle().as_raw_handle()) })
    }

    /// Ends every process in it.
    #[allow(unsafe_code)]
    pub fn end(&self, status: u32) {
        // SAFETY: the job is open. What fails here happens when it is closed.
        unsafe { TerminateJobObject(self.0.as_raw_handle(), status) };
    }
}

#[allow(unsafe_code)]
fn extended(limits: &Limits) -> io::Result<JOBOBJECT_EXTENDED_LIMIT_INFORMATION> {
    let wide = |_| io::Error::new(io::ErrorKind::InvalidInput, "a limit is larger than any machine");
    // SAFETY: plain data, for which zero is a valid value: no limit.
    let mut extended: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = unsafe { std::mem::zeroed() };
    let basic = &mut extended.BasicLimitInformation;
    // A crash is an exit, and no window that waits for somebody.
    basic.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
    if let Some(processes) = limits.processes {
        basic.LimitFlags |= JOB_OBJECT_LIMIT_ACTIVE_PROCESS;
        basic.ActiveProcessLimit = u32::try_from(processes).unwrap_or(u32::MAX);
    }
    if let Some(seconds) = limits.cpu {
        // In units of 100 ns.
        basic.LimitFlags |= JOB_OBJECT_LIMIT_JOB_TIME;
        basic.PerJobUserTimeLimit = i64::try_from(seconds.saturating_mul(10_000_000)).unwrap_or(i64::MAX);
    }
    if let Some(memory) = limits.memory {
        basic.LimitFlags |= JOB_OBJECT_LIMIT_JOB_MEMORY;
        extended.JobMemoryLimit = usize::try_from(memory).map_err(wide)?;
    }
    Ok(extended)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use super::*;

    #[test]
    fn limits_are_in_the_systems_units() {
        let none = extended(&Limits::default()).unwrap().BasicLimitInformation.LimitFlags;
        assert_eq!(none, 0x2400);
        let limits = Limits { memory: Some(1 << 30), processes: Some(64), cpu: Some(300), ..Limits::default() };
        let held = extended(&limits).unwrap();
        assert_eq!(held.BasicLimitInformation.LimitFlags, 0x2400 | 0x200 | 0x8 | 0x4);
        assert_eq!(held.JobMemoryLimit, 1 << 30);
        assert_eq!(held.BasicLimitInformation.ActiveProcessLimit, 64);
        assert_eq!(held.BasicLimitInformation.PerJobUserTimeLimit, 3_000_000_000);
    }

    #[test]
    fn whatever_is_in_a_job_ends_with_it() {
        let job = Job::new(&Limits::default()).unwrap();
        let mut child = std::process::Command::new("cmd")
            .args(["/c", "pause"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        job.take(&child).unwrap();
        assert!(child.try_wait().unwrap().is_none());
        job.end(7);
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }
}
