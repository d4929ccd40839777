//! Waking the PHY: a driver that was here before may have left it asleep, and some PHYs negotiate only when told to.
//!
//! Left out: what is advertised, links other than copper, and sharing the PHY with management firmware.

use crate::hal::Hal;
use core::time::Duration;
use i82576::bits::{mdic, status};
use i82576::phy::{self, control};
use i82576::register as r;

/// Polls of MDIC, which takes some 64 us.
const POLLS: u32 = 100;
const POLL: Duration = Duration::from_micros(20);

/// Has the PHY negotiate, unless there is a link already. A card without a PHY stays as it is.
pub(super) fn wake<H: Hal>(hal: &mut H) {
    if hal.read(r::STATUS) & status::LU != 0 {
        return;
    }
    let Some(now) = access(hal, mdic::READ, 0) else { return };
    let asleep = control::POWER_DOWN | control::ISOLATE | control::LOOPBACK;
    // Whether it has started shows in the link alone.
    let _ = access(hal, mdic::WRITE, now & !asleep | control::NEGOTIATE | control::RESTART);
}

/// Reads or writes the control register; `None` if nobody answers.
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
