//! Tests register accesses of any width and alignment, and their effect on the registers' dwords.

use crate::common::{CardFixture, index, mac, plain};
use crate::registers::elements;
use i82576::Time;
use i82576::bits::{eitr, status, v2p};
use i82576::register as r;
use i82576::table::RegisterAccessRule;
use i82576::window;
use pcie::Function;

/// Tests that an access of any width at any alignment reaches its own bytes, for every plain register.
#[test]
fn pf_register_access_of_any_width_reaches_its_bytes() {
    let mut bench = CardFixture::bare();
    for (row, offset) in elements() {
        // EITR's counter runs, and `eitr_write_of_only_the_interval_keeps_the_counter` tests it.
        let (RegisterAccessRule::Rw(bits), false) = (row.access, row.name == "EITR") else { continue };
        for (width, lane) in [1, 2, 4, 8].into_iter().flat_map(|width| (0..4).map(move |lane| (width, lane)))
        {
            bench.pf().write(offset, 0x4433_2211);
            let mut expected = bench.pf().read(offset).to_le_bytes();
            let written = [0xa1, 0xb2, 0xc3, 0xd4, 0, 0, 0, 0];
            let mine = (4 - lane).min(width);
            bench.nic.write_bytes(
                Function::Pf,
                u64::from(offset) + lane as u64,
                &written[..mine],
                Time::ZERO,
            );
            for (at, byte) in (lane..4).zip(&written[..mine]) {
                let (kept, bits) = (expected[at], bits.to_le_bytes()[at]);
                expected[at] = kept & !bits | byte & bits;
            }
            let mut read = [0; 8];
            let read = &mut read[..mine];
            bench.nic.read_bytes(Function::Pf, u64::from(offset) + lane as u64, read, Time::ZERO);
            assert_eq!(read, &expected[lane..lane + mine], "{} {width} at {lane}", row.name);
            assert_eq!(bench.pf().read(offset), u32::from_le_bytes(expected), "{}", row.name);
        }
    }
}

/// Tests that an access of eight bytes reaches its dwords in address order, at any alignment.
#[test]
fn register_access_of_eight_bytes_reaches_both_dwords() {
    let mut bench = CardFixture::bare();
    let base = u64::from(r::rssrk(0));
    for start in 0..8 {
        for word in 0..4 {
            bench.pf().write(r::rssrk(word), 0);
        }
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        bench.nic.write_bytes(Function::Pf, base + start, &bytes, Time::ZERO);
        let mut all = [0; 16];
        bench.nic.read_bytes(Function::Pf, base, &mut all, Time::ZERO);
        let mut expected = [0; 16];
        expected[start as usize..][..8].copy_from_slice(&bytes);
        assert_eq!(all, expected);
    }
}

#[test]
fn byte_read_has_the_effect_of_a_whole_register_read() {
    let mut bench = CardFixture::bare();
    bench.pf().read(r::ICR);
    bench.pf().write(r::ICS, 0x0010_0004);
    let mut byte = [0];
    bench.nic.read_bytes(Function::Pf, u64::from(r::ICR) + 2, &mut byte, Time::ZERO);
    assert_eq!(byte, [0x10]);
    assert_eq!(bench.pf().read(r::ICR), 0, "the byte's read cleared the whole register");
}

#[test]
fn narrow_register_write_changes_only_its_bytes() {
    let mut bench = CardFixture::new(3);
    let (vf, now) = (Function::Vf(0), Time::ZERO);
    let at = u64::from(r::vf::VMBMEM);
    bench.vf(0).write(r::vf::VMBMEM, 0x4433_2211);
    bench.vf(0).write(r::vf::VMBMEM + 4, 0x8877_6655);
    for start in 0..8 {
        for end in start..=8 {
            let mut bytes = vec![0; end - start];
            bench.nic.read_bytes(vf, at + start as u64, &mut bytes, now);
            let all = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88];
            assert_eq!(bytes, all[start..end], "{start}..{end}");
        }
    }
    bench.nic.write_bytes(vf, at + 3, &[0xaa, 0xbb, 0xcc], now);
    assert_eq!(bench.vf(0).read(r::vf::VMBMEM), 0xaa33_2211);
    assert_eq!(bench.vf(0).read(r::vf::VMBMEM + 4), 0x8877_ccbb);
}

#[test]
fn byte_write_beside_a_vfs_vector_bits_keeps_the_bits() {
    let mut bench = CardFixture::new(3);
    for at in [r::vf::VTEIAC, r::vf::VTEIAM] {
        bench.vf(1).write(at, 5);
        bench.nic.write_bytes(Function::Vf(1), u64::from(at) + 1, &[0xff], Time::ZERO);
        assert_eq!(bench.vf(1).read(at), 5);
        bench.nic.write_bytes(Function::Vf(1), u64::from(at), &[3], Time::ZERO);
        assert_eq!(bench.vf(1).read(at), 3);
    }
}

#[test]
fn byte_write_to_a_set_register_sets_only_that_byte() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::EIMS, 0x0001_0101);
    bench.nic.write_bytes(Function::Pf, u64::from(r::EIMC) + 1, &[0x01], Time::ZERO);
    assert_eq!(bench.pf().read(r::EIMS), 0x0001_0001);
    bench.nic.write_bytes(Function::Pf, u64::from(r::EIMS) + 2, &[0x02], Time::ZERO);
    assert_eq!(bench.pf().read(r::EIMS), 0x0003_0001);
}

#[test]
fn register_bytes_beyond_the_bar_read_zero() {
    let mut bench = CardFixture::new(3);
    for offset in [0x1_fffe, 0x2_0000, 0xffff_fffe, 1 << 32, 1 << 63, u64::MAX - 1] {
        for function in [Function::Pf, Function::Vf(0)] {
            let mut bytes = [0xee; 8];
            bench.nic.write_bytes(function, offset, &[0xff; 8], Time::ZERO);
            bench.nic.read_bytes(function, offset, &mut bytes, Time::ZERO);
            assert_eq!(bytes, [0; 8], "{function} {offset:#x}");
        }
    }
}

#[test]
fn pf_byte_write_beside_vf_vector_bits_keeps_the_bits() {
    let mut bench = CardFixture::new(3);
    let view = r::vf_block(index(1));
    for at in [r::vf_stats::VTEIAC, r::vf_stats::VTEIAM].map(|at| view + at) {
        bench.pf().write(at, 5);
        bench.nic.write_bytes(Function::Pf, u64::from(at) + 1, &[0xff], Time::ZERO);
        assert_eq!(bench.pf().read(at), 5);
    }
}

/// Tests that a byte write to STATUS clears PHYRA only if its own byte is written: a written zero clears the
/// bit.
#[test]
fn byte_write_beside_the_phy_reset_bit_keeps_that_bit() {
    let mut bench = CardFixture::bare();
    for (byte, left) in [(0, status::PHYRA), (2, status::PHYRA), (3, status::PHYRA), (1, 0)] {
        bench.nic.write_bytes(Function::Pf, u64::from(r::STATUS) + byte, &[0], Time::ZERO);
        assert_eq!(bench.pf().read(r::STATUS) & status::PHYRA, left, "byte {byte}");
    }
}

#[test]
fn eitr_write_of_only_the_interval_keeps_the_counter() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).write(r::vf::VTEITR, 100 << eitr::INTERVAL_SHIFT);
    bench.vf(0).write(r::vf::VTEIMS, 1);
    bench.vf(0).write(r::vf::VTEICS, 1);
    bench.poll();
    bench.expect_msix(Function::Vf(0), 0);
    let interval = (50u16 << eitr::INTERVAL_SHIFT).to_le_bytes();
    bench.nic.write_bytes(Function::Vf(0), r::vf::VTEITR.into(), &interval, Time::ZERO);
    assert_eq!(bench.vf(0).read(r::vf::VTEITR), 25 << eitr::COUNTER_SHIFT | 50 << eitr::INTERVAL_SHIFT);
}

#[test]
fn byte_write_to_mbvficr_clears_only_events_of_that_byte() {
    let mut bench = CardFixture::new(3);
    for n in 0..3 {
        bench.vf(n).write(r::vf::V2PMAILBOX, v2p::REQ | v2p::ACK);
    }
    bench.nic.write_bytes(Function::Pf, u64::from(r::MBVFICR) + 2, &[0xff], Time::ZERO);
    assert_eq!(bench.pf().read(r::MBVFICR), 0x0000_0007);
    bench.nic.write_bytes(Function::Pf, u64::from(r::MBVFICR), &[2, 0], Time::ZERO);
    assert_eq!(bench.pf().read(r::MBVFICR), 0x0000_0005);
}

/// Tests that a driver may read a counter of two registers with one access of eight bytes.
#[test]
fn eight_byte_read_returns_and_clears_a_two_register_counter() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    let mut pair = [0; 8];
    bench.nic.read_bytes(Function::Pf, r::GORCL.into(), &mut pair, Time::ZERO);
    assert_eq!(u64::from_le_bytes(pair), 104);
    bench.nic.read_bytes(Function::Pf, r::GORCL.into(), &mut pair, Time::ZERO);
    assert_eq!(pair, [0; 8]);
}

#[test]
fn word_read_of_a_counter_clears_the_whole_counter() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    let mut word = [0; 2];
    bench.nic.read_bytes(Function::Pf, u64::from(r::GPRC) + 2, &mut word, Time::ZERO);
    assert_eq!((word, bench.pf().read(r::GPRC)), ([0; 2], 0));
}

/// Tests that an access to a VF's plain register reaches its own bytes, and changes no other byte.
#[test]
fn vf_register_write_of_any_width_changes_only_its_bytes() {
    let mut bench = CardFixture::new(3);
    let function = Function::Vf(1);
    for row in window::TABLE {
        // A narrow write to EITR leaves its running counter, so the bytes differ.
        let (RegisterAccessRule::Rw(bits), false) = (row.access, row.name == "VTEITR") else { continue };
        for offset in (0..row.count).map(|element| row.offset + element * row.stride) {
            for (width, lane) in [1, 2, 4].into_iter().flat_map(|width| (0..4).map(move |lane| (width, lane)))
            {
                bench.vf(1).write(offset, 0x4433_2211);
                let mut expected = bench.vf(1).read(offset).to_le_bytes();
                let written = &[0xa1, 0xb2, 0xc3, 0xd4][..width.min(4 - lane)];
                bench.nic.write_bytes(function, u64::from(offset) + lane as u64, written, Time::ZERO);
                for (at, byte) in (lane..4).zip(written) {
                    let (kept, bits) = (expected[at], bits.to_le_bytes()[at]);
                    expected[at] = kept & !bits | byte & bits;
                }
                let read = bench.vf(1).read(offset);
                assert_eq!(read, u32::from_le_bytes(expected), "{} {width} at {lane}", row.name);
            }
        }
    }
}
