//! Receive and transmit control, filters and offloads. Left out: EtherType, five-tuple and flexible filters.

use super::Access::Rw;
use super::{ALL, Register};
use crate::register as r;

const LOADED: &str = "element 0 is loaded from the NVM at every reset";

pub(super) const ROWS: &[Register] = &[
    Register::one("RCTL", r::RCTL, Rw(0x06ff_fffe)),
    Register::one("TCTL", r::TCTL, Rw(ALL)).reset(0xa404_00f8),
    Register::one("TCTL_EXT", 0x0404, Rw(ALL)).reset(0x0001_0840),
    Register::one("TIPG", 0x0410, Rw(0x3fff_ffff)).reset(0x0060_1008),
    Register::one("FCRTL", 0x2160, Rw(ALL)),
    Register::one("FCRTH", 0x2168, Rw(ALL)),
    Register::one("FCRTV", 0x2460, Rw(ALL)),
    Register::one("RXCSUM", r::RXCSUM, Rw(0x0000_3fff)).reset(0x300),
    Register::one("RLPML", r::RLPML, Rw(0x3fff)).reset(0x2600),
    Register::one("RFCTL", r::RFCTL, Rw(ALL)),
    Register::many("MTA", r::mta(0), 4, 128, Rw(ALL)),
    Register::many("RAL", r::ral(0), 8, 16, Rw(ALL)).more(LOADED),
    Register::many("RAH", r::rah(0), 8, 16, Rw(0x83ff_ffff)).more(LOADED),
    Register::many("RAL16", r::ral(16), 8, 8, Rw(ALL)),
    Register::many("RAH16", r::rah(16), 8, 8, Rw(0x83ff_ffff)),
    Register::many("PSRTYPE", 0x5480, 4, 8, Rw(ALL)),
    Register::many("VFTA", r::vfta(0), 4, 128, Rw(ALL)),
    Register::many("RETA", r::reta(0), 4, 32, Rw(ALL)),
    Register::many("RSSRK", r::rssrk(0), 4, 10, Rw(ALL)),
    Register::one("MRQC", r::MRQC, Rw(0x01ff_003f)),
    Register::many("UTA", r::uta(0), 4, 128, Rw(ALL)),
];
