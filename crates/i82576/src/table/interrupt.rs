//! Rows of the interrupt causes, masks, vectors and throttles. `filter` has the filters of immediate interrupts, and
//! `general` the TCP timer.

use super::CardPart::Interrupt;
use super::RegisterAccessRule::{Rw, W1c, W1s, Wo};
use super::{ALL, PfRegister};
use crate::bits::{eitr, gpie, icr, ivar};
use crate::numbers::{VectorIndex, VfIndex};
use crate::register as r;

const VF0: VfIndex = match VfIndex::new(0) {
    Some(vf) => vf,
    None => panic!(),
};
const V0: VectorIndex = match VectorIndex::new(0) {
    Some(v) => v,
    None => panic!(),
};
/// Defined bits of the registers of extended causes: the vectors, the TCP timer, and the causes in ICR.
const EXTENDED: u32 = 0xc1ff_ffff;
const TO_CAUSE: &str = "ones set causes; a read returns the causes and clears none";
const TO_EXTENDED: &str = "ones set causes; a read returns the causes and clears none; bit 30 (TCP timer) \
    has an effect unless GPIE.MULTIPLE_MSIX is set, bit 31 never: ICS sets the other causes";
const OWN: &str = "the bits of a VF's vectors belong to the VF: the PF reads the bits, and writes them \
    through VTEIAC and VTEIAM";
const TO_MASK: &str = "ones clear bits of the mask; a read returns the mask";

pub(super) const ROWS: &[PfRegister] = &[
    PfRegister::one("ICR", r::ICR, W1c(ALL)).acts(Interrupt).also_at(0x00c0, 4, 1).more(
        "a read clears the causes if GPIE.NSICR is set, no cause is unmasked, or INTA is set; reads and \
         writes mask the causes of IAM",
    ),
    PfRegister::one("ICS", r::ICS, Wo).acts(Interrupt).also_at(0x00c8, 4, 1).more(TO_CAUSE),
    PfRegister::one("IMS", r::IMS, W1s(icr::SETTABLE))
        .acts(Interrupt)
        .also_at(0x00d0, 4, 1)
        .more("causes interrupt while their bits are one"),
    PfRegister::one("IMC", r::IMC, Wo).acts(Interrupt).also_at(0x00d8, 4, 1).more(TO_MASK),
    PfRegister::one("IAM", r::IAM, Rw(ALL)).also_at(0x00e0, 4, 1),
    PfRegister::one("GPIE", r::GPIE, Rw(gpie::KEPT)),
    PfRegister::one("EICS", r::EICS, Wo).acts(Interrupt).more(TO_EXTENDED),
    PfRegister::one("EIMS", r::EIMS, W1s(EXTENDED))
        .acts(Interrupt)
        .more("causes interrupt while their bits are one"),
    PfRegister::one("EIMC", r::EIMC, Wo).acts(Interrupt).more(TO_MASK),
    PfRegister::one("EIAC", r::EIAC, Rw(0x01ff_ffff)).acts(Interrupt).more(OWN),
    PfRegister::one("EIAM", r::EIAM, Rw(EXTENDED)).acts(Interrupt).more(OWN),
    PfRegister::one("EICR", r::EICR, W1c(EXTENDED)).acts(Interrupt).more(
        "a read clears the causes; reads and writes mask the causes of EIAM; the bits of a VF's vectors are \
         in VTEICR instead",
    ),
    PfRegister::many("EITR", r::eitr(V0), 4, 25, Rw(eitr::KEPT)).acts(Interrupt).sticky().more(
        "bits 30:21 are the counter, 20:16 the credits; a write sets both unless its CNT_IGNR (31) is one",
    ),
    PfRegister::many("IVAR", r::ivar(0), 4, 8, Rw(0x9f9f_9f9f))
        .acts(Interrupt)
        .more("with MSI-X, writes have an effect only while GPIE.MULTIPLE_MSIX is set"),
    PfRegister::one("IVAR_MISC", r::IVAR_MISC, Rw(0x0000_9f9f))
        .acts(Interrupt)
        .more("with MSI-X, writes have an effect only while GPIE.MULTIPLE_MSIX is set"),
    PfRegister::many("VTIVAR", r::vtivar(VF0), 0x100, 8, Rw(ivar::VTIVAR_MASK)),
    PfRegister::many("VTIVAR_MISC", r::vtivar_misc(VF0), 0x100, 8, Rw(ivar::VTIVAR_MISC_MASK)),
];
