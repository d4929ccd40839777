//! Storm control: broadcast and multicast traffic is counted in windows of time, and what goes beyond a threshold
//! is kept from the pools (SCCRL, BSCTRH, MSCTRH). The wire is not spared: what a pool sends outside is the
//! rate limiter's business. A threshold of zero is none.
//!
//! All of the state is in registers, but for the time at which the window began. Windows follow each other without
//! a gap; one that nobody looked at is caught up with when the next frame, register access or poll comes.

use crate::file::RegisterFile;
use crate::switch::Tables;
use core::time::Duration;
use i82576::bits::{sccrl, scsts};
use i82576::ids::FCS;
use i82576::register as r;
use i82576::{MacAddress, Time};
use serde::{Deserialize, Serialize};

/// What is counted together, and where.
struct Kind {
    count: u32,
    threshold: u32,
    /// SCSTS: this window, the window before.
    over: (u32, u32),
    /// SCCRL: drop by this window, drop by the window before.
    drop: (u32, u32),
}

const BROADCAST: Kind = Kind {
    count: r::BSCCNT,
    threshold: r::BSCTRH,
    over: (scsts::BSCA, scsts::BSCAP),
    drop: (sccrl::BDICW, sccrl::BDIPW),
};

const MULTICAST: Kind = Kind {
    count: r::MSCCNT,
    threshold: r::MSCTRH,
    over: (scsts::MSCA, scsts::MSCAP),
    drop: (sccrl::MDICW, sccrl::MDIPW),
};

/// CCOUNT has 25 bits and stops at its end.
const COUNT_END: u32 = 0x01ff_ffff;
/// SCTC has 10 bits.
const INTERVALS_MASK: u64 = 0x3ff;

/// When the window began.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Storm {
    began: Time,
}

impl Storm {
    /// Counts a frame of `length` bytes that the switch would give to pools; answers whether they may have it.
    pub fn admits(&self, file: &mut RegisterFile, dst: MacAddress, tables: &Tables, length: usize) -> bool {
        let Some(kind) = kind(file, dst, tables) else { return true };
        let threshold = file.get(kind.threshold);
        if threshold == 0 {
            return true;
        }
        let blocks = (length + FCS).div_ceil(sccrl::BLOCK) as u32;
        let count = file.get(kind.count).saturating_add(blocks).min(COUNT_END);
        file.set(kind.count, count);
        if count > threshold {
            file.update(r::SCSTS, 0, kind.over.0);
        }
        let (control, status) = (file.get(r::SCCRL), file.get(r::SCSTS));
        let drops = |drop: u32, over: u32| control & drop != 0 && status & over != 0;
        !(drops(kind.drop.0, kind.over.0) || drops(kind.drop.1, kind.over.1))
    }

    /// Whether frames to this address may be counted at all: the question that every frame asks.
    #[must_use]
    pub fn concerns(file: &RegisterFile, dst: MacAddress) -> bool {
        dst.is_group() || counts_unknown(file)
    }

    /// Whether a window is, or the one before was, over a threshold.
    #[must_use]
    pub fn is_on(file: &RegisterFile) -> bool {
        file.get(r::SCSTS) != 0
    }

    /// Lets the windows that have passed pass.
    pub fn advance(&mut self, file: &mut RegisterFile, now: Time) {
        let (window, interval) = (window(file), interval(file));
        let since = nanoseconds(now.since(self.began));
        let passed = since / window;
        if passed > 0 {
            let status = file.get(r::SCSTS) & (scsts::BSCA | scsts::MSCA);
            file.set(r::SCSTS, if passed == 1 { status << 1 } else { 0 });
            file.set(r::BSCCNT, 0);
            file.set(r::MSCCNT, 0);
            self.began = self.began + Duration::from_nanos(passed * window);
        }
        let intervals = since % window / interval;
        file.set(r::SCTC, (intervals & INTERVALS_MASK) as u32);
    }

    /// When the current window ends.
    #[must_use]
    pub fn ends(&self, file: &RegisterFile) -> Time {
        self.began + Duration::from_nanos(window(file))
    }

    /// Begins a new window: the length of windows was written, or the port was reset.
    pub fn restart(&mut self, file: &mut RegisterFile, now: Time) {
        for register in [r::BSCCNT, r::MSCCNT, r::SCTC, r::SCSTS] {
            file.set(register, 0);
        }
        self.began = now;
    }
}

/// What a frame counts as, if it counts.
fn kind(file: &RegisterFile, dst: MacAddress, tables: &Tables) -> Option<&'static Kind> {
    match dst.is_group() {
        true if dst.is_broadcast() => Some(&BROADCAST),
        true => Some(&MULTICAST),
        false => (counts_unknown(file) && !tables.knows(dst)).then_some(&BROADCAST),
    }
}

/// Whether unicast that no filter knows counts as broadcast.
fn counts_unknown(file: &RegisterFile) -> bool {
    file.get(r::SCCRL) & sccrl::BIDU != 0
}

/// Nanoseconds of a basic interval.
fn interval(file: &RegisterFile) -> u64 {
    u64::from(file.get(r::SCBI).max(1)) * sccrl::BASIC_TICK_NS
}

/// Nanoseconds of a window.
fn window(file: &RegisterFile) -> u64 {
    let intervals = (file.get(r::SCCRL) & sccrl::INTERVAL_MASK) >> sccrl::INTERVAL_SHIFT;
    interval(file) * u64::from(intervals.max(1))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
