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
    /// EEPROM control and data.
    EECD = 0x0010;
    /// EEPROM read.
    EERD = 0x0014;
    /// Extended device control.
    CTRL_EXT = 0x0018;
    /// MDIC: reads and writes PHY registers.
    MDIC = 0x0020;
    /// Free-running timer.
    FRTIMER = 0x1048;
    /// TCP timer.
    TCPTIMER = 0x104c;
    /// EEPROM write.
    EEWR = 0x102c;
    /// Precision clock, low half.
    SYSTIML = 0xb600;
    /// Precision clock, high half.
    SYSTIMH = 0xb604;
    /// Precision clock's increment and period.
    TIMINCA = 0xb608;
    /// Adjustment of the precision clock, low half.
    TIMADJL = 0xb60c;
    /// Adjustment of the precision clock, high half and sign; writing it applies both.
    TIMADJH = 0xb610;
    /// Control of time stamps of sent packets.
    TSYNCTXCTL = 0xb614;
    /// Time stamp of a sent packet, low half.
    TXSTMPL = 0xb618;
    /// Time stamp of a sent packet, high half.
    TXSTMPH = 0xb61c;
    /// Control of time stamps of received packets.
    TSYNCRXCTL = 0xb620;
    /// Time stamp of a received packet, low half.
    RXSTMPL = 0xb624;
    /// Time stamp of a received packet, high half.
    RXSTMPH = 0xb628;
    /// TSYNCRXCFG: message types of received packets to time-stamp.
    TSYNCRXCFG = 0x5f50;
    /// PBACL: clears pending bits of MSI-X vectors.
    PBACL = 0x5b68;
    /// Ether types of VLAN tags (VET).
    VET = 0x0038;
    /// Receive control.
    RCTL = 0x0100;
    /// Transmit control.
    TCTL = 0x0400;
    /// Mailbox interrupt causes of all VFs, for the PF.
    MBVFICR = 0x0c80;
    /// Mailbox interrupt mask of all VFs.
    MBVFIMR = 0x0c84;
    /// VF function level reset events.
    VFLRE = 0x0c88;
    /// VF receive enable.
    VFRE = 0x0c8c;
    /// VF transmit enable.
    VFTE = 0x0c90;
    /// Interrupt cause read.
    ICR = 0x1500;
    /// Interrupt cause set.
    ICS = 0x1504;
    /// Interrupt mask set and read.
    IMS = 0x1508;
    /// Interrupt mask clear.
    IMC = 0x150c;
    /// Interrupt auto-mask.
    IAM = 0x1510;
    /// General-purpose interrupt enable.
    GPIE = 0x1514;
    /// Extended interrupt cause set.
    EICS = 0x1520;
    /// Extended interrupt mask set and read.
    EIMS = 0x1524;
    /// Extended interrupt mask clear.
    EIMC = 0x1528;
    /// Extended interrupt auto-clear.
    EIAC = 0x152c;
    /// Extended interrupt auto-mask.
    EIAM = 0x1530;
    /// Extended interrupt cause.
    EICR = 0x1580;
    /// Vector of the causes other than those of queues.
    IVAR_MISC = 0x1740;
    /// Size of the receive packet buffer.
    RXPBS = 0x2404;
    /// QDE: drops frames of queues without descriptors.
    QDE = 0x2408;
    /// DMA transmit switch control.
    DTXSWC = 0x3500;
    /// LVMMC: cause and queue of the last forged frame.
    LVMMC = 0x3548;
    /// Wrong VM behaviour: queues that sent forged frames, and blocked queues.
    WVBR = 0x3554;
    /// Malicious driver free block: queues to release.
    MDFB = 0x3558;
    /// TCP flags that segmentation keeps in the first (bits 11:0) and middle (27:16) segments.
    DTXTCPFLGL = 0x359c;
    /// TCP flags that segmentation keeps in the last segment.
    DTXTCPFLGH = 0x35a0;
    /// DMA transmit control.
    DTXCTL = 0x3590;
    /// RTTDQSEL: selects the queue whose rate RTTBCNRC limits.
    RTTDQSEL = 0x3604;
    /// Rate-limiter memory window.
    RTTBCNRM = 0x3690;
    /// RTTBCNRC: transmit rate of the selected queue.
    RTTBCNRC = 0x36b0;
    /// Receive checksum control.
    RXCSUM = 0x5000;
    /// RLPML: length of the longest received packet.
    RLPML = 0x5004;
    /// Receive filter control.
    RFCTL = 0x5008;
    /// SYNQF: receive queue of TCP SYN segments.
    SYNQF = 0x55fc;
    /// VLAN priorities that interrupt immediately.
    IMIRVP = 0x5ac0;
    /// VT_CTL: control of the pools (VMDq).
    VT_CTL = 0x581c;
    /// Multiple receive queues command.
    MRQC = 0x5818;
    /// RPLOLR: VLAN stripping of replicated packets.
    RPLOLR = 0x5af0;
    /// SCCRL: broadcast and multicast storm control.
    SCCRL = 0x5db0;
    /// Storm control status.
    SCSTS = 0x5db4;
    /// Broadcast storm threshold.
    BSCTRH = 0x5db8;
    /// Multicast storm threshold.
    MSCTRH = 0x5dbc;
    /// Storm control: broadcast traffic in the current window.
    BSCCNT = 0x5dc0;
    /// Storm control: multicast traffic in the current window.
    MSCCNT = 0x5dc4;
    /// Storm control: basic intervals elapsed in the current window.
    SCTC = 0x5dc8;
    /// Storm control basic interval.
    SCBI = 0x5dcc;
    /// Software semaphore.
    SWSM = 0x5b50;
}

/// Returns the offset of VF `n`'s mailbox control, the VF's side: V2PMAILBOX in the PF's register file.
#[must_use]
pub const fn v2p_mailbox(vf: VfIndex) -> u32 {
    0x0c40 + 4 * vf.get() as u32
}

/// Returns the offset of VF `n`'s mailbox control, the PF's side.
#[must_use]
pub const fn p2v_mailbox(vf: VfIndex) -> u32 {
    0x0c00 + 4 * vf.get() as u32
}

/// Returns the offset of dword `word` (0..16) of VF `n`'s mailbox memory.
#[must_use]
pub const fn vmbmem(vf: VfIndex, word: u32) -> u32 {
    0x0800 + 0x40 * vf.get() as u32 + 4 * (word & 15)
}

/// Returns the offset of a vector's interrupt throttle.
#[must_use]
pub const fn eitr(vector: VectorIndex) -> u32 {
    0x1680 + 4 * vector.get() as u32
}

/// Returns the offset of an interrupt vector allocation row: row q mod 8 has the entries of queues q and q + 8.
#[must_use]
pub const fn ivar(row: u32) -> u32 {
    0x1700 + 4 * (row & 7)
}

/// Returns the offset of a pool's port VLAN.
#[must_use]
pub const fn vmvir(pool: PoolIndex) -> u32 {
    0x3700 + 4 * pool.index() as u32
}

/// Returns the offset of the multicast table, 128 dwords.
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

/// Returns the offset of EtherType filter `i` (0..8).
#[must_use]
pub const fn etqf(i: u32) -> u32 {
    0x5cb0 + 4 * (i & 7)
}

/// Returns the offset of the header types that both queues of a pool split off.
#[must_use]
pub const fn psrtype(pool: PoolIndex) -> u32 {
    0x5480 + 4 * pool.index() as u32
}

/// Returns the offset of the VLAN table, 128 dwords, a bit per VLAN id.
#[must_use]
pub const fn vfta(word: u32) -> u32 {
    0x5600 + 4 * (word & 127)
}

/// Returns the offset of a pool's offload and filter options.
#[must_use]
pub const fn vmolr(pool: PoolIndex) -> u32 {
    0x5ad0 + 4 * pool.index() as u32
}

/// Returns the offset of the redirection table, 32 dwords of four entries.
#[must_use]
pub const fn reta(word: u32) -> u32 {
    0x5c00 + 4 * (word & 31)
}

/// Returns the offset of the receive-side-scaling key, 10 dwords.
#[must_use]
pub const fn rssrk(word: u32) -> u32 {
    0x5c80 + 4 * word
}

/// Returns the offset of VLAN pool filter `i` (0..32).
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

/// Returns the offset of the unicast hash table, 128 dwords.
#[must_use]
pub const fn uta(word: u32) -> u32 {
    0xa000 + 4 * (word & 127)
}

/// Returns the base of a receive queue's block in the dense layout.
#[must_use]
pub const fn rx_block(q: QueueIndex) -> u32 {
    0xc000 + 0x40 * q.get() as u32
}

/// Returns the base of a transmit queue's block in the dense layout.
#[must_use]
pub const fn tx_block(q: QueueIndex) -> u32 {
    0xe000 + 0x40 * q.get() as u32
}

/// Returns the base of VF `n`'s statistics and control block in the PF's BAR.
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
