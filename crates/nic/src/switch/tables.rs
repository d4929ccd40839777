//! The switch's filters as the frame path wants them: decoded from the registers once after a change, one
//! mask or one load per question. Without VMDq the port is one pool, number 0, and its promiscuity bits take
//! the place of the pool's, so that a frame's way is the same.
//!
//! Left out: keeping track of changes; the register table says what is decoded from a register.

use super::addresses::{Exact, Inexact};
use super::mirror::Mirrors;
use super::vlans::Vlans;
use crate::file::RegisterFile;
use crate::offload::vlan;
use i82576::MacAddress;
use i82576::bits::{ctrl, ctrl_ext, dtxswc, mrqc, rah, rctl, rplolr, vmolr, vmvir, vt_ctl};
use i82576::ids::{FCS, MAX_VFS, RECEIVE_ADDRESSES};
use i82576::register as r;

/// The longest frame, FCS included, where long packets are not accepted; a tag comes on top.
const STANDARD_FRAME: usize = 1518;
const TAG: usize = vlan::TAG;

/// The longest frame of a pool, FCS included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Limit {
    untagged: usize,
    tagged: usize,
}

impl Limit {
    const STANDARD: Self = Self { untagged: STANDARD_FRAME, tagged: STANDARD_FRAME + TAG };
    /// Where every frame has an outer tag.
    const WITH_OUTER: Self = Self { untagged: STANDARD_FRAME + TAG, tagged: STANDARD_FRAME + 2 * TAG };

    /// The limit register counts the whole frame, tag included.
    const fn long(bytes: u32) -> Self {
        Self { untagged: bytes as usize, tagged: bytes as usize }
    }
}

/// How a frame is handed to a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// Take the VLAN tag out of the frame and put it into the descriptor.
    pub strip_vlan: bool,
    /// Choose between the pool's queues (without VMDq, all queues) by hash.
    pub rss: bool,
}

/// The decoded filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    pub(super) exact: Exact,
    pub(super) multicast: Inexact,
    pub(super) unicast: Inexact,
    /// Where the twelve bits of MTA and UTA start in an address.
    pub(super) hash_shift: u32,
    pub(super) vlans: Vlans,
    pub(super) filter_vlans: bool,
    /// The tag bit that must be as RCTL.CFI says, if RCTL.CFIEN asks, and what it must be.
    pub(super) canonical: (u16, u16),
    /// Pools by what they accept.
    pub(super) untagged: u8,
    pub(super) broadcast: u8,
    pub(super) multicast_hits: u8,
    pub(super) unicast_hits: u8,
    pub(super) every_multicast: u8,
    pub(super) ignore_mac: bool,
    /// Pools of a unicast frame from the wire that no filter knows.
    pub(super) default_pools: u8,
    /// Pools that may receive.
    pub(super) enabled: u8,
    /// Pools there are.
    pub(super) all: u8,
    /// Those of them that are VFs'.
    pub(super) vfs: u8,
    pub(super) replicate: bool,
    /// There are pools, and a frame goes to one of them at most.
    pub(super) alone: bool,
    pub(super) mirrors: Mirrors,
    pub(super) loopback: bool,
    pub(super) own_loopback: u8,
    pub(super) check_source: u8,
    pub(super) check_vlan: u8,
    limits: [Limit; MAX_VFS],
    /// The smallest limit: a frame within it fits every pool.
    shortest_limit: usize,
    pub(super) virtualised: bool,
    /// The type of tags.
    pub(crate) inner: u16,
    /// The type of outer tags, if they are in use; the filters then look at the inner ones.
    pub(crate) outer: Option<u16>,
    /// The check sequence of frames from the wire is delivered with them. Pools never see it.
    pub(crate) keeps_check_sequence: bool,
    strip_vlan: u8,
    strip_replicated: bool,
    rss: u8,
    port_vlans: [u32; MAX_VFS],
}

impl Tables {
    /// Decodes the filter registers of a port whose first pools are those of `vfs` VFs.
    #[must_use]
    pub fn load(file: &RegisterFile, vfs: u8) -> Self {
        let mode = file.get(r::MRQC) & mrqc::MODE_MASK;
        let virtualised = mode == mrqc::VMDQ || mode == mrqc::VMDQ_RSS;
        let receive = file.get(r::RCTL);
        let mut tables = Self::common(file, receive, virtualised);
        if virtualised {
            tables.pools(file, receive, mode);
            tables.vfs = !(0xffu32 << vfs) as u8;
        } else {
            tables.single(file, receive, mode);
        }
        tables.shortest_limit = tables.limits.iter().map(|limit| limit.untagged).min().unwrap_or(0);
        tables
    }

    /// What both modes share; nobody accepts anything yet.
    fn common(file: &RegisterFile, receive: u32, virtualised: bool) -> Self {
        let outer = file.get(r::CTRL_EXT) & ctrl_ext::EXT_VLAN != 0;
        let outer = outer.then_some((file.get(r::VET) >> 16) as u16);
        Self {
            exact: exact(file, virtualised),
            multicast: Inexact::load(file, r::mta),
            unicast: Inexact::load(file, r::uta),
            hash_shift: [36, 35, 34, 32][(receive >> rctl::MO_SHIFT & 3) as usize],
            vlans: Vlans::load(file),
            filter_vlans: receive & rctl::VFE != 0,
            canonical: canonical(receive),
            untagged: 0,
            broadcast: 0,
            multicast_hits: 0,
            unicast_hits: 0,
            every_multicast: 0,
            ignore_mac: false,
            default_pools: 0,
            enabled: 0,
            all: 0,
            vfs: 0,
            replicate: false,
            alone: false,
            mirrors: Mirrors::NONE,
            loopback: false,
            own_loopback: 0,
            check_source: 0,
            check_vlan: 0,
            limits: [if outer.is_some() { Limit::WITH_OUTER } else { Limit::STANDARD }; MAX_VFS],
            shortest_limit: 0,
            virtualised,
            inner: file.get(r::VET) as u16,
            outer,
            keeps_check_sequence: !virtualised && receive & rctl::SECRC == 0,
            strip_vlan: 0,
            strip_replicated: false,
            rss: 0,
            port_vlans: [0; MAX_VFS],
        }
    }

    /// VMDq: each pool by its VMOLR.
    fn pools(&mut self, file: &RegisterFile, receive: u32, mode: u32) {
        let options: [u32; MAX_VFS] = core::array::from_fn(|pool| file.get(r::vmolr(pool as u8)));
        let with = |bit: u32| options.iter().rev().fold(0u8, |set, o| set << 1 | u8::from(o & bit != 0));
        self.all = 0xff;
        self.untagged = with(vmolr::AUPE);
        self.broadcast = with(vmolr::BAM);
        self.multicast_hits = with(vmolr::ROMPE);
        self.unicast_hits = with(vmolr::ROPE);
        self.every_multicast = with(vmolr::MPME);
        self.strip_vlan = with(vmolr::STRVLAN);
        self.rss = if mode == mrqc::VMDQ_RSS { with(vmolr::RSSE) } else { 0 };
        self.enabled = if receive & rctl::EN != 0 { file.get(r::VFRE) as u8 } else { 0 };
        for (limit, option) in self.limits.iter_mut().zip(options) {
            if receive & rctl::LPE != 0 && option & vmolr::LPE != 0 {
                *limit = Limit::long(option & vmolr::RLPML_MASK);
            }
        }
        self.port_vlans = core::array::from_fn(|pool| file.get(r::vmvir(pool as u8)));
        self.switching(file);
    }

    /// VMDq: how pools and wire are connected.
    fn switching(&mut self, file: &RegisterFile) {
        let control = file.get(r::VT_CTL);
        self.ignore_mac = control & vt_ctl::IGNORE_MAC != 0;
        self.replicate = control & vt_ctl::REPL_EN != 0;
        self.alone = !self.replicate;
        if self.replicate {
            self.mirrors = Mirrors::load(file);
        }
        if control & vt_ctl::DIS_DEF_PL == 0 {
            self.default_pools = 1 << ((control & vt_ctl::DEF_PL_MASK) >> vt_ctl::DEF_PL_SHIFT);
        }
        self.strip_replicated = file.get(r::RPLOLR) & rplolr::STRVLAN != 0;
        let switch = file.get(r::DTXSWC);
        self.loopback = switch & dtxswc::LOOPBACK_EN != 0;
        self.own_loopback = (switch >> dtxswc::LLE_SHIFT) as u8;
        self.check_source = (switch >> dtxswc::MAC_SPOOF_SHIFT) as u8;
        self.check_vlan = (switch >> dtxswc::VLAN_SPOOF_SHIFT) as u8;
    }

    /// No VMDq: the port is pool 0.
    fn single(&mut self, file: &RegisterFile, receive: u32, mode: u32) {
        let flag = |bit: u32| u8::from(receive & bit != 0);
        self.all = 1;
        self.untagged = 1;
        self.broadcast = flag(rctl::BAM);
        self.multicast_hits = 1;
        self.unicast_hits = 1;
        self.every_multicast = flag(rctl::MPE);
        self.default_pools = flag(rctl::UPE);
        self.enabled = flag(rctl::EN);
        if receive & rctl::LPE != 0 {
            self.limits = [Limit::long(file.get(r::RLPML)); MAX_VFS];
        }
        self.strip_vlan = u8::from(file.get(r::CTRL) & ctrl::VME != 0);
        self.rss = u8::from(mode == mrqc::RSS);
    }

    /// The tag the card puts into a frame of `pool`, whose descriptor asked for `requested`: the pool's VLAN
    /// by VMVIR comes before the descriptor's, and VMVIR may forbid tags.
    #[must_use]
    pub fn transmit_tag(&self, pool: u8, requested: Option<u16>) -> Option<u16> {
        let port_vlan = self.port_vlans[usize::from(pool & 7)];
        match port_vlan & (3 << vmvir::VLANA_SHIFT) {
            vmvir::DEFAULT => Some((port_vlan & vmvir::TAG_MASK) as u16),
            vmvir::NEVER => None,
            _ => requested,
        }
    }

    /// How a frame is handed to `pool`. Replicated frames ([`super::Decision::replicated`]) share one
    /// setting.
    #[must_use]
    pub fn pool_options(&self, pool: u8, replicated: bool) -> PoolOptions {
        let has = |set: u8| set & 1 << (pool & 7) != 0;
        PoolOptions {
            strip_vlan: if replicated { self.strip_replicated } else { has(self.strip_vlan) },
            rss: has(self.rss),
        }
    }

    /// Those of `pools` that take a frame of `length` bytes, FCS excluded, tag included.
    pub(super) fn fitting(&self, pools: u8, length: usize, tagged: bool) -> u8 {
        let length = length + FCS;
        if length <= self.shortest_limit {
            return pools;
        }
        let fits = |limit: &Limit| length <= if tagged { limit.tagged } else { limit.untagged };
        pools & self.limits.iter().rev().fold(0, |set, limit| set << 1 | u8::from(fits(limit)))
    }
}

/// The mask and the value that a tag's canonical form indicator is compared by.
fn canonical(receive: u32) -> (u16, u16) {
    let on = |bit: u32| if receive & bit != 0 { vlan::CFI } else { 0 };
    (on(rctl::CFIEN), on(rctl::CFIEN) & on(rctl::CFI))
}

/// The valid receive addresses. Without VMDq the pool bits mean nothing and all are pool 0's.
fn exact(file: &RegisterFile, virtualised: bool) -> Exact {
    let mut exact = Exact::new();
    for i in 0..RECEIVE_ADDRESSES as u32 {
        let (low, high) = (file.get(r::ral(i)), file.get(r::rah(i)));
        if high & rah::AV != 0 {
            let pools = if virtualised { (high >> rah::POOLSEL_SHIFT) as u8 } else { 1 };
            exact.add(MacAddress::from_words(low, high), pools);
        }
    }
    exact
}
