//! Bit fields of the registers, one module per register (82576 datasheet chapter 8). A field wider than a bit has a
//! `_SHIFT` or a function that extracts it. Bits without effect in the card and its drivers are omitted.

mod board;
mod filter;
mod switch;
mod time;

pub use board::{eecd, eerw, mdic};
pub use filter::{etqf, ftqf, imir, imirext, imirvp, psrtype, rfctl, synqf};
pub use switch::{
    dtxctl, dtxswc, lvmmc, rplolr, rttbcnrc, sccrl, scsts, vlvf, vmolr, vmrctl, vmvir, vt_ctl, wvbr,
};
pub use time::{tcptimer, tsync, tsyncrxcfg};

/// Bits of the device control register (CTRL).
pub mod ctrl {
    /// CTRL: the link is forced to full duplex.
    pub const FD: u32 = 1 << 0;
    /// CTRL: stop mastering the bus; STATUS.GIO_MASTER then falls.
    pub const GIO_MASTER_DISABLE: u32 = 1 << 2;
    /// CTRL: bring the link up.
    pub const SLU: u32 = 1 << 6;
    /// CTRL: forced link speed, encoded as in STATUS.
    pub const SPEED: u32 = 0b11 << 8;
    /// CTRL: the link speed is forced to the value of CTRL.SPEED.
    pub const FRCSPD: u32 = 1 << 11;
    /// CTRL: the duplex mode of the link is forced.
    pub const FRCDPX: u32 = 1 << 12;
    /// CTRL: software reset of the port, self-clearing.
    pub const RST: u32 = 1 << 26;
    /// CTRL: the port obeys received pause frames.
    pub const RFCE: u32 = 1 << 27;
    /// CTRL VLAN mode: strip and insert VLAN tags. While pools are in use, the bit does not control stripping.
    pub const VME: u32 = 1 << 30;
    /// CTRL: reset of the PHY, self-clearing.
    pub const PHY_RST: u32 = 1 << 31;
}

/// Bits of the device status register (STATUS).
pub mod status {
    /// STATUS: the link has full duplex.
    pub const FD: u32 = 1 << 0;
    /// STATUS: the link is up.
    pub const LU: u32 = 1 << 1;
    /// STATUS: the link's speed is 1000 Mb/s.
    pub const SPEED_1000: u32 = 0b10 << 6;
    /// STATUS: the port has loaded its settings from the NVM.
    pub const LAN_INIT_DONE: u32 = 1 << 9;
    /// STATUS: the PHY reset was asserted.
    pub const PHYRA: u32 = 1 << 10;
    /// STATUS: position of the number of VFs.
    pub const NUM_VFS_SHIFT: u32 = 14;
    /// STATUS: SR-IOV is enabled.
    pub const IOV: u32 = 1 << 18;
    /// STATUS: the port may master the bus.
    pub const GIO_MASTER: u32 = 1 << 19;
}

/// Bits of the extended device control register (CTRL_EXT).
pub mod ctrl_ext {
    /// CTRL_EXT: PF reset done: VFs may start (RSTI falls, RSTD rises).
    pub const PFRSTD: u32 = 1 << 14;
    /// CTRL_EXT: frames have an extended (outer) VLAN tag.
    pub const EXT_VLAN: u32 = 1 << 26;
    /// CTRL_EXT: a driver of this port is loaded.
    pub const DRV_LOAD: u32 = 1 << 28;
}

/// Bits of the receive control register (RCTL).
pub mod rctl {
    /// RCTL: the receiver is enabled.
    pub const EN: u32 = 1 << 1;
    /// RCTL: every unicast frame is accepted (without VMDq).
    pub const UPE: u32 = 1 << 3;
    /// RCTL: every multicast frame is accepted (without VMDq).
    pub const MPE: u32 = 1 << 4;
    /// RCTL: frames above the standard length are accepted.
    pub const LPE: u32 = 1 << 5;
    /// RCTL: mask of the loopback mode.
    pub const LBM_MASK: u32 = 3 << 6;
    /// RCTL loopback mode: in the MAC, before the PHY.
    pub const LBM_MAC: u32 = 1 << 6;
    /// RCTL: position of the multicast offset, which selects the 12 address bits that index MTA and UTA.
    pub const MO_SHIFT: u32 = 12;
    /// RCTL: broadcasts are accepted (without VMDq).
    pub const BAM: u32 = 1 << 15;
    /// RCTL: the VLAN filter is enabled.
    pub const VFE: u32 = 1 << 18;
    /// RCTL: the tag's canonical form indicator is compared with CFI.
    pub const CFIEN: u32 = 1 << 19;
    /// RCTL: required value of the canonical form indicator.
    pub const CFI: u32 = 1 << 20;
    /// RCTL: received pause frames are discarded.
    pub const DPF: u32 = 1 << 22;
    /// RCTL: pass MAC control frames other than pauses to software.
    pub const PMCF: u32 = 1 << 23;
    /// RCTL: buffer sizes of BSIZE are 16 times as large.
    pub const BSEX: u32 = 1 << 25;
    /// RCTL: strip the frame check sequence from received frames.
    pub const SECRC: u32 = 1 << 26;

    /// Returns the receive buffer size in bytes where SRRCTL gives none: BSIZE (17:16) of 2048, 1024, 512 or 256, the
    /// last three times 16 with BSEX. BSIZE of 2048 with BSEX is undefined; the model keeps 2048, so that no buffer
    /// overflows.
    #[must_use]
    pub const fn buffer_size(rctl: u32) -> usize {
        match ((rctl >> 16) & 3, rctl & BSEX != 0) {
            (0, _) | (_, false) => 2048 >> ((rctl >> 16) & 3),
            (size, true) => 32768 >> size,
        }
    }
}

/// Bits of the transmit control register (TCTL).
pub mod tctl {
    /// TCTL: the transmitter is enabled.
    pub const EN: u32 = 1 << 1;
    /// TCTL: the card pads short packets.
    pub const PSP: u32 = 1 << 3;
}

/// Interrupt causes other than those of queues (ICR, ICS, IMS, IMC).
pub mod icr {
    /// ICR: the card has written a transmit descriptor back.
    pub const TXDW: u32 = 1 << 0;
    /// ICR: the state of the link has changed.
    pub const LSC: u32 = 1 << 2;
    /// ICR: the number of free receive descriptors is low.
    pub const RXDMT0: u32 = 1 << 4;
    /// ICR: a receive ring ran out of buffers.
    pub const RXO: u32 = 1 << 6;
    /// ICR: the card has written a receive descriptor back.
    pub const RXDW: u32 = 1 << 7;
    /// ICR: a PHY access by MDIC has finished.
    pub const MDAC: u32 = 1 << 9;
    /// ICR: a VF has written its mailbox or was reset.
    pub const VMMB: u32 = 1 << 8;
    /// ICR storm control event: a storm began or ended.
    pub const SCE: u32 = 1 << 25;
    /// ICR: the TCP timer has expired.
    pub const TIMER: u32 = 1 << 30;
    /// ICR: transmit is out of sync: a VF's packet was blocked.
    pub const DOUTSYNC: u32 = 1 << 28;
    /// ICR: the port has asserted its interrupt.
    pub const INTA: u32 = 1 << 31;
    /// ICR: all interrupt causes that ICS can set.
    pub const SETTABLE: u32 = 0x77d4_fbfd;
}

/// Extended interrupt causes (EICR, EICS, EIMS, EIMC): interrupt vectors in 24:0, or queues in 15:0 while there is a
/// single interrupt.
pub mod eicr {
    /// EICR: the TCP timer has expired.
    pub const TIMER: u32 = 1 << 30;
    /// EICR: a cause in ICR has occurred.
    pub const OTHER: u32 = 1 << 31;
}

/// Bits of the general interrupt control (GPIE).
pub mod gpie {
    /// GPIE: every read of ICR clears it.
    pub const NSICR: u32 = 1 << 0;
    /// GPIE: the card uses several MSI-X vectors.
    pub const MULTIPLE_MSIX: u32 = 1 << 4;
    /// GPIE: an interrupt masks its extended causes (auto-mask).
    pub const EIAME: u32 = 1 << 30;
    /// GPIE: the MSI-X pending-bit array is in use.
    pub const PBA: u32 = 1 << 31;
    /// GPIE: position of the time in which a vector gains a credit for an immediate interrupt, 5 bits.
    pub const CREDIT_SHIFT: u32 = 7;
    /// GPIE: writable bits of the general interrupt control.
    pub const KEPT: u32 = NSICR | MULTIPLE_MSIX | 0x1f << CREDIT_SHIFT | EIAME | PBA;

    /// Returns the microseconds in which a vector gains a credit for an immediate interrupt; 0 if no credits accrue.
    #[must_use]
    pub const fn credit_us(gpie: u32) -> u32 {
        4 * (gpie >> CREDIT_SHIFT & 0x1f)
    }
}

/// Assignment of causes to vectors (IVAR, IVAR_MISC, VTIVAR, VTIVAR_MISC), one byte per entry.
pub mod ivar {
    /// IVAR: the entry assigns a vector to its cause.
    pub const VALID: u8 = 0x80;
    /// IVAR: mask of the PF's vector, 0..=24.
    pub const VECTOR: u8 = 0x1f;
    /// VTIVAR: mask of a VF's vector, 0..=2; 3 does not exist.
    pub const VF_VECTOR: u8 = 0x03;
    /// VTIVAR: mask of the writable bits.
    pub const VTIVAR_MASK: u32 = 0x8383_8383;
    /// VTIVAR_MISC: mask of the writable bits.
    pub const VTIVAR_MISC_MASK: u32 = 0x83;
}

/// Bits of a vector's interrupt throttle (EITR).
pub mod eitr {
    /// EITR: mask of the interval between interrupts in microseconds, bits 14:2.
    pub const INTERVAL_MASK: u32 = 0x7ffc;
    /// EITR: position of the interval between interrupts.
    pub const INTERVAL_SHIFT: u32 = 2;
    /// EITR: a write keeps the running interval counter.
    pub const CNT_IGNR: u32 = 1 << 31;
    /// EITR: position of the interval counter as read back: the upper 10 of its 12 bits.
    pub const COUNTER_SHIFT: u32 = 21;
    /// EITR: maximum of the interval counter as read back.
    pub const COUNTER_END: u32 = 0x3ff;
    /// EITR: microseconds per step of the interval counter as read back.
    pub const COUNTER_STEP_US: u32 = 4;
    /// EITR: an immediate interrupt needs a credit.
    pub const LLI_EN: u32 = 1 << 15;
    /// EITR: position of the immediate-interrupt credits, 5 bits.
    pub const CREDITS_SHIFT: u32 = 16;
    /// EITR: maximum number of immediate-interrupt credits.
    pub const MOST_CREDITS: u32 = 31;
    /// EITR: writable bits that the interval register of an interrupt vector stores.
    pub const KEPT: u32 = 0x001f_fffc;

    /// Returns the interval between interrupts in microseconds that an EITR value sets.
    #[must_use]
    pub const fn interval_us(eitr: u32) -> u32 {
        (eitr & INTERVAL_MASK) >> INTERVAL_SHIFT
    }
}

/// V2PMAILBOX: the VF's side of the mailbox control.
pub mod v2p {
    /// V2PMAILBOX request: a message for the PF is in the mailbox buffer.
    pub const REQ: u32 = 1 << 0;
    /// V2PMAILBOX: the VF acknowledges the PF's message.
    pub const ACK: u32 = 1 << 1;
    /// V2PMAILBOX: the VF holds the mailbox buffer.
    pub const VFU: u32 = 1 << 2;
    /// V2PMAILBOX: the PF holds the mailbox buffer.
    pub const PFU: u32 = 1 << 3;
    /// V2PMAILBOX: the PF has sent the VF a message; cleared on read.
    pub const PFSTS: u32 = 1 << 4;
    /// V2PMAILBOX: the PF has acknowledged the VF's message; cleared on read.
    pub const PFACK: u32 = 1 << 5;
    /// V2PMAILBOX: the PF is in reset (a level, not cleared by a read).
    pub const RSTI: u32 = 1 << 6;
    /// V2PMAILBOX: the PF's reset is complete (cleared by a read).
    pub const RSTD: u32 = 1 << 7;
    /// Bits of V2PMAILBOX that a read clears.
    pub const READ_CLEARS: u32 = PFSTS | PFACK | RSTD;
}

/// P2VMAILBOX: the PF's side of the mailbox control.
pub mod p2v {
    /// P2VMAILBOX status: a message for the VF is in the mailbox buffer.
    pub const STS: u32 = 1 << 0;
    /// P2VMAILBOX: the PF acknowledges the VF's message.
    pub const ACK: u32 = 1 << 1;
    /// P2VMAILBOX: the VF holds the mailbox buffer.
    pub const VFU: u32 = 1 << 2;
    /// P2VMAILBOX: the PF holds the mailbox buffer.
    pub const PFU: u32 = 1 << 3;
    /// P2VMAILBOX: takes the mailbox buffer from the VF and drops the VF's pending request.
    pub const RVFU: u32 = 1 << 4;
}

/// Bits of the PF's register of mailbox events (MBVFICR).
pub mod mbvficr {
    /// MBVFICR: position of the VFs' mailbox requests, a bit per VF.
    pub const VFREQ_SHIFT: u32 = 0;
    /// MBVFICR: position of the VFs' acknowledgements, a bit per VF.
    pub const VFACK_SHIFT: u32 = 16;
}

/// Bits of the queue control registers (RXDCTL and TXDCTL).
pub mod dctl {
    /// RXDCTL, TXDCTL: position of the write-back threshold.
    pub const WTHRESH_SHIFT: u32 = 16;
    /// RXDCTL, TXDCTL: the queue is enabled.
    pub const ENABLE: u32 = 1 << 25;
    /// TXDCTL: flush pending descriptor write-backs, self-clearing.
    pub const SWFLSH: u32 = 1 << 26;
}

/// Bits of a receive queue's buffers and descriptor format (SRRCTL).
pub mod srrctl {
    /// SRRCTL: drop packets without a descriptor, instead of delaying the port.
    pub const DROP_EN: u32 = 1 << 31;
    /// SRRCTL: position of the receive descriptor type.
    pub const DESCTYPE_SHIFT: u32 = 25;
    /// SRRCTL: legacy receive descriptors.
    pub const LEGACY: u32 = 0;
    /// SRRCTL: advanced receive descriptors with one buffer.
    pub const ONE_BUFFER: u32 = 1;
    /// SRRCTL descriptor type: recognized headers go to a separate buffer.
    pub const HEADER_SPLIT: u32 = 2;
    /// SRRCTL descriptor type: the header buffer is filled first, for any frame.
    pub const ALWAYS_SPLIT: u32 = 5;

    /// Returns the packet buffer size of a receive queue (SRRCTL) in bytes; 0 if RCTL sets the size.
    #[must_use]
    pub const fn packet_buffer(srrctl: u32) -> usize {
        (srrctl & 0x7f) as usize * 1024
    }

    /// Returns the header buffer size of a receive queue (SRRCTL) in bytes.
    #[must_use]
    pub const fn header_buffer(srrctl: u32) -> usize {
        ((srrctl >> 8) & 0x3f) as usize * 64
    }

    /// Returns the number of free receive descriptors at or below which the card reports few (SRRCTL.RDMTS, in units of
    /// 16).
    #[must_use]
    pub const fn low_threshold(srrctl: u32) -> u32 {
        ((srrctl >> 20) & 0x1f) * 16
    }

    /// Returns the descriptor type of the receive queue.
    #[must_use]
    pub const fn descriptor_type(srrctl: u32) -> u32 {
        (srrctl >> DESCTYPE_SHIFT) & 7
    }
}

/// Bits of the upper half of a receive address (RAH).
pub mod rah {
    /// RAH: the receive address entry is valid.
    pub const AV: u32 = 1 << 31;
    /// RAH: position of the pools that receive by the address, a bit each.
    pub const POOLSEL_SHIFT: u32 = 18;
    /// RAH: mask of the pools that receive by the address.
    pub const POOLSEL_MASK: u32 = 0xff << POOLSEL_SHIFT;
}

/// Bits of the queue selection by pools and hash (MRQC).
pub mod mrqc {
    /// MRQC: mask of the mode that selects the receive queue.
    pub const MODE_MASK: u32 = 7;
    /// MRQC mode: receive-side scaling over all queues of the port.
    pub const RSS: u32 = 2;
    /// MRQC mode: the pool selects the receive queue (VMDq).
    pub const VMDQ: u32 = 3;
    /// MRQC mode: two queues per pool, selected by hash.
    pub const VMDQ_RSS: u32 = 5;
    /// MRQC: position of the default receive queue, 3 bits; not with VMDq.
    pub const DEFAULT_QUEUE_SHIFT: u32 = 3;
    /// MRQC: position of the nine hash type bits.
    pub const HASH_TYPES_SHIFT: u32 = 16;
    /// MRQC hash type: TCP over IPv4 by addresses and ports.
    pub const TCP_IPV4: u32 = 1 << HASH_TYPES_SHIFT;
    /// MRQC hash type: IPv4 packets by their addresses.
    pub const IPV4: u32 = 1 << 17;
    /// MRQC hash type: TCP over IPv6 with extensions by addresses and ports.
    pub const TCP_IPV6_EX: u32 = 1 << 18;
    /// MRQC hash type: IPv6 packets with extension headers by addresses.
    pub const IPV6_EX: u32 = 1 << 19;
    /// MRQC hash type: IPv6 packets by their addresses.
    pub const IPV6: u32 = 1 << 20;
    /// MRQC hash type: TCP over IPv6 by addresses and ports.
    pub const TCP_IPV6: u32 = 1 << 21;
    /// MRQC hash type: UDP over IPv4 by addresses and ports.
    pub const UDP_IPV4: u32 = 1 << 22;
    /// MRQC hash type: UDP over IPv6 by addresses and ports.
    pub const UDP_IPV6: u32 = 1 << 23;
    /// MRQC hash type: UDP over IPv6 with extensions by addresses and ports.
    pub const UDP_IPV6_EX: u32 = 1 << 24;
}

/// Bits of the receive checksum control (RXCSUM).
pub mod rxcsum {
    /// RXCSUM: the card verifies IPv4 header checksums.
    pub const IPOFL: u32 = 1 << 8;
    /// RXCSUM: the card verifies TCP and UDP checksums.
    pub const TUOFL: u32 = 1 << 9;
    /// RXCSUM: the card verifies SCTP checksums.
    pub const CRCOFL: u32 = 1 << 11;
    /// RXCSUM: report the checksum of IP fragments instead of the packet checksum.
    pub const IPPCSE: u32 = 1 << 12;
    /// RXCSUM: report the RSS hash instead of a packet checksum.
    pub const PCSD: u32 = 1 << 13;
    /// RXCSUM: mask of the offset of the first byte that the packet checksum covers.
    pub const PCSS_MASK: u32 = 0xff;
}

/// Bits of the lower half of the head write-back address (TDWBAL).
pub mod tdwbal {
    /// TDWBAL: write the ring's head back to memory, instead of descriptors.
    pub const HEAD_WB_EN: u32 = 1 << 0;
}
