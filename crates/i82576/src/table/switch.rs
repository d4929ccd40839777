//! Rows of the registers of the switch between pools: policy, misbehaviour, rates, mirrors, storms. `filter` has the
//! pools' addresses and VLAN tables.

use super::CardPart::{Pacing, Police};
use super::RegisterAccessRule::{Rc, Ro, Rw, W1c};
use super::{ALL, DecodedRegisterSet, PfRegister};
use crate::numbers::PoolIndex;
use crate::register as r;

pub(super) const ROWS: &[PfRegister] = &[
    PfRegister::one("DTXSWC", r::DTXSWC, Rw(0x80ff_ffff)).decoded(DecodedRegisterSet::SWITCH),
    PfRegister::one("LVMMC", r::LVMMC, Rc)
        .more("each malicious driver event adds its cause and names its queue"),
    PfRegister::one("WVBR", r::WVBR, Rc)
        .more("queues that sent spoofed frames; the upper bits are the blocked queues"),
    PfRegister::one("MDFB", r::MDFB, W1c(0xffff))
        .acts(Police)
        .more("a read returns the blocked queues; writing a one releases the queue"),
    PfRegister::one("DTXCTL", r::DTXCTL, Rw(0x7f))
        .reset(0x44)
        .more("only MDP_EN and SPOOF_INT have an effect; the other bits are stored"),
    PfRegister::one("RTTDQSEL", r::RTTDQSEL, Rw(0xf))
        .acts(Pacing)
        .more("selects the pool whose rate RTTBCNRC is; bit 3 is ignored"),
    PfRegister::one("RTTBCNRM", r::RTTBCNRM, Rw(0x3ff))
        .more("largest backlog that a rate-limited pool may catch up, in KB"),
    PfRegister::one("RTTBCNRC", r::RTTBCNRC, Rw(0x8fff_ffff))
        .acts(Pacing)
        .more("the transmit rate of the selected pool"),
    PfRegister::one("RTTBCNRS", 0x36b4, Ro).never("stays zero: the card does not report the debt of a pool"),
    PfRegister::one("RTTBCNRD", 0x36b8, Ro).never("stays zero: the card does not report the debt of a pool"),
    PfRegister::many("VMVIR", r::vmvir(PoolIndex::FIRST), 4, 8, Rw(0xc000_ffff))
        .decoded(DecodedRegisterSet::SWITCH),
    PfRegister::one("VT_CTL", r::VT_CTL, Rw(0x7000_0380)).decoded(DecodedRegisterSet::SWITCH),
    PfRegister::many("VMOLR", r::vmolr(PoolIndex::FIRST), 4, 8, Rw(0x5f03_3fff | 0x2080_0000))
        .decoded(DecodedRegisterSet::SWITCH)
        .reset(0x8000_2600),
    PfRegister::one("RPLOLR", r::RPLOLR, Rw(0x4000_0000))
        .decoded(DecodedRegisterSet::SWITCH)
        .reset(0x8000_0000),
    PfRegister::many("VLVF", r::vlvf(0), 4, 32, Rw(0x801f_ffff)).decoded(DecodedRegisterSet::SWITCH),
    PfRegister::many("VMRCTL", r::vmrctl(0), 4, 4, Rw(0x0000_070f)).decoded(DecodedRegisterSet::SWITCH),
    PfRegister::many("VMRVLAN", r::vmrvlan(0), 4, 4, Rw(ALL)).decoded(DecodedRegisterSet::SWITCH),
    PfRegister::many("VMRVM", r::vmrvm(0), 4, 4, Rw(0xff)).decoded(DecodedRegisterSet::SWITCH),
    PfRegister::one("SCCRL", r::SCCRL, Rw(0x0003_ff1f))
        .acts(Police)
        .more("a write starts a new storm-control window"),
    PfRegister::one("SCSTS", r::SCSTS, Ro).acts(Police).more("state of the current storm-control window"),
    PfRegister::one("BSCTRH", r::BSCTRH, Rw(0x0007_ffff))
        .acts(Police)
        .more("a write starts a new storm-control window"),
    PfRegister::one("MSCTRH", r::MSCTRH, Rw(0x0007_ffff))
        .acts(Police)
        .more("a write starts a new storm-control window"),
    PfRegister::one("BSCCNT", r::BSCCNT, Ro).acts(Police).more("state of the current storm-control window"),
    PfRegister::one("MSCCNT", r::MSCCNT, Ro).acts(Police).more("state of the current storm-control window"),
    PfRegister::one("SCTC", r::SCTC, Ro).acts(Police).more("state of the current storm-control window"),
    PfRegister::one("SCBI", r::SCBI, Rw(0x01ff_ffff))
        .acts(Police)
        .reset(crate::bits::sccrl::BASIC_INTERVAL_RESET)
        .more("a write starts a new storm-control window"),
];
