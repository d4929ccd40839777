//! Tests NVM, PHY, clock and timer without the card: NVM words, PHY registers, and a clock at chosen times.

use super::clock::{SystimClock, free_running};
use super::nvm::Nvm;
use super::phy::Phy;
use i82576::bits::mdic;
use i82576::phy::{self, control};
use i82576::{MacAddress, Time, nvm};

fn read(phy: &mut Phy, register: usize) -> u32 {
    let address = 1 << mdic::PHY_SHIFT | (register as u32) << mdic::REGISTER_SHIFT;
    phy.access(mdic::READ | address, Time::from_micros(0)) & mdic::DATA
}

fn write(phy: &mut Phy, register: usize, value: u16) {
    let address = 1 << mdic::PHY_SHIFT | (register as u32) << mdic::REGISTER_SHIFT;
    phy.access(mdic::WRITE | address | u32::from(value), Time::from_micros(0));
}

#[test]
fn nvm_word_beyond_its_end_reads_ffff_and_ignores_writes() {
    let mut nvm = Nvm::new(MacAddress([2, 0, 0, 0, 0, 1]), true);
    let beyond = (nvm::WORDS as u32) << 2 | 1;
    assert_eq!(nvm.write(0xbeef_0000 | beyond) & 3, 2);
    assert_eq!(nvm.read(beyond) >> 16, 0xffff);
    assert_eq!(nvm.read(0xffff_ffff) >> 16, 0xffff);
}

#[test]
fn phy_status_latches_link_loss_until_read() {
    let mut phy = Phy::new();
    assert_eq!(read(&mut phy, phy::STATUS), 0x7949);
    assert!(phy.renew_link(true));
    assert_eq!(read(&mut phy, phy::STATUS), 0x796d);
    assert!(!phy.renew_link(false));
    assert!(phy.renew_link(true));
    assert_eq!(read(&mut phy, phy::STATUS), 0x7969, "the link was down since the last read");
    assert_eq!(read(&mut phy, phy::STATUS), 0x796d);
}

#[test]
fn phy_has_no_link_in_power_down_and_a_link_in_loopback() {
    let mut phy = Phy::new();
    for (value, carrier, up) in [
        (control::POWER_DOWN, true, false),
        (control::ISOLATE, true, false),
        (control::LOOPBACK, false, true),
        (control::LOOPBACK | control::POWER_DOWN, true, false),
        (0, true, true),
    ] {
        write(&mut phy, phy::CONTROL, value);
        phy.pass(Time::from_micros(2_000_000));
        assert_eq!(phy.renew_link(carrier), up, "{value:#x}");
    }
}

#[test]
fn phy_has_no_link_for_two_seconds_while_it_negotiates() {
    for [before, begin] in [
        [0x1140, control::RESTART],
        [0x1140, control::RESET],
        [control::POWER_DOWN, 0],
        [control::LOOPBACK, 0],
    ] {
        let mut phy = Phy::new();
        write(&mut phy, phy::CONTROL, before);
        phy.pass(Time::from_micros(2_000_000));
        phy.renew_link(true);
        write(&mut phy, phy::CONTROL, begin);
        assert!(
            !phy.renew_link(true) && !phy.pass(Time::from_micros(1_999_999)),
            "{begin:#x} after {before:#x}"
        );
        assert!(
            !phy.renew_link(true) && phy.pass(Time::from_micros(2_000_000)),
            "{begin:#x} after {before:#x}"
        );
        assert!(phy.renew_link(true), "{begin:#x} after {before:#x}");
    }
}

#[test]
fn carrier_that_comes_and_goes_shortens_no_negotiation() {
    let mut phy = Phy::new();
    write(&mut phy, phy::CONTROL, 0x1140 | control::RESTART);
    assert!(!phy.renew_link(false) && !phy.renew_link(true));
    assert!(phy.pass(Time::from_micros(2_000_000)) && phy.renew_link(true));
}

#[test]
fn negotiation_of_a_damaged_state_ends_in_two_seconds() {
    let mut phy = Phy::new();
    phy.resume_negotiation(Some(Time::from_micros(u64::MAX / 2_000)));
    assert!(!phy.pass(Time::from_micros(7)) && !phy.renew_link(true));
    assert!(phy.pass(Time::from_micros(2_000_007)) && phy.renew_link(true));
}

#[test]
fn phy_reset_and_restart_bits_clear_themselves() {
    let mut phy = Phy::new();
    write(&mut phy, phy::ADVERTISE, 0x0001);
    write(&mut phy, phy::CONTROL, 0x1140 | control::RESTART);
    assert_eq!(read(&mut phy, phy::CONTROL), 0x1140);
    assert_eq!(read(&mut phy, phy::ADVERTISE), 0x0001);
    write(&mut phy, phy::CONTROL, control::RESET | control::LOOPBACK);
    assert_eq!(read(&mut phy, phy::CONTROL), 0x1140, "a reset discards the other bits of its write");
    assert_eq!(read(&mut phy, phy::ADVERTISE), 0x0de1);
}

#[test]
fn phy_page_select_replaces_only_the_upper_phy_registers() {
    let mut phy = Phy::new();
    write(&mut phy, phy::PORT_CONTROL, 0x1234);
    write(&mut phy, phy::PAGE, 0x11b1);
    assert_eq!(read(&mut phy, phy::PORT_CONTROL), 0);
    assert_eq!((read(&mut phy, phy::ID_1), read(&mut phy, phy::PAGE)), (0x02a8, 0x11b1));
    write(&mut phy, phy::PORT_CONTROL, 0xffff);
    write(&mut phy, phy::PAGE, phy::PORT_CONTROL as u16);
    assert_eq!(read(&mut phy, phy::PORT_CONTROL), 0x1234);
}

#[test]
fn systim_clock_stands_still_while_timinca_is_zero() {
    let mut clock = SystimClock::default();
    assert_eq!(clock.low(Time::from_micros(5)), 0);
    clock.set_increment(1 << 24 | 16 << 19, Time::from_micros(5));
    assert_eq!(clock.low(Time::from_micros(6)), 1000 / 16 * (16 << 19));
    clock.set_increment(0, Time::from_micros(6));
    assert_eq!(clock.low(Time::from_micros(99)), 62 * (16 << 19));
}

#[test]
fn read_of_clock_register_systiml_latches_systimh() {
    let mut clock = SystimClock::default();
    clock.set_increment(1 << 24 | 1, Time::ZERO);
    clock.set_low(0xffff_ffff, Time::ZERO);
    assert_eq!((clock.low(Time::ZERO), clock.high()), (0xffff_ffff, 0));
    assert_eq!((clock.low(Time::from_nanos(16)), clock.high()), (0, 1));
    clock.set_high(7, Time::from_nanos(16));
    assert_eq!((clock.low(Time::from_nanos(16)), clock.high()), (0, 7));
    clock.adjust(5, 1 << 31, Time::from_nanos(16));
    assert_eq!((clock.low(Time::from_nanos(16)), clock.high()), (0xffff_fffb, 6));
    clock.adjust(5, 0, Time::from_nanos(16));
    assert_eq!((clock.low(Time::from_nanos(16)), clock.high()), (0, 7));
}

#[test]
fn systim_clock_at_the_largest_time_does_not_panic() {
    let mut clock = SystimClock::default();
    clock.set_increment(u32::MAX, Time::ZERO);
    clock.low(Time::from_nanos(u64::MAX));
    clock.set_low(1, Time::from_nanos(u64::MAX));
    assert_eq!(clock.low(Time::ZERO), 1, "time that goes back adds nothing");
}

#[test]
fn free_running_timer_shows_seconds_ms_and_us() {
    assert_eq!(free_running(Time::from_micros(2_003_004)), 2 << 20 | 3 << 10 | 4);
}
