//! Tests the options of delivery to a pool: stripping of VLAN tags, and RSS.

use super::{PortBuilder, VFS, port, single};
use crate::switch::{self, load};
use i82576::PoolIndex;
use i82576::bits::{ctrl, mrqc, rplolr, vmolr};
use i82576::register as r;

#[test]
fn rplolr_strips_tags_of_replicated_frames_and_vmolr_of_others() {
    let strips = |port: &PortBuilder, pool, replicated| {
        load(&port.file, VFS).0.strips(switch::port(PoolIndex::of_field(pool)), replicated)
    };
    let own = port().pool(1, vmolr::STRVLAN);
    assert_eq!([0, 1].map(|pool| strips(&own, pool, false)), [false, true]);
    assert_eq!([0, 1].map(|pool| strips(&own, pool, true)), [false, false]);
    let shared = port().set(r::RPLOLR, rplolr::STRVLAN);
    assert_eq!([0, 1].map(|pool| strips(&shared, pool, true)), [true, true]);
}

#[test]
fn rss_in_a_pool_needs_the_pools_and_the_ports_enable_bit() {
    let rss = |port: &PortBuilder, pool: u32| load(&port.file, VFS).1.scales >> pool & 1 == 1;
    let port = port().pool(1, vmolr::RSSE);
    assert!(!rss(&port, 1));
    let port = port.clear(r::MRQC, mrqc::MODE_MASK).set(r::MRQC, mrqc::VMDQ_RSS);
    assert_eq!([rss(&port, 0), rss(&port, 1)], [false, true]);
}

#[test]
fn port_without_pools_strips_tags_by_vme_and_uses_rss_by_mrqc() {
    let options = |port: &PortBuilder| {
        let (tables, receive) = load(&port.file, VFS);
        (tables.strips(switch::port(PoolIndex::FIRST), false), receive.scales & 1 != 0)
    };
    let port = single();
    assert_eq!(options(&port), (false, false));
    let port = port.set(r::CTRL, ctrl::VME).set(r::MRQC, mrqc::RSS);
    assert_eq!(options(&port), (true, true));
}
