//! Gap in another 82576 model: VMOLR.MPME (all multicasts) and VMOLR.ROPE (unicast hash table) are ignored;
//! ROMPE applies to both hash tables.

use crate::common::{CardFixture, POOL, mac, plain};
use i82576::MacAddress;
use i82576::PoolIndex;
use i82576::bits::{vmolr, vt_ctl};
use i82576::register as r;

const GROUP: MacAddress = MacAddress([0x01, 0, 0x5e, 0, 0, 0xfb]);
/// Index in the multicast hash table of the group address in the test: bits 47:36 of [`GROUP`].
const GROUP_HASH: u32 = 0xfb0;
/// Index in the unicast hash table of the address 02:00:00:00:00:09: its bits 47:36.
const UNICAST_HASH: u32 = 0x090;

/// Returns true if VF 0 with these VMOLR options gets a frame from the wire to `dst`. With `hashes` both hash
/// tables have the address's bit set.
fn gets(options: u32, hashes: bool, dst: MacAddress) -> bool {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    bench.pf().set(r::VT_CTL, vt_ctl::DIS_DEF_PL);
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL & !vmolr::ROMPE | options);
    if hashes {
        bench.pf().write(r::mta(GROUP_HASH >> 5), 1 << (GROUP_HASH & 31));
        bench.pf().write(r::uta(UNICAST_HASH >> 5), 1 << (UNICAST_HASH & 31));
    }
    bench.wire_sends(&plain(dst, mac(8), 60));
    !bench.vf(0).received().is_empty()
}

#[test]
fn pool_with_vmolr_mpme_receives_every_multicast() {
    assert!(gets(vmolr::MPME, false, GROUP));
    assert!(!gets(vmolr::MPME, false, mac(9)));
    assert!(!gets(0, false, GROUP));
}

#[test]
fn multicast_and_unicast_hash_tables_have_separate_pool_bits() {
    assert!(gets(vmolr::ROMPE, true, GROUP));
    assert!(!gets(vmolr::ROMPE, true, mac(9)));
    assert!(gets(vmolr::ROPE, true, mac(9)));
    assert!(!gets(vmolr::ROPE, true, GROUP));
    assert!(!gets(vmolr::ROPE | vmolr::ROMPE, false, mac(9)));
}
