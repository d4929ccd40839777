//! Spare context of a notifier. A simulation opens and drops thousands of ports in one thread, and the kernel waits some 30 ms
//! to destroy a context (io_destroy(2)), in which the simulation would stand still.

use super::aio::AioContext;
use std::cell::RefCell;

thread_local! {
    /// Context of this thread's last dropped notifier; `None` unless the thread keeps it.
    static SPARE: RefCell<SpareContext> = const { RefCell::new(SpareContext { is_kept: false, context: None }) };
}

struct SpareContext {
    is_kept: bool,
    context: Option<AioContext>,
}

/// Takes the context of this thread's last dropped notifier, if the thread keeps it.
pub(super) fn take() -> Option<AioContext> {
    SPARE.with_borrow_mut(|spare| spare.context.take())
}

/// Has this thread keep the context of its last dropped notifier for its next one.
pub(super) fn keep() {
    SPARE.with_borrow_mut(|spare| spare.is_kept = true);
}

/// Takes the context of a dropped notifier.
pub(super) fn give(mut context: AioContext) {
    // A thread that ends keeps nothing.
    let _ = SPARE.try_with(|spare| {
        let spare = &mut *spare.borrow_mut();
        if spare.is_kept {
            context.reap();
            spare.context = Some(context);
        }
    });
}
