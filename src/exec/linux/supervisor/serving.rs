//! What goes on beside the command, on one thread: the proxy, listeners for its servers, and whatever pid 1 says meanwhile.

use super::{Heard, Proxied, Served, Supervisor, raise_open_files, setup};
use crate::exec::linux::listen::{self, Wish};
use crate::exec::linux::{Error, capture, landlock};
use crate::ir::{Access, decide};
use crate::proxy::{self, Doors, Rules};
use nix::poll::PollTimeout;
use nix::sys::socket::{SockType, getsockopt, sockopt};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{Interest, unix::AsyncFd};

impl Supervisor<'_> {
    /// The same wait beside the proxy, on one thread. What the proxy fails with for good ends the run.
    pub(super) fn serve(
        &mut self,
        sockets: Vec<OwnedFd>,
        deadline: Option<Instant>,
        served: Served,
    ) -> Result<Option<std::io::Error>, Error> {
        let act = "start the proxy";
        let failed = |source| Error::Setup { act: act.into(), source };
        let Served { mut proxied, listeners } = served;
        if let Some(live) =
            proxied.as_mut().and_then(|proxied| Some((proxied.live.take()?, Arc::clone(&proxied.in_force))))
        {
            // Before this thread gives up files; it ends with the process.
            std::thread::Builder::new().spawn(move || live.0(live.1)).map_err(failed)?;
        }
        landlock::keep_resolver_alone().map_err(|errno| setup("give up files before the proxy is started", errno))?;
        // The command has its limits already; these are ours alone, which it must not be able to use up.
        let descriptors = raise_open_files().map_err(|errno| setup("raise the limit of open files", errno))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        runtime.block_on(async {
            let limits = proxy::Limits::STANDARD.within(descriptors);
            let events = Arc::clone(&self.decides.events);
            let (questions, mut asked) = tokio::sync::mpsc::unbounded_channel();
            let inbound = inbound(listeners, self.decides.rules.as_deref(), questions).map_err(failed)?;
            let mut inbound = std::pin::pin!(inbound.serve(Arc::clone(&events), limits));
            let serving = match proxied {
                Some(Proxied { in_force, upstream, live: _ }) => {
                    let doors = doors(sockets).map_err(failed)?;
                    let means = proxy::Means::usual(descriptors, upstream);
                    Some(proxy::serve(doors, in_force, events, means))
                }
                None => None,
            };
            let proxy = async {
                match serving {
                    Some(serving) => serving.await,
                    None => std::future::pending().await,
                }
            };
            let watch = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().and_then(readable).map_err(failed);
            let gone = watch(self.started.pidfd.as_fd())?;
            let signals = watch(self.signals.file.as_fd())?;
            let control = watch(self.started.control.as_fd())?;
            let mut deadline = deadline;
            let mut proxy = std::pin::pin!(proxy);
            let mut failure = None;
            loop {
                let earlier = self.earlier(deadline);
                let at = tokio::time::Instant::from_std(earlier.unwrap_or_else(Instant::now));
                let ready = tokio::select! {
                    ready = gone.readable() => ready,
                    ready = signals.readable() => ready,
                    ready = control.readable(), if self.heard != Heard::Closed => ready,
                    () = tokio::time::sleep_until(at), if earlier.is_some() => {
                        if self.is_left() {
                            return Ok(failure);
                        }
                        self.time_out();
                        deadline = None;
                        continue;
                    }
                    Some(question) = asked.recv() => {
                        self.ask_for_socket(question);
                        continue;
                    }
                    // Readiness is told once.
                    () = tokio::task::yield_now(), if self.heard == Heard::InPart => {
                        if self.ended(PollTimeout::ZERO)? {
                            return Ok(failure);
                        }
                        continue;
                    }
                    () = &mut inbound => continue,
                    served = &mut proxy, if failure.is_none() => {
                        failure = Some(served.err().unwrap_or_else(|| std::io::Error::other("it ended")));
                        self.kill();
                        continue;
                    }
                };
                ready.map_err(failed)?.clear_ready();
                if self.ended(PollTimeout::ZERO)? {
                    return Ok(failure);
                }
            }
        })
    }
}

/// What comes in from outside, and by which rule.
fn inbound(
    listeners: Vec<TcpListener>,
    rules: Option<&Rules>,
    questions: tokio::sync::mpsc::UnboundedSender<Wish>,
) -> std::io::Result<proxy::Inbound> {
    let mut served = Vec::with_capacity(listeners.len());
    for listener in listeners {
        let at = listener.local_addr()?;
        let access = Access::Listen { address: at.ip(), port: at.port() };
        // Only places that a rule allows are bound.
        let rule = rules.and_then(|rules| Some(rules.told(*decide(&rules.policy, &access).decisive.first()?).0));
        let rule = rule.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::PermissionDenied))?;
        served.push((tokio::net::TcpListener::from_std(listener)?, rule));
    }
    Ok(proxy::Inbound { listeners: served, dial: listen::dial(questions) })
}

/// The sockets by what they are. They come from our own process inside, before the command was there.
fn doors(sockets: Vec<OwnedFd>) -> std::io::Result<Doors> {
    let (mut listeners, mut datagrams) = (Vec::new(), Vec::new());
    for socket in sockets {
        if getsockopt(&socket, sockopt::SockType)? == SockType::Stream {
            listeners.push(tokio::net::TcpListener::from_std(socket.into())?);
        } else {
            datagrams.push(tokio::net::UdpSocket::from_std(socket.into())?);
        }
    }
    Ok(Doors::new(listeners, datagrams, Arc::new(capture::target)))
}

#[allow(unsafe_code)]
fn readable(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stands for the same open descriptor for as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
