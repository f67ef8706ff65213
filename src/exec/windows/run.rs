//! One run: everything is set up in an order in which whatever fails leaves nothing run, and put back in the other.

use super::super::environment::{alone, reaches_whole_loopback, with_proxy, without_proxies};
use super::super::served::{Served, Wanted};
use super::super::{Engine, Error, Exit, Launch};
use super::filters::Engine as Platform;
use super::job::Job;
use super::journal::{Change, Journal};
use super::process::{self, NotStarted, Start};
use super::sid::Sid;
use super::{access, account, command_line, console, program, read};
use crate::backend::wfp::Texts;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// What a process ends by that is ended when its time is over.
const TIMED_OUT: u32 = 124;
/// The same where the run is given up.
const GIVEN_UP: u32 = 125;
/// The same where somebody asked for its end: `STATUS_CONTROL_C_EXIT`, by which programs end that do not heed Ctrl-C.
const ASKED: u32 = 0xc000_013a;
/// How often it is looked whether somebody did.
const ROUND: Duration = Duration::from_millis(100);

/// Of sockets a process may have as many as there is memory for; so many are enough for a proxy.
const DESCRIPTORS: u64 = 4096;

/// What ended the wait.
enum Event {
    Ended,
    Proxy(io::Error),
    /// Somebody asked for it (Ctrl-C).
    Asked,
    /// Its time is over.
    Late,
}

/// Sets everything up, runs the command and waits for its end.
///
/// # Errors
/// Nothing of the command has run then, [`Error::Setup`] for a run that was given up aside.
pub fn run(texts: &Texts, mut launch: Launch) -> Result<Exit, Error> {
    refuse(&launch)?;
    let account = account::sid().map_err(setup("look up the account of sandboxed commands"))?;
    let account = account.ok_or_else(|| Error::Setup {
        act: format!("use the account `{}`", account::NAME),
        source: io::Error::new(io::ErrorKind::NotFound, "run `srt windows install` once, as an administrator"),
    })?;
    let sid = account.to_string();
    let mistake = |error| Error::Setup { act: "read what was compiled".into(), source: io::Error::other(error) };
    let filters = read::filters(&texts.filters, &sid).map_err(mistake)?;
    let nodes = read::access_lists(&texts.access_lists, &sid).map_err(mistake)?;
    let (events, ended) = mpsc::channel();
    let served = serve(texts, &mut launch, &events)?;
    let command = Command::new(launch, served.as_ref())?;
    let (journal, left) = open_journal()?;
    let mut machine = Machine { journal, account, platform: open_platform()?, filters: Vec::new() };
    machine.put_back_lists(lists(&left)).map_err(setup("put back the access lists that an earlier run left"))?;
    let keys: Vec<String> = filters.filters.iter().map(|filter| filter.filter_key.clone()).collect();
    let changes: Vec<Change> = keys.iter().map(|key| Change::Filter { key: key.clone() }).collect();
    machine.journal.write(&changes).map_err(setup("write down what will be changed"))?;
    machine.platform.replace(&filter_keys(&left), &filters).map_err(setup("set the filters of connections"))?;
    machine.filters = keys;
    let ran = access::stamp(&nodes, &machine.account, &mut machine.journal).and_then(|()| {
        let password = account::secret().map_err(setup("read the account's password"))?;
        command.run(&texts.limits, &password, &events, &ended)
    });
    // Whatever came of it.
    let put_back = machine.put_back(&filters);
    if let Err(error) = put_back {
        (command.announce)(&format!("not everything could be put back, and the next run tries again: {error}"));
    }
    ran
}

fn setup(act: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Setup { act: act.into(), source }
}

fn refuse(launch: &Launch) -> Result<(), Error> {
    let no = |act: &str| Err(Error::Setup { act: act.into(), source: io::ErrorKind::Unsupported.into() });
    if launch.engine != Engine::Native {
        return no("use bubblewrap on Windows");
    }
    if !launch.keep.is_empty() {
        return no("leave descriptors open to a command on Windows");
    }
    Ok(())
}

fn serve(texts: &Texts, launch: &mut Launch, events: &mpsc::Sender<Event>) -> Result<Option<Served>, Error> {
    let Some(ports) = texts.proxy.clone() else { return Ok(None) };
    let Some(rules) = launch.rules.clone() else {
        return Err(Error::Setup {
            act: "start the proxy without rules".into(),
            source: io::ErrorKind::InvalidInput.into(),
        });
    };
    let wanted = Wanted {
        rules,
        upstream: launch.upstream.take(),
        events: launch.events.clone(),
        live: launch.live.take(),
        descriptors: DESCRIPTORS,
    };
    let events = events.clone();
    // Whoever waits may be gone.
    Served::start(ports, wanted, move |error| drop(events.send(Event::Proxy(error)))).map(Some)
}

/// What is to be started, worked out before anything is changed.
struct Command {
    name: String,
    program: PathBuf,
    line: String,
    environment: Vec<u16>,
    directory: String,
    announce: fn(&str),
}

impl Command {
    fn new(launch: Launch, served: Option<&Served>) -> Result<Self, Error> {
        let mut environment = without_proxies(launch.environment, &launch.set);
        if let (Some(served), Some(rules)) = (served, &launch.rules) {
            let loopback = reaches_whole_loopback(&rules.policy);
            environment = with_proxy(&environment, &launch.set, loopback, served.at());
            for (name, value) in alone(&environment, &launch.set, &rules.policy, None) {
                environment.retain(|(other, _)| *other != name);
                environment.push((name, value));
            }
        }
        let environment: Vec<(String, String)> = environment
            .into_iter()
            .map(|(name, value)| Ok((text(&name)?.to_owned(), text(&value)?.to_owned())))
            .collect::<Result<_, Error>>()?;
        let words: Vec<String> =
            launch.command.iter().map(|word| text(word).map(str::to_owned)).collect::<Result<_, _>>()?;
        let name = words.first().cloned().unwrap_or_default();
        let variable = |wanted: &str| {
            let found = environment.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.clone())
        };
        let start = |source| Error::Start { command: name.clone(), source };
        let found = program::find(&name, &launch.directory, variable, Path::is_file);
        let program = found.ok_or_else(|| start(io::ErrorKind::NotFound.into()))?;
        let mut arguments = words.clone();
        if let (Some(first), Some(path)) = (arguments.first_mut(), program.to_str()) {
            path.clone_into(first);
        }
        let line = command_line::line(&arguments).map_err(start)?;
        if line.encode_utf16().count() >= command_line::LONGEST {
            let why = format!(
                "the line is longer than the {} letters that Windows takes for another account",
                command_line::LONGEST - 1
            );
            return Err(start(io::Error::new(io::ErrorKind::ArgumentListTooLong, why)));
        }
        let environment = command_line::block(&environment).map_err(setup("pass the environment"))?;
        let directory = text(launch.directory.as_os_str())?.to_owned();
        Ok(Self { name: name.clone(), program, line, environment, directory, announce: launch.announce })
    }

    fn run(
        &self,
        limits: &crate::backend::limits::Limits,
        password: &str,
        events: &mpsc::Sender<Event>,
        ended: &mpsc::Receiver<Event>,
    ) -> Result<Exit, Error> {
        let job = Job::new(limits)?;
        let start = Start {
            program: text(self.program.as_os_str())?,
            line: &self.line,
            environment: &self.environment,
            directory: &self.directory,
            password,
        };
        console::take_interrupts().map_err(setup("hold interrupts back"))?;
        let process = process::start(&start, &job).map_err(|error| match error {
            NotStarted::Setup(source) => Error::Setup { act: "start a process as the account".into(), source },
            NotStarted::Command(source) => Error::Start { command: self.name.clone(), source },
        })?;
        let handle = process.handle().map_err(setup("wait for the command"))?;
        let events = events.clone();
        thread::spawn(move || {
            // What waiting fails with is an end, too: the job is ended then.
            let _ = process::wait(&handle);
            let _ = events.send(Event::Ended);
        });
        let outcome = match wait(ended, limits.time.map(Duration::from_millis)) {
            Event::Late => {
                job.end(TIMED_OUT);
                Ok(Exit::TimedOut)
            }
            Event::Asked => {
                job.end(ASKED);
                Ok(Exit::Wide(ASKED))
            }
            Event::Ended => process.status().map(exit).map_err(setup("tell how the command ended")),
            Event::Proxy(source) => {
                job.end(GIVEN_UP);
                Err(Error::Setup { act: "go on without the proxy".into(), source })
            }
        };
        // Nothing that it started outlives it.
        job.end(GIVEN_UP);
        process.drain();
        outcome
    }
}

fn exit(status: u32) -> Exit {
    u8::try_from(status).map_or(Exit::Wide(status), Exit::Code)
}

/// The first thing that happens.
fn wait(ended: &mpsc::Receiver<Event>, time: Option<Duration>) -> Event {
    let end = time.and_then(|time| Instant::now().checked_add(time));
    loop {
        let left = end.map_or(ROUND, |end| end.saturating_duration_since(Instant::now()));
        match ended.recv_timeout(left.min(ROUND)) {
            Ok(event) => return event,
            Err(mpsc::RecvTimeoutError::Disconnected) => return Event::Ended,
            Err(mpsc::RecvTimeoutError::Timeout) if console::is_asked() => return Event::Asked,
            Err(mpsc::RecvTimeoutError::Timeout) if end.is_some_and(|end| Instant::now() >= end) => return Event::Late,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

fn text(text: &OsStr) -> Result<&str, Error> {
    let why = "it is not Unicode";
    let source = || io::Error::new(io::ErrorKind::InvalidInput, why);
    text.to_str().ok_or_else(|| Error::Setup { act: format!("pass `{}`", text.display()), source: source() })
}

/// Where the journal is: for all users of the machine, since the account is theirs all.
fn journal_path() -> io::Result<PathBuf> {
    #[allow(clippy::disallowed_methods)]
    let data: Option<OsString> = std::env::var_os("ProgramData");
    let data = data.map(PathBuf::from).filter(|path| path.is_absolute());
    Ok(data.ok_or(io::ErrorKind::NotFound)?.join("srt"))
}

/// Opens the journal, which only one run at a time can.
pub(super) fn open_journal() -> Result<(Journal, Vec<Change>), Error> {
    let open = || -> io::Result<File> {
        let place = journal_path()?;
        fs::create_dir_all(&place)?;
        // Shared with nobody.
        OpenOptions::new().read(true).write(true).create(true).truncate(false).share_mode(0).open(place.join("journal"))
    };
    /// `ERROR_SHARING_VIOLATION`
    const IN_USE: i32 = 32;
    let file = open().map_err(|source| match source.raw_os_error() {
        Some(IN_USE) => Error::Setup {
            act: "start a second command".into(),
            source: io::Error::new(
                io::ErrorKind::ResourceBusy,
                "one runs on this machine already, and all have one account",
            ),
        },
        _ => Error::Setup { act: "open the journal of changes".into(), source },
    })?;
    Journal::open(file).map_err(setup("read the journal of changes"))
}

pub(super) fn open_platform() -> Result<Platform, Error> {
    Platform::open().map_err(|source| {
        let source = if source.kind() == io::ErrorKind::PermissionDenied {
            io::Error::new(source.kind(), "only administrators may: start `srt` from an elevated prompt")
        } else {
            source
        };
        Error::Setup { act: "open the filtering platform".into(), source }
    })
}

pub(super) fn lists(changes: &[Change]) -> Vec<(String, bool)> {
    let list = |change: &Change| match change {
        Change::List { path, owner } => Some((path.clone(), *owner)),
        Change::Filter { .. } => None,
    };
    changes.iter().filter_map(list).collect()
}

pub(super) fn filter_keys(changes: &[Change]) -> Vec<String> {
    let key = |change: &Change| match change {
        Change::Filter { key } => Some(key.clone()),
        Change::List { .. } => None,
    };
    changes.iter().filter_map(key).collect()
}

/// What a run changes on the machine.
struct Machine {
    journal: Journal,
    account: Sid,
    platform: Platform,
    /// The keys of the filters that were added.
    filters: Vec<String>,
}

impl Machine {
    fn put_back_lists(&self, lists: Vec<(String, bool)>) -> io::Result<()> {
        put_back_lists(lists, &self.account)
    }

    /// Puts everything back, and forgets it where all of it could be.
    fn put_back(&mut self, filters: &read::Filters) -> io::Result<()> {
        let written = self.journal.written()?;
        let lists = put_back_lists(lists(&written), &self.account);
        let filters = self.platform.remove(&self.filters, Some(filters));
        lists.and(filters)?;
        self.journal.clear()
    }
}

/// Each, whatever becomes of the others; what lies below first.
///
/// # Errors
/// The first that could not be.
pub(super) fn put_back_lists(lists: Vec<(String, bool)>, account: &Sid) -> io::Result<()> {
    let mut failure = Ok(());
    for (path, owner) in lists.into_iter().rev() {
        if let Err(error) = access::put_back(&path, owner, account) {
            failure = failure.and(Err(io::Error::new(error.kind(), format!("the access list of `{path}`: {error}"))));
        }
    }
    failure
}
