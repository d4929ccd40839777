//! Rows of the registers for control, status, NVM and PHY access, semaphores, management and time. Flash and
//! SerDes negotiation are not modelled.

use super::CardPart::Board;
use super::RegisterAccessRule::{Ro, Rw, W1c, Wo};
use super::{ALL, DecodedRegisterSet, PfRegister};
use crate::bits::tcptimer;
use crate::register as r;

const READ_STAMP: &str = "a read makes room for the next time stamp";
const NEVER: &str = "stays zero";

pub(super) const ROWS: &[PfRegister] = &[
    PfRegister::one("CTRL", r::CTRL, Rw(!0x8400_0000))
        .decoded(DecodedRegisterSet::SWITCH)
        .acts(Board)
        .reset(0x0010_0209)
        .also_at(0x0004, 4, 1)
        .more("RST and PHY_RST clear themselves; GIO_MASTER_DISABLE stops every request of the card"),
    PfRegister::one("STATUS", r::STATUS, Ro)
        .acts(Board)
        .reset(crate::bits::status::PHYRA)
        .more("computed: link, speed, VFs, bus mastering; writing PHYRA as zero clears it"),
    PfRegister::one("EECD", r::EECD, Rw(0x0000_004f)).acts(Board).reset(0x0000_1300).more("GNT follows REQ"),
    PfRegister::one("EERD", r::EERD, Rw(0x0000_fffc))
        .acts(Board)
        .more("START reads a word of the NVM; DONE is set at once"),
    PfRegister::one("CTRL_EXT", r::CTRL_EXT, Rw(!0x8000_3000))
        .decoded(DecodedRegisterSet::SWITCH)
        .acts(Board)
        .more("EE_RST, ASDCHK and PBA_CLR clear themselves; PFRSTD lets the VFs start"),
    PfRegister::one("MDIC", r::MDIC, Rw(0x2fff_ffff))
        .acts(Board)
        .reset(0x1000_0000)
        .more("reads or writes a PHY register; READY is set at once, ERROR if no PHY has the address"),
    PfRegister::one("FCAL", 0x0028, Rw(ALL)).stored(),
    PfRegister::one("FCAH", 0x002c, Rw(ALL)).stored(),
    PfRegister::one("FCT", 0x0030, Rw(ALL)).stored(),
    PfRegister::one("CONNSW", 0x0034, Rw(ALL)).stored(),
    PfRegister::one("VET", r::VET, Rw(ALL))
        .decoded(DecodedRegisterSet::SWITCH)
        .reset(0x8100_8100)
        .more("EtherTypes of VLAN tags (15:0) and of outer tags (31:16)"),
    PfRegister::one("FCTTV", 0x0170, Rw(ALL)).stored(),
    PfRegister::one("LEDCTL", 0x0e00, Rw(ALL)).reset(0x0706_8302).stored(),
    PfRegister::one("EEMNGCTL", 0x1010, Ro).reset(0x000c_0000).still(),
    PfRegister::one("EEWR", r::EEWR, Rw(0xffff_fffc))
        .acts(Board)
        .more("START writes a word of the NVM; DONE is set at once"),
    PfRegister::one("FRTIMER", r::FRTIMER, Ro)
        .acts(Board)
        .more("free-running time: microseconds in 9:0, milliseconds in 19:10, seconds above"),
    PfRegister::one("TCPTIMER", r::TCPTIMER, Rw(tcptimer::KEPT))
        .acts(Board)
        .more("KICK_START and FINISH clear themselves; counts milliseconds, and interrupts at the end"),
    PfRegister::one("PCS_CFG0", 0x4200, Rw(ALL)).stored(),
    PfRegister::one("PCS_LCTL", 0x4208, Rw(ALL)).stored(),
    PfRegister::one("PCS_LSTAT", 0x420c, Ro).still(),
    PfRegister::one("PCS_ANADV", 0x4218, Rw(ALL)).stored(),
    PfRegister::one("WUC", 0x5800, Rw(ALL)).never("stored only: the card wakes no host"),
    PfRegister::one("WUFC", 0x5808, Rw(ALL)).never("stored only: the card wakes no host"),
    PfRegister::one("WUS", 0x5810, W1c(ALL)).never("stays zero: the card wakes no host"),
    PfRegister::one("MANC", 0x5820, Rw(ALL)).stored(),
    PfRegister::one("MANC2H", 0x5860, Rw(ALL)).stored(),
    PfRegister::one("GCR", 0x5b00, Rw(0x0001_f000)).reset(0x0004_0000).stored(),
    PfRegister::one("FACTPS", 0x5b30, Ro).still(),
    PfRegister::one("SWSM", r::SWSM, Rw(0x0000_0003))
        .acts(Board)
        .more("a read returns the old SMBI and sets it"),
    PfRegister::one("FWSM", 0x5b54, Ro).still(),
    PfRegister::one("SW_FW_SYNC", 0x5b5c, Rw(0x0000_ffff)).stored(),
    PfRegister::one("PBACL", r::PBACL, Wo)
        .never("no effect: the owner of the MSI-X table clears pending bits"),
    PfRegister::one("CIAA", 0x5b88, Rw(ALL)).stored(),
    PfRegister::one("CIAD", 0x5b8c, Wo).never(
        "reads zero and ignores writes: the card gives no access to VF configuration by this register",
    ),
    PfRegister::one("IOVCTL", 0x5bbc, Rw(1)).stored(),
    PfRegister::one("LEDMUX", 0x8130, Rw(ALL)).stored(),
    PfRegister::one("SYSTIML", r::SYSTIML, Rw(ALL))
        .acts(Board)
        .more("low half of the clock; a read latches the high half; a write sets the clock"),
    PfRegister::one("SYSTIMH", r::SYSTIMH, Rw(ALL)).acts(Board).more("high half of the clock"),
    PfRegister::one("TIMINCA", r::TIMINCA, Rw(ALL))
        .acts(Board)
        .more("increment of the clock (23:0), added every 16 ns times 31:24"),
    PfRegister::one("TIMADJL", r::TIMADJL, Rw(ALL)),
    PfRegister::one("TIMADJH", r::TIMADJH, Rw(ALL))
        .acts(Board)
        .more("a write adds TIMADJ to the clock, or subtracts TIMADJ if bit 31 is one"),
    PfRegister::one("TSYNCRXCFG", r::TSYNCRXCFG, Rw(0xffff)).decoded(DecodedRegisterSet::STEERING),
    PfRegister::one("TSYNCTXCTL", r::TSYNCTXCTL, Rw(0x0000_0010)).more("VALID (0) is set with a time stamp"),
    PfRegister::one("TXSTMPL", r::TXSTMPL, Ro),
    PfRegister::one("TXSTMPH", r::TXSTMPH, Ro).acts(Board).more(READ_STAMP),
    PfRegister::one("TSYNCRXCTL", r::TSYNCRXCTL, Rw(0x0000_001e))
        .decoded(DecodedRegisterSet::STEERING)
        .more("VALID (0) is set with a time stamp"),
    PfRegister::one("RXSTMPL", r::RXSTMPL, Ro),
    PfRegister::one("RXSTMPH", r::RXSTMPH, Ro).acts(Board).more(READ_STAMP),
    PfRegister::one("RXSATRL", 0xb62c, Ro).never(NEVER),
    PfRegister::one("RXSATRH", 0xb630, Ro).never(NEVER),
];
