//! Gap in another 82576 model: the registers of mirror rules (VMRCTL, VMRVLAN, VMRVM) have no effect.

use crate::common::{CardFixture, mac, plain};
use i82576::bits::vmrctl;
use i82576::register as r;

/// Mirrors traffic to VF 2 by one rule of `kinds` for VF 1. Returns the number of VF 2's copies of three frames: from
/// the wire to VF 1, from VF 0 to VF 1, and from VF 0 to the wire.
fn seen(kinds: u32) -> [usize; 3] {
    let mut bench = CardFixture::new(3);
    for vf in 0..3 {
        bench.vf(vf).start();
    }
    bench.pf().write(r::vmrvm(1), 0b010);
    bench.pf().write(r::vmrctl(1), kinds | 2 << vmrctl::POOL_SHIFT);
    bench.wire_sends(&plain(mac(1), mac(9), 60));
    let from_wire = bench.vf(2).received().len();
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    let between = bench.vf(2).received().len();
    bench.vf(0).send(&plain(mac(9), mac(0), 60));
    [from_wire, between, bench.vf(2).received().len()]
}

#[test]
fn each_kind_of_mirror_rule_copies_its_traffic() {
    assert_eq!(seen(0), [0, 0, 0]);
    assert_eq!(seen(vmrctl::VPME), [1, 1, 0]);
    assert_eq!(seen(vmrctl::UPME), [1, 0, 0]);
    assert_eq!(seen(vmrctl::DPME), [0, 0, 1]);
    assert_eq!(seen(vmrctl::VPME | vmrctl::UPME | vmrctl::DPME), [1, 1, 1], "one copy of each frame");
}

#[test]
fn mirrored_copy_equals_the_frame() {
    let mut bench = CardFixture::new(3);
    for vf in 0..3 {
        bench.vf(vf).start();
    }
    bench.pf().write(r::vmrctl(0), vmrctl::DPME | 2 << vmrctl::POOL_SHIFT);
    let frame = plain(mac(9), mac(0), 1000);
    bench.vf(0).send(&frame);
    assert_eq!(bench.vf(2).expect_frame().bytes, frame);
    assert_eq!(bench.wire_got(), [frame]);
}
