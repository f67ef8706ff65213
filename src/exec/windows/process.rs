//! The command's first process: started suspended as the account, put into the job, and let go.
//!
//! A process of another account has no console of ours (`CreateProcessWithLogonW` always gives it one of its own), so what is a
//! console here is a pipe there, and its text is passed on.

use super::account;
use super::job::Job;
use super::os::{done, last, owned, wide};
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::ptr::null;
use std::thread::{self, JoinHandle};
use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{
    CREATE_NO_WINDOW, CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT, CreateProcessWithLogonW, GetExitCodeProcess,
    INFINITE, LOGON_WITH_PROFILE, PROCESS_INFORMATION, ResumeThread, STARTF_USESHOWWINDOW, STARTF_USESTDHANDLES,
    STARTUPINFOW, TerminateProcess, WaitForSingleObject,
};

/// What is started.
pub struct Start<'s> {
    /// The program's own file.
    pub program: &'s str,
    pub line: &'s str,
    pub environment: &'s [u16],
    pub directory: &'s str,
    pub password: &'s str,
}

/// A process that runs.
#[derive(Debug)]
pub struct Process {
    handle: OwnedHandle,
    relays: Vec<JoinHandle<()>>,
}

/// Why there is none.
#[derive(Debug)]
pub enum NotStarted {
    /// The account could not log on, or the process could not be held.
    Setup(io::Error),
    Command(io::Error),
}

/// `SW_HIDE`
const HIDDEN: u16 = 0;

/// Errors of a log-on (winerror.h): they are about the account, not about the command.
const LOGON: [i32; 8] = [1057, 1326, 1327, 1328, 1330, 1331, 1385, 1909];

/// Starts it in the job.
///
/// # Errors
/// Nothing of it has run then.
pub fn start(start: &Start<'_>, job: &Job) -> Result<Process, NotStarted> {
    let streams = Streams::new().map_err(NotStarted::Setup)?;
    let (process, thread) = suspended(start, &streams).map_err(|error| match error.raw_os_error() {
        Some(code) if LOGON.contains(&code) => NotStarted::Setup(error),
        _ => NotStarted::Command(error),
    })?;
    // The ends that the process has are not ours to keep, or nobody would see them closed.
    let relays = streams.relay();
    if let Err(error) = job.take(&process).and_then(|()| resume(&thread)) {
        terminate(&process);
        return Err(NotStarted::Setup(error));
    }
    Ok(Process { handle: process, relays })
}

#[allow(unsafe_code)]
fn suspended(start: &Start<'_>, streams: &Streams) -> io::Result<(OwnedHandle, OwnedHandle)> {
    let (name, domain, password) = (wide(account::NAME)?, wide(".")?, wide(start.password)?);
    let (program, mut line, directory) = (wide(start.program)?, wide(start.line)?, wide(start.directory)?);
    // SAFETY: plain data, for which zero is a valid value.
    let mut about: STARTUPINFOW = unsafe { std::mem::zeroed() };
    about.cb = u32::try_from(size_of::<STARTUPINFOW>()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The console that it is given shows no window, by whichever of the two is heeded.
    about.dwFlags = STARTF_USESTDHANDLES | STARTF_USESHOWWINDOW;
    about.wShowWindow = HIDDEN;
    about.hStdInput = streams.input.as_handle().as_raw_handle();
    about.hStdOutput = streams.output.as_handle().as_raw_handle();
    about.hStdError = streams.error.as_handle().as_raw_handle();
    // SAFETY: as above.
    let mut made: PROCESS_INFORMATION = unsafe { std::mem::zeroed() };
    // A script of `cmd.exe` is no program, and is found by the line alone.
    let is_script =
        start.program.rsplit('.').next().is_some_and(|end| ["bat", "cmd"].contains(&&*end.to_ascii_lowercase()));
    // SAFETY: each text ends in NUL, the environment in two; the line is ours to be written to; all outlives the call. The
    // structures are filled in as the call is described to take them.
    done(unsafe {
        CreateProcessWithLogonW(
            name.as_ptr(),
            domain.as_ptr(),
            password.as_ptr(),
            LOGON_WITH_PROFILE,
            if is_script { null() } else { program.as_ptr() },
            line.as_mut_ptr(),
            CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT | CREATE_NO_WINDOW,
            start.environment.as_ptr().cast(),
            directory.as_ptr(),
            &raw const about,
            &raw mut made,
        )
    })?;
    Ok((owned(made.hProcess)?, owned(made.hThread)?))
}

#[allow(unsafe_code)]
fn resume(thread: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the thread is open.
    if unsafe { ResumeThread(thread.as_raw_handle()) } == u32::MAX { Err(last()) } else { Ok(()) }
}

#[allow(unsafe_code)]
fn terminate(process: &OwnedHandle) {
    // SAFETY: the process is open. It is suspended, and has done nothing; where it cannot be ended, it stays so.
    unsafe { TerminateProcess(process.as_raw_handle(), 1) };
}

impl Process {
    /// A handle for another thread to wait by.
    ///
    /// # Errors
    /// Whatever making one fails with.
    pub fn handle(&self) -> io::Result<OwnedHandle> {
        self.handle.try_clone()
    }

    /// Its status, once it has ended.
    ///
    /// # Errors
    /// Whatever asking fails with.
    #[allow(unsafe_code)]
    pub fn status(&self) -> io::Result<u32> {
        let mut status = 0;
        // SAFETY: the process is open; the call fills in a number.
        done(unsafe { GetExitCodeProcess(self.handle.as_raw_handle(), &raw mut status) })?;
        Ok(status)
    }

    /// Passes on what it still has said. Call it when nothing of the job runs.
    pub fn drain(self) {
        for relay in self.relays {
            let _ = relay.join();
        }
    }
}

/// Waits until a process has ended.
///
/// # Errors
/// Whatever waiting fails with.
#[allow(unsafe_code)]
pub fn wait(process: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the process is open.
    if unsafe { WaitForSingleObject(process.as_raw_handle(), INFINITE) } == WAIT_OBJECT_0 {
        Ok(())
    } else {
        Err(last())
    }
}

/// One of the three that a process starts with.
enum Stream {
    /// Ours, as it is.
    Ours(OwnedHandle),
    Reader(PipeReader),
    Writer(PipeWriter),
}

impl Stream {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        match self {
            Stream::Ours(handle) => handle.as_handle(),
            Stream::Reader(pipe) => pipe.as_handle(),
            Stream::Writer(pipe) => pipe.as_handle(),
        }
    }
}

struct Streams {
    input: Stream,
    output: Stream,
    error: Stream,
    /// Our ends, where what is ours is a console.
    to: Option<PipeWriter>,
    from: Vec<(PipeReader, bool)>,
}

impl Streams {
    fn new() -> io::Result<Self> {
        let mut from = Vec::new();
        let (input, to) = if io::stdin().is_terminal() {
            let (reader, writer) = io::pipe()?;
            (Stream::Reader(reader), Some(writer))
        } else {
            (Stream::Ours(io::stdin().as_handle().try_clone_to_owned()?), None)
        };
        let mut out = |terminal: bool, ours: BorrowedHandle<'_>, is_error: bool| {
            if !terminal {
                return Ok::<_, io::Error>(Stream::Ours(ours.try_clone_to_owned()?));
            }
            let (reader, writer) = io::pipe()?;
            from.push((reader, is_error));
            Ok(Stream::Writer(writer))
        };
        let output = out(io::stdout().is_terminal(), io::stdout().as_handle(), false)?;
        let error = out(io::stderr().is_terminal(), io::stderr().as_handle(), true)?;
        let streams = Self { input, output, error, to, from };
        for stream in [&streams.input, &streams.output, &streams.error] {
            inherited(stream.as_handle())?;
        }
        Ok(streams)
    }

    /// Gives the process's ends up, and passes on between ours and the consoles. What is typed is read by a thread that nobody
    /// waits for.
    fn relay(self) -> Vec<JoinHandle<()>> {
        let Self { to, from, .. } = self;
        if let Some(mut to) = to {
            thread::spawn(move || copy(&mut io::stdin(), &mut to));
        }
        let relay = |(mut reader, is_error): (PipeReader, bool)| {
            thread::spawn(move || {
                if is_error {
                    copy(&mut reader, &mut io::stderr());
                } else {
                    copy(&mut reader, &mut io::stdout());
                }
            })
        };
        from.into_iter().map(relay).collect()
    }
}

/// Lets a process that is started have it.
#[allow(unsafe_code)]
fn inherited(handle: BorrowedHandle<'_>) -> io::Result<()> {
    // SAFETY: the handle is open.
    done(unsafe { SetHandleInformation(handle.as_raw_handle(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) })
}

/// Without a buffer that waits to be full; ends with either side.
fn copy(from: &mut impl Read, to: &mut impl Write) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count) = from.read(&mut buffer) {
        let text = buffer.get(..count).unwrap_or_default();
        if count == 0 || to.write_all(text).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
