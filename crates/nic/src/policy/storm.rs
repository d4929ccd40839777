//! Storm control in registers: what to do (SCCRL, SCBI, BSCTRH, MSCTRH), and what was seen (SCSTS, BSCCNT, MSCCNT, SCTC).
//! What was seen is the plane's, but for when a window began all of it can be read back from the registers.

use crate::file::RegisterFile;
use i82576::bits::{sccrl, scsts};
use i82576::{Time, register as r};
use plane::switch::{Limit, Limits, Storm, Window};

/// CCOUNT has 25 bits and stops at its end.
const COUNT_END: u32 = 0x01ff_ffff;
/// SCTC has 10 bits.
const INTERVALS_MASK: u64 = 0x3ff;

/// Counter, threshold, and the bits of SCCRL and SCSTS for this window and the one before.
type Kind = (u32, u32, [u32; 2], [u32; 2]);

const KINDS: [Kind; 2] = [
    (r::BSCCNT, r::BSCTRH, [sccrl::BDICW, sccrl::BDIPW], [scsts::BSCA, scsts::BSCAP]),
    (r::MSCCNT, r::MSCTRH, [sccrl::MDICW, sccrl::MDIPW], [scsts::MSCA, scsts::MSCAP]),
];

/// Storm control as the registers have it, in a window that began then.
pub(crate) fn load(file: &RegisterFile, began: Time) -> Storm {
    let (control, status) = (file.get(r::SCCRL), file.get(r::SCSTS));
    let kinds = KINDS.map(|(_, threshold, [drops, drops_next], _)| Limit {
        threshold: file.get(threshold),
        drops: control & drops != 0,
        drops_next: control & drops_next != 0,
    });
    let windows = KINDS.map(|(count, _, _, [over, was_over])| Window {
        count: file.get(count),
        over: status & over != 0,
        was_over: status & was_over != 0,
    });
    let intervals = (control & sccrl::INTERVAL_MASK) >> sccrl::INTERVAL_SHIFT;
    let window = interval(file) * u64::from(intervals.max(1));
    let counts_unknown = control & sccrl::BIDU != 0;
    Storm { limits: Limits { kinds, window, counts_unknown }, windows, began }
}

/// Shows what was seen.
pub(crate) fn show(storm: &Storm, file: &mut RegisterFile) {
    let mut status = 0;
    for ((count, _, _, [over, was_over]), window) in KINDS.into_iter().zip(&storm.windows) {
        file.set(count, window.count.min(COUNT_END));
        status |= if window.over { over } else { 0 } | if window.was_over { was_over } else { 0 };
    }
    file.set(r::SCSTS, status);
}

/// Shows how many basic intervals of the window have passed.
pub(crate) fn show_intervals(storm: &Storm, file: &mut RegisterFile, now: Time) {
    let since = u64::try_from(now.since(storm.began).as_nanos()).unwrap_or(u64::MAX);
    file.set(r::SCTC, ((since / interval(file)) & INTERVALS_MASK) as u32);
}

/// Some kind of traffic has a limit.
pub(crate) fn is_limited(file: &RegisterFile) -> bool {
    file.get(r::BSCTRH) | file.get(r::MSCTRH) != 0
}

/// Nanoseconds of a basic interval.
fn interval(file: &RegisterFile) -> u64 {
    u64::from(file.get(r::SCBI).max(1)) * sccrl::BASIC_TICK_NS
}
