//! Tests bus mastering of each function, and writes to the configuration space of a port in D3hot. `resets` tests the
//! effects of resets.

use crate::common::{CardFixture, PORT, mac, plain};
use i82576::config::pf;
use pcie::capability::{power, sriov};
use pcie::config::offset;
use pcie::{ConfigAccess, Function, Function::Vf};

#[test]
fn pf_without_bus_mastering_does_not_stop_its_vfs() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    bench.vf(1).start();
    bench.pf().start();
    bench.config(Function::Pf, offset::COMMAND, u32::from(offset::COMMAND_MEMORY));
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    assert_eq!(bench.vf(1).expect_frame().bytes.len(), 74);
    assert_eq!(bench.msix(), [(Vf(1), 1), (Vf(0), 0)]);
    bench.world.bus.log.clear();
    bench.vf(0).send(&plain(PORT, mac(0), 60));
    assert!(bench.world.bus.log.iter().all(|access| access.function == Vf(0)));
}

#[test]
fn vfs_enabled_in_d3hot_disappear_on_wake() {
    let mut bench = CardFixture::bare();
    let control = u16::from(pf::POWER) + power::CONTROL;
    bench.config(Function::Pf, control, 3);
    bench.enable_vfs(3);
    bench.config(Function::Pf, control, 0);
    assert_eq!(bench.vfs(), 0);
    assert_eq!(bench.nic.config_read(Function::Pf, pf::SRIOV + sriov::CONTROL, 2), 0);
    assert_eq!(bench.nic.config_read(Function::Pf, pf::SRIOV + sriov::NUM_VFS, 2), 0);
    assert_eq!(bench.nic.config_read(Vf(0), 0, 4), u32::MAX);
}
