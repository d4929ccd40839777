//! Passes messages between the mailboxes of VFs and the PF's admin queues. `mailbox` and `admin` have queues and descriptors.

use crate::card::Nic;
use crate::mailbox::{
    MailboxDescriptorOutcome, MailboxMessage, WAITING, deliver, fetch, fetch_body, write_back,
};
use avf::admin::{flag, opcode, returned};
use avf::bits::aqlen;
use pcie::{Bus, DmaFault, Function as BusFunction, VfIndex};
use units::WorkCost;

impl Nic {
    /// Takes the next descriptor of a VF's mailbox. Returns `None` if there is none, or the bus refuses access.
    pub(crate) fn take_message<B: Bus>(&mut self, vf: u8, bus: &mut B) -> Option<MailboxDescriptorOutcome> {
        let at = self.functions[usize::from(vf)].next_message()?;
        let taken = self.serve_descriptor(vf, at, bus);
        if taken.is_err() {
            let function = &mut self.functions[usize::from(vf)];
            function.counters.dma_faults += 1;
            function.mailbox.send.fail();
        }
        taken.ok()
    }

    fn serve_descriptor<B: Bus>(
        &mut self,
        vf: u8,
        at: u64,
        bus: &mut B,
    ) -> Result<MailboxDescriptorOutcome, DmaFault> {
        let (own, index) = (BusFunction::Vf(vf), VfIndex::of_field(vf.into()));
        self.owe(index, WorkCost::MAIL);
        let mut descriptor = fetch(bus, own, at)?;
        let taken = match descriptor.opcode {
            opcode::QUEUE_SHUTDOWN => MailboxDescriptorOutcome::Answered,
            opcode::SEND_TO_PF => {
                let body = fetch_body(bus, own, &descriptor, &mut self.body)?;
                match body {
                    Some(body) if self.admin.give(vf, &descriptor, body, bus) => {
                        self.owe(index, WorkCost::of_request(descriptor.length.into()));
                        MailboxDescriptorOutcome::Given
                    }
                    Some(_) => MailboxDescriptorOutcome::Later,
                    None => MailboxDescriptorOutcome::Strange(returned::EINVAL),
                }
            }
            _ => MailboxDescriptorOutcome::Strange(returned::ESRCH),
        };
        let function = &mut self.functions[usize::from(vf)];
        match taken {
            MailboxDescriptorOutcome::Later => return Ok(taken),
            MailboxDescriptorOutcome::Strange(why) => {
                function.counters.strange += 1;
                descriptor.flags |= flag::ERR;
                descriptor.return_value = why;
            }
            MailboxDescriptorOutcome::Given | MailboxDescriptorOutcome::Answered => {
                descriptor.return_value = returned::OK;
            }
        }
        descriptor.flags |= flag::DD | flag::CMP;
        // The head moves even if the write-back fails: the PF has the message already.
        function.mailbox.send.advance();
        function.counters.messages += u64::from(
            taken == MailboxDescriptorOutcome::Given || taken == MailboxDescriptorOutcome::Answered,
        );
        write_back(bus, own, at, &descriptor)?;
        Ok(taken)
    }

    /// Queues a message from the PF for a VF. The message is dropped while the VF's mailbox receive queue is off: after
    /// a reset a stale RESET_IMPENDING would make Linux wait for another reset.
    pub(crate) fn post<B: Bus>(&mut self, vf: u8, letter: MailboxMessage, bus: &mut B) {
        let Some(function) = self.functions.get_mut(usize::from(vf)) else { return };
        if !function.mailbox.receive.is_on() {
            return;
        }
        if function.mailbox.waiting.len() >= WAITING {
            function.counters.overflowed += 1;
            function.mailbox.receive.length |= aqlen::OVFL;
            return;
        }
        function.mailbox.waiting.push_back(letter);
        self.deliver_waiting(vf, bus);
    }

    /// Puts pending messages into the buffers that the VF has posted.
    pub(crate) fn deliver_waiting<B: Bus>(&mut self, vf: u8, bus: &mut B) {
        let function = &mut self.functions[usize::from(vf)];
        if !function.master {
            return;
        }
        while let Some(at) = function.mailbox.receive.next()
            && let Some(letter) = function.mailbox.waiting.pop_front()
        {
            if deliver(bus, BusFunction::Vf(vf), at, &letter).is_err() {
                function.counters.dma_faults += 1;
                function.mailbox.receive.fail();
                return;
            }
            function.mailbox.receive.advance();
            function.interrupts.raise_mailbox();
        }
    }
}
