//! Tests the rules of the switch in the 82576 datasheet, on a port of eight pools; then invariants for any filters and
//! any frame.

mod invariants;
mod mirror;
mod options;
mod receive;
mod reference;
mod storm;
mod transmit;
mod without_vmdq;

use super::load;
use crate::file::RegisterFile;
use i82576::bits::{dtxswc, mrqc, rah, rctl, vlvf, vmolr, vt_ctl};
use i82576::register as r;
use i82576::{MacAddress, PoolIndex};
use plane::PortSet;
use plane::switch::{FrameMetadata, FrameOrigin, SwitchDecision, SwitchDropReason};

/// Returns pool `n` as the origin of a frame.
fn sender(n: u8) -> FrameOrigin {
    FrameOrigin::Port(super::port(PoolIndex::of_field(n.into())))
}

const BROADCAST: &str = "ff:ff:ff:ff:ff:ff";
const GROUP: &str = "01:00:5e:00:00:fb";
const PEER: &str = "02:00:00:00:00:99";
const A: &str = "02:00:00:00:00:0a";
const B: &str = "02:00:00:00:00:0b";
const C: &str = "02:00:00:00:00:0c";

const A_BIT: u8 = 1;
const B_BIT: u8 = 2;
const C_BIT: u8 = 4;

/// Number of the tested port's VFs. Pool 7, behind the pools of the VFs, is the PF's.
const VFS: u8 = 7;

/// Registers of a tested port, which the methods fill with addresses, pool options and VLANs.
struct PortBuilder {
    file: RegisterFile,
    addresses: u32,
    vlans: u32,
}

/// Returns a port in VMDq mode with replication and loopback: every pool is enabled, pool 7 is the default pool, and no pool
/// accepts frames yet.
fn pools() -> PortBuilder {
    let mut port = PortBuilder { file: RegisterFile::new(), addresses: 0, vlans: 0 };
    port.file.set(r::RCTL, rctl::EN | rctl::LPE);
    port.file.set(r::MRQC, mrqc::VMDQ);
    port.file.set(r::VFRE, 0xff);
    port.file.set(r::VT_CTL, vt_ctl::REPL_EN | 7 << vt_ctl::DEF_PL_SHIFT);
    port.file.set(r::DTXSWC, dtxswc::LOOPBACK_EN);
    port
}

/// Returns a port whose pools 0, 1 and 2 have the addresses A, B and C, and accept broadcast and untagged frames.
fn port() -> PortBuilder {
    let accept = vmolr::BAM | vmolr::AUPE;
    pools().mac(0, A).mac(1, B).mac(2, C).pool(0, accept).pool(1, accept).pool(2, accept)
}

/// Returns a port without VMDq that has the address A.
fn single() -> PortBuilder {
    let mut port = PortBuilder { file: RegisterFile::new(), addresses: 0, vlans: 0 };
    port.file.set(r::RCTL, rctl::EN);
    port.mac(0, A)
}

impl PortBuilder {
    fn set(mut self, offset: u32, bits: u32) -> Self {
        self.file.update(offset, 0, bits);
        self
    }

    fn clear(mut self, offset: u32, bits: u32) -> Self {
        self.file.update(offset, bits, 0);
        self
    }

    fn mac(mut self, pool: u32, address: &str) -> Self {
        let (low, high) = mac(address).to_words();
        self.file.set(r::ral(self.addresses), low);
        self.file.set(r::rah(self.addresses), high | rah::AV | 1 << (rah::POOLSEL_SHIFT + pool));
        self.addresses += 1;
        self
    }

    fn pool(self, pool: u8, options: u32) -> Self {
        self.set(r::vmolr(PoolIndex::of_field(pool.into())), options)
    }

    fn vlan(mut self, id: u32, members: u8, flags: u32) -> Self {
        let filter = id | u32::from(members) << vlvf::POOLSEL_SHIFT | vlvf::VLANID_EN | flags;
        self.file.set(r::vlvf(self.vlans), filter);
        self.vlans += 1;
        self.set(r::RCTL, rctl::VFE).set(r::vfta(id / 32), 1 << (id % 32))
    }

    /// Returns the switch's decision on a frame, without the flag for inexact filters ([`PortBuilder::is_inexact`]).
    fn decide(&self, frame: FrameMetadata) -> SwitchDecision {
        SwitchDecision { inexact: false, ..load(&self.file, VFS).0.decide(&frame) }
    }

    fn is_inexact(&self, dst: &str) -> bool {
        load(&self.file, VFS).0.decide(&frame(FrameOrigin::Uplink, PEER, dst)).inexact
    }

    /// Returns the switch's decision on a frame from the wire to `dst`.
    fn wire(&self, dst: &str) -> SwitchDecision {
        self.decide(frame(FrameOrigin::Uplink, PEER, dst))
    }

    /// Returns the switch's decision on a frame that pool 0 sends from its address A to `dst`.
    fn a_sends(&self, dst: &str) -> SwitchDecision {
        self.decide(frame(sender(0), A, dst))
    }
}

fn mac(text: &str) -> MacAddress {
    text.parse().unwrap()
}

fn frame(origin: FrameOrigin, src: &str, dst: &str) -> FrameMetadata {
    FrameMetadata { dst: mac(dst), src: mac(src), vlan: None, length: 60, origin }
}

fn ports(pools: u8) -> PortSet {
    PortSet::new(pools.into())
}

fn to(pools: u8) -> SwitchDecision {
    SwitchDecision { ports: ports(pools), ..SwitchDecision::default() }
}

fn copies(pools: u8) -> SwitchDecision {
    SwitchDecision { ports: ports(pools), replicated: true, ..SwitchDecision::default() }
}

fn out() -> SwitchDecision {
    SwitchDecision { uplink: true, ..SwitchDecision::default() }
}

fn dropped(reason: SwitchDropReason) -> SwitchDecision {
    SwitchDecision { dropped: Some(reason), ..SwitchDecision::default() }
}
