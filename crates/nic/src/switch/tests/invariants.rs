//! Tests invariants of the switch for any filters and any frame.

use super::VFS;
use crate::file::RegisterFile;
use crate::switch::{load, pool, port};
use i82576::bits::{dtxswc, mrqc, rctl, vlvf};
use i82576::register as r;
use i82576::table::{self, DecodedRegisterSet, RegisterAccessRule};
use i82576::{MacAddress, PoolIndex};
use plane::switch::{FrameMetadata, FrameOrigin};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

/// Returns the address that ends in `last`: a group address if `last` is odd.
fn station(last: u8) -> MacAddress {
    MacAddress([2 | last & 1, 0, 0, 0, 0, last])
}

/// Draws the switch's registers, with enough filters that random frames hit some of them.
pub(super) fn arbitrary_file() -> impl Strategy<Value = RegisterFile> {
    let plain = |words: usize| proptest::collection::vec(any::<u32>(), words);
    (
        plain(40),
        proptest::collection::vec((0u8..4, any::<u32>()), 24),
        proptest::collection::vec(any::<u32>(), 32),
    )
        .prop_map(|(plain, addresses, vlans)| {
            let mut file = RegisterFile::new();
            let singles = [r::RCTL, r::VT_CTL, r::DTXSWC, r::VFRE, r::RPLOLR, r::RLPML, r::CTRL];
            for (offset, value) in singles.into_iter().zip(&plain) {
                file.set(offset, *value);
            }
            file.set(r::MRQC, [mrqc::VMDQ, mrqc::VMDQ_RSS, mrqc::RSS, 0][(plain[7] & 3) as usize]);
            for pool in PoolIndex::EVERY {
                file.set(r::vmolr(pool), plain[8 + pool.index()]);
                file.set(r::vmvir(pool), plain[16 + pool.index()]);
            }
            for (i, (last, high)) in (0..).zip(addresses) {
                let (low, top) = station(last).to_words();
                file.set(r::ral(i), low);
                file.set(r::rah(i), high & 0xffff_0000 | top);
            }
            for (i, filter) in (0..).zip(vlans) {
                file.set(r::vlvf(i), filter & !0xffc);
            }
            for word in 0..128 {
                file.set(r::mta(word), plain[24]);
                file.set(r::uta(word), plain[25]);
                file.set(r::vfta(word), plain[26]);
            }
            file
        })
}

pub(super) fn arbitrary_frame() -> impl Strategy<Value = FrameMetadata> {
    let address = || {
        prop_oneof![
            (0u8..6).prop_map(station),
            (0u8..20).prop_map(|last| MacAddress([0x01, 0x80, 0xc2, 0, 0, last])),
            Just(MacAddress::BROADCAST),
            any::<[u8; 6]>().prop_map(MacAddress),
        ]
    };
    let origin = prop_oneof![
        Just(FrameOrigin::Uplink),
        (0u32..8).prop_map(|n| FrameOrigin::Port(port(PoolIndex::of_field(n))))
    ];
    let vlan = prop_oneof![Just(None), (0u16..5).prop_map(Some), any::<u16>().prop_map(Some)];
    (address(), address(), vlan, 0usize..20_000, origin)
        .prop_map(|(dst, src, vlan, length, origin)| FrameMetadata { dst, src, vlan, length, origin })
}

proptest! {
    #[test]
    fn switch_delivers_only_to_permitted_pools_for_any_filters(file in arbitrary_file(), frame in arbitrary_frame()) {
        let decision = load(&file, VFS).0.decide(&frame);
        let pools = decision.ports.bits() as u8;
        let virtualised = matches!(file.get(r::MRQC) & mrqc::MODE_MASK, mrqc::VMDQ | mrqc::VMDQ_RSS);
        let unreceived = decision.ports.is_empty() && !decision.uplink;
        assert_eq!(decision.dropped.is_some(), unreceived, "a drop reason exactly without a receiver");
        assert!(frame.origin != FrameOrigin::Uplink || !decision.uplink, "the wire does not reflect");
        if !virtualised {
            assert_eq!(pools & !1, 0, "only pool 0 exists");
            return Ok(());
        }
        assert_eq!(pools & !(file.get(r::VFRE) as u8), 0, "a pool receives though VFRE is clear");
        if let FrameOrigin::Port(sender) = frame.origin {
            let own = u32::from(pool(sender).bit());
            let allowed = file.get(r::DTXSWC) & own << dtxswc::LLE_SHIFT != 0;
            assert!(allowed || u32::from(pools) & own == 0, "the sender gets its own frame without LLE");
        }
        if let (Some(tag), true) = (frame.vlan, file.get(r::RCTL) & rctl::VFE != 0) {
            let filters = (0..32).map(|i| file.get(r::vlvf(i)));
            let id = u32::from(tag & 0xfff);
            let matching = filters.filter(|f| f & vlvf::VLANID_EN != 0 && f & vlvf::VLANID_MASK == id);
            let members = matching.fold(0, |set, f| set | (f >> vlvf::POOLSEL_SHIFT) as u8);
            assert_eq!(pools & !members, 0, "a pool outside the VLAN gets the tagged frame");
        }
    }

    #[test]
    fn register_outside_the_switch_leaves_its_tables_unchanged(
        row in 0..table::rows().count(),
        element: u32,
        value: u32,
    ) {
        let row = table::rows().nth(row).unwrap();
        let offset = row.offset + element % row.count * row.stride;
        let RegisterAccessRule::Rw(mask) = row.access else { return Ok(()) };
        for mode in [mrqc::VMDQ, mrqc::RSS] {
            let mut file = RegisterFile::new();
            file.set(r::MRQC, mode);
            let before = load(&file, VFS);
            file.set(offset, value & mask);
            assert!(row.forms.has(DecodedRegisterSet::SWITCH) || load(&file, VFS) == before, "{} {offset:#x}", row.name);
        }
    }
}
