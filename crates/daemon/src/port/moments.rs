//! Moments at which a simulated process may die (`run::tests::simulation`). They are in front of each change that a successor
//! process or a guest can see. A program has none.

/// Passes a moment, at which a simulated process may die.
#[inline(always)]
pub(in crate::port) fn pass_moment() {
    #[cfg(test)]
    death::pass();
}

#[cfg(test)]
pub(in crate::port) mod death {
    use std::cell::Cell;
    use std::panic::resume_unwind;

    thread_local! {
        /// Number of moments that the process simulated by this thread passes before it dies; `None` if it lives on.
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Payload of the panic by which a simulated process dies.
    pub(in crate::port) struct ProcessDeath;

    /// Chooses the number of moments after which this thread's process dies, or lets it live on.
    pub(in crate::port) fn set(left: Option<usize>) {
        LEFT.set(left);
    }

    /// Passes a moment of this thread's process, which dies if no moments are left.
    pub(in crate::port) fn pass() {
        let Some(left) = LEFT.get() else { return };
        LEFT.set(left.checked_sub(1));
        if left == 0 {
            resume_unwind(Box::new(ProcessDeath));
        }
    }
}
