//! Wakes the PHY: a previous driver may have left it powered down, and some PHYs negotiate only on request.
//!
//! Advertisement, links other than copper, and sharing the PHY with management firmware are not supported.

use crate::hal::Hal;
use core::time::Duration;
use i82576::bits::{mdic, status};
use i82576::phy::{self, control};
use i82576::register as r;

/// Maximum number of polls of MDIC until an access to the PHY ends, which takes about 64 us.
const POLLS: u32 = 100;
const POLL: Duration = Duration::from_micros(20);

/// Makes the PHY negotiate, unless the link is up already. Does nothing without a PHY.
pub(super) fn wake<H: Hal>(hal: &mut H) {
    if hal.read(r::STATUS) & status::LU != 0 {
        return;
    }
    let Some(now) = access(hal, mdic::READ, 0) else { return };
    let asleep = control::POWER_DOWN | control::ISOLATE | control::LOOPBACK;
    // A successful start shows only in the link.
    let _ = access(hal, mdic::WRITE, now & !asleep | control::NEGOTIATE | control::RESTART);
}

/// Reads or writes the PHY's control register, by the MDIC operation. Returns `None` without a PHY.
fn access<H: Hal>(hal: &mut H, operation: u32, word: u16) -> Option<u16> {
    let register = (phy::CONTROL as u32) << mdic::REGISTER_SHIFT;
    hal.write(r::MDIC, operation | phy::ADDRESS << mdic::PHY_SHIFT | register | u32::from(word));
    for _ in 0..POLLS {
        let answer = hal.read(r::MDIC);
        if answer & mdic::READY != 0 {
            return (answer & mdic::ERROR == 0).then_some(answer as u16);
        }
        hal.wait(POLL);
    }
    None
}
