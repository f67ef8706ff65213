//! System calls that are not left to the kernel: pid 1 makes them in the command's place, on what it has looked at itself. Those
//! about files are made where the policy needs that, and else only told of.
//!
//! The command's filter notifies of them ([`notification`]). Whoever looks at a call's arguments and then lets the kernel go
//! on has decided on something else than the kernel does: memory and descriptors change meanwhile. So a call is *performed*: on a
//! duplicate of the command's own descriptor, with a copy of its bytes, and with no capability.
//!
//! Served by threads of pid 1, which is in the sandbox's namespaces already; the kernel lets nothing inside end it, and the
//! command may not look into it. There is no thread before the first call, and from then on always one that waits for the
//! next, so that a call that takes long holds up no other. What is decided, the supervisor decides: it is asked.
//!
//! For each call served there is a file; this one knows which is whose, and what all have in common.

mod far;
mod files;
mod notification;
mod perform;
mod place;
mod questions;
mod relay;
mod rules;
mod socket;
mod task;
mod unix;
mod unreached;

pub use task::{CAPABILITIES, may_look};

use super::control::{Control, Failure, Report};
use super::defence::Defence;
use crate::backend::bubblewrap::seccomp::{Act, FileCall, Watch};
use crate::event::lock;
use far::Far;
use nix::errno::Errno;
use nix::unistd::{Pid, gettid};
use notification::{Answer, Call, Listener};
use questions::Questions;
use relay::Relays;
use rules::Rules;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use task::Task;
use unix::Own;

/// So many calls are served at once; the others wait.
const MOST: usize = 256;

/// So many threads wait for the next call, and no more. Whoever has been answered often calls again before the thread that answered
/// waits again: were these few, each call would have another thread made, and ended.
const SPARE: usize = 8;

/// What a thread of ours needs, and much more.
const STACK: usize = 256 * 1024;

/// As many calls that take long are nothing to look after.
const FEW: usize = 8;

/// How long a call waits before it looks again whether there is room for it.
const PAUSE: Duration = Duration::from_millis(2);

pub struct Broker {
    listener: Listener,
    /// The root of a procfs of this process's namespace, and this process's directory.
    proc: OwnedFd,
    /// To the supervisor.
    control: Control,
    /// Which calls about files are made here, and not only told of.
    performed: Watch,
    /// Its network leads nowhere: nobody serves it.
    is_apart: bool,
    /// What tests take out: without [`Defence::Performed`], what was looked at is left to the kernel.
    missing: Vec<Defence>,
    /// Held by whoever makes such a call: nothing moves meanwhile that moves by this process.
    acting: Mutex<()>,
    threads: AtomicUsize,
    waiting: AtomicUsize,
    /// Calls that may take long: which, and the thread that makes it.
    long: Mutex<Vec<(u64, Pid)>>,
    own: Own,
    questions: Questions,
    relays: Arc<Relays>,
    rules: Rules,
    far: OnceLock<Far>,
    /// How much the supervisor was not told, as it did not listen in time.
    untold: AtomicU64,
}

impl Broker {
    pub fn new(
        listener: OwnedFd,
        proc: OwnedFd,
        control: Control,
        performed: Watch,
        is_apart: bool,
        missing: &[Defence],
    ) -> Arc<Broker> {
        Arc::new(Broker {
            listener: Listener::new(listener),
            proc,
            control,
            performed,
            is_apart,
            missing: missing.to_vec(),
            acting: Mutex::default(),
            threads: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            long: Mutex::default(),
            own: Own::default(),
            questions: Questions::default(),
            relays: Arc::default(),
            rules: Rules::default(),
            far: OnceLock::new(),
            untold: AtomicU64::new(0),
        })
    }

    fn has(&self, defence: &Defence) -> bool {
        !self.missing.contains(defence)
    }

    /// What must stay open for it.
    pub fn descriptors(&self) -> [RawFd; 3] {
        [self.listener.as_fd().as_raw_fd(), self.proc.as_raw_fd(), self.control.as_raw_fd()]
    }

    /// Readable when the first call waits.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Serves calls from now on; once.
    pub fn start(self: &Arc<Self>) -> Result<(), Failure> {
        let failed = |errno| Failure::setup("serve system calls", errno);
        // A node is named by its descriptor here, whatever the command sees at `/proc`.
        nix::unistd::fchdir(&self.proc).map_err(failed)?;
        // Of what is made for the command, its own mask decides.
        nix::sys::stat::umask(nix::sys::stat::Mode::empty());
        socket::take_interrupts().map_err(failed)?;
        self.another().map_err(failed)
    }

    /// The supervisor's answer to a question.
    pub fn answered(&self, number: u32, allowed: bool) {
        self.questions.answered(number, allowed);
    }

    /// The rules about files that were asked for.
    pub fn take_rules(&self, file: Option<OwnedFd>) {
        self.rules.take(file);
    }

    /// After the command: what it has written on its way to a service of the host arrives there. Ends what is left of the
    /// sandbox first, if there is such a way.
    pub fn finish(&self) {
        let untold = self.untold.swap(0, Ordering::Relaxed);
        if untold > 0 {
            let _ = self.control.report(&Report::Untold(untold));
        }
        const PATIENCE: Duration = Duration::from_secs(1);
        // To all of them, where they are all of a namespace.
        if self.relays.are_open() && nix::unistd::getpid().as_raw() == 1 {
            let _ = nix::sys::signal::kill(Pid::from_raw(-1), nix::sys::signal::Signal::SIGKILL);
            self.relays.finish(PATIENCE);
        }
    }

    /// Another thread that serves calls, if there may be one.
    fn another(self: &Arc<Self>) -> Result<(), Errno> {
        if self.threads.fetch_add(1, Ordering::SeqCst) >= MOST {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            return Ok(());
        }
        let broker = Arc::clone(self);
        let serve = move || {
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| broker.serve())).is_err() {
                broker.give_up(Errno::EIO);
            }
        };
        let started = std::thread::Builder::new().stack_size(STACK).spawn(serve);
        started.map(drop).map_err(|_| {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            Errno::EAGAIN
        })
    }

    fn serve(self: &Arc<Self>) {
        loop {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let call = self.listener.receive();
            let others = self.waiting.fetch_sub(1, Ordering::SeqCst) - 1;
            let call = match call {
                Ok(call) => call,
                Err(Errno::ENOENT | Errno::EINTR) => continue,
                // Nobody is left who could call.
                Err(Errno::ENOTCONN) => break,
                Err(errno) => self.give_up(errno),
            };
            if others == 0 {
                // Where there can be no other thread, the next call waits for this one.
                let _ = self.another();
            }
            self.let_go();
            let answer = self.answer(&call);
            match self.listener.answer(call.id, answer) {
                Ok(()) | Err(Errno::ENOENT) => (),
                Err(errno) => self.give_up(errno),
            }
            if self.waiting.load(Ordering::SeqCst) >= SPARE {
                break;
            }
        }
        self.threads.fetch_sub(1, Ordering::SeqCst);
    }

    /// Without a broker the command could do nothing that is performed: the run is over, and says why.
    fn give_up(&self, errno: Errno) -> ! {
        let _ = self.control.report(&Report::Failed(Failure::setup("go on serving system calls", errno)));
        super::end::end(125)
    }

    fn answer(&self, call: &Call) -> Answer {
        let served = match call.number {
            libc::SYS_connect => self.connect(call),
            libc::SYS_listen => {
                self.hear(call);
                Ok(Answer::Continue)
            }
            number => match files::file_call(number) {
                Some(file_call) if self.is_performed(call, file_call) => self.perform_file(call, file_call),
                Some(file_call) => {
                    self.foresee(call, file_call);
                    Ok(Answer::Continue)
                }
                None => self.perform_other(call).unwrap_or(Err(Errno::ENOSYS)),
            },
        };
        match served {
            Ok(answer) => answer,
            Err(_) if !self.listener.waits(call.id) => Answer::Nobody,
            Err(errno) => Answer::Failed(errno),
        }
    }

    fn is_performed(&self, call: &Call, file_call: &FileCall) -> bool {
        match self.performed {
            Watch::Nothing => false,
            Watch::Writes => files::writes(call, file_call),
            Watch::Opens => file_call.act != Act::Run,
        }
    }

    /// `connect(fd, address, length)`, in the kernel's order of doing and failing.
    fn connect(&self, call: &Call) -> Result<Answer, Errno> {
        /// `sizeof(struct sockaddr_storage)`
        const LONGEST: usize = 128;
        let [descriptor, address, length, ..] = call.arguments;
        let task = Task::new(call.thread, self.proc.as_fd());
        let socket = task.descriptor(int(descriptor)).map_err(|errno| self.unseen(errno, "connecting"))?;
        let length = usize::try_from(int(length)).ok().filter(|length| *length <= LONGEST).ok_or(Errno::EINVAL)?;
        let address = task.read(address, length).map_err(|errno| self.unseen(errno, "connecting"))?;
        if !self.listener.waits(call.id) {
            return Ok(Answer::Nobody);
        }
        if socket::domain(socket.as_fd())? == libc::AF_UNIX {
            self.connect_unix(call, &task, socket.as_fd(), &address)
        } else {
            // What it may reach is decided elsewhere; made here, since a descriptor can be another socket by the time the
            // kernel looks at it.
            let answer = self.perform(call, socket.as_fd(), &address);
            if let Answer::Done | Answer::Failed(_) = answer {
                self.tell_unreached(&task, socket.as_fd(), &address, answer);
            }
            Ok(answer)
        }
    }

    /// Connects in the command's place, for as long as that takes and somebody waits for it.
    fn perform(&self, call: &Call, socket: BorrowedFd<'_>, address: &[u8]) -> Answer {
        if !self.has(&Defence::Performed) {
            return Answer::Continue;
        }
        self.dial(call, socket, address).map_or_else(|| Answer::Nobody, Answer::of)
    }

    /// `None` once nobody waits any more.
    fn dial(&self, call: &Call, socket: BorrowedFd<'_>, address: &[u8]) -> Option<Result<(), Errno>> {
        self.take_long(call, || socket::connect(socket, address))
    }

    /// Does what may take long, unless nobody waits for it any more: `None`.
    fn take_long<T>(&self, call: &Call, act: impl Fn() -> Result<T, Errno>) -> Option<Result<T, Errno>> {
        let own = gettid();
        // Some threads go on to serve, so that those are let go whose callers are gone.
        while !self.may_take_long(call.id, own) {
            self.let_go();
            if !self.listener.waits(call.id) {
                return None;
            }
            std::thread::sleep(PAUSE);
        }
        let done = loop {
            match socket::interruptible(&act) {
                Err(Errno::EINTR) if self.listener.waits(call.id) => (),
                Err(Errno::EINTR) => break None,
                done => break Some(done),
            }
        };
        lock(&self.long).retain(|(_, thread)| *thread != own);
        done
    }

    /// Notes a call that may take long, unless nearly every thread makes one.
    fn may_take_long(&self, id: u64, thread: Pid) -> bool {
        let mut long = lock(&self.long);
        let may = long.len() < MOST - FEW;
        if may {
            long.push((id, thread));
        }
        may
    }

    /// Lets threads go that wait for what nobody waits for any more.
    fn let_go(&self) {
        let long = lock(&self.long);
        if long.len() > FEW {
            for (id, thread) in long.iter() {
                if !self.listener.waits(*id) {
                    socket::interrupt(*thread);
                }
            }
        }
    }

    /// Tells the supervisor, and never waits: what it does not take in time is counted.
    fn tell_at_once(&self, report: &Report) {
        if self.control.report_at_once(report).is_err() {
            self.untold.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What may take any time to answer.
    fn far(&self) -> Result<&Far, Errno> {
        if let Some(far) = self.far.get() {
            return Ok(far);
        }
        let far = Far::look(self.proc.as_fd())?;
        Ok(self.far.get_or_init(|| far))
    }

    /// What a failed look at the command comes to. It is refused what cannot be looked at (a program that its user may
    /// run and not read), and told so outside.
    fn unseen(&self, errno: Errno, what: &str) -> Errno {
        match errno {
            Errno::EPERM | Errno::EACCES => {
                let what = format!("{what}, by a program that may not be looked into (it may be run, and not read)");
                let _ = self.control.report(&Report::Unseen(what));
                Errno::EACCES
            }
            errno => errno,
        }
    }
}

/// An `int` of the call, as the kernel takes it.
fn int(argument: u64) -> i32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}
