//! Tests frames between VFs, and from VFs to the wire: contents, order, lengths, receivers.

use crate::support::{DrivenCardFixture, between, frame, index};
use backplane::vf_mac;
use driver::vf::{TxError, TxOffload, VfDriverConfig};
use i82576::MacAddress;
use pcie::Function;

#[test]
fn replies_between_two_vfs_stay_off_the_wire() {
    let mut bench = DrivenCardFixture::new(2);
    for round in 0..200 {
        let ping = between(0, 1, 60 + usize::from(round) * 7, round);
        bench.send(0, &ping);
        assert_eq!(bench.receive(1).unwrap().0, ping, "ping {round}");
        let pong = between(1, 0, 1514 - usize::from(round), round);
        bench.send(1, &pong);
        assert_eq!(bench.receive(0).unwrap().0, pong, "pong {round}");
    }
    assert!(bench.card.world().take_frames().is_empty());
    assert_eq!((bench.receive_all(0).len(), bench.receive_all(1).len()), (0, 0));
    assert_eq!(bench.vfs[0].tx_pending(), 0);
}

#[test]
fn all_frames_of_one_doorbell_arrive_in_sequence() {
    let mut bench = DrivenCardFixture::new(2);
    let doorbells = bench.vfs[0].tx_counters().doorbells;
    for seed in 0..16 {
        let frame = between(0, 1, 100, seed);
        bench.on(0, |vf, hal| vf.transmit(hal, &frame, &TxOffload::default())).unwrap();
    }
    bench.card.settle();
    assert_eq!(bench.vfs[0].tx_counters().doorbells, doorbells + 1);
    let wanted: Vec<_> = (0..16).map(|seed| between(0, 1, 100, seed)).collect();
    assert_eq!(bench.receive_all(1), wanted);
}

#[test]
fn frame_sent_from_two_buffers_arrives_as_one_frame() {
    let mut bench = DrivenCardFixture::new(2);
    let whole = between(0, 1, 1000, 3);
    let (first, second) = whole.split_at(77);
    bench.on(0, |vf, hal| {
        vf.transmit_gather(hal, first, second, &TxOffload::default()).unwrap();
        vf.flush(hal);
    });
    bench.card.settle();
    assert_eq!(bench.receive_all(1), [whole]);
}

#[test]
fn jumbo_frame_fills_several_transmit_and_receive_buffers() {
    let mut bench = DrivenCardFixture::with_config(
        2,
        &VfDriverConfig { max_frame: 9216 + 14, ..VfDriverConfig::default() },
    );
    for length in [2047, 2048, 2049, 4096, 9230] {
        let jumbo = between(0, 1, length, 9);
        bench.send(0, &jumbo);
        assert_eq!(bench.receive_all(1), [jumbo], "{length}");
    }
}

#[test]
fn frame_longer_than_the_receivers_maximum_is_dropped() {
    let mut bench =
        DrivenCardFixture::unstarted(2, &VfDriverConfig { max_frame: 9000, ..VfDriverConfig::default() });
    bench.start(0);
    bench.start(1);
    bench.on(1, |vf, hal| vf.set_max_frame(hal, 1514)).unwrap();
    bench.send(0, &between(0, 1, 1600, 1));
    bench.send(0, &between(0, 1, 1514, 2));
    assert_eq!(bench.receive_all(1), [between(0, 1, 1514, 2)]);
}

#[test]
fn vf_driver_refuses_to_send_too_short_and_too_long_frames() {
    let mut bench = DrivenCardFixture::new(1);
    let none = TxOffload::default();
    let short = bench.on(0, |vf, hal| vf.transmit(hal, &[0; 13], &none));
    assert_eq!(short, Err(TxError::Length(13)));
    let long = bench.on(0, |vf, hal| vf.transmit(hal, &[0; 1515], &none));
    assert_eq!(long, Err(TxError::Length(1515)));
}

#[test]
fn vlan_tag_does_not_count_toward_the_maximum_frame_length() {
    let mut bench = DrivenCardFixture::new(2);
    for (length, fits) in [(1517, true), (1518, true), (1519, false), (1522, false)] {
        let plain = between(0, 1, length - 4, 1);
        let tagged = [&plain[..12], &[0x81, 0, 0, 0], &plain[12..]].concat();
        let sent = bench.on(0, |vf, hal| vf.transmit(hal, &tagged, &TxOffload::default()));
        assert_eq!(sent.is_ok(), fits, "{length} bytes");
        bench.on(0, |vf, hal| vf.flush(hal));
        bench.card.settle();
        assert_eq!(bench.receive_all(1), vec![tagged; usize::from(fits)], "{length} bytes");
    }
}

#[test]
fn full_transmit_ring_is_reported_and_recovers() {
    let mut bench = DrivenCardFixture::new(2);
    let frame = between(0, 1, 60, 0);
    let none = TxOffload::default();
    let mut sent = 0;
    while bench.on(0, |vf, hal| vf.transmit(hal, &frame, &none)).is_ok() {
        sent += 1;
    }
    assert_eq!(sent, 254);
    bench.card.settle();
    bench.on(0, |vf, hal| vf.transmit(hal, &frame, &none)).unwrap();
    bench.on(0, |vf, hal| vf.flush(hal));
    bench.card.settle();
    assert_eq!(bench.receive_all(1).len(), 255);
}

#[test]
fn a_full_receive_ring_does_not_delay_other_vfs() {
    let mut bench = DrivenCardFixture::new(3);
    for seed in 0..=255 {
        bench.send(0, &between(0, 1, 60, seed));
        bench.send(0, &between(0, 2, 60, seed));
        assert_eq!(bench.receive_all(2).len(), 1);
    }
    let kept = bench.receive_all(1);
    assert_eq!(kept.len(), 255);
    assert_eq!(kept[254], between(0, 1, 60, 254));
    bench.send(0, &between(0, 1, 60, 7));
    assert_eq!(bench.receive_all(1), [between(0, 1, 60, 7)]);
}

#[test]
fn frames_to_unknown_addresses_and_broadcasts_reach_the_wire() {
    let mut bench = DrivenCardFixture::new(3);
    let stranger = MacAddress([2, 9, 9, 9, 9, 9]);
    let away = frame(stranger, vf_mac(0), 64, 1);
    bench.send(0, &away);
    assert_eq!(bench.card.world().take_frames(), [away]);

    let broadcast = frame(MacAddress::BROADCAST, vf_mac(0), 64, 2);
    bench.send(0, &broadcast);
    assert_eq!(bench.card.world().take_frames(), std::slice::from_ref(&broadcast));
    assert_eq!(bench.receive_all(0).len(), 0, "not back to the sender");
    assert_eq!(bench.receive_all(1), std::slice::from_ref(&broadcast));
    assert_eq!(bench.receive_all(2), [broadcast]);
}

#[test]
fn frames_from_the_wire_are_delivered_by_address() {
    let mut bench = DrivenCardFixture::new(2);
    let stranger = MacAddress([2, 9, 9, 9, 9, 9]);
    let hello = frame(vf_mac(1), stranger, 200, 4);
    bench.card.world().send(&hello);
    bench.card.world().send(&frame(MacAddress([2, 8, 8, 8, 8, 8]), stranger, 200, 5));
    bench.card.settle();
    assert_eq!(bench.receive_all(1), [hello]);
    assert_eq!(bench.receive_all(0).len(), 0);
    assert!(bench.card.world().take_frames().is_empty(), "the wire is not reflected");
}

#[test]
fn multicast_reaches_only_members_of_the_group() {
    let mut bench = DrivenCardFixture::new(4);
    let group = MacAddress([1, 0, 0x5e, 1, 2, 3]);
    let other = MacAddress([1, 0, 0x5e, 9, 8, 7]);
    bench.on(1, |vf, hal| vf.set_multicast(hal, &[group])).unwrap();
    bench.on(2, |vf, hal| vf.set_all_multicast(hal, true)).unwrap();
    let to_group = frame(group, vf_mac(0), 64, 1);
    let to_other = frame(other, vf_mac(0), 64, 2);
    bench.send(0, &to_group);
    bench.send(0, &to_other);
    assert_eq!(bench.receive_all(1), std::slice::from_ref(&to_group));
    assert_eq!(bench.receive_all(2), [to_group.clone(), to_other.clone()]);
    assert_eq!(bench.receive_all(3).len(), 0);
    assert_eq!(bench.card.world().take_frames(), [to_group, to_other.clone()]);

    bench.on(1, |vf, hal| vf.set_multicast(hal, &[])).unwrap();
    bench.send(0, &frame(group, vf_mac(0), 64, 3));
    assert_eq!(bench.receive_all(1).len(), 0);
}

#[test]
fn vf_with_too_many_multicast_groups_requests_all_groups() {
    let mut bench = DrivenCardFixture::new(2);
    let groups: Vec<_> = (0..31).map(|n| MacAddress([1, 0, 0x5e, 0, n, n])).collect();
    bench.on(1, |vf, hal| vf.set_multicast(hal, &groups)).unwrap();
    bench.send(0, &frame(MacAddress([1, 0, 0x5e, 99, 99, 99]), vf_mac(0), 64, 1));
    assert_eq!(bench.receive_all(1).len(), 1);
}

#[test]
fn frame_with_a_spoofed_source_is_blocked_and_reported() {
    let mut bench = DrivenCardFixture::new(2);
    bench.send(0, &frame(vf_mac(1), vf_mac(1), 64, 1));
    assert_eq!(bench.receive_all(1).len(), 0);
    assert_eq!(bench.card.last_visit().spoofed, 0b01);
    assert_eq!(bench.card.pf_driver().unwrap().counters(index(0)).spoofed, 1);

    let lenient = policy::VfPolicy { spoofchk: false, ..*bench.card.pf_driver().unwrap().policy(index(0)) };
    bench.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(0), lenient)).unwrap().unwrap();
    bench.send(0, &frame(vf_mac(1), MacAddress([2, 5, 5, 5, 5, 5]), 64, 1));
    assert_eq!(bench.receive_all(1).len(), 1);
}

#[test]
fn a_disabled_vf_sends_and_receives_no_frames() {
    let mut bench = DrivenCardFixture::new(2);
    let off = policy::VfPolicy { enabled: false, ..*bench.card.pf_driver().unwrap().policy(index(1)) };
    bench.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(1), off)).unwrap().unwrap();
    bench.send(0, &between(0, 1, 64, 1));
    bench.send(1, &between(1, 0, 64, 1));
    assert_eq!((bench.receive_all(0).len(), bench.receive_all(1).len()), (0, 0));
}

#[test]
fn vf_statistics_count_octets_with_the_check_sequence() {
    let mut bench = DrivenCardFixture::new(2);
    for seed in 0..10 {
        bench.send(0, &between(0, 1, 100, seed));
    }
    bench.send(0, &frame(MacAddress([2, 9, 9, 9, 9, 9]), vf_mac(0), 200, 0));
    let sent = bench.on(0, |vf, hal| vf.statistics(hal));
    assert_eq!((sent.tx_packets, sent.tx_octets), (11, 10 * 104 + 204));
    assert_eq!((sent.tx_loopback_packets, sent.tx_loopback_octets), (10, 10 * 104));
    let got = bench.on(1, |vf, hal| vf.statistics(hal));
    assert_eq!((got.rx_packets, got.rx_octets), (10, 10 * 104));
    assert_eq!(got.rx_loopback_packets, 10);
    assert_eq!(bench.card.world().faults(Function::Vf(0)), 0);
}
