//! Gap in another 82576 model: VTEIMS reads the last written value, and VTEICR is separate from the port's
//! EICR.

use crate::common::{CardFixture, index};
use i82576::VfIndex;
use i82576::register::{self as r, vf, vf_stats};

#[test]
fn vteims_register_reads_the_vfs_interrupt_mask() {
    let mut bench = CardFixture::new(8);
    for n in 0..8 {
        bench.vf(n).write(vf::VTEIMS, 0b011);
        bench.vf(n).write(vf::VTEIMS, 0b100);
        bench.vf(n).write(vf::VTEIMC, 0b001);
        assert_eq!(bench.vf(n).read(vf::VTEIMS), 0b110);
        assert_eq!(bench.vf(n).read(vf::VTEIMC), 0b110);
        assert_eq!(bench.pf().read(r::vf_block(index(n)) + vf_stats::VTEIMS), 0b110);
    }
}

#[test]
fn vf_cause_register_has_the_vfs_three_bits_of_eicr() {
    let mut bench = CardFixture::new(8);
    for vf in VfIndex::all() {
        let shift = u32::from(vf.first_vector());
        bench.pf().write(r::EICS, 0b101 << shift);
        assert_eq!(bench.vf(vf.get()).read(vf::VTEICS), 0b101, "a read of VTEICS clears nothing");
        assert_eq!(bench.vf(vf.get()).read(vf::VTEICR), 0b101);
        bench.vf(vf.get()).write(vf::VTEICS, 0b111);
        bench.pf().write(r::vf_block(vf) + vf_stats::VTEICR, 0b001);
        assert_eq!(bench.pf().read(r::vf_block(vf) + vf_stats::VTEICR), 0b110);
        assert_eq!(bench.vf(vf.get()).read(vf::VTEICR), 0, "the read has cleared the causes");
    }
}

#[test]
fn pf_access_to_eicr_keeps_the_vfs_causes() {
    let mut bench = CardFixture::new(2);
    for vf in VfIndex::all().take(2) {
        bench.vf(vf.get()).write(vf::VTEICS, 0b111);
        bench.vf(vf.get()).write(vf::VTEIAM, 0b111);
        bench.vf(vf.get()).write(vf::VTEIAC, 0b111);
        bench.vf(vf.get()).write(vf::VTEIMS, 0b111);
    }
    bench.pf().write(r::EICS, 1);
    assert_eq!(bench.pf().read(r::EICS), 1);
    assert_eq!(bench.pf().read(r::EICR), 1, "the VFs' causes are not shown");
    bench.pf().write(r::EICR, u32::MAX);
    bench.pf().write(r::EIAC, 0);
    bench.pf().write(r::EIAM, 0);
    assert_eq!(
        (bench.pf().read(r::EIAC), bench.pf().read(r::EIAM)),
        (0x1f8_0000, 0x1f8_0000),
        "the VFs' bits are shown and kept"
    );
    bench.poll();
    assert_eq!(bench.msix().len(), 6, "three vectors of each VF");
}
