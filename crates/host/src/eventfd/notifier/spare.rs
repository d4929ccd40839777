//! Spare context of a notifier. A simulation opens and drops thousands of ports in one thread, and the kernel waits some 30 ms
//! to destroy a context (io_destroy(2)), in which the simulation would stand still.

use super::{AioContext, EventFdNotifier};
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

impl EventFdNotifier {
    /// Has this thread keep the context of its last dropped notifier for its next one.
    pub fn keep_context_on_this_thread() {
        SPARE.with_borrow_mut(|spare| spare.is_kept = true);
        drop(Self::new());
    }
}

impl Drop for EventFdNotifier {
    fn drop(&mut self) {
        let Some(mut context) = self.0.take() else { return };
        // A thread that ends keeps nothing.
        let _ = SPARE.try_with(|spare| {
            let spare = &mut *spare.borrow_mut();
            if spare.is_kept {
                context.reap();
                spare.context = Some(context);
            }
        });
    }
}

#[test]
fn thread_uses_the_context_of_its_last_notifier_again() {
    use super::{BATCH, EventFd};

    let context = |notifier: &EventFdNotifier| notifier.0.as_ref().map(|aio| aio.context);
    EventFdNotifier::keep_context_on_this_thread();
    let mut first = EventFdNotifier::new();
    let (used, event) = (context(&first), EventFd::new().unwrap());
    (0..BATCH / 2).for_each(|_| first.signal(&event));
    drop(first);
    let mut next = EventFdNotifier::new();
    assert_eq!(context(&next), used);
    (0..BATCH).for_each(|_| next.signal(&event));
    assert_eq!(event.drain(), u64::from(BATCH / 2 + BATCH));
}
