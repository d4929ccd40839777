//! Rows of the descriptor rings and packet buffers. Each of the 16 queues has a register block (from 0xc000 or 0xe000);
//! the first four also have one at the older offsets. Direct cache access has no effect.

use super::CardPart::Queue;
use super::RegisterAccessRule::{Rc, Ro, Rw};
use super::{ALL, PfRegister, RegisterAccessRule};
use crate::bits::dctl;
use crate::numbers;
use crate::register as r;

/// Writable bits of a ring base, which is 128-byte aligned.
pub(crate) const RING_BASE: u32 = 0xffff_ff80;
/// Writable bits of a ring length: whole descriptors, up to 64K of them.
pub(crate) const RING_LENGTH: u32 = 0x000f_fff0;
/// Writable bits of head and tail, which are descriptor indices.
pub(crate) const INDEX: u32 = 0xffff;
/// Writable bits of RXDCTL and TXDCTL: thresholds, enable and priority. SWFLSH clears itself.
pub(crate) const DCTL: u32 = 0x0a1f_1f1f;
/// SRRCTL: writable bits of a receive queue's buffer sizes and descriptor format.
pub(crate) const SRRCTL: u32 = 0xcff0_3f7f;
/// TDWBAL: writable bits of the address at which the card writes a transmit ring's head.
pub(crate) const WRITE_BACK: u32 = 0xffff_fffd;

const Q0: numbers::QueueIndex = match numbers::QueueIndex::new(0) {
    Some(q) => q,
    None => panic!(),
};
const DOORBELL: &str = "doorbell: the card processes descriptors up to this index";
const WAIT: &str =
    "size of the buffer in which frames wait for descriptors, in KB (at most 64); 0: no buffer";
const RUNS: &str =
    "SWFLSH clears itself; a queue starts and stops with ENABLE; thresholds and priority are stored only";
const FORMATS: &str = "the replication formats (3, 4) work as one buffer; TIMESTAMP (30) is stored only";

const fn rx(name: &'static str, at: u32, access: RegisterAccessRule) -> PfRegister {
    PfRegister::many(name, r::rx_block(Q0) + at, 0x40, 16, access).also_at(0x2800 + at, 0x100, 4)
}

const fn tx(name: &'static str, at: u32, access: RegisterAccessRule) -> PfRegister {
    PfRegister::many(name, r::tx_block(Q0) + at, 0x40, 16, access).also_at(0x3800 + at, 0x100, 4)
}

pub(super) const ROWS: &[PfRegister] = &[
    PfRegister::one("RXPBS", r::RXPBS, Rw(ALL)).reset(0x40).sticky().more(WAIT),
    PfRegister::one("QDE", r::QDE, Rw(0xffff))
        .more("frames of a queue wait for descriptors if neither the queue's bit nor DROP_EN is set"),
    PfRegister::one("PBRWAC", 0x24e8, Ro).still(),
    PfRegister::one("SWPBS", 0x3004, Rw(ALL)).reset(0x14).stored(),
    PfRegister::one("TXPBS", 0x3404, Rw(ALL)).reset(0x28).sticky().stored(),
    PfRegister::one("PBTWAC", 0x34e8, Ro).still(),
    PfRegister::one("DTXTCPFLGL", r::DTXTCPFLGL, Rw(0x0fff_0fff)).reset(0x0f76_0ff6),
    PfRegister::one("DTXTCPFLGH", r::DTXTCPFLGH, Rw(0x0fff)).reset(0x0f7f),
    rx("RDBAL", r::rx::RDBAL, Rw(RING_BASE)).acts(Queue),
    rx("RDBAH", r::rx::RDBAH, Rw(ALL)).acts(Queue),
    rx("RDLEN", r::rx::RDLEN, Rw(RING_LENGTH)).acts(Queue),
    rx("SRRCTL", r::rx::SRRCTL, Rw(SRRCTL)).reset(0x400).more(FORMATS),
    rx("RDH", r::rx::RDH, Rw(INDEX)).acts(Queue).more("moves as the card fills descriptors"),
    rx("RXCTL", r::rx::RXCTL, Rw(ALL)).reset(0xa200).stored(),
    rx("RDT", r::rx::RDT, Rw(INDEX)).acts(Queue).more(DOORBELL),
    // The PF's first queue is enabled after a reset, so that firmware may receive.
    rx("RXDCTL", r::rx::RXDCTL, Rw(DCTL))
        .acts(Queue)
        .reset(0x0001_0000)
        .first(0x0001_0000 | dctl::ENABLE)
        .more(RUNS),
    rx("RQDPC", r::rx::RQDPC, Rc).more("the count stops at 0xfff"),
    tx("TDBAL", r::tx::TDBAL, Rw(RING_BASE)).acts(Queue),
    tx("TDBAH", r::tx::TDBAH, Rw(ALL)).acts(Queue),
    tx("TDLEN", r::tx::TDLEN, Rw(RING_LENGTH)).acts(Queue),
    tx("TDH", r::tx::TDH, Rw(INDEX)).acts(Queue).more("moves as the card fetches descriptors"),
    tx("TXCTL", r::tx::TXCTL, Rw(ALL)).reset(0x2a00).stored(),
    tx("TDT", r::tx::TDT, Rw(INDEX)).acts(Queue).more(DOORBELL),
    tx("TXDCTL", r::tx::TXDCTL, Rw(DCTL)).acts(Queue).first(dctl::ENABLE).more(RUNS),
    tx("TDWBAL", r::tx::TDWBAL, Rw(WRITE_BACK)),
    tx("TDWBAH", r::tx::TDWBAH, Rw(ALL)),
];
