//! Storm control in registers: settings (SCCRL, SCBI, BSCTRH, MSCTRH) and status (SCSTS, BSCCNT, MSCCNT, SCTC). The plane
//! keeps the status. All of it but the start of the window can be restored from the registers.

use crate::file::RegisterFile;
use i82576::bits::{sccrl, scsts};
use i82576::{Time, register as r};
use plane::switch::{StormLimit, StormLimits, StormState, StormWindowTraffic};

/// Largest value of the counters BSCCNT and MSCCNT (25 bits), where they stop.
const COUNT_END: u32 = 0x01ff_ffff;
/// Mask of the counter SCTC (10 bits).
const INTERVALS_MASK: u64 = 0x3ff;

/// Storm control registers of broadcasts or of multicasts: counter, threshold, and the bits of SCCRL and SCSTS for this
/// window and the previous one.
type StormRegisters = (u32, u32, [u32; 2], [u32; 2]);

const KINDS: [StormRegisters; 2] = [
    (r::BSCCNT, r::BSCTRH, [sccrl::BDICW, sccrl::BDIPW], [scsts::BSCA, scsts::BSCAP]),
    (r::MSCCNT, r::MSCTRH, [sccrl::MDICW, sccrl::MDIPW], [scsts::MSCA, scsts::MSCAP]),
];

/// Loads storm control from the registers, in a window that began at `began`.
pub(crate) fn load(file: &RegisterFile, began: Time) -> StormState {
    let (control, status) = (file.get(r::SCCRL), file.get(r::SCSTS));
    let kinds = KINDS.map(|(_, threshold, [drops, drops_next], _)| StormLimit {
        threshold: file.get(threshold),
        drops: control & drops != 0,
        drops_next: control & drops_next != 0,
    });
    let windows = KINDS.map(|(count, _, _, [over, was_over])| StormWindowTraffic {
        count: file.get(count),
        over: status & over != 0,
        was_over: status & was_over != 0,
    });
    let intervals = (control & sccrl::INTERVAL_MASK) >> sccrl::INTERVAL_SHIFT;
    let window = interval(file) * u64::from(intervals.max(1));
    let counts_unknown = control & sccrl::BIDU != 0;
    StormState { limits: StormLimits { kinds, window, counts_unknown }, windows, began }
}

/// Writes storm control's counters and states to its status registers.
pub(crate) fn show(storm: &StormState, file: &mut RegisterFile) {
    let mut status = 0;
    for ((count, _, _, [over, was_over]), window) in KINDS.into_iter().zip(&storm.windows) {
        file.set(count, window.count.min(COUNT_END));
        status |= if window.over { over } else { 0 } | if window.was_over { was_over } else { 0 };
    }
    file.set(r::SCSTS, status);
}

/// Writes the number of basic intervals since the start of the window to the register SCTC.
pub(crate) fn show_intervals(storm: &StormState, file: &mut RegisterFile, now: Time) {
    let since = u64::try_from(now.since(storm.began).as_nanos()).unwrap_or(u64::MAX);
    file.set(r::SCTC, ((since / interval(file)) & INTERVALS_MASK) as u32);
}

/// Returns true if storm control limits broadcasts or multicasts.
pub(crate) fn is_limited(file: &RegisterFile) -> bool {
    file.get(r::BSCTRH) | file.get(r::MSCTRH) != 0
}

/// Returns the length of storm control's basic interval (SCBI), nanoseconds.
fn interval(file: &RegisterFile) -> u64 {
    u64::from(file.get(r::SCBI).max(1)) * sccrl::BASIC_TICK_NS
}
