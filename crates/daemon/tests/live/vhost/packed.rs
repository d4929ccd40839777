//! Tests of packed rings: their position outlives a connection and the host's process. The front end does what QEMU does: it
//! starts each ring at its first position, and may return a buffer of the transmit ring while it has no back end.

use super::PORT;
use super::guest::{DriverRing, RECEIVE, RING, TRANSMIT, VirtioGuest, exchange};
use super::packed_ring::DriverPackedRing;
use crate::support::eventually;
use crate::support::live::LiveHost;
use host::socket::StreamSocket;
use virtio::packed::PackedPosition;

type PackedGuest = VirtioGuest<DriverPackedRing>;

fn boot(live: &LiveHost, vf: u8) -> PackedGuest {
    PackedGuest::boot_with_rings(StreamSocket::connect(&live.socket(vf)).unwrap(), vf)
}

/// Returns a host with two guests whose rings have gone round more than once.
fn two_guests() -> (LiveHost, PackedGuest, PackedGuest) {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (boot(&live, 0), boot(&live, 1));
    for _ in 0..RING / 4 {
        exchange(&mut a, &mut b);
    }
    (live, a, b)
}

#[test]
fn packed_rings_continue_after_their_front_end_has_reconnected() {
    let (live, mut a, mut b) = two_guests();
    for _ in 0..3 {
        a.front.stream.hang_up();
        eventually("the VF is free", || live.show(0).peer.is_none());
        a.send(b"before the reconnection");
        a.reconnect(&live.socket(0));
        b.wait_for(b"before the reconnection");
        exchange(&mut a, &mut b);
    }
}

#[test]
fn packed_buffer_that_qemu_returns_stalls_no_guest() {
    let (live, mut a, mut b) = two_guests();
    eventually("every sent buffer is returned", || {
        a.take();
        a.transmit.outstanding() == 0
    });
    a.front.stream.hang_up();
    eventually("the VF is free", || live.show(0).peer.is_none());
    // The buffers in flight span the ring's first slot.
    while a.transmit.outstanding() < RING - 4 {
        a.send(b"in flight");
    }
    for _ in 0..3 {
        a.reconnect(&live.socket(0));
        assert_eq!(a.transmit.base_after_crash(&a.front.ram), 0x8001_8001);
        eventually("every sent buffer is returned", || {
            a.take();
            a.transmit.outstanding() == 0
        });
        exchange(&mut a, &mut b);
        a.front.stream.hang_up();
        eventually("the VF is free", || live.show(0).peer.is_none());
        a.send(b"in flight");
    }
}

#[test]
fn packed_rings_continue_in_the_next_version_of_the_host() {
    let (mut live, mut a, mut b) = two_guests();
    for _ in 0..3 {
        live.hand_over(PORT);
        exchange(&mut a, &mut b);
    }
    eventually("every sent buffer is returned", || {
        a.take();
        a.transmit.outstanding() == 0
    });
}

#[test]
fn packed_ring_of_a_reset_driver_starts_at_the_front() {
    let (live, mut a, mut b) = two_guests();
    a.front.stream.hang_up();
    eventually("the VF is free", || live.show(0).peer.is_none());
    a.receive.create_again(&a.front.ram);
    a.transmit.create_again(&a.front.ram);
    (0..RING / 2).for_each(|_| a.post());
    a.reconnect(&live.socket(0));
    exchange(&mut a, &mut b);
}

#[test]
fn stopped_packed_ring_starts_where_its_front_end_says() {
    let (_live, mut a, mut b) = two_guests();
    let receive = a.front.stop_ring(RECEIVE);
    let transmit = a.front.stop_ring(TRANSMIT);
    assert_ne!([receive, transmit], [PackedPosition::START.vhost_base(); 2]);
    // The guest's memory is not reset: without the stop the host would continue both rings.
    a.receive.create_again(&a.front.ram);
    a.front.ram.write(a.receive.addresses().device, &[0xff, 0xff, 1, 0]);
    (0..RING / 2).for_each(|_| a.post());
    for (ring, of, base) in
        [(RECEIVE, &a.receive, PackedPosition::START.vhost_base()), (TRANSMIT, &a.transmit, transmit)]
    {
        let [kick, call] = of.eventfds();
        a.front.start_ring(ring, (RING.into(), base), of.addresses(), (kick, call));
    }
    exchange(&mut a, &mut b);
}
