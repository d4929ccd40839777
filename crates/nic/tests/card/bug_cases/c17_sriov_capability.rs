//! Bug 17 of another 82576 model: NumVFs beyond TotalVFs was accepted (CVE-2024-26327), and NumVFs changed while VFs
//! existed. The SR-IOV capability survived resets, and toggling VFE repeatedly failed.

use crate::common::CardFixture;
use i82576::config::{EXPRESS, pf::SRIOV};
use pcie::capability::{express, sriov};
use pcie::{ConfigAccess, Function};

const NUM_VFS: u16 = SRIOV + sriov::NUM_VFS;
const CONTROL: u16 = SRIOV + sriov::CONTROL;

fn num_vfs(bench: &mut CardFixture) -> u32 {
    bench.nic.config_read(Function::Pf, NUM_VFS, 2)
}

#[test]
fn num_vfs_beyond_total_vfs_is_ignored() {
    let mut bench = CardFixture::bare();
    for asked in 0..=u32::from(u16::MAX) {
        let before = num_vfs(&mut bench);
        bench.config(Function::Pf, NUM_VFS, asked);
        assert_eq!(num_vfs(&mut bench), if asked <= 8 { asked } else { before }, "{asked:#x}");
    }
}

#[test]
fn num_vfs_is_locked_while_vfs_exist() {
    let mut bench = CardFixture::new(3);
    for asked in 0..=8 {
        bench.config(Function::Pf, NUM_VFS, asked);
        assert_eq!((num_vfs(&mut bench), bench.vfs()), (3, 3));
    }
    bench.config(Function::Pf, CONTROL, 0);
    assert_eq!(num_vfs(&mut bench), 3, "NumVFs stays after VFE is cleared");
    bench.config(Function::Pf, NUM_VFS, 5);
    assert_eq!(num_vfs(&mut bench), 5);
}

#[test]
fn pf_function_level_reset_clears_the_sriov_capability() {
    let mut bench = CardFixture::new(7);
    let control = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    bench.config(Function::Pf, control, u32::from(express::DEVICE_CONTROL_FLR));
    let word = |bench: &mut CardFixture, at| bench.nic.config_read(Function::Pf, SRIOV + at, 2);
    assert_eq!((word(&mut bench, sriov::CONTROL), word(&mut bench, sriov::NUM_VFS)), (0, 0));
    assert_eq!(word(&mut bench, sriov::FIRST_OFFSET), 0x180);
    assert_eq!(bench.nic.config_read(Function::Vf(0), 0, 4), u32::MAX, "the VFs do not exist any more");
}

#[test]
fn vfs_work_after_vf_enable_was_toggled_a_thousand_times() {
    let mut bench = CardFixture::bare();
    for round in 0..1000u32 {
        let vfs = (round % 8 + 1) as u8;
        bench.enable_vfs(vfs);
        assert_eq!(bench.vfs(), vfs);
        bench.config(Function::Pf, CONTROL, 0);
        assert_eq!(bench.vfs(), 0);
    }
    bench.enable_vfs(2);
    bench.set_up_port(2);
    bench.vf(0).start();
    bench.vf(1).start();
    let frame = crate::common::plain(crate::common::mac(1), crate::common::mac(0), 60);
    bench.vf(0).send(&frame);
    assert_eq!(bench.vf(1).expect_frame().bytes.len(), 74);
}
