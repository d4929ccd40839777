//! Tests the register table on the card: writable bits, clearing reads, aliases. `widths` tests accesses that are no
//! dwords.

use crate::common::{CardFixture, index, mac, plain, tagged, tcp};
use i82576::bits::{ctrl, dctl, p2v, v2p};
use i82576::register::{self as r, vf_stats};
use i82576::table::{self, PfRegister, RegisterAccessEffect, RegisterAccessRule};
use i82576::{MacAddress, VfIndex, ids, window};

const ALL: u32 = u32::MAX;

/// Names of registers whose reads or writes have effects that the register table does not describe, or whose value is
/// computed.
const MORE_THAN_THEIR_ROW: &[&str] = &[
    "CTRL",
    "STATUS",
    "SWSM",
    "ICR",
    "ICS",
    "IMS",
    "IMC",
    "EIMC",
    "EIMS",
    "EICR",
    "V2PMAILBOX",
    "P2VMAILBOX",
    "EECD",
    "EERD",
    "EEWR",
    "MDIC",
    "FRTIMER",
    "SYSTIML",
    "SYSTIMH",
    "TIMINCA",
    "TIMADJH",
    "VTEIMS",
    "VTEIMC",
    "VTEIAC",
    "VTEIAM",
    "VTEICR",
];

/// Returns the table row and the offset of every register that the register table describes completely.
pub(super) fn elements() -> impl Iterator<Item = (&'static PfRegister, u32)> {
    resets().map(|(row, offset, _)| (row, offset))
}

/// Returns the table row, the offset and the reset value of every register that the register table describes
/// completely.
fn resets() -> impl Iterator<Item = (&'static PfRegister, u32, u32)> {
    let plain = table::rows().filter(|row| !MORE_THAN_THEIR_ROW.contains(&row.name));
    plain.flat_map(|row| row.resets().map(move |(offset, value)| (row, offset, value)))
}

/// Returns each alias in the register table: the register's table row, the register's offset, and the alias offset.
fn aliases() -> impl Iterator<Item = (&'static PfRegister, u32, u32)> {
    table::rows()
        .flat_map(|row| row.offsets().zip(row.aliases()).map(move |(home, alias)| (row, home, alias)))
}

#[test]
fn every_register_reads_its_reset_value_after_power_on() {
    let mut bench = CardFixture::bare();
    for (row, offset, value) in resets() {
        let expected = match row.name {
            // Reset loads the port's address from the NVM.
            "RAL" if offset == r::ral(0) => 0x0000_0002,
            "RAH" if offset == r::rah(0) => 0x8004_ff00,
            _ => value,
        };
        assert_eq!(bench.pf().read(offset), expected, "{} {offset:#x}", row.name);
    }
}

#[test]
fn read_write_registers_keep_only_their_writable_bits() {
    let mut bench = CardFixture::bare();
    for (row, offset) in elements() {
        if let RegisterAccessRule::Rw(bits) = row.access {
            // EITR's counter and credits run from the written value; `throttling` tests them.
            let shown = if row.name == "EITR" { 0xffff } else { ALL };
            bench.pf().write(offset, ALL);
            let expected = (row.reset & !bits | bits) & shown;
            assert_eq!(bench.pf().read(offset) & shown, expected, "{} {offset:#x}", row.name);
            bench.pf().write(offset, 0);
            assert_eq!(bench.pf().read(offset) & shown, row.reset & !bits, "{} {offset:#x}", row.name);
        }
    }
}

/// Returns the visible effects of sample traffic after `prepare`: frames at VF 0, VF 1 and the wire, messages, and
/// statistics.
fn conversation(prepare: fn(&mut CardFixture)) -> String {
    let mut bench = CardFixture::new(3);
    prepare(&mut bench);
    for vf in [0, 1] {
        bench.vf(vf).start();
    }
    bench.vf(0).send(&tcp(mac(1), mac(0), &[1; 300]));
    bench.vf(1).send(&plain(MacAddress::BROADCAST, mac(1), 40));
    bench.wire_sends(&tagged(5, &tcp(mac(0), mac(9), &[2; 3000])));
    bench.wire_sends(&plain(mac(1), mac(9), 20));
    let received = [0, 1].map(|vf| bench.vf(vf).received());
    let counted = [r::GPRC, r::GPTC, r::TPR, r::RNBC].map(|at| bench.pf().read(at));
    format!("{received:?} {:?} {:?} {counted:?}", bench.wire_got(), bench.msix())
}

#[test]
fn writes_to_registers_without_effect_change_no_behaviour() {
    let plain = conversation(|_| {});
    let all = conversation(|bench| {
        for (_, offset) in elements().filter(|(row, _)| row.effect == RegisterAccessEffect::Never) {
            bench.pf().write(offset, ALL);
        }
    });
    assert_eq!(all, plain);
}

#[test]
fn read_only_registers_ignore_writes() {
    let mut bench = CardFixture::new(3);
    for (row, offset) in table::rows().flat_map(|row| row.offsets().map(move |offset| (row, offset))) {
        if row.access == RegisterAccessRule::Ro && !["STATUS", "V2PMAILBOX"].contains(&row.name) {
            let before = bench.pf().read(offset);
            bench.pf().write(offset, !before);
            assert_eq!(bench.pf().read(offset), before, "{} {offset:#x}", row.name);
        }
    }
}

#[test]
fn counter_registers_ignore_writes_and_start_at_zero() {
    let mut bench = CardFixture::bare();
    for (row, offset) in elements().filter(|(row, _)| row.access == RegisterAccessRule::Rc) {
        bench.pf().write(offset, ALL);
        assert_eq!(bench.pf().read(offset), 0, "{} {offset:#x}", row.name);
    }
}

#[test]
fn write_only_registers_read_zero() {
    let mut bench = CardFixture::bare();
    for (row, offset) in elements().filter(|(row, _)| row.access == RegisterAccessRule::Wo) {
        assert_eq!(bench.pf().read(offset), 0, "{} {offset:#x}", row.name);
    }
}

#[test]
fn ims_and_eims_set_and_imc_and_eimc_clear_bits_written_as_1() {
    for (set, clear) in [(r::IMS, r::IMC), (r::EIMS, r::EIMC)] {
        let mut bench = CardFixture::bare();
        bench.pf().write(set, 0x0d);
        bench.pf().write(set, 0xf0);
        assert_eq!(bench.pf().read(set), 0xfd);
        bench.pf().write(clear, 0x18);
        assert_eq!(bench.pf().read(set), 0xe5);
        assert_eq!(bench.pf().read(clear), 0xe5, "the clear register reads as the mask");
    }
}

#[test]
fn self_clearing_register_bits_read_zero() {
    let mut bench = CardFixture::new(1);
    let (rxdctl, txdctl) = (r::rx::RXDCTL, r::tx::TXDCTL);
    for (at, bits) in [
        (r::CTRL, ctrl::PHY_RST),
        (r::CTRL_EXT, 1 << 12 | 1 << 13 | 1 << 31),
        (r::rx_block(index(7).queue(1)) + rxdctl, dctl::SWFLSH),
        (r::tx_block(index(7).queue(1)) + txdctl, dctl::SWFLSH),
    ] {
        bench.pf().write(at, bits);
        assert_eq!(bench.pf().read(at) & bits, 0, "{at:#x}");
    }
    for at in [r::vf::RX_BLOCK + rxdctl, r::vf::TX_BLOCK + txdctl] {
        bench.vf(0).write(at, dctl::SWFLSH);
        assert_eq!(bench.vf(0).read(at), 0, "{at:#x}");
    }
}

#[test]
fn event_register_clears_only_bits_written_as_one() {
    let mut bench = CardFixture::new(3);
    for vf in 0..3 {
        bench.vf(vf).write(r::vf::V2PMAILBOX, v2p::REQ | v2p::ACK);
    }
    assert_eq!(bench.pf().read(r::MBVFICR), 0x0007_0007);
    bench.pf().write(r::MBVFICR, 0x0002_0001);
    assert_eq!(bench.pf().read(r::MBVFICR), 0x0005_0006);
    assert_eq!(bench.pf().read(r::MBVFICR), 0x0005_0006, "a read clears nothing");
}

#[test]
fn register_alias_accesses_the_same_register() {
    let mut bench = CardFixture::bare();
    for (row, home, alias) in aliases() {
        if let RegisterAccessRule::Rw(bits) = row.access {
            bench.pf().write(alias, 0x5a5a_5a5a & bits);
            assert_eq!(bench.pf().read(home), bench.pf().read(alias), "{}", row.name);
            bench.pf().write(home, 0xa5a5_a5a5 & bits);
            assert_eq!(bench.pf().read(alias), row.reset & !bits | 0xa5a5_a5a5 & bits, "{}", row.name);
        }
    }
    assert_eq!(bench.pf().read(0x3814 + 0x300), bench.pf().read(0xe014 + 0xc0), "TXCTL of queue 3");
}

#[test]
fn reserved_offsets_read_zero_and_ignore_writes() {
    let mut bench = CardFixture::bare();
    let mut known = vec![false; ids::PF_BAR0_SIZE / 4];
    for offset in table::rows().flat_map(PfRegister::offsets).chain(aliases().map(|(_, _, alias)| alias)) {
        known[offset as usize / 4] = true;
    }
    let unknown = (0u32..).step_by(4).zip(&known).filter(|(_, known)| !**known).map(|(offset, _)| offset);
    for offset in unknown.chain([0x2_0000, 0xffff_fffc]) {
        bench.pf().write(offset, ALL);
        assert_eq!(bench.pf().read(offset), 0, "{offset:#x}");
    }
}

#[test]
fn status_register_shows_a_vf_its_own_link_state() {
    let mut bench = CardFixture::new(3);
    // FD, LU, 1000 Mb/s, LAN_INIT_DONE, PHYRA, three VFs, IOV, GIO_MASTER.
    assert_eq!(bench.pf().read(r::STATUS), 0x000c_c683);
    assert_eq!(bench.vf(0).read(r::vf::STATUS), 0x000c_c683);
    bench.nic.set_vf_link(index(0), Some(false));
    assert_eq!(bench.vf(0).read(r::vf::STATUS), 0x000c_c681, "the administrator set this VF's link down");
    assert_eq!(bench.vf(1).read(r::vf::STATUS), 0x000c_c683);
    bench.nic.set_link(false);
    assert_eq!(bench.pf().read(r::STATUS), 0x000c_c681);
}

#[test]
fn status_shows_bus_mastering_off_after_gio_master_disable() {
    let mut bench = CardFixture::bare();
    let (master, disable) = (1 << 19, 1 << 2);
    assert_ne!(bench.pf().read(r::STATUS) & master, 0);
    bench.pf().set(r::CTRL, disable);
    assert_eq!(bench.pf().read(r::STATUS) & master, 0);
    bench.pf().clear(r::CTRL, disable);
    assert_ne!(bench.pf().read(r::STATUS) & master, 0);
}

#[test]
fn swsm_read_takes_the_software_semaphore() {
    let mut bench = CardFixture::bare();
    assert_eq!(bench.pf().read(r::SWSM) & 1, 0);
    assert_eq!(bench.pf().read(r::SWSM) & 1, 1, "the semaphore is taken");
    bench.pf().write(r::SWSM, 0);
    assert_eq!(bench.pf().read(r::SWSM) & 1, 0);
}

/// Returns the offset in the PF's BAR0 of the register that a VF sees at `offset`. For EIAC and EIAM this is in the
/// PF's window onto the VF.
fn through_pf(vf: VfIndex, offset: u32) -> u32 {
    match offset {
        r::EIAC => r::vf_block(vf) + r::vf_stats::VTEIAC,
        r::EIAM => r::vf_block(vf) + r::vf_stats::VTEIAM,
        offset => offset,
    }
}

/// Tests that a VF register and the PF's register with the VF's bits show each other's writes.
#[test]
fn vf_register_shares_its_bits_with_the_pf_register() {
    let mut bench = CardFixture::new(8);
    for vf in VfIndex::all() {
        for row in window::TABLE {
            let RegisterAccessRule::Rw(bits) = row.access else { continue };
            if row.name == "VTEITR" {
                continue;
            }
            for element in 0..row.count {
                let (slot, at) = (row.slot(vf, element), row.offset + element * row.stride);
                let pattern = 0xa5c3_965a & bits & slot.mask;
                bench.vf(vf.get()).write(at, pattern);
                let kept = bench.vf(vf.get()).read(at);
                assert_eq!(kept & bits & slot.mask, pattern, "{vf} {}", row.name);
                let seen = bench.pf().read(slot.offset) >> slot.shift & slot.mask;
                assert_eq!(seen, kept, "{vf} {}", row.name);
                bench.pf().write(through_pf(vf, slot.offset), 0);
                assert_eq!(bench.vf(vf.get()).read(at) & bits, 0, "{vf} {}", row.name);
            }
        }
    }
}

#[test]
fn vf_accesses_only_its_three_interrupt_vector_bits() {
    let mut bench = CardFixture::new(8);
    for vf in VfIndex::all() {
        let shift = u32::from(vf.first_vector());
        bench.vf(vf.get()).write(r::vf::VTEIMS, ALL);
        assert_eq!(bench.pf().read(r::EIMS), 7 << shift);
        bench.vf(vf.get()).write(r::vf::VTEICS, ALL);
        assert_eq!(bench.pf().read(r::vf_block(vf) + 0x24), 7, "VTEIMS in the PF's view");
        assert_eq!(bench.vf(vf.get()).read(r::vf::VTEIMS), 7);
        bench.vf(vf.get()).write(r::vf::VTEIMC, 2);
        assert_eq!(bench.pf().read(r::EIMS), 5 << shift);
        bench.pf().write(r::EIMC, ALL);
        assert_eq!(bench.vf(vf.get()).read(r::vf::VTEIMS), 0);
        assert_eq!(bench.vf(vf.get()).read(r::vf::VTEICR), 7, "VTEICS has set the causes");
        assert_eq!(bench.pf().read(r::EICR), 0, "the VF's read has cleared them");
    }
}

#[test]
fn pf_writes_to_vf_register_copies_set_the_vfs_vectors() {
    let mut bench = CardFixture::new(3);
    let block = r::vf_block(index(1));
    bench.pf().write(block + 0x24, 3);
    assert_eq!(bench.vf(1).read(r::vf::VTEIMS), 3);
    bench.pf().write(block + 0x28, 1);
    assert_eq!(bench.vf(1).read(r::vf::VTEIMS), 2);
    bench.pf().write(block + 0x2c, 5);
    bench.pf().write(block + 0x30, 6);
    assert_eq!((bench.vf(1).read(r::vf::VTEIAC), bench.vf(1).read(r::vf::VTEIAM)), (5, 6));
    bench.pf().write(block + 0x20, 4);
    assert_eq!(bench.pf().read(block + 0x80), 4);
    assert_eq!(bench.vf(1).read(r::vf::VTEICR), 0);
}

#[test]
fn vtivar_stores_vector_3_but_vteiac_has_only_three_bits() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).write(r::vf::VTIVAR, ALL);
    assert_eq!(bench.vf(0).read(r::vf::VTIVAR), 0x8383_8383);
    bench.vf(0).write(r::vf::VTIVAR_MISC, ALL);
    assert_eq!(bench.vf(0).read(r::vf::VTIVAR_MISC), 0x83);
    bench.vf(0).write(r::vf::VTEIAC, ALL);
    assert_eq!(bench.vf(0).read(r::vf::VTEIAC), 7);
}

#[test]
fn reserved_vf_offsets_read_zero() {
    let mut bench = CardFixture::new(3);
    for offset in (0..ids::VF_BAR0_SIZE as u32).step_by(4).chain([0x4000, 0x1_0000, 0xffff_fffc]) {
        if window::resolve(index(0), offset).is_none() {
            bench.vf(0).write(offset, ALL);
            assert_eq!(bench.vf(0).read(offset), 0, "{offset:#x}");
        }
    }
    assert_eq!(bench.vf(0).read(r::vf::CTRL), 0);
}

#[test]
fn missing_vf_reads_ones_and_ignores_register_writes() {
    let mut bench = CardFixture::new(3);
    assert_eq!(bench.vf(3).read(r::vf::STATUS), ALL, "the VF does not exist");
    bench.vf(3).write(r::vf::RX_BLOCK + r::rx::RDLEN, 0x1000);
    let queue = index(3).queue(0);
    assert_eq!(bench.pf().read(r::rx_block(queue) + r::rx::RDLEN), 0, "the queue is the PF's");
}

/// Tests the PF's window onto a VF that does not exist: with three VFs, vectors 7 to 9, which would be VF 5's, are the
/// PF's.
#[test]
fn pf_copy_of_a_missing_vfs_registers_reads_zero() {
    let mut bench = CardFixture::new(3);
    let (own, window) = (7 << 7, r::vf_block(index(5)));
    for at in [r::EIMS, r::EICS, r::EIAC, r::EIAM] {
        bench.pf().write(at, own);
    }
    for at in [vf_stats::VTEIMS, vf_stats::VTEIMC, vf_stats::VTEIAC, vf_stats::VTEIAM, vf_stats::VTEICR] {
        assert_eq!(bench.pf().read(window + at), 0, "{at:#x}");
        bench.pf().write(window + at, if at == vf_stats::VTEIAC { 0 } else { 7 });
    }
    assert_eq!([r::EIMS, r::EIAC, r::EIAM, r::EICR].map(|at| bench.pf().read(at)), [own; 4]);
    bench.pf().write(r::vtivar_misc(index(5)), 0x80);
    bench.pf().write(r::p2v_mailbox(index(5)), p2v::STS | p2v::PFU);
    assert_eq!(bench.pf().read(r::p2v_mailbox(index(5))), 0);
    assert_eq!(bench.pf().read(r::EICR), 0, "no vector was raised");
}
