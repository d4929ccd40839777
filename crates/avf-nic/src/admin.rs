//! The PF's admin queues. A message from a VF goes into a buffer that the PF driver has posted. `pf` has the PF's registers and
//! messages to VFs.

use crate::admin_ring::AdminRing;
use crate::mailbox::{fetch, write_back};
use avf::admin::{AdminQueueDescriptor, LARGE, flag, opcode};
use avf::table::MailboxQueue;
use pcie::{Bus, Function};
use serde::{Deserialize, Serialize};

/// The PF's admin send queue and receive queue, for messages to and from the VFs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename = "Admin")]
pub(crate) struct AdminQueues {
    pub(crate) send: AdminRing,
    receive: AdminRing,
}

impl AdminQueues {
    /// Returns `true` if every register of both admin queues has a value that software can write.
    pub(crate) fn is_sound(&self) -> bool {
        self.send.is_sound() && self.receive.is_sound()
    }

    /// Returns the registers of one of the PF's admin queues.
    pub(crate) fn ring(&mut self, side: MailboxQueue) -> &mut AdminRing {
        match side {
            MailboxQueue::Send => &mut self.send,
            MailboxQueue::Receive => &mut self.receive,
        }
    }

    /// Puts a message of a VF into the PF's receive queue. Returns `false` if the PF has posted no buffer, or the bus
    /// refuses access to the buffer.
    pub(crate) fn give<B: Bus>(
        &mut self,
        vf: u8,
        sent: &AdminQueueDescriptor,
        body: &[u8],
        bus: &mut B,
    ) -> bool {
        let Some(at) = self.receive.next() else { return false };
        let given = fetch(bus, Function::Pf, at).and_then(|posted| {
            let fits = body.len() <= usize::from(posted.length);
            let large = if body.len() > LARGE { flag::LB } else { 0 };
            let failed = if fits { 0 } else { flag::ERR };
            let filled = AdminQueueDescriptor {
                flags: flag::DD | flag::CMP | flag::BUF | large | failed,
                opcode: opcode::SEND_TO_PF,
                length: body.len() as u16,
                // The PF driver reads the sender's number here (i40e: absolute VF number).
                return_value: vf.into(),
                cookie_high: sent.cookie_high,
                cookie_low: sent.cookie_low,
                ..posted
            };
            if fits {
                bus.dma_write(Function::Pf, posted.address, body)?;
            }
            write_back(bus, Function::Pf, at, &filled)
        });
        match given {
            Ok(()) => self.receive.advance(),
            Err(_) => self.receive.fail(),
        }
        given.is_ok()
    }
}
