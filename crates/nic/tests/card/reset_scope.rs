//! Tests the scope of each reset over every register: the registers that it restores and those that it keeps, and RSTI
//! and RSTD as a VF reads them. `resets` tests rings and traffic.

use crate::common::{CardFixture, index};
use i82576::bits::{ctrl, ctrl_ext, eitr, v2p};
use i82576::config::{EXPRESS, MSIX, pf};
use i82576::register::{self as r, vf};
use i82576::table::{self, PfRegister, RegisterAccessRule};
use pcie::capability::{express, msix, power, sriov};
use pcie::config::offset;
use pcie::{ConfigAccess, Function, Function::Pf, Function::Vf};
use std::collections::BTreeMap;

/// Names of registers that [`fill`] does not write, since the writes have effects beyond a stored value.
const NOT_FILLED: &[&str] = &["CTRL", "P2VMAILBOX", "MDIC", "EERD", "EEWR", "TIMADJH"];
/// Names of registers that change when they are read, which [`read_registers`] therefore leaves out.
const NOT_LOOKED_AT: &[&str] = &["SWSM", "ICR", "EICR", "VTEICR"];

fn elements() -> impl Iterator<Item = (&'static PfRegister, u32)> {
    table::rows().flat_map(|row| row.offsets().map(move |offset| (row, offset)))
}

/// Writes ones to every writable bit of the PF's registers, and sets every interrupt cause.
fn fill(bench: &mut CardFixture) {
    for (row, offset) in elements().filter(|(row, _)| !NOT_FILLED.contains(&row.name)) {
        match row.access {
            RegisterAccessRule::Rw(_) | RegisterAccessRule::W1s(_) => bench.pf().write(offset, u32::MAX),
            RegisterAccessRule::Ro
            | RegisterAccessRule::Rc
            | RegisterAccessRule::W1c(_)
            | RegisterAccessRule::Wo => {}
        }
    }
    bench.pf().write(r::EICS, u32::MAX);
    bench.pf().write(r::ICS, u32::MAX);
}

/// Reads every register of the PF. Returns the values by offset.
fn read_registers(bench: &mut CardFixture) -> BTreeMap<u32, u32> {
    let rows = elements().filter(|(row, _)| !NOT_LOOKED_AT.contains(&row.name));
    rows.map(|(_, offset)| (offset, bench.pf().read(offset))).collect()
}

fn level_reset(bench: &mut CardFixture, function: Function) {
    let at = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    bench.config(function, at, express::DEVICE_CONTROL_FLR.into());
}

fn sleep_and_wake(bench: &mut CardFixture) {
    let at = u16::from(pf::POWER) + power::CONTROL;
    bench.config(Pf, at, 3);
    bench.config(Pf, at, 0);
}

type ResetTrigger = fn(&mut CardFixture);

/// Functions that each reset the whole port in a way that acts like a power-on.
const OF_EVERYTHING: [ResetTrigger; 3] =
    [|bench| level_reset(bench, Pf), sleep_and_wake, |bench| bench.nic.conventional_reset()];

/// Functions that each reset VF 1 alone.
const OF_VF_1: [ResetTrigger; 3] = [
    |bench| bench.vf(1).write(vf::CTRL, ctrl::RST),
    |bench| bench.pf().write(r::vf_block(index(1)), ctrl::RST),
    |bench| level_reset(bench, Vf(1)),
];

#[test]
fn power_on_resets_restore_every_register() {
    let mut fresh = CardFixture::bare();
    fresh.pf().read(r::ICR);
    let expected = read_registers(&mut fresh);
    for reset in OF_EVERYTHING {
        let mut bench = CardFixture::new(3);
        fill(&mut bench);
        reset(&mut bench);
        assert_eq!(read_registers(&mut bench), expected);
        assert_eq!((bench.pf().read(r::ICR), bench.pf().read(r::EICR)), (0, 0));
    }
}

#[test]
fn software_reset_keeps_only_sticky_registers() {
    let mut fresh = CardFixture::bare();
    fresh.pf().read(r::ICR);
    let expected = read_registers(&mut fresh);
    let mut bench = CardFixture::bare();
    fill(&mut bench);
    let before = read_registers(&mut bench);
    bench.pf().write(r::CTRL, ctrl::RST);
    let after = read_registers(&mut bench);
    for (row, offset) in elements().filter(|(row, _)| !NOT_LOOKED_AT.contains(&row.name)) {
        let kept = if row.sticky { &before } else { &expected };
        assert_eq!(after[&offset], kept[&offset], "{} {offset:#x}", row.name);
    }
    assert_eq!((bench.pf().read(r::ICR), bench.pf().read(r::EICR)), (0, 0));
}

/// Returns the bits of a register that a reset of VF 1 may change.
fn of_vf_1(offset: u32) -> u32 {
    let one = index(1);
    let queues = [one.queue(0), one.queue(1)];
    let blocks = queues.into_iter().flat_map(|queue| [r::rx_block(queue), r::tx_block(queue)]);
    let vectors = 7 << one.first_vector();
    let throttles = (0..3).map(|v| r::eitr(i82576::VectorIndex::new(one.first_vector() + v).unwrap()));
    let (view, mailbox) = (r::vf_block(one), r::vmbmem(one, 0));
    match offset {
        r::EIMS | r::EIMC | r::EIAC | r::EIAM | r::EICS => vectors,
        r::VFRE | r::VFTE | r::VFLRE => one.bit(),
        _ if blocks.into_iter().any(|block| offset & !0x3f == block) => u32::MAX,
        _ if throttles.into_iter().any(|at| at == offset) => u32::MAX,
        _ if (view..view + 0x100).contains(&offset) => u32::MAX,
        _ if (mailbox..mailbox + 0x40).contains(&offset) => u32::MAX,
        _ if [r::vtivar(one), r::vtivar_misc(one), r::v2p_mailbox(one), 0x5484].contains(&offset) => u32::MAX,
        _ => 0,
    }
}

#[test]
fn vf_reset_changes_only_its_own_bits_in_shared_registers() {
    for reset in OF_VF_1 {
        let mut bench = CardFixture::new(3);
        fill(&mut bench);
        read_registers(&mut bench);
        let before = read_registers(&mut bench);
        reset(&mut bench);
        for (offset, value) in read_registers(&mut bench) {
            assert_eq!((value ^ before[&offset]) & !of_vf_1(offset), 0, "{offset:#x}");
        }
        assert_eq!(bench.vf(0).read(vf::VTEICR), 7, "the neighbour's causes remain");
        assert_eq!(bench.vf(1).read(vf::VTEICR), 0);
    }
}

/// Returns the values of V2PMAILBOX at VF 1's next two reads.
fn two_reads(bench: &mut CardFixture) -> (u32, u32) {
    (bench.vf(1).read(vf::V2PMAILBOX), bench.vf(1).read(vf::V2PMAILBOX))
}

/// Returns a card whose VFs 0 to 2 may run after PFRSTD. VF 1 has read its reset notice.
fn after_pf_reset_done() -> CardFixture {
    let mut bench = CardFixture::new(3);
    two_reads(&mut bench);
    bench
}

#[test]
fn reset_done_bit_is_set_by_each_vf_reset_and_cleared_by_read() {
    for reset in OF_VF_1 {
        let mut bench = after_pf_reset_done();
        reset(&mut bench);
        assert_eq!(two_reads(&mut bench), (v2p::RSTD, 0));
        reset(&mut bench);
        reset(&mut bench);
        assert_eq!(two_reads(&mut bench), (v2p::RSTD, 0), "two resets before a read set one RSTD");
        assert_eq!(bench.vf(0).read(vf::V2PMAILBOX) & v2p::RSTI, 0);
    }
}

#[test]
fn port_reset_shows_vfs_a_reset_until_the_pf_writes_pfrstd() {
    let again: ResetTrigger = |bench| bench.enable_vfs(3);
    let reset: ResetTrigger = |bench| bench.pf().write(r::CTRL, ctrl::RST);
    for (reset, of_port) in OF_EVERYTHING.map(|reset| (reset, true)).into_iter().chain([(reset, false)]) {
        let mut bench = after_pf_reset_done();
        bench.pf().write(r::p2v_mailbox(index(1)), 0b11);
        reset(&mut bench);
        if of_port {
            again(&mut bench);
            assert_eq!(
                two_reads(&mut bench),
                (v2p::RSTI | v2p::RSTD, v2p::RSTI),
                "an enabled VF reads RSTD once"
            );
        }
        assert_eq!(two_reads(&mut bench), (v2p::RSTI, v2p::RSTI), "the reset clears the PF's notices");
        for own in OF_VF_1 {
            own(&mut bench);
            assert_eq!(
                two_reads(&mut bench),
                (v2p::RSTI | v2p::RSTD, v2p::RSTI),
                "a VF's own reset sets RSTD under RSTI"
            );
        }
        bench.pf().set(r::CTRL_EXT, ctrl_ext::PFRSTD);
        assert_eq!(two_reads(&mut bench), (v2p::RSTD, 0));
    }
}

#[test]
fn newly_enabled_vfs_read_the_reset_done_bit_once() {
    let mut bench = after_pf_reset_done();
    bench.config(Pf, pf::SRIOV + sriov::CONTROL, 0);
    bench.enable_vfs(3);
    assert_eq!(two_reads(&mut bench), (v2p::RSTD, 0), "PFRSTD sets RSTD");
}

#[test]
fn every_reset_drops_a_throttled_interrupt_message() {
    let of_port: ResetTrigger = |bench| bench.pf().write(r::CTRL, ctrl::RST);
    let disabled: ResetTrigger = |bench| bench.config(Pf, pf::SRIOV + sriov::CONTROL, 0);
    for reset in OF_VF_1.into_iter().chain(OF_EVERYTHING).chain([of_port, disabled]) {
        let mut bench = after_pf_reset_done();
        bench.vf(1).write(vf::VTEITR, 100 << eitr::INTERVAL_SHIFT);
        bench.vf(1).write(vf::VTEIMS, 1);
        bench.vf(1).write(vf::VTEICS, 1);
        bench.poll();
        bench.expect_msix(Vf(1), 0);
        bench.vf(1).write(vf::VTEICS, 1);
        bench.poll();
        bench.expect_no_msix();
        reset(&mut bench);
        bench.config(Vf(1), offset::COMMAND, offset::COMMAND_BUS_MASTER.into());
        bench.wait_us(100);
        bench.expect_nothing();
        bench.vf(1).write(vf::VTEIMS, 1);
        bench.expect_nothing();
    }
}

fn space(bench: &mut CardFixture, function: Function) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bench.nic.config_read_bytes(function, 0, &mut bytes);
    bytes
}

/// Tests that only a function-level reset changes configuration space: bus mastering, MSI-X, MSI and SR-IOV.
#[test]
fn software_reset_keeps_configuration_space() {
    let set_up = || {
        let mut bench = CardFixture::new(3);
        for function in [Pf, Vf(1)] {
            bench.config(function, u16::from(MSIX) + msix::CONTROL, msix::CONTROL_ENABLE.into());
        }
        bench
    };
    let by_register: [ResetTrigger; 3] =
        [OF_VF_1[0], OF_VF_1[1], |bench| bench.pf().write(r::CTRL, ctrl::RST)];
    for reset in by_register {
        let mut bench = set_up();
        let before = [Pf, Vf(0), Vf(1)].map(|function| space(&mut bench, function));
        reset(&mut bench);
        assert!([Pf, Vf(0), Vf(1)].map(|function| space(&mut bench, function)) == before);
    }
    let mut bench = set_up();
    let fresh = space(&mut CardFixture::new(3), Pf);
    let (before, neighbour) = (space(&mut bench, Pf), space(&mut bench, Vf(0)));
    level_reset(&mut bench, Vf(1));
    assert!(space(&mut bench, Pf) == before && space(&mut bench, Vf(0)) == neighbour && before == fresh);
    assert_eq!(
        bench.nic.config_read(Vf(1), u16::from(MSIX) + msix::CONTROL, 2),
        2,
        "three vectors, disabled"
    );
    assert_eq!(bench.nic.config_read(Vf(1), offset::COMMAND, 2), 0);
    let power_on = nic::Nic::new(nic::NicConfig { mac: crate::common::PORT, iov: true, loopback: None });
    for reset in OF_EVERYTHING {
        let mut bench = set_up();
        reset(&mut bench);
        let mut expected = vec![0; 4096];
        power_on.clone().config_read_bytes(Pf, 0, &mut expected);
        assert!(space(&mut bench, Pf) == expected);
        assert!(space(&mut bench, Vf(1)).iter().all(|byte| *byte == 0xff), "the VF does not exist");
    }
}
