//! Tests the card as PF drivers use it before they set up rings: NVM, PHY, semaphores, clock, and the register
//! self-test of Linux igb.

use crate::common::{CardFixture, PORT, mac, plain};
use core::time::Duration;
use i82576::bits::{ctrl, icr, mdic, rctl, status, tctl};
use i82576::phy::{self, control};
use i82576::register as r;
use i82576::{Time, nvm};
use pcie::Function;

/// Reads a word of the NVM as drivers do.
fn word(bench: &mut CardFixture, at: usize) -> u16 {
    bench.pf().write(r::EERD, (at as u32) << 2 | 1);
    let value = bench.pf().read(r::EERD);
    assert_eq!(value & 3, 2, "DONE in the layout of large NVMs");
    (value >> 16) as u16
}

fn write_word(bench: &mut CardFixture, at: usize, word: u16) {
    bench.pf().write(r::EEWR, u32::from(word) << 16 | (at as u32) << 2 | 1);
    assert_eq!(bench.pf().read(r::EEWR) & 3, 2);
}

/// Reads a register of the PHY at `address` as drivers do. Returns `None` if MDIC reports an error.
fn phy_at(bench: &mut CardFixture, address: u32, register: usize) -> Option<u16> {
    let value = mdic::READ | address << mdic::PHY_SHIFT | (register as u32) << mdic::REGISTER_SHIFT;
    bench.pf().write(r::MDIC, value);
    let answer = bench.pf().read(r::MDIC);
    assert_ne!(answer & mdic::READY, 0);
    (answer & mdic::ERROR == 0).then_some(answer as u16)
}

fn write_phy(bench: &mut CardFixture, register: usize, value: u16) {
    let place = phy::ADDRESS << mdic::PHY_SHIFT | (register as u32) << mdic::REGISTER_SHIFT;
    bench.pf().write(r::MDIC, mdic::WRITE | place | u32::from(value));
    assert_eq!(bench.pf().read(r::MDIC) & (mdic::READY | mdic::ERROR), mdic::READY);
}

#[test]
fn nvm_holds_a_valid_checksum_and_the_mac_address() {
    let mut bench = CardFixture::bare();
    let words: Vec<u16> = (0..nvm::SUMMED).map(|at| word(&mut bench, at)).collect();
    assert_eq!(words.iter().fold(0u16, |sum, word| sum.wrapping_add(*word)), 0xbaba);
    assert_eq!(words[..3], [0x0002, 0x0000, 0xff00], "02:00:00:00:00:ff");
    assert_eq!((words[0x0d], words[0x16] >> 11, words[0x37]), (0x10c9, 9, 0xffff));
    // Fewer than 2^15 words: drivers read larger NVMs bit by bit.
    let size = (bench.pf().read(r::EECD) >> 11 & 0xf) + 6;
    assert_eq!(1 << size, nvm::WORDS);
}

#[test]
fn eerd_write_without_its_start_bit_reads_no_nvm_word() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::EERD, 2 << 2);
    assert_eq!(bench.pf().read(r::EERD), 2 << 2);
}

#[test]
fn mac_address_written_to_the_nvm_is_loaded_at_the_next_reset() {
    let mut bench = CardFixture::bare();
    for (at, value) in [(0, 0x0a02), (1, 0x0c0b), (2, 0x0e0d)] {
        write_word(&mut bench, at, value);
    }
    assert_eq!(bench.pf().read(r::ral(0)), 0x0000_0002, "not yet");
    bench.pf().write(r::CTRL, ctrl::RST);
    assert_eq!(bench.pf().read(r::ral(0)), 0x0c0b_0a02);
    assert_eq!(bench.pf().read(r::rah(0)), 0x8004_0e0d);
    assert_eq!(word(&mut bench, 0), 0x0a02, "resets keep the NVM");
}

#[test]
fn eecd_grants_nvm_access_on_request_and_reports_auto_read() {
    let mut bench = CardFixture::bare();
    assert_eq!(bench.pf().read(r::EECD) & 0x3c0, 0x300, "NVM present, auto-read done");
    bench.pf().set(r::EECD, 1 << 6);
    assert_eq!(bench.pf().read(r::EECD) & 0xc0, 0xc0);
    bench.pf().clear(r::EECD, 1 << 6);
    assert_eq!(bench.pf().read(r::EECD) & 0xc0, 0);
    bench.pf().write(r::CTRL, ctrl::RST);
    assert_eq!(bench.pf().read(r::EECD) & 0x3c0, 0x300);
    assert_eq!(bench.pf().read(0x1010) & 0x000c_0000, 0x000c_0000, "configuration done, both ports");
}

#[test]
fn phy_answers_at_address_1_only() {
    let mut bench = CardFixture::bare();
    for address in 0..32 {
        let id = phy_at(&mut bench, address, phy::ID_1).zip(phy_at(&mut bench, address, phy::ID_2));
        assert_eq!(id, (address == 1).then_some((0x02a8, 0x0391)), "address {address}");
    }
    bench.pf().write(r::MDIC, 1 << mdic::PHY_SHIFT);
    assert_ne!(bench.pf().read(r::MDIC) & mdic::ERROR, 0, "an operation other than read and write");
}

#[test]
fn finished_phy_access_interrupts_only_with_mdic_interrupt_bit() {
    let mut bench = CardFixture::bare();
    bench.pf().read(r::ICR);
    phy_at(&mut bench, 1, phy::STATUS);
    assert_eq!(bench.pf().read(r::ICR), 0);
    bench.pf().write(r::MDIC, mdic::READ | 1 << mdic::PHY_SHIFT | mdic::INTERRUPT);
    assert_eq!(bench.pf().read(r::ICR), icr::MDAC);
}

#[test]
fn phy_power_down_takes_the_link_down() {
    let mut bench = CardFixture::new(1);
    bench.pf().read(r::ICR);
    write_phy(&mut bench, phy::CONTROL, 0x1140 | control::POWER_DOWN);
    assert_eq!(bench.pf().read(r::STATUS) & status::LU, 0);
    assert_eq!(bench.vf(0).read(r::vf::STATUS) & status::LU, 0, "a VF sees the port's link");
    assert_eq!(bench.pf().read(r::ICR) & icr::LSC, icr::LSC);
    write_phy(&mut bench, phy::CONTROL, 0x1140);
    assert_eq!(bench.pf().read(r::STATUS) & status::LU, 0, "the PHY negotiates");
    negotiate(&mut bench);
    assert_eq!(bench.pf().read(r::STATUS) & status::LU, status::LU);
    assert_eq!(bench.pf().read(r::ICR) & icr::LSC, icr::LSC);
}

/// Waits until a negotiation of the PHY is over: two seconds, which the card itself announces.
fn negotiate(bench: &mut CardFixture) {
    let deadline = bench.poll().deadline.unwrap();
    assert!(deadline > bench.now && deadline <= bench.now + Duration::from_secs(2));
    bench.now = deadline;
    bench.poll();
}

/// Linux igb starts its test ring after a reset of the PHY, and sets the PHY's loopback 50 ms later. A frame of the wire in between
/// makes igb_clean_tx_ring spin for ever.
#[test]
fn wire_is_silent_while_the_phy_negotiates() {
    let broadcast = plain(i82576::MacAddress::BROADCAST, mac(9), 60);
    let mut bench = CardFixture::bare();
    bench.pf().set(r::CTRL, ctrl::PHY_RST);
    write_phy(&mut bench, phy::CONTROL, 0x1140 | control::RESTART);
    bench.pf().write(r::RCTL, rctl::EN | rctl::BAM);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().start();
    bench.wait_us(1_000_000);
    bench.wire_sends(&broadcast);
    bench.pf().expect_no_frame();
    write_phy(&mut bench, phy::CONTROL, 0x4140);
    bench.pf().send(&plain(i82576::MacAddress::BROADCAST, mac(9), 200));
    bench.pf().expect_frame();
    // igb ends the loopback and resets the PHY before it stops the rings, whose memory it frees.
    write_phy(&mut bench, phy::CONTROL, 0x0140);
    write_phy(&mut bench, phy::CONTROL, 0x0140 | control::RESET);
    bench.wire_sends(&broadcast);
    bench.pf().expect_no_frame();
    negotiate(&mut bench);
    bench.wire_sends(&broadcast);
    bench.pf().expect_frame();
}

#[test]
fn saved_card_continues_its_negotiation() {
    let mut bench = CardFixture::bare();
    bench.pf().set(r::CTRL, ctrl::PHY_RST);
    bench.nic = nic::Nic::restore(bench.nic.save()).unwrap();
    // The successor's uplink has a carrier once its peer has connected again.
    bench.nic.set_link(false);
    bench.nic.set_link(true);
    assert!(!bench.nic.link());
    negotiate(&mut bench);
    assert!(bench.nic.link());
}

#[test]
fn flr_ends_a_negotiation_of_the_phy_and_ctrl_rst_does_not() {
    let mut bench = CardFixture::bare();
    bench.pf().set(r::CTRL, ctrl::PHY_RST);
    bench.pf().write(r::CTRL, ctrl::RST);
    assert!(!bench.nic.link());
    bench.nic.reset_function(Function::Pf);
    assert!(bench.nic.link());
}

#[test]
fn phy_loopback_returns_frames_and_keeps_them_off_the_wire() {
    let mut bench = CardFixture::bare();
    bench.nic.set_link(false);
    write_phy(&mut bench, phy::CONTROL, 0x4140);
    bench.pf().write(r::RCTL, rctl::EN | rctl::BAM | rctl::UPE);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().start();
    bench.pf().send(&plain(i82576::MacAddress::BROADCAST, mac(9), 200));
    assert_eq!(bench.pf().expect_frame().bytes, plain(i82576::MacAddress::BROADCAST, mac(9), 200));
    assert!(bench.wire_got().is_empty());
    assert_eq!((bench.pf().read(r::GPTC), bench.pf().read(r::GPRC)), (1, 1));
    bench.wire_sends(&plain(PORT, mac(9), 60));
    bench.pf().expect_no_frame();
    write_phy(&mut bench, phy::CONTROL, 0x1140);
    assert_eq!(bench.pf().read(r::STATUS) & status::LU, 0, "no carrier");
}

#[test]
fn status_shows_a_phy_reset_until_software_clears_the_bit() {
    let mut bench = CardFixture::bare();
    assert_eq!(bench.pf().read(r::STATUS) & status::PHYRA, status::PHYRA, "power-on resets the PHY");
    bench.pf().write(r::STATUS, 0);
    assert_eq!(bench.pf().read(r::STATUS) & status::PHYRA, 0);
    write_phy(&mut bench, phy::ADVERTISE, 1);
    bench.pf().set(r::CTRL, ctrl::PHY_RST);
    assert_eq!(bench.pf().read(r::CTRL) & ctrl::PHY_RST, 0);
    assert_eq!(bench.pf().read(r::STATUS) & status::PHYRA, status::PHYRA);
    assert_eq!(phy_at(&mut bench, 1, phy::ADVERTISE), Some(0x0de1));
}

#[test]
fn phy_is_reset_by_function_level_reset_and_not_by_ctrl_rst() {
    let mut bench = CardFixture::bare();
    write_phy(&mut bench, phy::ADVERTISE, 1);
    bench.pf().write(r::CTRL, ctrl::RST);
    assert_eq!(phy_at(&mut bench, 1, phy::ADVERTISE), Some(1));
    write_phy(&mut bench, phy::CONTROL, control::POWER_DOWN);
    bench.nic.reset_function(Function::Pf);
    assert_eq!(phy_at(&mut bench, 1, phy::ADVERTISE), Some(0x0de1));
    assert_eq!(bench.pf().read(r::STATUS) & status::LU, status::LU, "the PHY leaves power-down");
}

#[test]
fn software_gets_all_semaphores_as_the_card_has_no_firmware() {
    let mut bench = CardFixture::bare();
    bench.pf().read(r::SWSM);
    bench.pf().write(r::SWSM, 2);
    assert_eq!(bench.pf().read(r::SWSM) & 2, 2, "no firmware takes SWESMBI away");
    bench.pf().write(r::SWSM, 0);
    assert_eq!(bench.pf().read(r::SWSM), 0);
    bench.pf().write(0x5b5c, 0xffff_ffff);
    assert_eq!(bench.pf().read(0x5b5c), 0x0000_ffff, "firmware holds nothing");
    assert_eq!((bench.pf().read(0x5b54), bench.pf().read(0x5820)), (0, 0), "no firmware");
}

#[test]
fn systim_clock_runs_at_the_rate_of_timinca() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::TIMINCA, 1 << 24 | 16 << 19);
    bench.wait_us(1000);
    let low = u64::from(bench.pf().read(r::SYSTIML));
    let count = low | u64::from(bench.pf().read(r::SYSTIMH)) << 32;
    assert_eq!(count >> 19, 1_000_000, "nanoseconds");
    bench.pf().write(r::CTRL, ctrl::RST);
    bench.wait_us(1000);
    assert_eq!(bench.pf().read(r::SYSTIML), 0, "a reset clears and stops the clock");
}

#[test]
fn free_running_timer_shows_the_time_to_pf_and_vf() {
    let mut bench = CardFixture::new(1);
    bench.now = Time::from_micros(2_003_004);
    for value in [bench.pf().read(r::FRTIMER), bench.vf(0).read(r::vf::FRTIMER)] {
        assert_eq!(value, 2 << 20 | 3 << 10 | 4);
    }
}

#[test]
fn ciaa_and_ciad_do_not_reach_vf_configuration_space() {
    let mut bench = CardFixture::new(2);
    bench.pf().write(r::VFLRE, 0xff);
    for vf in 0..2u32 {
        // OOT igb resets a VF through Device Control at 0xa8 with this bit.
        bench.pf().write(0x5b88, vf << 16 | 0xa8);
        bench.pf().write(0x5b8c, 0x8000);
        assert_eq!(bench.pf().read(0x5b8c), 0);
    }
    assert_eq!(bench.pf().read(r::VFLRE), 0);
}

/// Registers that Linux igb tests in `ethtool -t`: offset, stride, count, and the bits that read as written.
const PATTERNS: &[(u32, u32, u32, u32)] = &[
    (0x0028, 0x100, 1, 0xffff_ffff),
    (0x002c, 0x100, 1, 0x0000_ffff),
    (0x0030, 0x100, 1, 0x0000_ffff),
    (0x0038, 0x100, 1, 0xffff_ffff),
    (0x2800, 0x100, 4, 0xffff_ff80),
    (0x2804, 0x100, 4, 0xffff_ffff),
    (0x2808, 0x100, 4, 0x000f_fff0),
    (0xc100, 0x40, 12, 0xffff_ff80),
    (0xc104, 0x40, 12, 0xffff_ffff),
    (0xc108, 0x40, 12, 0x000f_fff0),
    (0x2818, 0x100, 4, 0x0000_ffff),
    (0xc118, 0x40, 12, 0x0000_ffff),
    (0x2168, 0x100, 1, 0x0000_fff0),
    (0x0170, 0x100, 1, 0x0000_ffff),
    (0x0410, 0x100, 1, 0x3fff_ffff),
    (0x3800, 0x100, 4, 0xffff_ff80),
    (0x3804, 0x100, 4, 0xffff_ffff),
    (0x3808, 0x100, 4, 0x000f_fff0),
    (0xe100, 0x40, 12, 0xffff_ff80),
    (0xe104, 0x40, 12, 0xffff_ffff),
    (0xe108, 0x40, 12, 0x000f_fff0),
    (0x5400, 8, 16, 0xffff_ffff),
    (0x5404, 8, 16, 0x83ff_ffff),
    (0x54e0, 8, 8, 0xffff_ffff),
    (0x54e4, 8, 8, 0x83ff_ffff),
    (0x5200, 4, 128, 0xffff_ffff),
];

#[test]
fn card_passes_the_register_self_test_of_driver_igb() {
    let mut bench = CardFixture::bare();
    for &(first, stride, count, bits) in PATTERNS {
        for at in (0..count).map(|i| first + i * stride) {
            for pattern in [0x5a5a_5a5a, 0xa5a5_a5a5, 0, 0xffff_ffff] {
                bench.pf().write(at, pattern);
                assert_eq!(bench.pf().read(at) & bits, pattern & bits, "{at:#x}");
            }
        }
    }
    let toggle = 0x7fff_f3ff;
    let before = bench.pf().read(r::STATUS) & toggle;
    bench.pf().write(r::STATUS, toggle);
    assert_eq!(bench.pf().read(r::STATUS) & toggle, before);
    for (at, value) in [(r::RCTL, 0), (r::RCTL, 0x000f_b0fa), (r::RCTL, 0x04cf_b0fe), (r::TCTL, 0)] {
        bench.pf().write(at, value);
        assert_eq!(bench.pf().read(at), value, "{at:#x}");
    }
}

#[test]
fn status_shows_speed_and_duplex_forced_by_ctrl() {
    // 82576 datasheet, CTRL: FRCSPD forces SPEED and FRCDPX forces FD; otherwise the negotiated values hold.
    let mut bench = CardFixture::bare();
    let shown = |bench: &mut CardFixture, control| {
        bench.pf().write(r::CTRL, control);
        bench.pf().read(r::STATUS) & (status::FD | 0b11 << 6)
    };
    let (hundred, full) = (0b01 << 8, ctrl::FD);
    assert_eq!(shown(&mut bench, ctrl::SLU | hundred), status::FD | 0b10 << 6, "not forced");
    assert_eq!(
        shown(&mut bench, ctrl::SLU | ctrl::FRCSPD | ctrl::FRCDPX | hundred | full),
        status::FD | 0b01 << 6
    );
    assert_eq!(shown(&mut bench, ctrl::SLU | ctrl::FRCSPD | ctrl::FRCDPX), 0, "10 Mb/s, half duplex");
}

#[test]
fn frames_in_mac_loopback_return_and_the_wire_is_cut_off() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::RCTL, rctl::EN | rctl::BAM | rctl::LBM_MAC);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().start();
    bench.pf().send(&plain(PORT, mac(9), 200));
    assert_eq!(bench.pf().expect_frame().bytes, plain(PORT, mac(9), 200));
    assert!(bench.wire_got().is_empty());
    bench.wire_sends(&plain(PORT, mac(9), 60));
    bench.pf().expect_no_frame();
    bench.pf().clear(r::RCTL, rctl::LBM_MASK);
    bench.wire_sends(&plain(PORT, mac(9), 60));
    bench.pf().expect_frame();
}
