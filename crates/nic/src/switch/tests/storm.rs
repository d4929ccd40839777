//! Tests storm control over time: windows of 1 ms, and a threshold of ten blocks of 64 bytes.

use super::{A, BROADCAST, GROUP, PEER, VFS, mac, port};
use crate::file::RegisterFile;
use crate::switch::{PoolTables, load, storm};
use i82576::bits::{sccrl, scsts};
use i82576::{Time, register as r};
use plane::switch::StormState;

/// Frame length in bytes for which the frame, with its check sequence, is one block of storm control.
const ONE: usize = 60;

struct StormFixture {
    file: RegisterFile,
    began: Time,
    tables: PoolTables,
}

fn control(drop: u32) -> StormFixture {
    let port = port();
    let tables = load(&port.file, VFS).0;
    let mut file = port.file;
    // 10 intervals of 6250 ticks of 16 ns: 1 ms.
    file.set(r::SCCRL, drop | 10 << sccrl::INTERVAL_SHIFT);
    file.set(r::SCBI, 6250);
    file.set(r::BSCTRH, 10);
    file.set(r::MSCTRH, 10);
    StormFixture { file, began: Time::ZERO, tables }
}

impl StormFixture {
    /// Loads storm control from the registers, calls `act` with it, and writes its status back to the
    /// registers.
    fn with<T>(&mut self, act: impl FnOnce(&mut StormState) -> T) -> T {
        let mut storm = storm::load(&self.file, self.began);
        let result = act(&mut storm);
        storm::show(&storm, &mut self.file);
        self.began = storm.began;
        result
    }

    fn admits(&mut self, dst: &str, length: usize) -> bool {
        let (dst, known) = (mac(dst), self.tables.knows(mac(dst)));
        self.with(|storm| storm.admits(dst, known, length, None))
    }

    /// Returns how many of `frames` frames of one block to `dst` storm control admits.
    fn send(&mut self, frames: usize, dst: &str) -> usize {
        (0..frames).filter(|_| self.admits(dst, ONE)).count()
    }

    fn at_us(&mut self, us: u64) -> &mut Self {
        let now = Time::from_micros(us);
        self.with(|storm| storm.advance(now));
        let storm = storm::load(&self.file, self.began);
        storm::show_intervals(&storm, &mut self.file, now);
        self
    }

    fn ends(&mut self) -> Time {
        self.with(|storm| storm.ends())
    }

    fn status(&self) -> u32 {
        self.file.get(r::SCSTS)
    }
}

#[test]
fn storm_bit_bdicw_drops_broadcasts_in_the_current_window() {
    let mut control = control(sccrl::BDICW);
    assert_eq!(control.send(15, BROADCAST), 10);
    assert_eq!((control.file.get(r::BSCCNT), control.status()), (15, scsts::BSCA));
    assert_eq!(control.at_us(999).send(1, BROADCAST), 0);
    assert_eq!(control.at_us(1000).send(15, BROADCAST), 10, "the next window counts from zero");
}

#[test]
fn storm_bit_bdipw_drops_broadcasts_in_the_next_window() {
    let mut control = control(sccrl::BDIPW);
    assert_eq!(control.send(15, BROADCAST), 15, "the current window has no effect");
    assert_eq!(control.at_us(1000).send(5, BROADCAST), 0);
    assert_eq!(control.status(), scsts::BSCAP);
    assert_eq!(control.at_us(2000).send(5, BROADCAST), 5, "the window before was below the threshold");
    assert_eq!(control.status(), 0);
}

#[test]
fn storm_with_all_drop_bits_clear_is_only_reported() {
    let mut control = control(0);
    assert_eq!(control.send(15, BROADCAST), 15);
    assert_eq!(control.status(), scsts::BSCA);
}

#[test]
fn storm_control_counts_broadcast_and_multicast_separately() {
    let mut control = control(sccrl::BDICW | sccrl::MDICW);
    assert_eq!(control.send(15, GROUP), 10);
    assert_eq!((control.file.get(r::MSCCNT), control.file.get(r::BSCCNT)), (15, 0));
    assert_eq!(control.status(), scsts::MSCA);
    assert_eq!(control.send(10, BROADCAST), 10);
    let mut control = self::control(sccrl::MDIPW);
    control.send(15, GROUP);
    assert_eq!(control.at_us(1000).send(1, GROUP), 0);
}

#[test]
fn storm_control_counts_blocks_of_64_bytes() {
    let mut control = control(sccrl::BDICW);
    assert!(control.admits(BROADCAST, 316), "five blocks");
    assert!(control.admits(BROADCAST, 316));
    assert!(!control.admits(BROADCAST, 60));
    assert!(control.admits(GROUP, 61));
    assert_eq!(control.file.get(r::MSCCNT), 2, "the check sequence needs a second block");
}

#[test]
fn storm_control_counts_unknown_unicast_as_broadcast() {
    let mut control = control(sccrl::BDICW);
    assert_eq!(control.send(20, PEER), 20);
    control.file.update(r::SCCRL, 0, sccrl::BIDU);
    assert_eq!(control.send(20, PEER), 10);
    assert_eq!(control.send(20, A), 20, "a known station");
}

#[test]
fn storm_threshold_of_zero_is_no_limit() {
    let mut control = control(sccrl::BDICW);
    control.file.set(r::BSCTRH, 0);
    assert_eq!(control.send(100, BROADCAST), 100);
    assert_eq!((control.status(), control.file.get(r::BSCCNT)), (0, 0));
}

#[test]
fn storm_window_ends_on_time_without_polls() {
    let mut control = control(sccrl::BDIPW);
    control.send(15, BROADCAST);
    assert_eq!(control.at_us(5_500).status(), 0, "the fifth window has no storm");
    assert_eq!(control.file.get(r::SCTC), 5, "five intervals into the sixth window");
    assert_eq!(control.ends(), Time::from_micros(6000));
    assert_eq!(control.send(15, BROADCAST), 15);
    assert_eq!(control.at_us(5_999).send(1, BROADCAST), 1);
    assert_eq!(control.at_us(6_000).send(1, BROADCAST), 0);
}

#[test]
fn storm_interval_0_counts_as_1_and_block_counter_saturates() {
    let mut control = control(0);
    control.file.set(r::SCCRL, 0);
    assert_eq!(control.ends(), Time::from_micros(100));
    control.file.set(r::SCBI, 0);
    control.at_us(7);
    assert_eq!(control.ends(), Time::from_nanos(7008));
    control.file.set(r::BSCCNT, 0x01ff_ffff);
    control.send(1, BROADCAST);
    assert_eq!(control.file.get(r::BSCCNT), 0x01ff_ffff);
}

#[test]
fn changing_the_storm_configuration_begins_a_new_window() {
    let mut control = control(sccrl::BDICW);
    control.send(15, BROADCAST);
    control.with(|storm| storm.restart(Time::from_micros(700)));
    assert_eq!((control.status(), control.send(15, BROADCAST)), (0, 10));
    assert_eq!(control.at_us(1_699).send(1, BROADCAST), 0);
}
