//! Bug 1 of another 82576 model: RSTI was not a level until CTRL_EXT.PFRSTD, and RSTD could be read twice. An active VF
//! did not recover after a reset of the PF.

use crate::common::{CardFixture, mac, plain};
use i82576::bits::{ctrl, ctrl_ext, v2p};
use i82576::register::{self as r, vf};

#[test]
fn vf_mailbox_shows_pf_in_reset_until_the_pf_sets_pfrstd() {
    let mut bench = CardFixture::bare();
    bench.enable_vfs(2);
    bench.vf(0).read(vf::V2PMAILBOX);
    for _ in 0..3 {
        assert_eq!(bench.vf(0).read(vf::V2PMAILBOX), v2p::RSTI);
    }
    bench.pf().write(r::CTRL_EXT, ctrl_ext::DRV_LOAD);
    assert_eq!(bench.vf(0).read(vf::V2PMAILBOX), v2p::RSTI, "DRV_LOAD alone does not end the reset");
    bench.pf().write(r::CTRL_EXT, ctrl_ext::DRV_LOAD | ctrl_ext::PFRSTD);
    for n in 0..2 {
        assert_eq!(bench.vf(n).read(vf::V2PMAILBOX), v2p::RSTD);
        assert_eq!(bench.vf(n).read(vf::V2PMAILBOX), 0, "RSTD clears on read");
    }
}

#[test]
fn active_vf_recovers_after_a_pf_reset() {
    let mut bench = CardFixture::new(2);
    bench.vf(0).start();
    bench.vf(1).start();
    for _ in 0..10 {
        bench.pf().write(r::CTRL, ctrl::RST);
        assert_eq!(bench.vf(0).read(vf::V2PMAILBOX) & v2p::RSTI, v2p::RSTI);
        assert_eq!(bench.pf().read(r::CTRL_EXT) & ctrl_ext::PFRSTD, 0);
        bench.vf(0).send(&plain(mac(1), mac(0), 60));
        bench.vf(1).expect_no_frame();
        bench.set_up_port(2);
        for n in 0..2 {
            assert_eq!(bench.vf(n).read(vf::V2PMAILBOX), v2p::RSTD);
            bench.vf(n).start();
        }
        bench.vf(0).send(&plain(mac(1), mac(0), 60));
        bench.vf(1).expect_frame();
    }
}
