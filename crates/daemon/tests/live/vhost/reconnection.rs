//! Tests of the end of a front end's connection and of the next one: after a disconnection, a policy and a reset of the port.
//! Rings continue at their used index, as QEMU has them continue.

use super::PORT;
use super::guest::{VirtioGuest, exchange};
use crate::support::eventually;
use crate::support::live::LiveHost;
use daemon::control::protocol::ControlAnswer;
use daemon::control::status::LinkState;
use host::socket::StreamSocket;
use std::io::ErrorKind;

/// Returns a host with two guests that have exchanged frames.
fn two_guests() -> (LiveHost, VirtioGuest, VirtioGuest) {
    let live = LiveHost::with(PORT);
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    (live, a, b)
}

#[test]
fn guest_continues_after_its_front_end_has_reconnected() {
    let (live, mut a, mut b) = two_guests();
    for _ in 0..3 {
        a.front.stream.hang_up();
        eventually("the VF is free", || live.show(0).peer.is_none());
        assert!(!live.show(0).active);
        eventually("memory is unmapped", || a.front.ram.mapped_by_the_host() == 0);
        // The guest does not notice, and its driver sends.
        a.send(b"before the reconnection");
        a.reconnect(&live.socket(0));
        b.wait_for(b"before the reconnection");
        exchange(&mut a, &mut b);
    }
}

#[test]
fn eventfds_of_a_disconnected_front_end_are_not_used() {
    let (live, mut a, mut b) = two_guests();
    a.front.stream.hang_up();
    eventually("the VF is free", || live.show(0).peer.is_none());
    a.receive.call.drain();
    b.send(b"no receiver");
    for _ in 0..100 {
        a.transmit.kick.signal();
    }
    eventually("the frame is sent", || live.show(1).function.tx.packets == 6);
    assert_eq!(a.receive.call.drain(), 0);
    a.reconnect(&live.socket(0));
    exchange(&mut a, &mut b);
}

#[test]
fn disconnected_vf_accepts_its_front_end_again() {
    let (live, mut a, mut b) = two_guests();
    let reply = live.disconnect(0).unwrap();
    assert!(matches!(&reply, ControlAnswer::Vf(vf) if vf.peer.is_none()), "{reply:?}");
    a.front.wait_for_end();
    a.reconnect(&live.socket(0));
    exchange(&mut a, &mut b);
}

#[test]
fn disabled_vf_has_no_connection_until_it_is_enabled() {
    let (live, mut a, mut b) = two_guests();
    assert_eq!(live.set(0, LinkState::Disable).function.peer, None, "the reply shows the former client");
    a.front.wait_for_end();
    eventually("connect(2) waits", || {
        StreamSocket::connect(&live.socket(0)).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    });
    live.set(0, LinkState::Auto);
    eventually("the VF admits clients", || StreamSocket::connect(&live.socket(0)).is_ok());
    eventually("the VF is free", || live.show(0).peer.is_none());
    a.reconnect(&live.socket(0));
    exchange(&mut a, &mut b);
}

#[test]
fn port_reset_ends_the_connections_of_its_front_ends() {
    let (live, mut a, mut b) = two_guests();
    live.reset_port().unwrap();
    for (vf, guest) in (0..).zip([&mut a, &mut b]) {
        guest.front.wait_for_end();
        guest.reconnect(&live.socket(vf));
    }
    exchange(&mut a, &mut b);
}

#[test]
fn policy_of_a_vf_survives_a_front_end_reconnect() {
    let (live, mut a, mut b) = two_guests();
    let set = daemon::settings::VfSettings { vlan: Some(7), ..Default::default() };
    assert_eq!(live.change(0, set).vlans, [7]);
    a.front.stream.hang_up();
    eventually("the VF is free", || live.show(0).peer.is_none());
    a.reconnect(&live.socket(0));
    assert_eq!(live.show(0).vlans, [7]);
    a.send(b"in VLAN 7");
    // The receiver is a member of every VLAN, and sees the tag: VLAN 7, and the EtherType behind it.
    b.wait_for(b"\0\x07\x88\xb5in VLAN 7");
}
