//! How a frame is handed over.

use super::{Port, VFS, port, single};
use crate::switch::Tables;
use i82576::bits::{ctrl, mrqc, rplolr, vmolr};
use i82576::register as r;

#[test]
fn a_pool_strips_by_vmolr_and_replicated_frames_by_rplolr() {
    let strips = |port: &Port, pool, replicated| {
        Tables::load(&port.file, VFS).pool_options(pool, replicated).strip_vlan
    };
    let own = port().pool(1, vmolr::STRVLAN);
    assert_eq!([0, 1].map(|pool| strips(&own, pool, false)), [false, true]);
    assert_eq!([0, 1].map(|pool| strips(&own, pool, true)), [false, false]);
    let shared = port().set(r::RPLOLR, rplolr::STRVLAN);
    assert_eq!([0, 1].map(|pool| strips(&shared, pool, true)), [true, true]);
}

#[test]
fn a_pool_scales_if_vmolr_and_mrqc_say_so() {
    let rss = |port: &Port, pool| Tables::load(&port.file, VFS).pool_options(pool, false).rss;
    let port = port().pool(1, vmolr::RSSE);
    assert!(!rss(&port, 1));
    let port = port.clear(r::MRQC, mrqc::MODE_MASK).set(r::MRQC, mrqc::VMDQ_RSS);
    assert_eq!([rss(&port, 0), rss(&port, 1)], [false, true]);
}

#[test]
fn without_vmdq_ctrl_and_mrqc_decide() {
    let options = |port: &Port| Tables::load(&port.file, VFS).pool_options(0, false);
    let port = single();
    assert!(!options(&port).strip_vlan && !options(&port).rss);
    let port = port.set(r::CTRL, ctrl::VME).set(r::MRQC, mrqc::RSS);
    assert!(options(&port).strip_vlan && options(&port).rss);
}
