//! The filter registers as the switch's tables. Without VMDq the port is one pool, number 0, and the port's promiscuity bits
//! act as the pool's. A frame takes the same path in both modes.
//!
//! The register table names the registers whose writes have the tables loaded again.

use super::PoolTables;
use crate::file::RegisterFile;
use i82576::bits::{ctrl, ctrl_ext, dtxswc, mrqc, rah, rctl, rplolr, vlvf, vmolr, vmrctl, vmvir, vt_ctl};
use i82576::ids::{FCS, MAX_FRAME, MAX_VFS, MIRROR_RULES, RECEIVE_ADDRESSES, VLAN_FILTERS};
use i82576::register as r;
use i82576::{MacAddress, PoolIndex};
use plane::PortSet;
use plane::switch::{ExactFilter, HashFilter, MaxFrameLength, PortMirrorRule, TagInsertion, VlanTable};
use plane::tag;
use units::VlanIds;

/// Settings of reception in the filter registers, which the switch does not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReceiveSettings {
    /// Pools that RSS spreads over their two queues, a bit each. Without VMDq bit 0 stands for all queues.
    pub(crate) scales: u8,
    /// True if frames from the wire are delivered with their check sequence (RCTL.SECRC is clear). Pools never get it.
    pub(crate) keeps_check_sequence: bool,
    /// Ether type of VLAN tags (VET).
    pub(crate) inner: u16,
}

/// Decodes the filter registers of a port whose first `vfs` pools belong to VFs.
#[must_use]
pub(crate) fn load(file: &RegisterFile, vfs: u8) -> (PoolTables, ReceiveSettings) {
    let mode = file.get(r::MRQC) & mrqc::MODE_MASK;
    let shared = mode == mrqc::VMDQ || mode == mrqc::VMDQ_RSS;
    let receive = file.get(r::RCTL);
    let mut tables = common(file, receive, shared);
    let scales = if shared {
        tables.guests = ports(!(0xffu32 << vfs));
        pools(&mut tables, file, receive)
    } else {
        single(&mut tables, file, receive)
    };
    let scales = if matches!(mode, mrqc::VMDQ_RSS | mrqc::RSS) { scales } else { 0 };
    let keeps_check_sequence = !shared && receive & rctl::SECRC == 0;
    let receive = ReceiveSettings { scales, keeps_check_sequence, inner: tables.inner };
    (tables, receive)
}

/// Returns the ports of the pools in a register's low byte.
fn ports(bits: u32) -> PortSet {
    PortSet::new((bits & 0xff).into())
}

/// Returns the switch tables with the settings that apply with VMDq and without. No pool accepts frames yet.
fn common(file: &RegisterFile, receive: u32, shared: bool) -> PoolTables {
    let outer = file.get(r::CTRL_EXT) & ctrl_ext::EXT_VLAN != 0;
    let mut tables = PoolTables::closed(RECEIVE_ADDRESSES);
    addresses(&mut tables.exact, file, shared);
    tables.multicast = HashFilter::from_words(|word| file.get(r::mta(word)));
    tables.unicast = HashFilter::from_words(|word| file.get(r::uta(word)));
    // RCTL.MO selects twelve bits of the address for the multicast and unicast tables: 47:36, 46:35, 45:34 or 43:32.
    tables.hash_shift = [36, 35, 34, 32][(receive >> rctl::MO_SHIFT & 3) as usize];
    vlans(&mut tables.vlans, file);
    tables.filter_vlans = receive & rctl::VFE != 0;
    tables.canonical = canonical(receive);
    tables.shared = shared;
    tables.inner = file.get(r::VET) as u16;
    tables.outer = outer.then_some((file.get(r::VET) >> 16) as u16);
    tables.set_fits([usual(&tables); MAX_VFS]);
    tables.set_longest(MAX_FRAME - FCS);
    tables
}

/// Returns the length limit of frames without long packet enable (LPE).
fn usual(tables: &PoolTables) -> MaxFrameLength {
    if tables.outer.is_some() { MaxFrameLength::WITH_OUTER } else { MaxFrameLength::STANDARD }
}

/// Sets each pool's options by its VMOLR (VMDq). Returns the pools with RSS enable (RSSE).
fn pools(tables: &mut PoolTables, file: &RegisterFile, receive: u32) -> u8 {
    let options = PoolIndex::EVERY.map(|pool| file.get(r::vmolr(pool)));
    let with = |bit: u32| options.iter().rev().fold(0, |set, o| set << 1 | u32::from(o & bit != 0));
    tables.all = ports(0xff);
    tables.untagged = ports(with(vmolr::AUPE));
    tables.broadcast = ports(with(vmolr::BAM));
    tables.multicast_hits = ports(with(vmolr::ROMPE));
    tables.unicast_hits = ports(with(vmolr::ROPE));
    tables.every_multicast = ports(with(vmolr::MPME));
    tables.strips = ports(with(vmolr::STRVLAN));
    tables.enabled = if receive & rctl::EN != 0 { ports(file.get(r::VFRE)) } else { PortSet::NONE };
    tables.set_fits(options.map(|option| match receive & rctl::LPE != 0 && option & vmolr::LPE != 0 {
        true => MaxFrameLength::whole((option & vmolr::RLPML_MASK) as usize),
        false => usual(tables),
    }));
    tables.tags = PoolIndex::EVERY.map(|pool| port_tag(file.get(r::vmvir(pool))));
    switching(tables, file);
    with(vmolr::RSSE) as u8
}

/// Returns a pool's rule for tag insertion by the value of VMVIR: a default tag replaces the descriptor's, or tags are
/// forbidden.
fn port_tag(port_vlan: u32) -> TagInsertion {
    match port_vlan & (3 << vmvir::VLANA_SHIFT) {
        vmvir::DEFAULT => TagInsertion::Always((port_vlan & vmvir::TAG_MASK) as u16),
        vmvir::NEVER => TagInsertion::Never,
        _ => TagInsertion::Asked,
    }
}

/// Sets the tables' rules between pools and the wire (VMDq): replication, mirrors, default pool, loopback, and
/// anti-spoofing.
fn switching(tables: &mut PoolTables, file: &RegisterFile) {
    let control = file.get(r::VT_CTL);
    tables.ignore_address = control & vt_ctl::IGNORE_MAC != 0;
    tables.replicate = control & vt_ctl::REPL_EN != 0;
    tables.alone = !tables.replicate;
    if tables.replicate {
        (0..MIRROR_RULES as u32).filter_map(|i| mirror(file, i)).for_each(|rule| tables.mirrors.add(rule));
    }
    if control & vt_ctl::DIS_DEF_PL == 0 {
        tables.default_ports = ports(1 << ((control & vt_ctl::DEF_PL_MASK) >> vt_ctl::DEF_PL_SHIFT));
    }
    tables.strips_replicated = file.get(r::RPLOLR) & rplolr::STRVLAN != 0;
    let switch = file.get(r::DTXSWC);
    tables.loopback = switch & dtxswc::LOOPBACK_EN != 0;
    tables.own_loopback = ports(switch >> dtxswc::LLE_SHIFT);
    tables.check_source = ports(switch >> dtxswc::MAC_SPOOF_SHIFT);
    tables.check_vlan = ports(switch >> dtxswc::VLAN_SPOOF_SHIFT);
}

/// Sets the port's options as those of pool 0 (without VMDq). Returns pool 0's bit, since RSS applies to it.
fn single(tables: &mut PoolTables, file: &RegisterFile, receive: u32) -> u8 {
    let flag = |bit: u32| ports(u32::from(receive & bit != 0));
    tables.all = ports(1);
    tables.untagged = ports(1);
    tables.broadcast = flag(rctl::BAM);
    tables.multicast_hits = ports(1);
    tables.unicast_hits = ports(1);
    tables.every_multicast = flag(rctl::MPE);
    tables.default_ports = flag(rctl::UPE);
    tables.enabled = flag(rctl::EN);
    if receive & rctl::LPE != 0 {
        tables.set_fits([MaxFrameLength::whole(file.get(r::RLPML) as usize); MAX_VFS]);
    }
    tables.strips = ports(u32::from(file.get(r::CTRL) & ctrl::VME != 0));
    1
}

/// Returns mask and value for the comparison of a tag's canonical form indicator (RCTL.CFIEN, CFI).
fn canonical(receive: u32) -> (u16, u16) {
    let on = |bit: u32| if receive & bit != 0 { tag::CFI } else { 0 };
    (on(rctl::CFIEN), on(rctl::CFIEN) & on(rctl::CFI))
}

/// Adds the valid receive addresses (RAL, RAH) to the filter. Without VMDq their pool bits have no meaning, and all
/// belong to pool 0.
fn addresses(exact: &mut ExactFilter, file: &RegisterFile, shared: bool) {
    for i in 0..RECEIVE_ADDRESSES as u32 {
        let (low, high) = (file.get(r::ral(i)), file.get(r::rah(i)));
        if high & rah::AV != 0 {
            let to = if shared { high >> rah::POOLSEL_SHIFT } else { 1 };
            exact.add(MacAddress::from_words(low, high), ports(to));
        }
    }
}

/// Sets the members of VLANs (VLVF), and the VLANs that the port accepts (VFTA).
fn vlans(vlans: &mut VlanTable, file: &RegisterFile) {
    vlans.accept(VlanIds::from_bitmap(|word| file.get(r::vfta(word))));
    for filter in (0..VLAN_FILTERS as u32).map(|i| file.get(r::vlvf(i))) {
        if filter & vlvf::VLANID_EN != 0 {
            let members = ports(filter >> vlvf::POOLSEL_SHIFT);
            vlans.add((filter & vlvf::VLANID_MASK) as u16, members, filter & vlvf::LVLAN != 0);
        }
    }
}

/// Returns mirror rule `i` (VMRCTL, VMRVM, VMRVLAN), or `None` if it copies nothing.
fn mirror(file: &RegisterFile, i: u32) -> Option<PortMirrorRule> {
    let control = file.get(r::vmrctl(i));
    let on = |kind: u32| control & kind != 0;
    if !on(vmrctl::VPME | vmrctl::UPME | vmrctl::DPME | vmrctl::VLME) {
        return None;
    }
    let mut rule = PortMirrorRule {
        to: super::port(PoolIndex::of_field(control >> vmrctl::POOL_SHIFT)).only(),
        ports: if on(vmrctl::VPME) { ports(file.get(r::vmrvm(i))) } else { PortSet::NONE },
        from_uplink: on(vmrctl::UPME),
        to_uplink: on(vmrctl::DPME),
        vlans: VlanIds::new(),
    };
    let named = if on(vmrctl::VLME) { file.get(r::vmrvlan(i)) } else { 0 };
    for filter in (0..VLAN_FILTERS as u32).filter(|filter| named & 1 << filter != 0) {
        let filter = file.get(r::vlvf(filter));
        if filter & vlvf::VLANID_EN != 0 {
            rule.vlans.insert((filter & vlvf::VLANID_MASK) as u16);
        }
    }
    Some(rule)
}
