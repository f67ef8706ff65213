//! Seeded mistakes of the algebra, for the tests that show each of them to be caught from outside: what proves an artefact asks
//! these sets, and cannot see what is wrong with them.
//!
//! Where assertions are off, as in a release, none of it is there, and nothing is ever wrong on purpose.

// It is `const`; for Windows the linter does not see it.
#![allow(clippy::missing_const_for_thread_local)]

/// One thing that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// `**` that is never empty, in what refuses.
    ManyIsNotEmpty,
    /// `**` that is one unit at most, in what refuses: the way back to its own place is lost.
    ManyIsOneUnit,
    /// Among many sets the step by a glob is lost.
    GlobIsLost,
    /// One glob is taken to hold all that another does.
    GlobsAreAlike,
    /// A refusal that something may lift is none.
    LiftedAnyhow,
    /// What lifts a refusal is not followed.
    NeverLifted,
    /// Two patterns that must both match have nothing in common.
    IntersectionIsEmpty,
    /// What an `except` takes away is there all the same.
    ExceptIsKept,
    /// Of two states of the search the worse one is kept.
    WorseIsKept,
    /// A class of letters ends one too early.
    ClassEndsEarly,
    /// A negated class is a plain one.
    ClassIsNotNegated,
    /// The complement of an interval begins one too late.
    ComplementBeginsLate,
    /// Intervals that leave one number between them are one.
    GapIsClosed,
    /// A set is strictly inside one that it is equal to.
    EqualIsInside,
}

#[cfg(debug_assertions)]
std::thread_local! {
    static MADE: std::cell::Cell<Option<Mistake>> = const { std::cell::Cell::new(None) };
}

/// Whether a mistake is being made.
#[cfg(debug_assertions)]
pub(super) fn made(mistake: Mistake) -> bool {
    MADE.get() == Some(mistake)
}

#[cfg(not(debug_assertions))]
pub(super) const fn made(_: Mistake) -> bool {
    false
}

/// Makes a mistake while something is done, on this thread.
#[cfg(debug_assertions)]
pub fn while_made<T>(mistake: Mistake, act: impl FnOnce() -> T) -> T {
    struct Made;
    impl Drop for Made {
        fn drop(&mut self) {
            MADE.set(None);
        }
    }
    MADE.set(Some(mistake));
    let _made = Made;
    act()
}
