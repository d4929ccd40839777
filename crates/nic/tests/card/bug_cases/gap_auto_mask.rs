//! Gap in another 82576 model: EIAM stores the inverse of the written value, and bits once set stay.

use crate::common::{CardFixture, index};
use i82576::register::{self as r, vf};

#[test]
fn pf_auto_mask_register_eiam_reads_the_last_written_value() {
    let mut bench = CardFixture::bare();
    for value in [0x0f, 0x01, 0x00, 0xc1ff_ffff, 0x10] {
        bench.pf().write(r::EIAM, value);
        assert_eq!(bench.pf().read(r::EIAM), value);
    }
}

#[test]
fn vf_auto_mask_register_reads_the_same_for_pf_and_vf() {
    let mut bench = CardFixture::new(8);
    let through_pf = r::vf_block(index(3)) + r::vf_stats::VTEIAM;
    for value in [7, 1, 0, 5] {
        bench.vf(3).write(vf::VTEIAM, value);
        assert_eq!(bench.pf().read(through_pf), value);
        bench.pf().write(through_pf, value ^ 7);
        assert_eq!(bench.vf(3).read(vf::VTEIAM), value ^ 7);
    }
}

#[test]
fn eiam_bit_auto_masks_only_its_own_vector() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).write(vf::VTEIAM, 7);
    bench.vf(0).write(vf::VTEIAM, 0b010);
    bench.vf(0).write(vf::VTEIAC, 7);
    bench.vf(0).write(vf::VTEIMS, 7);
    bench.vf(0).write(vf::VTEICS, 7);
    bench.poll();
    assert_eq!(bench.vf(0).read(vf::VTEIMS), 0b101);
}
