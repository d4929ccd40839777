//! Tests of front ends whose connections continue in the next version of the host. Their guests notice nothing: no
//! connection ends, no frame is lost or doubled, and no address is learned anew.

use super::PORT;
use super::guest::{DriverRing, RECEIVE, RING, TRANSMIT, VirtioGuest, exchange};
use crate::support::eventually;
use crate::support::live::LiveHost;
use daemon::control::status::LinkState;

/// Port whose VFs learn their addresses from their guests.
const LEARNING: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 3\n";

/// Returns a host with two guests that have exchanged frames.
fn two_guests() -> (LiveHost, VirtioGuest, VirtioGuest) {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    (live, a, b)
}

/// Returns the numbers of frames that a VF has sent and received.
fn frames(live: &LiveHost, vf: u8) -> (u64, u64) {
    let status = live.show(vf);
    (status.function.tx.packets, status.function.rx.packets)
}

#[test]
fn connections_continue_in_the_next_version_of_the_host() {
    let (mut live, mut a, mut b) = two_guests();
    for _ in 0..3 {
        let (sent, received) = frames(&live, 0);
        live.hand_over(PORT);
        exchange(&mut a, &mut b);
        assert_eq!(frames(&live, 0), (sent + 5, received + 5), "no counter falls, and no frame is doubled");
    }
}

#[test]
fn frame_sent_during_a_hand_over_is_delivered_once() {
    let (mut live, mut a, mut b) = two_guests();
    for round in 0..3 {
        let before = frames(&live, 1);
        let words = [b"during the hand-over", &[round][..]].concat();
        live.hand_over_while(PORT, || a.send(&words));
        b.wait_for(&words);
        exchange(&mut a, &mut b);
        assert_eq!(frames(&live, 1), (before.0 + 5, before.1 + 6));
    }
}

#[test]
fn connections_continue_after_a_refused_hand_over() {
    let (mut live, mut a, mut b) = two_guests();
    for _ in 0..3 {
        live.refuse_hand_over(PORT);
        exchange(&mut a, &mut b);
        live.hand_over(PORT);
        exchange(&mut a, &mut b);
    }
}

#[test]
fn hand_overs_may_follow_each_other_at_once() {
    let (mut live, mut a, mut b) = two_guests();
    for _ in 0..4 {
        // The next process pauses before it serves its clients, and what was saved before is forgotten meanwhile.
        live.hand_over(PORT);
        live.refuse_hand_over(PORT);
        live.hand_over(PORT);
        live.hand_over(PORT);
    }
    exchange(&mut a, &mut b);
}

#[test]
fn front_end_whose_memory_is_refused_connects_again() {
    let (mut live, mut a, _b) = two_guests();
    live.hand_over(&format!("client_memory = \"4M\"\n{PORT}"));
    a.front.wait_for_end();
    live.hand_over(PORT);
    a.reconnect(&live.socket(0));
    assert!(live.show(0).active);
}

#[test]
fn silent_guest_keeps_its_learned_address() {
    let mut live = LiveHost::with(LEARNING);
    let [mut a, mut b] = [0, 1].map(|vf| VirtioGuest::boot(&live, vf));
    exchange(&mut a, &mut b);
    live.hand_over(LEARNING);
    // The guest of VF 1 has sent nothing to this process.
    a.send_from(a.mac(), b.mac(), b"to a silent guest");
    b.wait_for(b"to a silent guest");
}

#[test]
fn front_end_may_stop_and_start_its_rings_after_a_hand_over() {
    let (mut live, mut a, mut b) = two_guests();
    live.hand_over(PORT);
    let [receive, transmit] = [RECEIVE, TRANSMIT].map(|ring| a.front.stop_ring(ring));
    let positions = [&a.receive, &a.transmit].map(|ring| ring.base_after_crash(&a.front.ram));
    assert_eq!([receive, transmit], positions);
    for (ring, base, of) in [(RECEIVE, receive, &a.receive), (TRANSMIT, transmit, &a.transmit)] {
        let [kick, call] = of.eventfds();
        a.front.start_ring(ring, (RING.into(), base), of.addresses(), (kick, call));
    }
    exchange(&mut a, &mut b);
}

#[test]
fn connection_ends_if_the_next_configuration_disables_its_vf() {
    let (mut live, mut a, mut b) = two_guests();
    live.hand_over(&format!("{PORT}[[port.vf]]\nindex = 0\nstate = \"disable\"\n"));
    a.front.wait_for_end();
    live.set(0, LinkState::Auto);
    eventually("the VF admits clients", || host::socket::StreamSocket::connect(&live.socket(0)).is_ok());
    eventually("the VF is free", || live.show(0).peer.is_none());
    a.reconnect(&live.socket(0));
    exchange(&mut a, &mut b);
}

#[test]
fn memory_of_a_continued_front_end_is_unmapped_when_it_leaves() {
    let (mut live, a, _b) = two_guests();
    live.hand_over(PORT);
    assert_ne!(a.front.ram.mapped_by_the_host(), 0);
    a.front.stream.hang_up();
    eventually("memory is unmapped", || a.front.ram.mapped_by_the_host() == 0);
}
