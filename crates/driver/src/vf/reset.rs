//! Resets the function and sends VF_RESET to the PF in igbvf's order: CTRL.RST, wait until neither RSTI nor RSTD is
//! set, VF_RESET, and the address in the reply.
//!
//! `requests` repeats the requests that the PF forgot.

use super::mailbox::MailboxError;
use super::{Vf, VfError};
use crate::hal::Hal;
use core::time::Duration;
use i82576::MacAddress;
use i82576::bits::ctrl;
use i82576::mailbox::{ACK, NACK, id};
use i82576::register::vf;

/// Maximum number of polls of the reset bits RSTI and RSTD.
const RESET_POLLS: u32 = 200;
const RESET_POLL: Duration = Duration::from_micros(5);
/// Time to wait until the card has finished its pending DMA requests.
pub(super) const QUIESCE: Duration = Duration::from_millis(10);

impl Vf {
    /// Resets the function and [reports it](Self::introduce) to the PF.
    pub(super) fn reset<H: Hal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        self.reset_function(hal);
        self.introduce(hal)
    }

    /// Reports the reset to the PF by VF_RESET, and stores the permanent MAC address from the reply, or a local one if
    /// the PF refuses.
    pub(super) fn introduce<H: Hal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        self.wait_for_pf(hal)?;
        let mut reply = [0; 3];
        self.mailbox.exchange(hal, &[id::VF_RESET], &mut reply)?;
        self.permanent = match reply[0] {
            granted if granted == id::VF_RESET | ACK => MacAddress::from_words(reply[1], reply[2]),
            refused if refused == id::VF_RESET | NACK => local_mac(self.seed),
            reply => return Err(MailboxError::Unexpected { sent: id::VF_RESET, reply }.into()),
        };
        Ok(())
    }

    /// Resets the function only: its queues and interrupts are then off, and the PF gets no message.
    pub(super) fn reset_function<H: Hal>(&mut self, hal: &mut H) {
        hal.write(vf::CTRL, ctrl::RST);
        self.mailbox.forget();
    }

    fn wait_for_pf<H: Hal>(&mut self, hal: &mut H) -> Result<(), VfError> {
        for _ in 0..RESET_POLLS {
            if !self.mailbox.reset_seen(hal)? {
                return Ok(());
            }
            hal.wait(RESET_POLL);
        }
        Err(VfError::PfInReset)
    }
}

/// Returns a locally administered unicast address that depends on `seed` alone.
#[must_use]
pub fn local_mac(seed: u64) -> MacAddress {
    // Finaliser of SplitMix64: neighbouring seeds give unrelated addresses.
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let b = (z ^ (z >> 31)).to_le_bytes();
    MacAddress([b[0] & 0xfc | 0x02, b[1], b[2], b[3], b[4], b[5]])
}
