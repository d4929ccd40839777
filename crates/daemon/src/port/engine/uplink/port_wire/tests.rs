//! Tests of the two ends of a wire, without ports. A sent frame arrives whole and in order, or is counted as dropped.

use super::cable::{CAPACITY, WireRegistry};
use super::*;
use proptest::prelude::*;
use std::time::Duration;

const TOKEN: u64 = 7;
const NOW: Time = Time::from_nanos(1_000_000_000);

/// End of a wire, with the poller of the port that uses it.
pub(super) struct PolledWireEnd {
    pub(super) end: WireUplink,
    poller: Poller,
}

fn end(wires: &WireRegistry) -> PolledWireEnd {
    let end = WireUplink::new("w", wires, ThreadWaker::new().unwrap(), NOW).unwrap();
    let mut end = PolledWireEnd { end, poller: Poller::new().unwrap() };
    end.end.join(UplinkPollContext { poller: &end.poller, token: TOKEN, now: NOW }).unwrap();
    end
}

impl PolledWireEnd {
    fn follow(&mut self) -> bool {
        self.end.follow(UplinkPollContext { poller: &self.poller, token: TOKEN, now: NOW })
    }

    fn state(&self) -> UplinkState {
        self.end.status(NOW).unwrap().state
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 10_000];
        let length = self.end.receive(&mut frame)?;
        frame.truncate(length);
        Some(frame)
    }

    /// Returns true if an event is pending that would wake the port at this end of the wire.
    fn is_woken(&mut self) -> bool {
        self.poller.wait(Some(Duration::ZERO)).unwrap().count() > 0
    }
}

/// Returns the two connected ends of a new wire.
pub(super) fn pair() -> (PolledWireEnd, PolledWireEnd) {
    let wires = WireRegistry::default();
    let (mut a, mut b) = (end(&wires), end(&wires));
    for end in [&mut a, &mut b] {
        end.follow();
        end.end.set_readable();
        assert_eq!(end.state(), UplinkState::Up);
    }
    (a, b)
}

#[test]
fn full_wire_drops_and_counts_frames_until_it_has_room() {
    let (mut a, mut b) = pair();
    let frame = [7; 1500];
    let fits = CAPACITY / (ring::LENGTH + frame.len());
    let sent = (0..fits + 10).filter(|_| a.end.transmit(&frame)).count();
    assert_eq!((sent, a.end.status(NOW).unwrap().drops.no_room), (fits, 10));
    assert_eq!(b.receive().as_deref(), Some(&frame[..]));
    assert!(a.end.transmit(&frame), "there is room for one frame");
    assert_eq!((0..fits).filter(|_| b.receive().is_some()).count(), fits);
    assert_eq!(b.receive(), None);
}

#[test]
fn wire_wakes_only_a_sleeping_port() {
    let (mut a, mut b) = pair();
    a.end.transmit(&[1; 60]);
    a.end.flush(NOW);
    assert!(!b.is_woken(), "the port is awake and polls");
    assert!(!b.end.may_sleep(), "a frame is pending");
    assert_eq!(b.receive().map(|frame| frame.len()), Some(60));
    assert!(b.end.may_sleep());
    a.end.transmit(&[2; 60]);
    assert!(!b.is_woken(), "a burst is announced once, at its end");
    a.end.flush(NOW);
    assert!(b.is_woken());
    b.end.set_readable();
    assert!(!b.is_woken());
}

#[test]
fn link_of_a_wire_end_is_up_while_the_other_end_is_attached() {
    let wires = WireRegistry::default();
    let mut a = end(&wires);
    assert_eq!(a.state(), UplinkState::Gone);
    assert!(!a.end.transmit(&[1; 60]) && a.end.status(NOW).unwrap().drops.no_link == 1);
    for round in 0..3 {
        let mut b = end(&wires);
        assert!(a.is_woken() && a.follow() && a.end.link());
        assert_eq!(a.end.status(NOW).unwrap().reattached, round);
        b.follow();
        assert!(a.end.transmit(&[1; 60]));
        drop(b);
        assert!(a.follow() && !a.end.link());
        a.end.set_readable();
    }
    let mut b = end(&wires);
    b.follow();
    assert_eq!(b.receive(), None, "frames for the former end are dropped");
}

#[test]
fn third_port_gets_a_wire_end_that_another_port_released() {
    let wires = WireRegistry::default();
    let (mut a, b, mut c) = (end(&wires), end(&wires), end(&wires));
    a.follow();
    assert!(!c.follow() && c.state() == UplinkState::Gone);
    drop(b);
    assert!(c.follow() && c.end.link());
    a.follow();
    assert!(a.end.link(), "it is connected to the third port");
    assert!(a.end.transmit(&[3; 60]));
    assert_eq!(c.receive(), Some(vec![3; 60]));
}

#[test]
fn ends_of_a_wire_share_the_addresses_of_their_ports() {
    let (wires, other) = (WireRegistry::default(), WireRegistry::default());
    let ends = [end(&wires), end(&wires), end(&other)];
    let [a, b, c] = ends.map(|end| end.end.addresses().unwrap());
    let address = i82576::MacAddress([2, 0, 0, 0, 0, 1]);
    a.hold(&[address]);
    assert!(a.claim(address) && !b.claim(address) && c.claim(address));
}

#[test]
fn port_without_a_wire_end_shares_no_addresses() {
    let wires = WireRegistry::default();
    let (_a, b, mut c) = (end(&wires), end(&wires), end(&wires));
    assert!(c.end.addresses().is_none());
    drop(b);
    assert!(c.follow() && c.end.addresses().is_some());
}

#[test]
fn wire_that_both_ports_left_is_created_again() {
    let wires = WireRegistry::default();
    drop(end(&wires));
    assert_eq!(wires.count(), 0);
    let (a, b) = (end(&wires), end(&wires));
    assert!(Arc::ptr_eq(&a.end.cable, &b.end.cable));
}

#[test]
fn two_threads_on_a_wire_lose_no_accepted_frame() {
    const FRAMES: u32 = 20_000;
    let (mut a, mut b) = pair();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..FRAMES {
                let frame = [&number.to_ne_bytes()[..], &[9; 60][..number as usize % 60]].concat();
                while !a.end.transmit(&frame) {
                    a.end.flush(NOW);
                    std::thread::yield_now();
                }
                if number % 7 == 0 {
                    a.end.flush(NOW);
                }
            }
            a.end.flush(NOW);
            // The end must not be dropped while the other side still reads.
            a
        });
        let mut number = 0;
        while number < FRAMES {
            while let Some(frame) = b.receive() {
                assert_eq!(frame[..4], number.to_ne_bytes());
                assert_eq!(frame.len(), 4 + number as usize % 60);
                number += 1;
            }
            if number < FRAMES && b.end.may_sleep() {
                // A lost wake-up would end here.
                let woken = b.poller.wait(Some(Duration::from_secs(60))).unwrap().count() > 0;
                assert!(woken, "asleep at frame {number}");
                b.end.set_readable();
            }
        }
    });
}

proptest! {
    #[test]
    fn frames_accepted_by_a_wire_arrive_in_order(
        steps in proptest::collection::vec((any::<bool>(), 0..9_800_usize, any::<u8>()), 1..400)
    ) {
        let (mut a, mut b) = pair();
        let mut pending = std::collections::VecDeque::new();
        for (send, length, byte) in steps {
            let frame = vec![byte; length];
            if send && a.end.transmit(&frame) {
                pending.push_back(frame);
            } else if !send {
                prop_assert_eq!(b.receive(), pending.pop_front());
            }
        }
        while let Some(frame) = pending.pop_front() {
            prop_assert_eq!(b.receive(), Some(frame));
        }
        prop_assert_eq!(b.receive(), None);
    }
}
