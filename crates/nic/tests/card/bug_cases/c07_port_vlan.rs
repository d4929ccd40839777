//! Bug 7 of another 82576 model: a pool's port VLAN was not inserted into frames that it sent, and not stripped from
//! frames that it got.

use crate::common::{CardFixture, POOL, mac, packet, plain, tagged};
use i82576::PoolIndex;
use i82576::bits::{rctl, vlvf, vmolr, vmvir};
use i82576::descriptor::rx::status;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor};
use i82576::register as r;

/// Returns a card with VFs 0 and 1 on port VLAN 100 with priority 3; VF 1's tags are stripped.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(2);
    bench.pf().set(r::RCTL, rctl::VFE);
    bench.pf().write(r::vfta(3), 1 << 4);
    bench.pf().write(r::vlvf(0), vlvf::VLANID_EN | 100 | 0b11 << vlvf::POOLSEL_SHIFT);
    for pool in [0, 1] {
        bench.vf(pool).start();
        bench.pf().write(r::vmvir(PoolIndex::EVERY[usize::from(pool)]), vmvir::DEFAULT | 0x6064);
    }
    bench.pf().write(r::vmolr(PoolIndex::EVERY[1]), POOL & !vmolr::AUPE | vmolr::STRVLAN);
    bench
}

#[test]
fn vmvir_inserts_the_default_tag_into_every_frame() {
    let mut bench = bench();
    let frame = plain(mac(9), mac(0), 100);
    bench.vf(0).send(&frame);
    assert_eq!(bench.wire_got(), [tagged(0x6064, &frame)]);
}

#[test]
fn vmvir_default_tag_replaces_the_descriptors_tag() {
    let mut bench = bench();
    let frame = plain(mac(9), mac(0), 100);
    let address = bench.vf(0).place(&frame);
    let context = AdvancedContextDescriptor { vlan_tag: 200, ..AdvancedContextDescriptor::default() };
    let asks = AdvancedDataDescriptor { insert_vlan: true, ..packet(address, frame.len() as u16) };
    bench.vf(0).transmit(&[context.emit(), asks.emit()]);
    assert_eq!(bench.wire_got(), [tagged(0x6064, &frame)]);
}

#[test]
fn port_vlan_tag_is_stripped_into_the_descriptor() {
    let mut bench = bench();
    let frame = plain(mac(1), mac(9), 100);
    bench.wire_sends(&tagged(0x6064, &frame));
    let received = bench.vf(1).expect_frame();
    assert_eq!((&received.bytes, received.last().vlan_tag), (&frame, 0x6064));
    assert_ne!(received.last().status & status::VP, 0);
}

#[test]
fn frame_between_pools_of_a_port_vlan_is_delivered_untagged() {
    let mut bench = bench();
    let frame = plain(mac(1), mac(0), 100);
    bench.vf(0).send(&frame);
    assert_eq!(bench.vf(1).expect_frame().bytes, frame);
}
