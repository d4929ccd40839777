//! Rows of the registers of receive and transmit control, filters and offloads. Flexible filters are not
//! modelled.

use super::RegisterAccessRule::Rw;
use super::{ALL, DecodedRegisterSet, PfRegister};
use crate::bits::{etqf, ftqf, imir, imirext, imirvp, synqf};
use crate::numbers::PoolIndex;
use crate::register as r;

/// Note in the register document on each register of a five-tuple filter.
const TUPLE: &str = "part of five-tuple filter i, as are FTQF, SAQF, DAQF, SPQF, IMIR and IMIREXT";
const RECEIVE: &str = "SBP, RDMTS and PSP are stored only: bad frames do not arrive, SRRCTL has the \
    threshold, and a stripped frame is not padded";
const TRANSMIT: &str = "only EN has an effect; the other bits are stored; short frames are always padded";
const LOADED: &str = "element 0 is loaded from the NVM at every reset";

pub(super) const ROWS: &[PfRegister] = &[
    PfRegister::one("RCTL", r::RCTL, Rw(0x06ff_fffe)).decoded(DecodedRegisterSet::SWITCH).more(RECEIVE),
    PfRegister::one("TCTL", r::TCTL, Rw(ALL)).reset(0xa404_00f8).more(TRANSMIT),
    PfRegister::one("TCTL_EXT", 0x0404, Rw(ALL)).reset(0x0001_0840).stored(),
    PfRegister::one("TIPG", 0x0410, Rw(0x3fff_ffff)).reset(0x0060_1008).stored(),
    PfRegister::one("FCRTL", 0x2160, Rw(ALL)).stored(),
    PfRegister::one("FCRTH", 0x2168, Rw(ALL)).stored(),
    PfRegister::one("FCRTV", 0x2460, Rw(ALL)).stored(),
    PfRegister::one("RXCSUM", r::RXCSUM, Rw(0x0000_3fff)).reset(0x300),
    PfRegister::one("RLPML", r::RLPML, Rw(0x3fff))
        .decoded(DecodedRegisterSet::SWITCH)
        .reset(0x2600)
        .more("longest frame if RCTL.LPE is set; with pools, VMOLR has the limit"),
    PfRegister::one("RFCTL", r::RFCTL, Rw(ALL))
        .decoded(DecodedRegisterSet::STEERING)
        .more("only LEF and SYNQFP have an effect; the other bits are stored"),
    PfRegister::many("MTA", r::mta(0), 4, 128, Rw(ALL)).decoded(DecodedRegisterSet::SWITCH),
    PfRegister::many("RAL", r::ral(0), 8, 16, Rw(ALL)).decoded(DecodedRegisterSet::SWITCH).more(LOADED),
    PfRegister::many("RAH", r::rah(0), 8, 16, Rw(0x83ff_ffff))
        .decoded(DecodedRegisterSet::SWITCH)
        .more(LOADED),
    PfRegister::many("RAL16", r::ral(16), 8, 8, Rw(ALL)).decoded(DecodedRegisterSet::SWITCH),
    PfRegister::many("RAH16", r::rah(16), 8, 8, Rw(0x83ff_ffff)).decoded(DecodedRegisterSet::SWITCH),
    PfRegister::many("PSRTYPE", r::psrtype(PoolIndex::FIRST), 4, 8, Rw(ALL))
        .more("for queues i and i + 8; NFS (18:11) and IPv6 within IPv4 (6:4) are not detected"),
    PfRegister::one("SYNQF", r::SYNQF, Rw(synqf::KEPT))
        .decoded(DecodedRegisterSet::STEERING)
        .more("the filter precedes the five-tuple filters if RFCTL.SYNQFP is set, else it follows them"),
    PfRegister::many("VFTA", r::vfta(0), 4, 128, Rw(ALL)).decoded(DecodedRegisterSet::SWITCH),
    PfRegister::many("SAQF", r::saqf(0), 4, 8, Rw(ALL)).decoded(DecodedRegisterSet::STEERING).more(TUPLE),
    PfRegister::many("DAQF", r::daqf(0), 4, 8, Rw(ALL)).decoded(DecodedRegisterSet::STEERING).more(TUPLE),
    PfRegister::many("SPQF", r::spqf(0), 4, 8, Rw(0xffff)).decoded(DecodedRegisterSet::STEERING).more(TUPLE),
    PfRegister::many("FTQF", r::ftqf(0), 4, 8, Rw(ftqf::KEPT))
        .decoded(DecodedRegisterSet::STEERING)
        .more(TUPLE),
    PfRegister::many("IMIR", r::imir(0), 4, 8, Rw(imir::KEPT))
        .decoded(DecodedRegisterSet::STEERING)
        .more(TUPLE),
    PfRegister::many("IMIREXT", r::imirext(0), 4, 8, Rw(imirext::KEPT))
        .decoded(DecodedRegisterSet::STEERING)
        .more(TUPLE),
    PfRegister::one("IMIRVP", r::IMIRVP, Rw(imirvp::KEPT))
        .decoded(DecodedRegisterSet::STEERING)
        .more("frames with this VLAN priority or a higher one interrupt at once"),
    PfRegister::many("RETA", r::reta(0), 4, 32, Rw(ALL)).decoded(DecodedRegisterSet::RSS),
    PfRegister::many("ETQF", r::etqf(0), 4, 8, Rw(etqf::KEPT))
        .decoded(DecodedRegisterSet::STEERING)
        .more("if several filters match a frame, the last one decides"),
    PfRegister::many("RSSRK", r::rssrk(0), 4, 10, Rw(ALL)).decoded(DecodedRegisterSet::RSS),
    PfRegister::one("MRQC", r::MRQC, Rw(0x01ff_003f))
        .decoded(DecodedRegisterSet::ALL)
        .more("without pools, DEF_Q (5:3) is the queue of frames for which no filter chooses a queue"),
    PfRegister::many("UTA", r::uta(0), 4, 128, Rw(ALL)).decoded(DecodedRegisterSet::SWITCH),
];
