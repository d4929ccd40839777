//! Tests waits for real file descriptors, wakers, signals and deadlines.

use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal as Kernel, getpid, kill_process};

use super::*;
use crate::eventfd::EventFd;
use crate::socket::StreamSocket;

const SOON: Option<Duration> = Some(Duration::from_secs(60));
const NOW: Option<Duration> = Some(Duration::ZERO);

fn tokens(poller: &mut Poller, timeout: Option<Duration>) -> Vec<u64> {
    let mut tokens: Vec<u64> = poller.wait(timeout).unwrap().map(|ready| ready.token).collect();
    tokens.sort_unstable();
    tokens
}

#[test]
fn poller_reports_a_ready_descriptor_until_it_is_handled() {
    let mut poller = Poller::new().unwrap();
    let (one, other) = StreamSocket::pair().unwrap();
    poller.add(&other, u64::MAX, PollInterest::READ).unwrap();
    assert_eq!(tokens(&mut poller, NOW), []);
    one.send(b"x", &[]).unwrap();
    let ready = ReadyFileDescriptor { token: u64::MAX, readable: true, writable: false, closed: false };
    assert_eq!(poller.wait(SOON).unwrap().collect::<Vec<_>>(), [ready]);
    assert_eq!(tokens(&mut poller, NOW), [u64::MAX], "level-triggered");

    poller.modify(&other, 7, PollInterest::WRITE).unwrap();
    let ready = ReadyFileDescriptor { token: 7, readable: false, writable: true, closed: false };
    assert_eq!(poller.wait(SOON).unwrap().collect::<Vec<_>>(), [ready]);

    drop(one);
    assert!(poller.wait(SOON).unwrap().all(|ready| ready.closed));
    poller.remove(&other).unwrap();
    assert_eq!(tokens(&mut poller, NOW), []);
    assert!(poller.remove(&other).is_err() && poller.modify(&other, 1, PollInterest::BOTH).is_err());
}

#[test]
fn poller_does_not_wake_a_writer_for_a_half_closed_peer() {
    let mut poller = Poller::new().unwrap();
    let (one, other) = StreamSocket::pair().unwrap();
    while let Ok(crate::socket::SocketSendResult::Bytes(_)) = other.send(&[0; 4096], &[]) {}
    rustix::net::shutdown(&one, rustix::net::Shutdown::Write).unwrap();
    poller.add(&other, 1, PollInterest::WRITE).unwrap();
    assert_eq!(tokens(&mut poller, NOW), []);
    poller.modify(&other, 1, PollInterest::READ).unwrap();
    assert_eq!(tokens(&mut poller, NOW), [1]);
    drop(one);
    poller.modify(&other, 1, PollInterest::WRITE).unwrap();
    assert_eq!(tokens(&mut poller, SOON), [1], "the peer has closed");
}

#[test]
fn poller_accepts_a_descriptor_once_and_a_regular_file_never() {
    let poller = Poller::new().unwrap();
    let (one, _other) = StreamSocket::pair().unwrap();
    poller.add(&one, 1, PollInterest::READ).unwrap();
    assert_eq!(poller.add(&one, 2, PollInterest::READ).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let file = tempfile::tempfile().unwrap();
    assert_eq!(poller.add(&file, 3, PollInterest::READ).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn descriptors_beyond_a_poll_batch_are_reported_by_later_waits() {
    let mut poller = Poller::new().unwrap();
    let wakers: Vec<ThreadWaker> = (0..BATCH + 10).map(|_| ThreadWaker::new().unwrap()).collect();
    for (token, waker) in (0..).zip(&wakers) {
        waker.wake();
        poller.add(waker, token, PollInterest::READ).unwrap();
    }
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let first = tokens(&mut poller, SOON);
        assert_eq!(first.len(), BATCH);
        first.iter().for_each(|token| wakers[usize::try_from(*token).unwrap()].drain());
        seen.extend(first);
        seen.extend(tokens(&mut poller, NOW));
        if seen.len() == wakers.len() {
            return;
        }
    }
    panic!("{} of {} seen", seen.len(), wakers.len());
}

#[test]
fn waker_wakes_a_waiting_poller_from_another_thread() {
    let mut poller = Poller::new().unwrap();
    let waker = ThreadWaker::new().unwrap();
    poller.add(&waker, 1, PollInterest::READ).unwrap();
    let other = waker.clone();
    let thread = thread::spawn(move || other.wake());
    assert_eq!(tokens(&mut poller, SOON), [1]);
    thread.join().unwrap();
    waker.wake();
    waker.drain();
    assert_eq!(tokens(&mut poller, NOW), []);
}

#[test]
fn poller_timeout_is_finer_than_1_ms_and_never_early() {
    let mut poller = Poller::new().unwrap();
    let wait = |poller: &mut Poller, timeout: Duration| {
        let before = MonotonicClock.now_ns();
        assert_eq!(tokens(poller, Some(timeout)), []);
        Duration::from_nanos(MonotonicClock.now_ns() - before)
    };
    let asked = Duration::from_micros(150);
    // On a busy machine most waits take longer, but one that was rounded to milliseconds would never be shorter.
    let finer = (0..10_000).any(|_| {
        let took = wait(&mut poller, asked);
        assert!(took >= asked, "{took:?}");
        took < Duration::from_millis(1)
    });
    assert!(finer, "timeouts look rounded to milliseconds");
}

#[test]
fn poller_wait_accepts_the_maximum_timeout() {
    assert_eq!(timespec(Duration::MAX), Timespec { tv_sec: i64::MAX, tv_nsec: 999_999_999 });
    let mut poller = Poller::new().unwrap();
    let waker = ThreadWaker::new().unwrap();
    poller.add(&waker, 1, PollInterest::READ).unwrap();
    waker.wake();
    assert_eq!(tokens(&mut poller, Some(Duration::MAX)), [1]);
}

#[test]
fn monotonic_clock_never_goes_back() {
    let times: Vec<u64> = (0..1000).map(|_| MonotonicClock.now_ns()).collect();
    assert!(times.is_sorted() && times[0] > 0);
}

/// Tests all process signals in a single test, since signal handlers belong to the whole process.
#[test]
fn process_signals_wake_the_poller_and_are_read_once() {
    let signals = SignalHandlers::install().unwrap();
    assert_eq!(SignalHandlers::install().unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    let mut poller = Poller::new().unwrap();
    poller.add(&signals, 3, PollInterest::READ).unwrap();

    kill_process(getpid(), Kernel::TERM).unwrap();
    kill_process(getpid(), Kernel::HUP).unwrap();
    let mut seen = [false; 2];
    while seen != [true; 2] {
        // The signal itself may interrupt the wait; the next one returns the event.
        poller.wait(SOON).unwrap().for_each(drop);
        let set = signals.take();
        assert!(!set.contains(ProcessSignal::Interrupt));
        assert_eq!(set.asks_to_end(), set.contains(ProcessSignal::Terminate));
        seen =
            [seen[0] | set.contains(ProcessSignal::Terminate), seen[1] | set.contains(ProcessSignal::HangUp)];
    }
    assert_eq!((signals.take(), tokens(&mut poller, NOW)), (SignalSet::default(), vec![]));
    signals.put_back(ProcessSignal::HangUp);
    assert_eq!(tokens(&mut poller, NOW), [3]);
    assert!(signals.take().contains(ProcessSignal::HangUp));
    drop(poller);
    let event = signals.as_fd().as_raw_fd();
    drop(signals);
    assert_ne!(EventFd::new().unwrap().as_fd().as_raw_fd(), event, "a handler that still runs writes to it");
    drop(SignalHandlers::install().unwrap());
}
