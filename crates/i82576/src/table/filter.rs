//! Receive and transmit control, filters and offloads. Flexible filters are not modelled.

use super::Access::Rw;
use super::{ALL, Forms, Register};
use crate::bits::{etqf, ftqf, imir, imirext, imirvp, synqf};
use crate::numbers::Pool;
use crate::register as r;

/// Note of the registers of a five-tuple filter.
const TUPLE: &str = "part of five-tuple filter i, as are FTQF, SAQF, DAQF, SPQF, IMIR and IMIREXT";
const RECEIVE: &str = "SBP, RDMTS and PSP are stored only: bad frames do not arrive, SRRCTL has the \
    threshold, and a stripped frame is not padded";
const TRANSMIT: &str = "only EN has an effect; the other bits are stored; short frames are always padded";
const LOADED: &str = "element 0 is loaded from the NVM at every reset";

pub(super) const ROWS: &[Register] = &[
    Register::one("RCTL", r::RCTL, Rw(0x06ff_fffe)).decoded(Forms::SWITCH).more(RECEIVE),
    Register::one("TCTL", r::TCTL, Rw(ALL)).reset(0xa404_00f8).more(TRANSMIT),
    Register::one("TCTL_EXT", 0x0404, Rw(ALL)).reset(0x0001_0840).stored(),
    Register::one("TIPG", 0x0410, Rw(0x3fff_ffff)).reset(0x0060_1008).stored(),
    Register::one("FCRTL", 0x2160, Rw(ALL)).stored(),
    Register::one("FCRTH", 0x2168, Rw(ALL)).stored(),
    Register::one("FCRTV", 0x2460, Rw(ALL)).stored(),
    Register::one("RXCSUM", r::RXCSUM, Rw(0x0000_3fff)).reset(0x300),
    Register::one("RLPML", r::RLPML, Rw(0x3fff))
        .decoded(Forms::SWITCH)
        .reset(0x2600)
        .more("longest frame if RCTL.LPE is set; with pools, VMOLR has the limit"),
    Register::one("RFCTL", r::RFCTL, Rw(ALL))
        .decoded(Forms::STEERING)
        .more("only LEF and SYNQFP have an effect; the other bits are stored"),
    Register::many("MTA", r::mta(0), 4, 128, Rw(ALL)).decoded(Forms::SWITCH),
    Register::many("RAL", r::ral(0), 8, 16, Rw(ALL)).decoded(Forms::SWITCH).more(LOADED),
    Register::many("RAH", r::rah(0), 8, 16, Rw(0x83ff_ffff)).decoded(Forms::SWITCH).more(LOADED),
    Register::many("RAL16", r::ral(16), 8, 8, Rw(ALL)).decoded(Forms::SWITCH),
    Register::many("RAH16", r::rah(16), 8, 8, Rw(0x83ff_ffff)).decoded(Forms::SWITCH),
    Register::many("PSRTYPE", r::psrtype(Pool::FIRST), 4, 8, Rw(ALL))
        .more("for queues i and i + 8; NFS (18:11) and IPv6 within IPv4 (6:4) are not detected"),
    Register::one("SYNQF", r::SYNQF, Rw(synqf::KEPT))
        .decoded(Forms::STEERING)
        .more("the filter precedes the five-tuple filters if RFCTL.SYNQFP is set, else it follows them"),
    Register::many("VFTA", r::vfta(0), 4, 128, Rw(ALL)).decoded(Forms::SWITCH),
    Register::many("SAQF", r::saqf(0), 4, 8, Rw(ALL)).decoded(Forms::STEERING).more(TUPLE),
    Register::many("DAQF", r::daqf(0), 4, 8, Rw(ALL)).decoded(Forms::STEERING).more(TUPLE),
    Register::many("SPQF", r::spqf(0), 4, 8, Rw(0xffff)).decoded(Forms::STEERING).more(TUPLE),
    Register::many("FTQF", r::ftqf(0), 4, 8, Rw(ftqf::KEPT)).decoded(Forms::STEERING).more(TUPLE),
    Register::many("IMIR", r::imir(0), 4, 8, Rw(imir::KEPT)).decoded(Forms::STEERING).more(TUPLE),
    Register::many("IMIREXT", r::imirext(0), 4, 8, Rw(imirext::KEPT)).decoded(Forms::STEERING).more(TUPLE),
    Register::one("IMIRVP", r::IMIRVP, Rw(imirvp::KEPT))
        .decoded(Forms::STEERING)
        .more("frames with this VLAN priority or a higher one interrupt at once"),
    Register::many("RETA", r::reta(0), 4, 32, Rw(ALL)).decoded(Forms::RSS),
    Register::many("ETQF", r::etqf(0), 4, 8, Rw(etqf::KEPT))
        .decoded(Forms::STEERING)
        .more("if several filters match a frame, the last one decides"),
    Register::many("RSSRK", r::rssrk(0), 4, 10, Rw(ALL)).decoded(Forms::RSS),
    Register::one("MRQC", r::MRQC, Rw(0x01ff_003f))
        .decoded(Forms::ALL)
        .more("without pools, DEF_Q (5:3) is the queue of frames for which no filter chooses a queue"),
    Register::many("UTA", r::uta(0), 4, 128, Rw(ALL)).decoded(Forms::SWITCH),
];
