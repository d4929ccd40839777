//! Bug 6 of another 82576 model: some of a VF's statistics never counted, and multicast had only one of the two offsets
//! that drivers use.

use crate::common::{CardFixture, POOL, index, mac, plain};
use i82576::MacAddress;
use i82576::PoolIndex;
use i82576::bits::vmolr;
use i82576::register::{self as r, vf, vf_stats};

const GROUP: MacAddress = MacAddress([0x01, 0, 0x5e, 0, 0, 1]);
/// Offset of VFMPRC (multicast packets received) in Intel's header; drivers use this offset or `vf::VFMPRC`.
const VFMPRC_INTEL: u32 = 0x0f38;

#[test]
fn vf_statistics_read_the_same_for_pf_and_vf() {
    let mut bench = CardFixture::new(8);
    for n in 0..8 {
        bench.vf(n).start();
        bench.pf().write(r::vmolr(PoolIndex::EVERY[usize::from(n)]), POOL | vmolr::MPME);
        bench.vf((n + 1) % 8).start();
        bench.wire_sends(&plain(mac(n), mac(9), 86));
        let before = [vf::VFGPRC, vf::VFGORC].map(|at| bench.vf(n).read(at));
        bench.wire_sends(&plain(mac(n), mac(9), 186));
        let after = [vf::VFGPRC, vf::VFGORC].map(|at| bench.vf(n).read(at));
        assert_eq!([after[0] - before[0], after[1] - before[1]], [1, 204], "VF {n}");
        bench.vf(n).send(&plain(mac((n + 1) % 8), mac(n), 86));
        for (at, expected) in [
            (vf_stats::VFGPTC, 1),
            (vf_stats::VFGOTC, 104),
            (vf_stats::VFGPTLBC, 1),
            (vf_stats::VFGOTLBC, 104),
        ] {
            assert_eq!(bench.vf(n).read(vf::STATISTICS + at), expected, "VF {n}, {at:#x}");
            assert_eq!(bench.pf().read(r::vf_block(index(n)) + at), expected, "the PF's view of VF {n}");
        }
        let next = (n + 1) % 8;
        assert_eq!([vf::VFGPRLBC, vf::VFGORLBC].map(|at| bench.vf(next).read(at)), [1, 104]);
    }
}

#[test]
fn multicast_counter_vfmprc_reads_at_both_offsets() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL | vmolr::MPME);
    bench.wire_sends(&plain(GROUP, mac(9), 60));
    for _ in 0..2 {
        assert_eq!([VFMPRC_INTEL, vf::VFMPRC].map(|at| bench.vf(0).read(at)), [1, 1]);
    }
}
