//! What the supervisor is asked, each question by one thread that waits for its answer.

use crate::event::lock;
use crate::exec::linux::control::{Control, Question, Report};
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Default)]
pub struct Questions {
    state: Mutex<State>,
    heard: Condvar,
}

#[derive(Default)]
struct State {
    next: u32,
    /// Those that are asked, and what was answered.
    open: HashMap<u32, Option<bool>>,
}

impl Questions {
    /// Whether the command may connect to this socket. Waits for the answer; without a supervisor, nothing is allowed.
    pub fn ask(&self, control: &Control, (device, inode): (u64, u64), path: &[u8]) -> bool {
        let number = {
            let mut state = lock(&self.state);
            state.next = state.next.wrapping_add(1);
            let number = state.next;
            state.open.insert(number, None);
            number
        };
        if control.report(&Report::Asked(Question { number, device, inode, path: path.to_vec() })).is_err() {
            lock(&self.state).open.remove(&number);
            return false;
        }
        let mut state = lock(&self.state);
        loop {
            if let Some(Some(allowed)) = state.open.get(&number).copied() {
                state.open.remove(&number);
                return allowed;
            }
            state = self.heard.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn answered(&self, number: u32, allowed: bool) {
        if let Some(open) = lock(&self.state).open.get_mut(&number) {
            *open = Some(allowed);
            self.heard.notify_all();
        }
    }
}
