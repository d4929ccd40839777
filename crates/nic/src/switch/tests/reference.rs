//! A second implementation of the switch, by the steps of the 82576 datasheet (7.10.3.4, 7.10.3.9) and from the registers.
//! It decides like the decoded tables for any filters and any frame. Mirrors and a port without pools have their own
//! tests.

use super::VFS;
use super::invariants::{arbitrary_file, arbitrary_frame};
use crate::file::RegisterFile;
use crate::switch::load;
use i82576::MacAddress;
use i82576::PoolIndex;
use i82576::bits::{dtxswc, mrqc, rah, rctl, vlvf, vmolr, vt_ctl};
use i82576::ids::{FCS, MAX_FRAME};
use i82576::register as r;
use plane::switch::{FrameMetadata, FrameOrigin};
use proptest::prelude::{ProptestConfig, proptest};

fn on(file: &RegisterFile, register: u32, bit: u32) -> bool {
    file.get(register) & bit != 0
}

/// Returns the pools whose VMOLR has a given bit set.
fn with(file: &RegisterFile, bit: u32) -> u8 {
    PoolIndex::EVERY
        .into_iter()
        .filter(|pool| on(file, r::vmolr(*pool), bit))
        .fold(0, |set, pool| set | pool.bit())
}

/// Returns the pools of all receive addresses that equal `mac`.
fn exact(file: &RegisterFile, mac: MacAddress) -> u8 {
    let entries = (0..24).map(|i| (file.get(r::ral(i)), file.get(r::rah(i))));
    let mine =
        entries.filter(|(low, high)| high & rah::AV != 0 && MacAddress::from_words(*low, *high) == mac);
    mine.fold(0, |set, (_, high)| set | (high >> rah::POOLSEL_SHIFT) as u8)
}

/// Returns true if the address's bit in a 4096-bit hash table is set, by the hash function of Linux igb.
fn hashed(file: &RegisterFile, table: fn(u32) -> u32, mac: MacAddress) -> bool {
    let shift = [4, 5, 6, 8][(file.get(r::RCTL) >> rctl::MO_SHIFT & 3) as usize];
    let hash = (u32::from(mac.0[4]) >> (8 - shift) | u32::from(mac.0[5]) << shift) & 0xfff;
    on(file, table(hash >> 5), 1 << (hash & 31))
}

/// Returns the pools that a frame's destination address selects (datasheet steps 1 to 3).
fn by_address(file: &RegisterFile, frame: &FrameMetadata) -> u8 {
    let default = match file.get(r::VT_CTL) {
        control if control & vt_ctl::DIS_DEF_PL != 0 => 0,
        control => 1u8 << ((control & vt_ctl::DEF_PL_MASK) >> vt_ctl::DEF_PL_SHIFT),
    };
    let (mac, replicates) = (frame.dst, on(file, r::VT_CTL, vt_ctl::REPL_EN));
    let found = if mac.is_broadcast() { 0 } else { exact(file, mac) };
    match mac.is_group() {
        _ if on(file, r::VT_CTL, vt_ctl::IGNORE_MAC) => 0xff,
        true if !replicates => {
            if found != 0 {
                found
            } else {
                default
            }
        }
        true if mac.is_broadcast() => with(file, vmolr::BAM),
        true => {
            let hit = found == 0 && hashed(file, r::mta, mac);
            found | with(file, vmolr::MPME) | if hit { with(file, vmolr::ROMPE) } else { 0 }
        }
        false if found != 0 => found,
        false => match if hashed(file, r::uta, mac) { with(file, vmolr::ROPE) } else { 0 } {
            0 if frame.origin == FrameOrigin::Uplink => default,
            pools => pools,
        },
    }
}

/// Returns the enabled VLAN filters (VLVF) of a tag's VLAN.
fn filters(file: &RegisterFile, tag: u16) -> impl Iterator<Item = u32> {
    let named = move |f: &u32| f & vlvf::VLANID_EN != 0 && f & vlvf::VLANID_MASK == u32::from(tag & 0xfff);
    (0..32).map(|i| file.get(r::vlvf(i))).filter(named)
}

/// Returns the pools that are members of a tag's VLAN.
fn members(file: &RegisterFile, tag: u16) -> u8 {
    filters(file, tag).fold(0, |set, f| set | (f >> vlvf::POOLSEL_SHIFT) as u8)
}

/// Returns the pools that a frame's VLAN permits (datasheet step 4).
fn by_vlan(file: &RegisterFile, vlan: Option<u16>) -> u8 {
    let Some(tag) = vlan else {
        return if on(file, r::RCTL, rctl::VFE) { with(file, vmolr::AUPE) } else { 0xff };
    };
    let id = u32::from(tag & 0xfff);
    let canonical = !on(file, r::RCTL, rctl::CFIEN) || on(file, r::RCTL, rctl::CFI) == (tag & 0x1000 != 0);
    match on(file, r::RCTL, rctl::VFE) {
        false => 0xff,
        true if canonical && on(file, r::vfta(id / 32), 1 << (id % 32)) => members(file, tag),
        true => 0,
    }
}

/// Returns true if a pool accepts a frame of this length, check sequence included (datasheet step 7).
fn fits(file: &RegisterFile, pool: u8, frame: &FrameMetadata) -> bool {
    let options = file.get(r::vmolr(PoolIndex::of_field(pool.into())));
    let long = on(file, r::RCTL, rctl::LPE) && options & vmolr::LPE != 0;
    let tag = 4 * usize::from(frame.vlan.is_some());
    frame.length + 4 <= if long { (options & vmolr::RLPML_MASK) as usize } else { 1518 + tag }
}

/// Returns true if no pool and no wire may get the frame: by anti-spoofing, the rule for link control frames, or the
/// length limit of a sent frame. Beyond the datasheet, no station has a group address (IEEE 802, 8.2), whatever the filters say.
fn refused(file: &RegisterFile, frame: &FrameMetadata, own: u32) -> bool {
    let switch = file.get(r::DTXSWC);
    let control = frame.dst.0[..5] == [0x01, 0x80, 0xc2, 0, 0] && frame.dst.0[5] < 0x10;
    own != 0
        && (frame.length + FCS > MAX_FRAME
            || control && own < 1 << VFS
            || switch & own != 0 && (frame.src.is_group() || u32::from(exact(file, frame.src)) & own == 0)
            || switch & own << dtxswc::VLAN_SPOOF_SHIFT != 0
                && frame.vlan.is_some_and(|tag| u32::from(members(file, tag)) & own == 0))
}

/// Returns the pools that get a frame, and true if the frame also goes to the wire.
fn decide(file: &RegisterFile, frame: &FrameMetadata) -> (u8, bool) {
    let own = match frame.origin {
        FrameOrigin::Uplink => 0u32,
        FrameOrigin::Port(port) => 1 << port.get(),
    };
    if refused(file, frame, own) {
        return (0, false);
    }
    let (wire, switch) = (frame.origin == FrameOrigin::Uplink, file.get(r::DTXSWC));
    let switched = wire || switch & dtxswc::LOOPBACK_EN != 0;
    let wanted = if switched { by_address(file, frame) & by_vlan(file, frame.vlan) } else { 0 };
    let local = frame.vlan.is_some_and(|tag| filters(file, tag).any(|f| f & vlvf::LVLAN != 0));
    let known =
        !frame.dst.is_group() && exact(file, frame.dst) != 0 && !on(file, r::VT_CTL, vt_ctl::IGNORE_MAC);
    let itself = if switch & own << dtxswc::LLE_SHIFT != 0 { 0 } else { own as u8 };
    let receives = if on(file, r::RCTL, rctl::EN) { file.get(r::VFRE) as u8 } else { 0 };
    let open = wanted & !itself & receives;
    let taken = (0..8).filter(|pool| open & 1 << pool != 0 && fits(file, *pool, frame));
    let taken = taken.fold(0u8, |set, pool| set | 1 << pool);
    let many = on(file, r::VT_CTL, vt_ctl::REPL_EN);
    let pools = if many { taken } else { taken & taken.wrapping_neg() };
    (pools, !(wire || local || known && wanted != 0))
}

/// Enables reception, loopback and replication, which would otherwise drop most frames of arbitrary registers before
/// the other rules decide.
fn open(file: &mut RegisterFile) {
    file.update(r::RCTL, 0, rctl::EN);
    file.update(r::DTXSWC, 0xffff, dtxswc::LOOPBACK_EN);
    file.update(r::VT_CTL, vt_ctl::IGNORE_MAC, vt_ctl::REPL_EN);
    file.set(r::VFRE, 0xff);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn switch_decisions_equal_the_datasheets_filter_steps(mut file in arbitrary_file(), mut frame in arbitrary_frame(), opened: bool) {
        file.set(r::MRQC, mrqc::VMDQ);
        if opened {
            open(&mut file);
            frame.length %= 1600;
        }
        let decision = load(&file, VFS).0.decide(&frame);
        assert_eq!((decision.ports.bits() as u8, decision.uplink), decide(&file, &frame));
    }
}
