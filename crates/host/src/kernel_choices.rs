//! Choices that the kernel leaves open, made by a test for its own thread: the number of bytes that a stream socket takes or
//! returns at once, and the order of a poller's events.
//!
//! Compiled for tests and for the `test-support` feature only.

use std::cell::RefCell;

/// Test that makes the choices of the kernel for one thread.
pub trait KernelChoices {
    /// Returns how many of `bytes` a stream socket takes at once: at most all, or 0 for a full socket.
    fn taken_of_send(&mut self, bytes: usize) -> usize;

    /// Returns how many bytes a stream socket returns at once to a receiver with room for `bytes`: at least one, at most all.
    fn room_of_receive(&mut self, bytes: usize) -> usize;

    /// Returns true if one wait reports its events in an order that [`Self::next_event`] chooses.
    fn reorders(&mut self) -> bool;

    /// Returns the index of the event to report next among `left` ones.
    fn next_event(&mut self, left: usize) -> usize;
}

thread_local! {
    /// Choices of this thread; `None` for those of the kernel.
    static CHOICES: RefCell<Option<Box<dyn KernelChoices>>> = const { RefCell::new(None) };
}

/// Has `choices` choose for this thread from now on, or the kernel again for `None`.
pub fn set(choices: Option<Box<dyn KernelChoices>>) {
    CHOICES.set(choices);
}

/// Returns how many of `bytes` a stream socket takes at once; 0 for a full socket.
pub(crate) fn taken_of_send(bytes: usize) -> usize {
    choose(|choices| choices.taken_of_send(bytes)).unwrap_or(bytes)
}

/// Returns the part of a receiver's buffer that a stream socket fills at once.
pub(crate) fn room_of_receive(buffer: &mut [u8]) -> &mut [u8] {
    let bytes = buffer.len();
    let room = if bytes > 1 { choose(|choices| choices.room_of_receive(bytes)) } else { None };
    &mut buffer[..room.unwrap_or(bytes)]
}

/// Orders the events that one wait reports.
pub(crate) fn order<E>(events: &mut [E]) {
    if events.len() < 2 || choose(|choices| choices.reorders()) != Some(true) {
        return;
    }
    for at in 0..events.len() - 1 {
        let left = events.len() - at;
        events.swap(at, at + choose(|choices| choices.next_event(left)).unwrap_or(0));
    }
}

/// Asks the test that chooses for this thread, if there is one.
fn choose<T>(choice: impl FnOnce(&mut dyn KernelChoices) -> T) -> Option<T> {
    let chosen = CHOICES.try_with(|choices| Some(choice(&mut **choices.borrow_mut().as_mut()?)));
    // A thread that ends has no choices any more.
    chosen.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{ReceivedFds, ReplyLog, SocketReceiveResult, SocketSendResult, StreamSocket};

    /// Choices that a list names.
    struct ListedChoices(Vec<usize>);

    impl KernelChoices for ListedChoices {
        fn taken_of_send(&mut self, bytes: usize) -> usize {
            self.0.remove(0).min(bytes)
        }

        fn room_of_receive(&mut self, bytes: usize) -> usize {
            self.taken_of_send(bytes)
        }

        fn reorders(&mut self) -> bool {
            true
        }

        fn next_event(&mut self, left: usize) -> usize {
            self.taken_of_send(left - 1)
        }
    }

    /// Runs `body` with these choices for its thread.
    fn with_choices(listed: &[usize], body: impl FnOnce()) {
        set(Some(Box::new(ListedChoices(listed.to_vec()))));
        body();
        set(None);
    }

    #[test]
    fn chosen_part_of_a_send_arrives() {
        let (one, other) = StreamSocket::pair().unwrap();
        let mut log = ReplyLog::new().unwrap();
        log.append(b"reply").unwrap();
        with_choices(&[2, 0, 3, 0], || {
            assert_eq!(one.send(b"abcd", &[]).unwrap(), SocketSendResult::Bytes(2));
            assert_eq!(one.send(b"cd", &[]).unwrap(), SocketSendResult::WouldBlock);
            assert_eq!(log.send(&one, 5).unwrap(), SocketSendResult::Bytes(3));
            assert_eq!(log.send(&one, 2).unwrap(), SocketSendResult::WouldBlock);
        });
        assert_eq!(log.send(&one, 2).unwrap(), SocketSendResult::Bytes(2));
        let mut buffer = [0; 16];
        let received = other.recv(&mut buffer, &mut ReceivedFds::new()).unwrap();
        assert_eq!((received, &buffer[..7]), (SocketReceiveResult::Bytes(7), &b"abreply"[..]));
    }

    #[test]
    fn chosen_part_is_received_and_the_rest_stays() {
        let (one, other) = StreamSocket::pair().unwrap();
        one.send(b"abcdefgh", &[]).unwrap();
        other.peek_from(0).unwrap();
        let (mut buffer, mut fds) = ([0; 16], ReceivedFds::new());
        with_choices(&[5, 1, 2], || {
            assert_eq!(other.peek(&mut buffer, &mut fds).unwrap(), SocketReceiveResult::Bytes(5));
            assert_eq!(other.consume(&mut buffer[..5]).unwrap(), 1);
            assert_eq!(other.recv(&mut buffer, &mut fds).unwrap(), SocketReceiveResult::Bytes(2));
        });
        assert_eq!(other.recv(&mut buffer, &mut fds).unwrap(), SocketReceiveResult::Bytes(5));
        assert_eq!(&buffer[..5], b"defgh");
    }

    #[test]
    fn events_are_in_the_chosen_order() {
        let mut events = ['a', 'b', 'c'];
        with_choices(&[2, 0], || order(&mut events));
        assert_eq!(events, ['c', 'b', 'a']);
        order(&mut events);
        assert_eq!(events, ['c', 'b', 'a']);
    }
}
