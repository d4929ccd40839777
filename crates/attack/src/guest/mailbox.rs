//! Messages of an attacking guest over the 82576's mailbox.

use super::AttackingGuest;
use super::answer::{LOOK, PATIENCE, PfAnswer};
use anyhow::{Result, bail, ensure};
use driver::DmaHal;
use i82576::bits::v2p;
use i82576::mailbox::{ACK, NACK, WORDS, id};
use i82576::register::vf::{V2PMAILBOX, VMBMEM};

impl<H: DmaHal> AttackingGuest<H> {
    /// Asks the PF to reset the VF, with which a driver begins, and keeps the VF's address.
    pub(super) fn reset_by_mailbox(&mut self) -> Result<()> {
        self.mail(&[id::VF_RESET], PfAnswer::Accepted)?;
        let [low, high] = [4, 8].map(|at| self.hal.read(VMBMEM + at).to_le_bytes());
        self.values.own_mac = [low[0], low[1], low[2], low[3], high[0], high[1]];
        Ok(())
    }

    /// Sends a message over the mailbox, and waits for the PF's answer if one is expected.
    pub(super) fn mail(&mut self, words: &[u32], expected: PfAnswer) -> Result<()> {
        ensure!(words.len() <= WORDS, "the mailbox has {WORDS} words");
        let hal = &mut self.hal;
        // Reading clears what earlier messages have left.
        hal.read(V2PMAILBOX);
        hal.write(V2PMAILBOX, v2p::VFU);
        for (register, word) in (VMBMEM..).step_by(4).zip(words) {
            hal.write(register, *word);
        }
        hal.write(V2PMAILBOX, v2p::REQ);
        if expected == PfAnswer::NotAwaited {
            return Ok(());
        }
        for _ in 0..PATIENCE.as_micros() / LOOK.as_micros() {
            if hal.read(V2PMAILBOX) & v2p::PFSTS == 0 {
                hal.wait(LOOK);
                continue;
            }
            let answer = hal.read(VMBMEM);
            hal.write(V2PMAILBOX, v2p::ACK);
            match expected {
                PfAnswer::Accepted => ensure!(answer & ACK != 0, "the PF refused the request: {answer:#x}"),
                PfAnswer::Refused => ensure!(answer & NACK != 0, "the PF accepted the request: {answer:#x}"),
                PfAnswer::Reply | PfAnswer::NotAwaited => {}
            }
            return Ok(());
        }
        bail!("the PF does not answer within {PATIENCE:?}")
    }
}
