//! How much may be spent on an answer: counted in steps, never in time, so that an answer is the same on every machine.

/// Steps that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    left: u64,
}

/// The steps ran out before there was an answer: it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the question takes more steps than it may")]
pub struct Exhausted;

impl Budget {
    /// A number of steps; one is about a look at one position of one pattern.
    pub fn new(steps: u64) -> Self {
        Self { left: steps }
    }

    /// For questions that the limits of the language keep small.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// What is left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Takes steps away.
    ///
    /// # Errors
    /// When there are not so many; then none are left.
    pub fn spend(&mut self, steps: usize) -> Result<(), Exhausted> {
        if let Some(left) = self.left.checked_sub(steps as u64) {
            self.left = left;
            Ok(())
        } else {
            self.left = 0;
            Err(Exhausted)
        }
    }
}
