//! Tests of the frames in flight on a port's wire.

use crate::experiments::topology::of_paper;
use crate::machine::parts::traffic::ClientTraffic;
use crate::machine::parts::wire::ClientWire;
use hypervisor::cost::MachineModel;
use i82576::MacAddress;
use nic::UplinkWire;
use sim::{RandomStream, VirtualDuration, VirtualInstant};

/// Creates a gigabit wire with a client for each of `count` VFs, whose first frames are in flight.
fn line(traffic: ClientTraffic, count: u8) -> ClientWire {
    let guests: Vec<_> = (0..count).map(|n| (MacAddress([0x02, 0, 0, 0, 0, n]), n)).collect();
    let wire = of_paper(MachineModel::Nehalem).wire;
    let mut line = ClientWire::new(traffic, wire, &guests, RandomStream::named(1, "clients"));
    line.advance(VirtualInstant::ZERO);
    line
}

/// Receives all frames that have arrived at `now`. Returns the VFs that got one, in order and once each.
fn receivers(line: &mut ClientWire, now: VirtualInstant) -> Vec<u32> {
    let (mut into, mut found) = ([0; 2048], Vec::new());
    line.advance(now);
    while line.receive(&mut into).is_some() {
        found.push(u32::from(into[5]));
    }
    found.dedup();
    found
}

#[test]
fn frames_for_a_vf_that_waits_are_not_observed() {
    for traffic in [ClientTraffic::Udp, ClientTraffic::Tcp { window: 40 }] {
        let mut line = line(traffic, 3);
        line.advance(line.next_arrival().unwrap());
        assert!(!line.is_only_for(0) && !line.is_only_for(0b110) && line.is_only_for(0b001), "{traffic:?}");
        // Behind all frames of the first client, the first frame of the second.
        let at = line.first_noticed(0b001, VirtualInstant::NEVER).unwrap();
        line.advance(VirtualInstant::from_picos(at.picos() - 1));
        assert!(line.is_only_for(0b001), "{traffic:?}");
        line.advance(at);
        assert!(!line.is_only_for(0b001), "{traffic:?}");
        assert_eq!(receivers(&mut line, at), [0, 1], "{traffic:?}");
    }
}

#[test]
fn datagrams_sent_ahead_are_those_sent_in_time() {
    let until = VirtualInstant::ZERO + VirtualDuration::from_millis(2);
    let (mut ahead, mut in_time) = (line(ClientTraffic::Udp, 2), line(ClientTraffic::Udp, 2));
    let frame = ahead.next_arrival().unwrap().since(VirtualInstant::ZERO);
    // Both VFs wait: no frame is noticed, and the wire stays busy.
    assert!(ahead.first_noticed(0b11, until).unwrap() >= until);
    let mut at = VirtualInstant::ZERO;
    while at < until {
        at += frame;
        assert_eq!(receivers(&mut ahead, at), receivers(&mut in_time, at));
    }
}

#[test]
fn streams_are_not_sent_ahead_of_acknowledgements() {
    let mut line = line(ClientTraffic::Tcp { window: 40 }, 2);
    let first = line.next_arrival().unwrap();
    let last = line.first_noticed(0b11, VirtualInstant::NEVER).unwrap();
    assert_eq!(line.arriving_before(last + last.since(first)), line.arriving_before(last) + 1);
    receivers(&mut line, last);
    assert_eq!((line.next_arrival(), line.first_noticed(0b11, VirtualInstant::NEVER)), (None, None));
}

#[test]
fn frames_of_a_broadcast_are_all_observed() {
    let mut line = line(ClientTraffic::Broadcast, 3);
    line.advance(line.next_arrival().unwrap());
    assert!(!line.is_only_for(0b111));
}

#[test]
fn frames_in_flight_are_counted_by_arrival() {
    let mut line = line(ClientTraffic::Udp, 1);
    let first = line.next_arrival().unwrap();
    let frame = first.since(VirtualInstant::ZERO);
    assert_eq!(line.arriving_before(first), 0);
    assert_eq!(line.arriving_before(first + VirtualDuration::from_picos(1)), 1);
    assert_eq!(line.arriving_before(first + frame.times(2)), 2);
    receivers(&mut line, first);
    assert_eq!((line.frames, line.arriving_before(first + frame.times(2))), (1, 1));
}
