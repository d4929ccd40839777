//! Bug 8 of another 82576 model: some memory requests of a VF's queue carried the PF's requester id; after a change of
//! NumVFs, more of them did.

use crate::common::{CardFixture, POOL, data, head_address, mac, packet, tcp};
use i82576::PoolIndex;
use i82576::bits::{mrqc, rah, srrctl, vmolr};
use i82576::config::pf::SRIOV;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register::{self as r, rx, tx, vf};
use pcie::Function::{Pf, Vf};
use pcie::capability::sriov;
use pcie::config::offset;

/// Asserts that all memory requests since the last call carry the requester id of one of `functions`, and that none
/// faulted.
#[track_caller]
fn expect_names(bench: &mut CardFixture, functions: &[pcie::Function]) {
    let log = core::mem::take(&mut bench.world.bus.log);
    assert!(!log.is_empty());
    assert!(log.iter().all(|access| functions.contains(&access.function) && !access.fault), "{log:?}");
}

#[test]
fn every_request_of_a_vfs_queue_carries_the_vfs_id() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    bench.vf(1).start();
    let split = 2 | 2 << 8 | srrctl::ALWAYS_SPLIT << srrctl::DESCTYPE_SHIFT;
    bench.vf(1).write(vf::RX_BLOCK + rx::SRRCTL, split);
    bench.vf(0).write(vf::TX_BLOCK + tx::TDWBAL, head_address() as u32 | 1);
    let frame = tcp(mac(1), mac(0), &[7; 3000]);
    let address = bench.vf(0).place(&frame);
    let lengths = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ..AdvancedContextDescriptor::default()
    };
    let context = AdvancedContextDescriptor { ipv4: true, l4: L4PacketType::Tcp, mss: 1000, ..lengths };
    let first = AdvancedDataDescriptor { segment: true, ..data(address, 54) };
    bench.world.bus.log.clear();
    bench.vf(0).transmit(&[context.emit(), first.emit(), packet(address + 54, 3000).emit()]);
    assert_eq!(bench.vf(1).received().len(), 3);
    assert_eq!(bench.vf(0).peek(head_address(), 4), [3, 0, 0, 0]);
    expect_names(&mut bench, &[Vf(0), Vf(1)]);
}

#[test]
fn second_queue_of_a_vf_uses_the_vfs_requester_id() {
    let mut bench = CardFixture::new(3);
    bench.vf(2).start();
    bench.pf().write(r::MRQC, mrqc::VMDQ_RSS | 1 << mrqc::HASH_TYPES_SHIFT);
    bench.pf().write(r::vmolr(PoolIndex::EVERY[2]), POOL | vmolr::RSSE);
    bench.world.bus.log.clear();
    bench.wire_sends(&tcp(mac(2), mac(9), &[7; 100]));
    expect_names(&mut bench, &[Vf(2)]);
    bench.pf().start();
    bench.pf().send(&tcp(mac(9), crate::common::PORT, &[7; 100]));
    expect_names(&mut bench, &[Pf]);
}

#[test]
fn change_of_num_vfs_changes_the_owner_of_queues() {
    let mut bench = CardFixture::new(3);
    bench.config(Pf, SRIOV + sriov::CONTROL, u32::from(sriov::CONTROL_MEMORY));
    bench.config(Pf, SRIOV + sriov::NUM_VFS, 1);
    bench.config(Pf, SRIOV + sriov::CONTROL, u32::from(sriov::CONTROL_ENABLE | sriov::CONTROL_MEMORY));
    bench.config(Vf(0), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
    bench.set_up_port(1);
    bench.vf(0).start();
    bench.pf().start();
    bench.world.bus.log.clear();
    bench.vf(0).send(&tcp(mac(9), mac(0), &[7; 100]));
    expect_names(&mut bench, &[Vf(0)]);
    // Pool 1 belonged to VF 1, and is the PF's now.
    bench.pf().set_address(1, mac(1), 1 << 1);
    assert_ne!(bench.pf().read(r::rah(1)) & rah::POOLSEL_MASK, 0);
    bench.wire_sends(&tcp(mac(1), mac(9), &[7; 100]));
    expect_names(&mut bench, &[Pf]);
}
