//! Byte offsets of the PF's registers in its 128 KiB BAR0, by the datasheet's names. The offset of an array is a
//! function of its index. `table` has the registers' behaviour and `bits` their fields.

use crate::numbers::{PoolIndex, QueueIndex, VectorIndex, VfIndex};

macro_rules! offsets {
    ($($(#[$doc:meta])* $name:ident = $offset:literal;)*) => { $($(#[$doc])* pub const $name: u32 = $offset;)* };
}

pub mod rx;
mod statistics;
pub mod tx;
pub mod vf;
pub mod vf_stats;

pub use statistics::*;

offsets! {
    /// CTRL: control of the port (reset, link).
    CTRL = 0x0000;
    /// STATUS: status of the port (link, VFs).
    STATUS = 0x0008;
    /// EECD: control of the access to the EEPROM (NVM).
    EECD = 0x0010;
    /// EERD: reads a word of the EEPROM.
    EERD = 0x0014;
    /// CTRL_EXT: extended device control register.
    CTRL_EXT = 0x0018;
    /// MDIC: reads and writes PHY registers.
    MDIC = 0x0020;
    /// FRTIMER: free-running timer.
    FRTIMER = 0x1048;
    /// TCPTIMER: TCP timer, which counts milliseconds down.
    TCPTIMER = 0x104c;
    /// EEWR: writes a word of the EEPROM.
    EEWR = 0x102c;
    /// SYSTIML: precision clock (IEEE 1588), low half.
    SYSTIML = 0xb600;
    /// SYSTIMH: precision clock (IEEE 1588), high half.
    SYSTIMH = 0xb604;
    /// TIMINCA: increment and period of the precision clock.
    TIMINCA = 0xb608;
    /// TIMADJL: adjustment of the precision clock, low half.
    TIMADJL = 0xb60c;
    /// TIMADJH: adjustment of the precision clock, high half and sign; writing it applies both.
    TIMADJH = 0xb610;
    /// TSYNCTXCTL: control of time stamps of sent packets.
    TSYNCTXCTL = 0xb614;
    /// TXSTMPL: time stamp of a sent packet, low half.
    TXSTMPL = 0xb618;
    /// TXSTMPH: time stamp of a sent packet, high half.
    TXSTMPH = 0xb61c;
    /// TSYNCRXCTL: control of time stamps of received packets.
    TSYNCRXCTL = 0xb620;
    /// RXSTMPL: time stamp of a received packet, low half.
    RXSTMPL = 0xb624;
    /// RXSTMPH: time stamp of a received packet, high half.
    RXSTMPH = 0xb628;
    /// TSYNCRXCFG: message types of received packets to time-stamp.
    TSYNCRXCFG = 0x5f50;
    /// PBACL: clears pending bits of MSI-X vectors.
    PBACL = 0x5b68;
    /// Ether types of VLAN tags (VET).
    VET = 0x0038;
    /// RCTL: receive control register of the port.
    RCTL = 0x0100;
    /// TCTL: transmit control register of the port.
    TCTL = 0x0400;
    /// MBVFICR: mailbox interrupt causes of all VFs, for the PF.
    MBVFICR = 0x0c80;
    /// MBVFIMR: mask of the mailbox interrupts of all VFs.
    MBVFIMR = 0x0c84;
    /// VFLRE: VFs with a function level reset, a bit each.
    VFLRE = 0x0c88;
    /// VFRE: VFs that may receive, a bit each.
    VFRE = 0x0c8c;
    /// VFTE: VFs that may transmit, a bit each.
    VFTE = 0x0c90;
    /// ICR: interrupt causes of the port other than those of queues.
    ICR = 0x1500;
    /// ICS: sets interrupt causes of ICR.
    ICS = 0x1504;
    /// IMS: interrupt mask of the causes in ICR. Reads return the mask; a write unmasks the causes whose bits are 1.
    IMS = 0x1508;
    /// IMC: masks interrupt causes of ICR.
    IMC = 0x150c;
    /// IAM: interrupt causes that an access to ICR masks (auto-mask).
    IAM = 0x1510;
    /// GPIE: general-purpose interrupt enable register.
    GPIE = 0x1514;
    /// EICS: sets extended interrupt causes (those of vectors).
    EICS = 0x1520;
    /// EIMS: interrupt mask of the extended causes. Reads return the mask; a write unmasks the causes whose bits are 1.
    EIMS = 0x1524;
    /// EIMC: masks extended interrupt causes.
    EIMC = 0x1528;
    /// EIAC: extended interrupt causes that a sent message clears (auto-clear).
    EIAC = 0x152c;
    /// EIAM: extended interrupt causes that the card masks once they have interrupted (auto-mask).
    EIAM = 0x1530;
    /// EICR: extended interrupt causes (those of vectors).
    EICR = 0x1580;
    /// IVAR_MISC: vector for the interrupt causes that no queue raises.
    IVAR_MISC = 0x1740;
    /// RXPBS: size of the receive packet buffer.
    RXPBS = 0x2404;
    /// QDE: receive queues that drop a frame if they have no descriptor for it, a bit each.
    QDE = 0x2408;
    /// DTXSWC: DMA transmit switch control register.
    DTXSWC = 0x3500;
    /// LVMMC: cause and queue of the last frame that anti-spoofing or malicious driver protection reported.
    LVMMC = 0x3548;
    /// WVBR (wrong VM behaviour): queues that sent forged frames, and blocked queues.
    WVBR = 0x3554;
    /// MDFB (malicious driver free block): blocked queues; writing a 1 releases a queue.
    MDFB = 0x3558;
    /// DTXTCPFLGL: TCP flags that segmentation keeps in the first (bits 11:0) and middle (27:16) segments.
    DTXTCPFLGL = 0x359c;
    /// DTXTCPFLGH: TCP flags that segmentation keeps in the last segment.
    DTXTCPFLGH = 0x35a0;
    /// DTXCTL: DMA transmit control register.
    DTXCTL = 0x3590;
    /// RTTDQSEL: selects the pool whose transmit rate is in RTTBCNRC.
    RTTDQSEL = 0x3604;
    /// RTTBCNRM: largest backlog that a rate-limited pool may catch up, in KB (memory window).
    RTTBCNRM = 0x3690;
    /// RTTBCNRC: transmit rate of the pool that RTTDQSEL selects.
    RTTBCNRC = 0x36b0;
    /// RXCSUM: receive checksum control register.
    RXCSUM = 0x5000;
    /// RLPML: length of the longest received packet.
    RLPML = 0x5004;
    /// RFCTL: receive filter control register.
    RFCTL = 0x5008;
    /// SYNQF: receive queue of TCP SYN segments.
    SYNQF = 0x55fc;
    /// IMIRVP: VLAN priorities that interrupt immediately.
    IMIRVP = 0x5ac0;
    /// VT_CTL: control of the pools (VMDq).
    VT_CTL = 0x581c;
    /// MRQC: selects the receive queue by pools and hash (multiple receive queues command).
    MRQC = 0x5818;
    /// RPLOLR: VLAN stripping of replicated packets.
    RPLOLR = 0x5af0;
    /// SCCRL: broadcast and multicast storm control.
    SCCRL = 0x5db0;
    /// SCSTS: status of storm control.
    SCSTS = 0x5db4;
    /// BSCTRH: threshold of a broadcast storm.
    BSCTRH = 0x5db8;
    /// MSCTRH: threshold of a multicast storm.
    MSCTRH = 0x5dbc;
    /// BSCCNT: broadcast traffic in storm control's current window.
    BSCCNT = 0x5dc0;
    /// MSCCNT: multicast traffic in storm control's current window.
    MSCCNT = 0x5dc4;
    /// SCTC: basic intervals elapsed in storm control's current window.
    SCTC = 0x5dc8;
    /// SCBI: length of storm control's basic interval.
    SCBI = 0x5dcc;
    /// SWSM: software semaphore register.
    SWSM = 0x5b50;
}

/// Returns the offset of V2PMAILBOX for a VF: the VF's own mailbox register, in the PF's register file.
#[must_use]
pub const fn v2p_mailbox(vf: VfIndex) -> u32 {
    0x0c40 + 4 * vf.get() as u32
}

/// Returns the offset of P2VMAILBOX for a VF: the PF's mailbox register for this VF.
#[must_use]
pub const fn p2v_mailbox(vf: VfIndex) -> u32 {
    0x0c00 + 4 * vf.get() as u32
}

/// Returns the offset of dword `word` (0..16) in the memory of a VF's mailbox.
#[must_use]
pub const fn vmbmem(vf: VfIndex, word: u32) -> u32 {
    0x0800 + 0x40 * vf.get() as u32 + 4 * (word & 15)
}

/// Returns the offset of a vector's interrupt throttle (EITR).
#[must_use]
pub const fn eitr(vector: VectorIndex) -> u32 {
    0x1680 + 4 * vector.get() as u32
}

/// Returns the offset of an interrupt vector allocation row (IVAR): row q mod 8 has the entries of queues q and q + 8.
#[must_use]
pub const fn ivar(row: u32) -> u32 {
    0x1700 + 4 * (row & 7)
}

/// Returns the offset of a pool's port VLAN (VMVIR).
#[must_use]
pub const fn vmvir(pool: PoolIndex) -> u32 {
    0x3700 + 4 * pool.get() as u32
}

/// Returns the offset of the multicast table (MTA), 128 dwords.
#[must_use]
pub const fn mta(word: u32) -> u32 {
    0x5200 + 4 * (word & 127)
}

/// Returns the offset of receive address `i` (0..24), first four bytes.
#[must_use]
pub const fn ral(i: u32) -> u32 {
    if i < 16 { 0x5400 + 8 * i } else { 0x54e0 + 8 * ((i - 16) & 7) }
}

/// Returns the offset of receive address `i` (0..24), last two bytes, pools and the valid bit.
#[must_use]
pub const fn rah(i: u32) -> u32 {
    ral(i) + 4
}

/// Returns the offset of five-tuple filter `i` (0..8): source address.
#[must_use]
pub const fn saqf(i: u32) -> u32 {
    0x5980 + 4 * (i & 7)
}

/// Returns the offset of five-tuple filter `i` (0..8): destination address.
#[must_use]
pub const fn daqf(i: u32) -> u32 {
    0x59a0 + 4 * (i & 7)
}

/// Returns the offset of five-tuple filter `i` (0..8): source port.
#[must_use]
pub const fn spqf(i: u32) -> u32 {
    0x59c0 + 4 * (i & 7)
}

/// Returns the offset of five-tuple filter `i` (0..8): protocol, compared fields, and the queue.
#[must_use]
pub const fn ftqf(i: u32) -> u32 {
    0x59e0 + 4 * (i & 7)
}

/// Returns the offset of five-tuple filter `i` (0..8): destination port, priority, and immediate interrupt.
#[must_use]
pub const fn imir(i: u32) -> u32 {
    0x5a80 + 4 * (i & 7)
}

/// Returns the offset of five-tuple filter `i` (0..8): size and TCP flags.
#[must_use]
pub const fn imirext(i: u32) -> u32 {
    0x5aa0 + 4 * (i & 7)
}

/// Returns the offset of EtherType filter `i` (ETQF, 0..8).
#[must_use]
pub const fn etqf(i: u32) -> u32 {
    0x5cb0 + 4 * (i & 7)
}

/// Returns the offset of PSRTYPE, which selects the header types that both queues of a pool split from the payload.
#[must_use]
pub const fn psrtype(pool: PoolIndex) -> u32 {
    0x5480 + 4 * pool.get() as u32
}

/// Returns the offset of the VLAN table (VFTA), 128 dwords, a bit per VLAN id.
#[must_use]
pub const fn vfta(word: u32) -> u32 {
    0x5600 + 4 * (word & 127)
}

/// Returns the offset of a pool's offload and filter options (VMOLR).
#[must_use]
pub const fn vmolr(pool: PoolIndex) -> u32 {
    0x5ad0 + 4 * pool.get() as u32
}

/// Returns the offset of the RSS redirection table (RETA), 32 dwords of four entries.
#[must_use]
pub const fn reta(word: u32) -> u32 {
    0x5c00 + 4 * (word & 31)
}

/// Returns the offset of the receive-side-scaling key (RSSRK), 10 dwords.
#[must_use]
pub const fn rssrk(word: u32) -> u32 {
    0x5c80 + 4 * word
}

/// Returns the offset of VLAN pool filter `i` (VLVF, 0..32).
#[must_use]
pub const fn vlvf(i: u32) -> u32 {
    0x5d00 + 4 * (i & 31)
}

/// Returns the offset of mirror rule `i` (0..4): mirrored traffic, and the target pool.
#[must_use]
pub const fn vmrctl(i: u32) -> u32 {
    0x5d80 + 4 * (i & 3)
}

/// Returns the offset of mirror rule `i` (0..4): the VLAN filters whose VLANs are mirrored.
#[must_use]
pub const fn vmrvlan(i: u32) -> u32 {
    0x5d90 + 4 * (i & 3)
}

/// Returns the offset of mirror rule `i` (0..4): the mirrored pools.
#[must_use]
pub const fn vmrvm(i: u32) -> u32 {
    0x5da0 + 4 * (i & 3)
}

/// Returns the offset of the unicast hash table (UTA), 128 dwords.
#[must_use]
pub const fn uta(word: u32) -> u32 {
    0xa000 + 4 * (word & 127)
}

/// Returns the offset of a receive queue's register block, among the blocks of all 16 queues (from 0xc000).
#[must_use]
pub const fn rx_block(q: QueueIndex) -> u32 {
    0xc000 + 0x40 * q.get() as u32
}

/// Returns the offset of a transmit queue's register block, among the blocks of all 16 queues (from 0xe000).
#[must_use]
pub const fn tx_block(q: QueueIndex) -> u32 {
    0xe000 + 0x40 * q.get() as u32
}

/// Returns the offset of VF `n`'s statistics and control block in the PF's BAR.
#[must_use]
pub const fn vf_block(vf: VfIndex) -> u32 {
    0x1_0000 + 0x100 * vf.get() as u32
}

/// Returns the offset of the interrupt vector allocation of VF `n`'s queues.
#[must_use]
pub const fn vtivar(vf: VfIndex) -> u32 {
    0x1_1700 + 0x100 * vf.get() as u32
}

/// Returns the offset of the interrupt vector allocation of VF `n`'s mailbox.
#[must_use]
pub const fn vtivar_misc(vf: VfIndex) -> u32 {
    0x1_1720 + 0x100 * vf.get() as u32
}
