//! The PF's registers: its admin queues, and the resets of VFs. A message to a VF is taken when the tail is written; one
//! from a VF goes into the buffer that the PF driver has posted.
//!
//! Left out: commands that are no messages, and interrupts: this PF takes none.

use crate::card::Card;
use crate::mailbox::{Letter, fetch, fetch_body, write_back};
use crate::ring::Ring;
use avf::admin::{Descriptor, LARGE, flag, opcode, returned};
use avf::bits::rstat;
use avf::pf_register as r;
use avf::table::{Field, Side};
use pcie::{Bus, Function};
use serde::{Deserialize, Serialize};

/// The PF's queues.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Admin {
    send: Ring,
    receive: Ring,
}

/// The register of a queue at an offset.
const fn queue_register(offset: u32) -> Option<(Side, Field)> {
    Some(match offset {
        r::PF_ATQBAL => (Side::Send, Field::BaseLow),
        r::PF_ATQBAH => (Side::Send, Field::BaseHigh),
        r::PF_ATQLEN => (Side::Send, Field::Length),
        r::PF_ATQH => (Side::Send, Field::Head),
        r::PF_ATQT => (Side::Send, Field::Tail),
        r::PF_ARQBAL => (Side::Receive, Field::BaseLow),
        r::PF_ARQBAH => (Side::Receive, Field::BaseHigh),
        r::PF_ARQLEN => (Side::Receive, Field::Length),
        r::PF_ARQH => (Side::Receive, Field::Head),
        r::PF_ARQT => (Side::Receive, Field::Tail),
        _ => return None,
    })
}

/// The VF whose register of an array of 64 is at an offset.
fn per_vf(offset: u32, first: u32) -> Option<u8> {
    let at = offset.checked_sub(first)?;
    (at < 4 * 64 && at.is_multiple_of(4)).then_some((at / 4) as u8)
}

impl Admin {
    /// Whether the registers hold what can be written into them.
    pub(crate) fn is_sound(&self) -> bool {
        self.send.is_sound() && self.receive.is_sound()
    }

    fn ring(&mut self, side: Side) -> &mut Ring {
        match side {
            Side::Send => &mut self.send,
            Side::Receive => &mut self.receive,
        }
    }

    /// Gives the PF a message of a VF; `false` if it has posted no buffer.
    pub(crate) fn give<B: Bus>(&mut self, vf: u8, sent: &Descriptor, body: &[u8], bus: &mut B) -> bool {
        let Some(at) = self.receive.next() else { return false };
        let given = fetch(bus, Function::Pf, at).and_then(|posted| {
            let fits = body.len() <= usize::from(posted.length);
            let large = if body.len() > LARGE { flag::LB } else { 0 };
            let failed = if fits { 0 } else { flag::ERR };
            let filled = Descriptor {
                flags: flag::DD | flag::CMP | flag::BUF | large | failed,
                opcode: opcode::SEND_TO_PF,
                length: body.len() as u16,
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

impl Card {
    /// The PF driver reads a register.
    pub fn pf_read(&mut self, offset: u32) -> u32 {
        if let Some((side, field)) = queue_register(offset) {
            return self.admin.ring(side).get(field);
        }
        if let Some(word) = per_vf(offset, r::GLGEN_VFLRSTAT).filter(|word| *word < 2) {
            return (self.flr >> (32 * word)) as u32;
        }
        if per_vf(offset, r::VPGEN_VFRSTAT).is_some() {
            return r::VFRD;
        }
        let vf = per_vf(offset, r::VFGEN_RSTAT1).map(usize::from);
        vf.and_then(|vf| self.functions.get(vf)).map_or(0, |function| function.rstat)
    }

    /// The PF driver writes a register. The tail of the send queue has its messages delivered.
    pub fn pf_write<B: Bus>(&mut self, offset: u32, value: u32, bus: &mut B) {
        if let Some((side, field)) = queue_register(offset) {
            self.admin.ring(side).set(field, value);
            if (side, field) == (Side::Send, Field::Tail) {
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

    /// Takes what the PF has in its send queue: at most a ring of it.
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
            let letter = Letter {
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
