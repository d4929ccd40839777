//! Tests of conversations with a well-behaved front end: negotiation, rings, interrupts, frames.

use super::PORT;
use super::front_end::{FEATURES, VhostTestFrontEnd};
use super::guest::{RING, TRANSMIT, VirtioGuest, exchange};
use crate::support::eventually;
use crate::support::live::LiveHost;
use host::socket::StreamSocket;
use vhost_user::features::{device, protocol};
use vhost_user::message::FrontendRequest;
use virtio::VirtioFeatures;

#[test]
fn front_end_negotiates_features_and_16_queue_pairs() {
    let live = LiveHost::with(PORT);
    let mut front = VhostTestFrontEnd::connect(&live.socket(0));
    let offered = VirtioFeatures::from_bits(front.number(&FrontendRequest::GetFeatures));
    assert!(offered.contains(VirtioFeatures::VERSION_1 | VirtioFeatures::MQ | VirtioFeatures::MRG_RXBUF));
    assert!(offered.contains(VirtioFeatures::RING_PACKED | VirtioFeatures::IN_ORDER));
    let features = front.number(&FrontendRequest::GetProtocolFeatures);
    let records = 1 << protocol::LOG_SHMFD | 1 << protocol::INFLIGHT_SHMFD;
    assert_eq!(features, protocol::OFFERED_TO_NET | records);
    assert!(offered.bits() & device::LOG_ALL != 0, "QEMU migrates no device without it");
    front.post(&FrontendRequest::SetProtocolFeatures(features), vec![]);
    assert_eq!(front.number(&FrontendRequest::GetQueueNum), 16);
    assert_eq!(front.number(&FrontendRequest::GetMaxMemSlots), 64);
    front.accept(&FrontendRequest::SetFeatures(FEATURES), vec![]);
    front.accept(&FrontendRequest::SetStatus(0xb), vec![]);
    assert_eq!(front.number(&FrontendRequest::GetStatus), 0xb);
}

#[test]
fn mtu_beyond_the_longest_frame_is_refused() {
    let live = LiveHost::with(PORT);
    let mut front = VhostTestFrontEnd::greet(&live.socket(0));
    front.accept(&FrontendRequest::NetSetMtu(1500), vec![]);
    front.accept(&FrontendRequest::NetSetMtu(9706), vec![]);
    front.refuse(&FrontendRequest::NetSetMtu(9707), vec![]);
}

#[test]
fn guests_of_two_virtio_vfs_exchange_frames() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    let status = live.show(0);
    assert!(
        status.active && status.function.tx.packets == 5 && status.function.rx.packets == 5,
        "{status:?}"
    );
    assert!(status.function.interventions.interrupts > 0);
}

#[test]
fn device_counts_tell_cut_packets_from_requested_ones() {
    let live = LiveHost::with(PORT);
    let features = VirtioFeatures::CSUM.bits() | VirtioFeatures::HOST_TSO4.bits();
    let [mut a, mut b]: [VirtioGuest; 2] = [0, 1].map(|vf| {
        VirtioGuest::boot_with_features(StreamSocket::connect(&live.socket(vf)).unwrap(), vf, features)
    });
    exchange(&mut a, &mut b);
    a.send_segmented(b.mac(), 3, 400);
    let mut segments = 0;
    eventually("all segments arrive", || {
        segments += b.take().len();
        segments == 3
    });
    let counts = live.show(0).device.unwrap();
    assert_eq!((counts.segmented, counts.packets_cut, counts.uncut_to_guests), (1, 1, 0), "{counts:?}");
    assert_eq!((counts.checksums, counts.checksums_filled), (1, 0), "{counts:?}");
}

#[test]
fn guest_is_interrupted_by_a_ring_start_and_by_a_used_buffer() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    for guest in [&a, &b] {
        assert!(guest.receive.call.drain() > 0 && guest.transmit.call.drain() > 0);
    }
    a.send(b"interrupt");
    eventually("the receiver is interrupted", || b.receive.call.drain() > 0);
    b.wait_for(b"interrupt");
}

#[test]
fn stopped_vring_returns_its_base_index_and_is_not_accessed() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    for number in 0..3 {
        a.send(&[number; 60]);
        b.wait_for(&[number; 60]);
    }
    assert_eq!(a.front.stop_ring(TRANSMIT), 3);
    a.send(b"after the end");
    exchange_one_way(&mut b, &mut a);
    assert_eq!(a.transmit.used_index(&a.front.ram), 3);
    let of = &a.transmit;
    a.front.start_ring(TRANSMIT, (RING.into(), 3), of.addresses, (&of.kick, &of.call));
    b.wait_for(b"after the end");
}

/// Sends a frame from one guest, and waits until the other has it.
fn exchange_one_way(from: &mut VirtioGuest, to: &mut VirtioGuest) {
    from.send(b"one way");
    to.wait_for(b"one way");
}

#[test]
fn disabled_receive_ring_gets_no_frame_until_it_is_enabled() {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    b.front.accept(&FrontendRequest::SetVringEnable { ring: 0, enabled: false }, vec![]);
    a.send(b"lost");
    eventually("the frame is sent", || live.show(0).function.tx.packets == 6);
    b.front.accept(&FrontendRequest::SetVringEnable { ring: 0, enabled: true }, vec![]);
    exchange_one_way(&mut a, &mut b);
    assert_eq!(b.take(), Vec::<Vec<u8>>::new());
}
