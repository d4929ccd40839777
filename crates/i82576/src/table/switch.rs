//! Switch between pools: policy, misbehaviour, rates, mirrors, storms. `filter` has the pools' addresses and VLAN
//! tables.

use super::Access::{Rc, Ro, Rw, W1c};
use super::Part::{Pacing, Police};
use super::{ALL, Forms, Register};
use crate::numbers::Pool;
use crate::register as r;

pub(super) const ROWS: &[Register] = &[
    Register::one("DTXSWC", r::DTXSWC, Rw(0x80ff_ffff)).decoded(Forms::SWITCH),
    Register::one("LVMMC", r::LVMMC, Rc)
        .more("each malicious driver event adds its cause and names its queue"),
    Register::one("WVBR", r::WVBR, Rc)
        .more("queues that sent spoofed frames; the upper bits are the blocked queues"),
    Register::one("MDFB", r::MDFB, W1c(0xffff))
        .acts(Police)
        .more("a read returns the blocked queues; writing a one releases the queue"),
    Register::one("DTXCTL", r::DTXCTL, Rw(0x7f))
        .reset(0x44)
        .more("only MDP_EN and SPOOF_INT have an effect; the other bits are stored"),
    Register::one("RTTDQSEL", r::RTTDQSEL, Rw(0xf))
        .acts(Pacing)
        .more("selects the pool whose rate RTTBCNRC is; bit 3 is ignored"),
    Register::one("RTTBCNRM", r::RTTBCNRM, Rw(0x3ff))
        .more("largest backlog that a rate-limited pool may catch up, in KB"),
    Register::one("RTTBCNRC", r::RTTBCNRC, Rw(0x8fff_ffff))
        .acts(Pacing)
        .more("the transmit rate of the selected pool"),
    Register::one("RTTBCNRS", 0x36b4, Ro).never("stays zero: the card does not report the debt of a pool"),
    Register::one("RTTBCNRD", 0x36b8, Ro).never("stays zero: the card does not report the debt of a pool"),
    Register::many("VMVIR", r::vmvir(Pool::FIRST), 4, 8, Rw(0xc000_ffff)).decoded(Forms::SWITCH),
    Register::one("VT_CTL", r::VT_CTL, Rw(0x7000_0380)).decoded(Forms::SWITCH),
    Register::many("VMOLR", r::vmolr(Pool::FIRST), 4, 8, Rw(0x5f03_3fff | 0x2080_0000))
        .decoded(Forms::SWITCH)
        .reset(0x8000_2600),
    Register::one("RPLOLR", r::RPLOLR, Rw(0x4000_0000)).decoded(Forms::SWITCH).reset(0x8000_0000),
    Register::many("VLVF", r::vlvf(0), 4, 32, Rw(0x801f_ffff)).decoded(Forms::SWITCH),
    Register::many("VMRCTL", r::vmrctl(0), 4, 4, Rw(0x0000_070f)).decoded(Forms::SWITCH),
    Register::many("VMRVLAN", r::vmrvlan(0), 4, 4, Rw(ALL)).decoded(Forms::SWITCH),
    Register::many("VMRVM", r::vmrvm(0), 4, 4, Rw(0xff)).decoded(Forms::SWITCH),
    Register::one("SCCRL", r::SCCRL, Rw(0x0003_ff1f))
        .acts(Police)
        .more("a write starts a new storm-control window"),
    Register::one("SCSTS", r::SCSTS, Ro).acts(Police).more("state of the current storm-control window"),
    Register::one("BSCTRH", r::BSCTRH, Rw(0x0007_ffff))
        .acts(Police)
        .more("a write starts a new storm-control window"),
    Register::one("MSCTRH", r::MSCTRH, Rw(0x0007_ffff))
        .acts(Police)
        .more("a write starts a new storm-control window"),
    Register::one("BSCCNT", r::BSCCNT, Ro).acts(Police).more("state of the current storm-control window"),
    Register::one("MSCCNT", r::MSCCNT, Ro).acts(Police).more("state of the current storm-control window"),
    Register::one("SCTC", r::SCTC, Ro).acts(Police).more("state of the current storm-control window"),
    Register::one("SCBI", r::SCBI, Rw(0x01ff_ffff))
        .acts(Police)
        .reset(crate::bits::sccrl::BASIC_INTERVAL_RESET)
        .more("a write starts a new storm-control window"),
];
