//! Tests the VF driver against a simulated card: registers and memory that only store values, and that the test
//! changes. Covers ring limits and invalid values from the card. Tests with the modelled card are in the crate
//! `backplane`.

use super::receive::VfRxRing;
use super::statistics::StatisticsAccumulator;
use super::transmit::VfTxRing;
use super::{ChecksumStatus, MAX_BATCH, RxError, TxError, TxOffload, VfError};
use crate::desk::{BASE, TestHal};
use crate::hal::{DmaHal, Hal};
use crate::ring::transmit::burst::FamilyTxQueue;
use alloc::vec;
use alloc::vec::Vec;
use i82576::descriptor::rx::{AdvancedRxWriteBack, PostedRxDescriptor, status};
use i82576::descriptor::tx::{self as descriptor, AnyTxDescriptor};
use i82576::register::{rx, tx, vf};

/// Number of frames or buffers per doorbell in the tests.
const BATCH: u16 = 16;

impl TestHal {
    fn raw(&self, ring: u32, slot: u64) -> [u8; 16] {
        let mut raw = [0; 16];
        let base = self.registers.get(&ring).copied().unwrap_or(0);
        self.dma_read(BASE + u64::from(base) + slot * 16, &mut raw);
        raw
    }

    /// Completes a receive slot as the card: writes a piece of a frame, its length and status bits.
    fn fill(&mut self, slot: u64, bytes: &[u8], length: u16, bits: u32) {
        let base = self.read(vf::RX_BLOCK + rx::RDBAL);
        let posted = PostedRxDescriptor::parse(&self.raw(vf::RX_BLOCK + rx::RDBAL, slot));
        self.dma_write(posted.packet, bytes);
        let back = AdvancedRxWriteBack { length, status: bits, ..AdvancedRxWriteBack::default() };
        self.dma_write(BASE + u64::from(base) + slot * 16, &back.emit());
    }

    /// Sets DD in a transmit slot that requests a report, as the card.
    fn report(&mut self, slot: u64) {
        let base = BASE + u64::from(self.read(vf::TX_BLOCK + tx::TDBAL));
        self.dma_write(base + slot * 16 + 12, &1u32.to_le_bytes());
    }

    fn data(&self, slot: u64) -> descriptor::AdvancedDataDescriptor {
        match descriptor::parse(&self.raw(vf::TX_BLOCK + tx::TDBAL, slot)) {
            AnyTxDescriptor::Data(data) => data,
            other => panic!("expected a data descriptor in slot {slot}, found {other:?}"),
        }
    }
}

fn receiver() -> (TestHal, VfRxRing) {
    let mut desk = TestHal::default();
    let mut ring = VfRxRing::new(&mut desk, 64, BATCH).unwrap();
    ring.start(&mut desk);
    (desk, ring)
}

fn transmitter() -> (TestHal, VfTxRing) {
    let mut desk = TestHal::default();
    let mut ring = VfTxRing::new(&mut desk, 64, BATCH).unwrap();
    ring.start(&mut desk);
    (desk, ring)
}

fn send(
    ring: &mut VfTxRing,
    desk: &mut TestHal,
    frame: &[u8],
    offload: &TxOffload,
    longest: usize,
) -> Result<(), TxError> {
    ring.transmit_burst(desk, &[frame], offload, longest).1
}

const PLAIN: TxOffload = TxOffload { ip_checksum: false, l4_checksum: false, tso: None, vlan: None };

#[test]
fn driver_posts_all_receive_slots_but_one() {
    let (mut desk, ring) = receiver();
    assert_eq!(desk.read(vf::RX_BLOCK + rx::RDT), 63);
    assert_eq!(desk.read(vf::RX_BLOCK + rx::SRRCTL), 0x8200_0002);
    assert_eq!(desk.read(vf::RX_BLOCK + rx::RXDCTL), 0x0201_0810);
    assert_eq!(ring.counters().doorbells, 4);
}

#[test]
fn vf_driver_start_clears_settings_of_the_previous_driver() {
    let mut desk = TestHal::default();
    let mut ring = VfRxRing::new(&mut desk, 64, BATCH).unwrap();
    for at in (0..0x40).step_by(4) {
        desk.write(vf::RX_BLOCK + at, u32::MAX);
        desk.write(vf::RX_BLOCK + vf::QUEUE_STRIDE + at, u32::MAX);
    }
    desk.write(vf::PSRTYPE, u32::MAX);
    ring.start(&mut desk);
    let expected = [
        (rx::RDBAL, 0),
        (rx::RDBAH, (BASE >> 32) as u32),
        (rx::RDLEN, 64 * 16),
        (rx::RDH, 0),
        (rx::RDT, 63),
        (rx::SRRCTL, 0x8200_0002),
        (rx::RXDCTL, 0x0201_0810),
        (vf::QUEUE_STRIDE + rx::SRRCTL, 0),
        (vf::QUEUE_STRIDE + rx::RXDCTL, 0),
    ];
    for (at, value) in expected {
        assert_eq!(desk.read(vf::RX_BLOCK + at), value, "{at:#x}");
    }
    assert_eq!(desk.read(vf::PSRTYPE), 0);
    ring.disable(&mut desk);
    assert_eq!(desk.read(vf::RX_BLOCK + rx::RXDCTL), 0);
}

#[test]
fn receive_ring_with_batch_16_posts_buffers_after_16_frames() {
    let (mut desk, mut ring) = receiver();
    let mut buffer = [0; 100];
    for slot in 0..15 {
        desk.fill(slot, &[slot as u8; 60], 60, status::EOP);
        assert_eq!(ring.receive(&mut desk, &mut buffer).unwrap().unwrap().length, 60);
        assert_eq!(buffer[0], slot as u8);
        assert_eq!(desk.read(vf::RX_BLOCK + rx::RDT), 63);
    }
    desk.fill(15, &[9; 60], 60, status::EOP | status::IPCS | status::IPE | status::L4CS);
    let received = ring.receive(&mut desk, &mut buffer).unwrap().unwrap();
    assert_eq!((received.ip_checksum, received.l4_checksum), (ChecksumStatus::Bad, ChecksumStatus::Good));
    assert_eq!(desk.read(vf::RX_BLOCK + rx::RDT), 0, "to the end of the ring");
    assert_eq!(ring.receive(&mut desk, &mut buffer), Ok(None));
}

#[test]
fn rx_descriptor_reports_only_verified_checksums() {
    use ChecksumStatus::{Bad, Good, Unknown};
    let (mut desk, mut ring) = receiver();
    let mut buffer = [0; 100];
    let said = [
        (0, Unknown, Unknown, None),
        (status::IPE | status::L4E, Unknown, Unknown, None),
        (status::IPCS, Good, Unknown, None),
        (status::L4CS, Unknown, Good, None),
        (status::UDPCS | status::L4E, Unknown, Bad, None),
        (status::VP, Unknown, Unknown, Some(0)),
    ];
    for (slot, (bits, ip, l4, vlan)) in (0..).zip(said) {
        desk.fill(slot, &[0; 60], 60, status::EOP | bits);
        let found = ring.receive(&mut desk, &mut buffer).unwrap().unwrap();
        assert_eq!((found.ip_checksum, found.l4_checksum, found.vlan, found.rss), (ip, l4, vlan, None));
    }
    let counters = ring.counters();
    assert_eq!((counters.frames, counters.bytes, counters.bad_checksums), (6, 360, 1));
}

#[test]
fn frame_is_received_once_its_last_descriptor_is_complete() {
    let (mut desk, mut ring) = receiver();
    let mut buffer = vec![0; 5000];
    desk.fill(0, &[1; 2048], 2048, 0);
    desk.fill(1, &[2; 2048], 2048, 0);
    assert_eq!(ring.receive(&mut desk, &mut buffer), Ok(None));
    desk.fill(2, &[3; 10], 10, status::EOP);
    assert_eq!(ring.receive(&mut desk, &mut buffer).unwrap().unwrap().length, 4106);
    assert_eq!((buffer[2047], buffer[2048], buffer[4105]), (1, 2, 3));
}

#[test]
fn malformed_receive_descriptor_loses_one_frame() {
    let (mut desk, mut ring) = receiver();
    let mut buffer = [0; 100];
    desk.fill(0, &[], 2049, status::EOP);
    desk.fill(1, &[5; 101], 101, status::EOP);
    desk.fill(2, &[6; 60], 60, status::EOP);
    assert_eq!(ring.receive(&mut desk, &mut buffer), Err(RxError::Malformed));
    assert_eq!(ring.receive(&mut desk, &mut buffer), Err(RxError::TooLong(101)));
    assert_eq!(ring.receive(&mut desk, &mut buffer).unwrap().unwrap().length, 60);
    assert_eq!((ring.counters().errors, ring.counters().frames), (2, 1));
}

#[test]
fn last_frame_of_a_transmit_batch_requests_a_write_back() {
    let (mut desk, mut ring) = transmitter();
    for _ in 0..3 {
        send(&mut ring, &mut desk, &[7; 60], &PLAIN, 1514).unwrap();
    }
    assert_eq!(desk.read(vf::TX_BLOCK + tx::TDT), 0, "not before the doorbell");
    ring.flush(&mut desk);
    assert_eq!(desk.read(vf::TX_BLOCK + tx::TDT), 3);
    let reports: Vec<_> = (0..3).map(|slot| desk.data(slot).report_status).collect();
    assert_eq!(reports, [false, false, true]);
    assert_eq!(ring.clean(&mut desk), 0);
    desk.report(2);
    assert_eq!((ring.clean(&mut desk), ring.pending()), (3, 0));
}

#[test]
fn sending_32_frames_writes_one_doorbell_and_two_rs_bits() {
    let mut desk = TestHal::default();
    let mut ring = VfTxRing::new(&mut desk, 64, MAX_BATCH).unwrap();
    ring.start(&mut desk);
    for _ in 0..32 {
        assert_eq!(desk.read(vf::TX_BLOCK + tx::TDT), 0);
        send(&mut ring, &mut desk, &[7; 60], &PLAIN, 1514).unwrap();
    }
    assert_eq!(desk.read(vf::TX_BLOCK + tx::TDT), 32);
    ring.flush(&mut desk);
    assert_eq!(ring.counters().doorbells, 1, "no frame is left to publish");
    let reports: Vec<_> = (0..32).filter(|slot| desk.data(*slot).report_status).collect();
    assert_eq!(reports, [15, 31]);
}

#[test]
fn receive_ring_with_batch_32_writes_a_doorbell_per_32_buffers() {
    let mut desk = TestHal::default();
    let mut ring = VfRxRing::new(&mut desk, 64, MAX_BATCH).unwrap();
    ring.start(&mut desk);
    let doorbells = ring.counters().doorbells;
    for slot in 0..32 {
        desk.fill(slot, &[0; 60], 60, status::EOP);
        ring.receive(&mut desk, &mut [0; 100]).unwrap().unwrap();
    }
    assert_eq!(
        (ring.counters().doorbells, desk.read(vf::RX_BLOCK + rx::RDT)),
        (doorbells + 1, 0),
        "to the end"
    );
    // The short batch at the ring's end is made up once.
    for slot in 32..64 {
        desk.fill(slot, &[0; 60], 60, status::EOP);
        ring.receive(&mut desk, &mut [0; 100]).unwrap().unwrap();
    }
    assert_eq!((ring.counters().doorbells, desk.read(vf::RX_BLOCK + rx::RDT)), (doorbells + 2, 32));
}

#[test]
fn sent_frame_in_several_slots_has_one_end_of_packet() {
    let (mut desk, mut ring) = transmitter();
    let first = vec![1; 3000];
    let second = vec![2; 2000];
    ring.transmit_any(&mut desk, [&first, &second], &PLAIN, 9000).unwrap();
    ring.flush(&mut desk);
    let slots: Vec<_> = (0..3).map(|slot| desk.data(slot)).collect();
    assert_eq!(slots.iter().map(|d| d.length).collect::<Vec<_>>(), [2048, 2048, 904]);
    assert_eq!(slots.iter().map(|d| d.end_of_packet).collect::<Vec<_>>(), [false, false, true]);
    assert!(slots.iter().all(|d| d.payload_length == 5000));
    let mut joint = [0; 2];
    desk.dma_read(slots[1].address + 951, &mut joint);
    assert_eq!(joint, [1, 2]);
}

#[test]
fn offload_context_is_written_only_when_it_changes() {
    let (mut desk, mut ring) = transmitter();
    for tag in [5, 5, 6] {
        send(&mut ring, &mut desk, &[0; 60], &TxOffload { vlan: Some(tag), ..PLAIN }, 1514).unwrap();
    }
    ring.flush(&mut desk);
    let kinds: Vec<_> = (0..5)
        .map(|slot| match descriptor::parse(&desk.raw(vf::TX_BLOCK + tx::TDBAL, slot)) {
            AnyTxDescriptor::Context(context) => Some(context.vlan_tag),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, [Some(5), None, None, Some(6), None]);
}

#[test]
fn transmit_ring_wraps_a_thousand_times() {
    let (mut desk, mut ring) = transmitter();
    for round in 0..1_000u64 {
        send(&mut ring, &mut desk, &[0; 60], &PLAIN, 1514).unwrap();
        ring.flush(&mut desk);
        desk.report(round % 64);
        assert_eq!(ring.clean(&mut desk), 1, "round {round}");
    }
    ring.disable(&mut desk);
    assert_eq!(send(&mut ring, &mut desk, &[0; 60], &PLAIN, 1514), Err(TxError::Stopped));
}

#[test]
fn invalid_ring_sizes_are_refused() {
    for size in [0, 8, 56, 65, 4104] {
        assert_eq!(VfRxRing::new(&mut TestHal::default(), size, BATCH).unwrap_err(), VfError::RingSize(size));
        assert_eq!(VfTxRing::new(&mut TestHal::default(), size, BATCH).unwrap_err(), VfError::RingSize(size));
    }
}

#[test]
fn sum_of_the_cards_wrapping_counters_does_not_wrap() {
    let mut desk = TestHal::default();
    let mut sum = StatisticsAccumulator::default();
    desk.write(vf::VFGPRC, 0xffff_fff0);
    sum.rebase(&mut desk);
    desk.write(vf::VFGPRC, 0x10);
    sum.update(&mut desk);
    desk.write(vf::VFGPRC, 0xf);
    sum.update(&mut desk);
    assert_eq!(sum.first(), 0x20 + 0xffff_ffff);
}

#[test]
fn ip_checksum_is_requested_for_ipv4_only() {
    let mut tcp = [0; 120];
    tcp[54 - 8] = 0x50;
    let (mut ipv4, mut ipv6) = (tcp, tcp);
    ipv4[12..15].copy_from_slice(&[8, 0, 0x45]);
    ipv4[23] = 6;
    ipv6[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
    (ipv6[20], ipv6[66]) = (6, 0x50);
    let both = TxOffload { ip_checksum: true, l4_checksum: true, ..PLAIN };
    for (frame, has_one) in [(ipv4, true), (ipv6, false)] {
        for offload in [both, TxOffload { tso: Some(1_000), ..PLAIN }] {
            let (mut desk, mut ring) = transmitter();
            send(&mut ring, &mut desk, &frame, &offload, 1514).unwrap();
            ring.flush(&mut desk);
            let data = desk.data(1);
            assert_eq!((data.insert_ip_checksum, data.insert_l4_checksum), (has_one, true), "{offload:?}");
        }
    }
}
