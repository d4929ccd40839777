//! Registers of the PF: its admin queues, and resets of VFs. Messages to VFs are delivered when the PF writes the send
//! queue's tail. The PF uses no other admin commands and takes no interrupts.

use crate::card::Nic;
use crate::mailbox::{MailboxMessage, fetch, fetch_body, write_back};
use avf::admin::{flag, opcode, returned};
use avf::bits::rstat;
use avf::pf_register as r;
use avf::table::{MailboxQueue, MailboxRegister};
use pcie::{Bus, Function};

/// Returns the admin queue register at an offset.
const fn queue_register(offset: u32) -> Option<(MailboxQueue, MailboxRegister)> {
    Some(match offset {
        r::PF_ATQBAL => (MailboxQueue::Send, MailboxRegister::BaseLow),
        r::PF_ATQBAH => (MailboxQueue::Send, MailboxRegister::BaseHigh),
        r::PF_ATQLEN => (MailboxQueue::Send, MailboxRegister::Length),
        r::PF_ATQH => (MailboxQueue::Send, MailboxRegister::Head),
        r::PF_ATQT => (MailboxQueue::Send, MailboxRegister::Tail),
        r::PF_ARQBAL => (MailboxQueue::Receive, MailboxRegister::BaseLow),
        r::PF_ARQBAH => (MailboxQueue::Receive, MailboxRegister::BaseHigh),
        r::PF_ARQLEN => (MailboxQueue::Receive, MailboxRegister::Length),
        r::PF_ARQH => (MailboxQueue::Receive, MailboxRegister::Head),
        r::PF_ARQT => (MailboxQueue::Receive, MailboxRegister::Tail),
        _ => return None,
    })
}

/// Returns the VF whose register is at `offset`, in an array of one register for each of 64 VFs that starts at `first`.
fn per_vf(offset: u32, first: u32) -> Option<u8> {
    let at = offset.checked_sub(first)?;
    (at < 4 * 64 && at.is_multiple_of(4)).then_some((at / 4) as u8)
}

impl Nic {
    /// Reads a register of the PF for the PF driver.
    pub fn pf_read(&mut self, offset: u32) -> u32 {
        if let Some((side, field)) = queue_register(offset) {
            return self.admin.ring(side).get(field);
        }
        if let Some(word) = per_vf(offset, r::GLGEN_VFLRSTAT).filter(|word| *word < 2) {
            return (self.flr >> (32 * word)) as u32;
        }
        // The reset is done at once, so a poll for its end succeeds.
        if per_vf(offset, r::VPGEN_VFRSTAT).is_some() {
            return r::VFRD;
        }
        let vf = per_vf(offset, r::VFGEN_RSTAT1).map(usize::from);
        vf.and_then(|vf| self.functions.get(vf)).map_or(0, |function| function.rstat)
    }

    /// Writes a register for the PF driver. A write of the send queue's tail delivers its messages.
    pub fn pf_write<B: Bus>(&mut self, offset: u32, value: u32, bus: &mut B) {
        if let Some((side, field)) = queue_register(offset) {
            self.admin.ring(side).set(field, value);
            if (side, field) == (MailboxQueue::Send, MailboxRegister::Tail) {
                self.send_all(bus);
            }
        } else if let Some(word) = per_vf(offset, r::GLGEN_VFLRSTAT).filter(|word| *word < 2) {
            self.flr &= !(u64::from(value) << (32 * word));
        } else if let Some(vf) = per_vf(offset, r::VPGEN_VFRTRIG).filter(|_| value & r::VFSWR != 0) {
            self.begin_reset(vf);
        } else if let Some(vf) = per_vf(offset, r::VFGEN_RSTAT1)
            && let Some(function) = self.functions.get_mut(usize::from(vf))
        {
            function.rstat = value & rstat::STATE;
        }
    }

    /// Delivers the messages in the PF's send queue to their VFs, at most as many as the ring has descriptors.
    fn send_all<B: Bus>(&mut self, bus: &mut B) {
        while let Some(at) = self.admin.send.next() {
            if self.send_one(at, bus).is_err() {
                self.admin.send.fail();
                return;
            }
        }
    }

    fn send_one<B: Bus>(&mut self, at: u64, bus: &mut B) -> Result<(), pcie::DmaFault> {
        let mut descriptor = fetch(bus, Function::Pf, at)?;
        descriptor.return_value = returned::EINVAL;
        if descriptor.opcode == opcode::SEND_TO_VF
            && let Some(body) = fetch_body(bus, Function::Pf, &descriptor, &mut self.body)?
        {
            descriptor.return_value = returned::OK;
            let letter = MailboxMessage {
                operation: descriptor.cookie_high,
                status: descriptor.cookie_low,
                body: body.to_vec(),
            };
            if let Ok(vf) = u8::try_from(descriptor.param0) {
                self.post(vf, letter, bus);
            }
        }
        descriptor.flags |= flag::DD | flag::CMP;
        self.admin.send.advance();
        write_back(bus, Function::Pf, at, &descriptor)
    }
}
