//! Tests that the PF's policy spreads a VF's received frames over its two queues. Our VF driver uses the first
//! queue only, as Linux igbvf does; the tests set up the second one as DPDK's driver would. Tests of the hash
//! itself are in `nic::offload`.

use crate::support::{DrivenCardFixture, between, index};
use backplane::vf_mac;
use driver::{DmaHal, Hal};
use etherparse::PacketBuilder;
use i82576::bits::{dctl, srrctl};
use i82576::descriptor::rx::PostedRxDescriptor;
use i82576::register::{rx, vf};
use policy::VfPolicy;

/// Number of flows that the tests send, each of one frame.
const FLOWS: u16 = 64;
/// Number of descriptors in the second queue's ring, more than there are flows.
const RING: u32 = 128;
const BUFFER: u64 = 2048;

/// Enables or disables receive-side scaling in the policy of VF `vf`.
fn scale(bench: &mut DrivenCardFixture, vf: u8, rss: bool) {
    let policy = VfPolicy { rss, ..*bench.card.pf_driver().unwrap().policy(index(vf)) };
    bench.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(vf), policy)).unwrap().unwrap();
}

/// Gives VF 0's second queue a ring of receive descriptors, and enables the queue.
fn open_second_queue(bench: &mut DrivenCardFixture) {
    let mut hal = bench.card.vf(0);
    let ring = hal.dma_alloc(16 * RING as usize, 128).unwrap().iova;
    let buffers = hal.dma_alloc(RING as usize * BUFFER as usize, 2048).unwrap().iova;
    for i in 0..u64::from(RING) {
        hal.dma_write(ring + 16 * i, &PostedRxDescriptor { packet: buffers + BUFFER * i, header: 0 }.emit());
    }
    let one_buffer = srrctl::ONE_BUFFER << srrctl::DESCTYPE_SHIFT;
    for (at, value) in [
        (rx::RDBAL, ring as u32),
        (rx::RDBAH, (ring >> 32) as u32),
        (rx::RDLEN, 16 * RING),
        (rx::SRRCTL, (BUFFER >> 10) as u32 | one_buffer),
        (rx::RDH, 0),
        (rx::RXDCTL, dctl::ENABLE),
        (rx::RDT, RING - 1),
    ] {
        hal.write(vf::RX_BLOCK + vf::QUEUE_STRIDE + at, value);
    }
}

fn flow(port: u16) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(vf_mac(1).0, vf_mac(0).0)
        .ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
        .tcp(port, 80, 1, 8192);
    let mut frame = Vec::new();
    builder.write(&mut frame, &[7; 20]).unwrap();
    frame
}

/// Sends a frame of every flow from VF 1 to VF 0. Returns the flows that arrived in VF 0's first queue, and the number
/// that arrived in the second.
fn spread(bench: &mut DrivenCardFixture) -> (Vec<u16>, u32) {
    let second = vf::RX_BLOCK + vf::QUEUE_STRIDE + rx::RDH;
    let before = bench.card.vf(0).read(second);
    for port in 0..FLOWS {
        bench.send(1, &flow(port));
    }
    let first = bench.receive_all(0);
    let ports = first.iter().map(|frame| u16::from_be_bytes([frame[34], frame[35]])).collect();
    (ports, bench.card.vf(0).read(second) - before)
}

fn dropped(bench: &mut DrivenCardFixture) -> u64 {
    bench.card.nic().counters()[0].rx_disabled
}

/// Minimum number of flows in each queue for the flows to count as distributed: half of them are expected.
const FAIR: u16 = FLOWS / 4;

#[test]
fn rss_uses_both_queues_and_keeps_each_flow_in_one() {
    let mut bench = DrivenCardFixture::new(2);
    open_second_queue(&mut bench);
    assert_eq!(spread(&mut bench), ((0..FLOWS).collect(), 0), "RSS is off by default");
    scale(&mut bench, 0, true);
    open_second_queue(&mut bench);
    let (first, second) = spread(&mut bench);
    let fair = FAIR.into()..=(FLOWS - FAIR).into();
    assert!(fair.contains(&first.len()), "{first:?}");
    assert_eq!(first.len() + second as usize, FLOWS.into());
    open_second_queue(&mut bench);
    assert_eq!(spread(&mut bench), (first, second), "the same flows in the same queues");
    scale(&mut bench, 0, false);
    assert_eq!(spread(&mut bench).0.len(), FLOWS.into(), "RSS was switched off again");
    assert_eq!(dropped(&mut bench), 0);
}

/// Tests a disabled queue that the hash selects: the card does not choose another queue, and the queue's frames are
/// lost.
#[test]
fn flows_to_a_disabled_second_queue_are_lost_and_counted() {
    let mut bench = DrivenCardFixture::new(2);
    scale(&mut bench, 0, true);
    let (first, _) = spread(&mut bench);
    let lost = u64::from(FLOWS) - first.len() as u64;
    assert!(lost >= FAIR.into());
    assert_eq!(dropped(&mut bench), lost);
    bench.send(1, &between(1, 0, 100, 1));
    assert_eq!(bench.receive_all(0).len(), 1, "frames without IP have no hash and arrive in the first queue");
    scale(&mut bench, 0, false);
    assert_eq!(spread(&mut bench).0.len(), FLOWS.into(), "without the policy no frame is lost");
}

#[test]
fn rss_of_a_vf_does_not_affect_another_vf() {
    let mut bench = DrivenCardFixture::new(2);
    scale(&mut bench, 1, true);
    assert_eq!(spread(&mut bench).0.len(), FLOWS.into());
    assert_eq!(dropped(&mut bench), 0);
}

#[test]
fn rss_policy_survives_resets_of_the_vf_and_of_the_port() {
    let mut bench = DrivenCardFixture::new(2);
    scale(&mut bench, 0, true);
    open_second_queue(&mut bench);
    let before = spread(&mut bench);
    bench.on(0, |vf, hal| vf.restart(hal)).unwrap();
    open_second_queue(&mut bench);
    assert_eq!(spread(&mut bench), before, "the VF was reset");
    bench.card.with_pf_driver(|pf, hal| pf.reset(hal)).unwrap().unwrap();
    for vf in 0..2 {
        bench.on(vf, |vf, hal| vf.restart(hal)).unwrap();
    }
    open_second_queue(&mut bench);
    assert_eq!(spread(&mut bench), before, "the port was reset");
}
