//! Bug 10 of another 82576 model: a VLAN tag was inserted only under CTRL.VME, and as the packet's last
//! descriptor requested instead of its first.

use crate::common::{CardFixture, data, mac, packet, plain, tagged};
use i82576::bits::ctrl;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor};
use i82576::register as r;

/// Sends a packet in two descriptors, of which the `first` and the `last` may request the context's tag 7.
/// Returns the frame on the wire.
fn sent(first: bool, last: bool) -> Vec<u8> {
    let mut bench = CardFixture::new(1);
    bench.pf().clear(r::CTRL, ctrl::VME);
    bench.vf(0).start();
    let frame = plain(mac(9), mac(0), 100);
    let address = bench.vf(0).place(&frame);
    let context = AdvancedContextDescriptor { vlan_tag: 7, ..AdvancedContextDescriptor::default() };
    let head = AdvancedDataDescriptor { insert_vlan: first, ..data(address, 50) };
    let tail = AdvancedDataDescriptor { insert_vlan: last, ..packet(address + 50, frame.len() as u16 - 50) };
    bench.vf(0).transmit(&[context.emit(), head.emit(), tail.emit()]);
    bench.wire_got().remove(0)
}

#[test]
fn descriptor_inserts_a_vlan_tag_without_ctrl_vme() {
    let frame = plain(mac(9), mac(0), 100);
    assert_eq!(sent(true, false), tagged(7, &frame));
    assert_eq!(sent(true, true), tagged(7, &frame));
    assert_eq!(sent(false, true), frame);
}
