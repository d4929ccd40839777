//! Bug 2 of another 82576 model: VFRE and VFTE did not stop traffic, and a VF's reset did not clear them. A
//! function-level reset of a VF raised no event.

use crate::common::{CardFixture, index, mac, plain};
use i82576::bits::{ctrl, icr};
use i82576::config::EXPRESS;
use i82576::register::{self as r, vf};
use pcie::Function::Vf;
use pcie::capability::express;
use pcie::config::offset;

fn bench() -> CardFixture {
    let mut bench = CardFixture::new(2);
    bench.vf(0).start();
    bench.vf(1).start();
    bench
}

#[test]
fn vf_receives_frames_only_while_its_vfre_bit_is_set() {
    let mut bench = bench();
    bench.pf().write(r::VFRE, 0xfd);
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    bench.wire_sends(&plain(mac(1), mac(9), 60));
    bench.vf(1).expect_no_frame();
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    bench.vf(0).expect_frame();
    bench.pf().write(r::VFRE, 0xff);
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    bench.vf(1).expect_frame();
}

#[test]
fn clear_vfte_bit_delays_a_vfs_frames_without_loss() {
    let mut bench = bench();
    bench.pf().write(r::VFTE, 0xfe);
    bench.vf(0).send(&plain(mac(1), mac(0), 60));
    bench.vf(1).expect_no_frame();
    bench.vf(1).send(&plain(mac(0), mac(1), 60));
    bench.vf(0).expect_frame();
    bench.pf().write(r::VFTE, 0xff);
    bench.poll();
    bench.vf(1).expect_frame();
}

#[test]
fn vf_reset_clears_vfre_and_vfte_and_raises_an_event() {
    let ways: [fn(&mut CardFixture); 3] = [
        |bench| bench.vf(1).write(vf::CTRL, ctrl::RST),
        |bench| bench.pf().write(r::vf_block(index(1)), ctrl::RST),
        |bench| {
            let at = u16::from(EXPRESS) + express::DEVICE_CONTROL;
            bench.config(Vf(1), at, u32::from(express::DEVICE_CONTROL_FLR));
        },
    ];
    for reset in ways {
        let mut bench = bench();
        bench.pf().write(r::VFLRE, 0xff);
        bench.pf().read(r::ICR);
        reset(&mut bench);
        assert_eq!((bench.pf().read(r::VFRE), bench.pf().read(r::VFTE)), (0xfd, 0xfd));
        assert_eq!((bench.pf().read(r::VFLRE), bench.pf().read(r::ICR) & icr::VMMB), (2, icr::VMMB));
        bench.config(Vf(1), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
        bench.vf(1).start();
        bench.vf(0).send(&plain(mac(1), mac(0), 60));
        bench.vf(1).expect_no_frame();
    }
}
