//! Compares dwords read from a board (pciutils' `tests/cap-pcie-2`) with this model. If the board's firmware or kernel
//! wrote a register before the reading, the test writes the same value.

use super::{pf, vf};
use crate::MacAddress;
use pcie::capability::msix;
use pcie::config::ConfigSpace;
use pcie::{ConfigWriteEffects, Rid};

const MAC: MacAddress = MacAddress([0x00, 0x1b, 0x21, 0x2b, 0x46, 0xe0]);

#[track_caller]
fn check(space: &ConfigSpace, dwords: &[(u16, u32)]) {
    for &(offset, expected) in dwords {
        assert_eq!(space.dword(offset), expected, "dword {offset:#x}: {:#010x}", space.dword(offset));
    }
}

#[test]
fn pf_configuration_space_equals_that_of_a_real_82576() {
    let header = [(0x00, 0x10c9_8086), (0x04, 0x0010_0000), (0x08, 0x0200_0001), (0x0c, 0), (0x34, 0x40)];
    let pm_msi = [(0x3c, 0x0000_0100), (0x40, 0xc823_5001), (0x44, 0x1a00_2000), (0x50, 0x0180_7005)];
    let msix = [(0x70, 0x8009_a011), (0x74, 0x0000_0003), (0x78, 0x0000_2003)];
    let device = [(0xa0, 0x0002_0010), (0xa4, 0x1000_8cc2), (0xa8, 0x0000_2830)];
    let link = [(0xac, 0x0003_6c41), (0xb0, 0x1041_0042), (0xc4, 0x0000_001f)];
    let aer = [(0x100, 0x1401_0001), (0x10c, 0x0006_2011), (0x114, 0x0000_2000)];
    let serial = [(0x140, 0x1501_0003), (0x144, 0xff2b_46e0), (0x148, 0x001b_21ff)];
    let ari = [(0x150, 0x1601_000e), (0x154, 0)];
    let mut space = pf::space(MAC, true);
    space.write(0x72, 2, 0x8000);
    space.write(0xa8, 2, 0x2830);
    space.write(0xb0, 2, 0x0042);
    for dwords in [&header[..], &pm_msi, &msix, &device, &link, &aer, &serial, &ari] {
        check(&space, dwords);
    }
}

#[test]
fn sriov_capability_equals_that_of_a_real_82576() {
    let mut pf = pf::endpoint(MAC, true);
    check(pf.space(), &[(0x160, 0x0001_0010), (0x164, 0), (0x168, 0), (0x16c, 0x0008_0008), (0x170, 0)]);
    check(pf.space(), &[(0x174, 0x0002_0180), (0x178, 0x10ca_0000), (0x17c, 0x553), (0x180, 1), (0x19c, 0)]);
    check(pf.space(), &[(0x184, 4), (0x188, 0), (0x18c, 0), (0x190, 4), (0x194, 0), (0x198, 0)]);
    pf.write(0x170, 2, 4);
    pf.write(0x168, 2, 0x0010);
    pf.write(0x168, 2, 0x0019);
    pf.write(0x184, 4, 0xb1a8_0000);
    pf.write(0x190, 4, 0xb1a9_0000);
    check(pf.space(), &[(0x168, 0x19), (0x170, 4), (0x174, 0x0002_0080), (0x184, 0xb1a8_0004)]);
    check(pf.space(), &[(0x190, 0xb1a9_0004)]);
    let first = pf.placement().and_then(|placement| placement.rid(Rid(0x0100), 0));
    assert_eq!(first, Some(Rid(0x0180)), "01:10.0");
}

#[test]
fn pf_bars_are_128_kb_registers_32_io_ports_and_16_kb_msix() {
    let mut space = pf::space(MAC, true);
    space.write_bytes(0x10, &[0xff; 24]);
    check(&space, &[(0x10, 0xfffe_0000), (0x14, 0), (0x18, 0xffff_ffe1), (0x1c, 0xffff_c000), (0x20, 0)]);
    check(&space, &[(0x24, 0), (0x30, 0)]);
}

#[test]
fn function_level_reset_of_the_pf_disables_its_vfs() {
    let mut pf = pf::endpoint(MAC, true);
    pf.write(0x170, 2, 7);
    pf.write(0x168, 2, 0x0009);
    let effects = pf.write(0xa8, 2, 0x8000);
    assert!(effects.function_reset);
    assert_eq!(effects.sriov, Some(pcie::sriov::SrIovSettings::default()));
}

#[test]
fn vf_config_space_has_ffff_ids_no_bars_and_the_pfs_class() {
    let mut vf = vf::endpoint();
    vf.write_bytes(0x00, &[0xff; 0x40]);
    check(vf.space(), &[(0x00, 0xffff_ffff), (0x04, 0x0010_0004), (0x08, 0x0200_0001), (0x0c, 0)]);
    check(vf.space(), &[(0x10, 0), (0x14, 0), (0x18, 0), (0x1c, 0), (0x20, 0), (0x24, 0), (0x30, 0)]);
    check(vf.space(), &[(0x2c, 0x0000_8086), (0x34, 0x70), (0x3c, 0)]);
}

#[test]
fn vf_has_three_vectors_and_only_flr_in_device_control() {
    let mut vf = vf::endpoint();
    check(vf.space(), &[(0x70, 0x0002_a011), (0x74, 0x0000_0003), (0x78, 0x0000_2003)]);
    check(vf.space(), &[(0xa0, 0x0002_0010), (0xa4, 0x1000_8cc2), (0xa8, 0), (0x100, 0x1501_0001)]);
    check(vf.space(), &[(0x150, 0x0001_000e)]);
    assert!(vf.write(0xa8, 2, 0x7fff).is_empty());
    assert_eq!(vf.read(0xa8, 2), 0);
    assert!(vf.write(0xa8, 2, 0x8000).function_reset);
    assert_eq!(
        vf.write(0x72, 2, 0x8000),
        ConfigWriteEffects { msix: Some(ON), ..ConfigWriteEffects::default() }
    );
}

const ON: msix::MsiXControl = msix::MsiXControl { enabled: true, masked: false };

#[test]
fn sriov_capability_exists_only_with_the_nvm_iov_bit() {
    let mut pf = pf::endpoint(MAC, false);
    check(pf.space(), &[(0x150, 0x0001_000e), (0x160, 0)]);
    assert_eq!(pf.write(0x168, 2, 1), ConfigWriteEffects::default());
}
