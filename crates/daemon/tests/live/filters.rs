//! Tests of the status of guests that request more multicast groups or addresses than their VF has filters
//! for.

use crate::support::guest::VfGuest;
use crate::support::live::LiveHost;
use crate::support::qemu;
use avf::virtchnl::{EncodedMessageList, EtherAddress, EtherAddressType, VirtchnlRequest};
use daemon::control::status::VfFilterStatus;
use daemon::settings::VfSettings;
use driver::avf::vf::AvfDriver;
use i82576::MacAddress;

fn group(n: u8) -> MacAddress {
    MacAddress([0x33, 0x33, 0xff, 0, 0, n])
}

/// Returns a change that trusts the VF, the remedy for a full filter list.
fn trust() -> VfSettings {
    VfSettings { trust: Some(true), ..VfSettings::default() }
}

#[test]
fn status_shows_a_full_list_of_multicast_hashes() {
    let live = LiveHost::start();
    let mut guest = VfGuest::under_qemu(&live, 0);
    let mut join = |count: u8| {
        let groups: Vec<MacAddress> = (0..count).map(group).collect();
        guest.vf.set_multicast(&mut guest.machine, &groups).unwrap();
        live.show(0).filters
    };
    assert_eq!(join(29), VfFilterStatus { used: 29, most: 30, cut: false });
    // igbvf truncates a longer list to 30 entries, so a full list may be a truncated one.
    assert_eq!(join(30), VfFilterStatus { used: 30, most: 30, cut: true });
    assert_eq!(
        live.change(0, trust()).filters,
        VfFilterStatus { used: 30, most: 30, cut: false },
        "a trusted VF still lacks groups"
    );
}

#[test]
fn status_shows_mac_addresses_beyond_an_avfs_quota() {
    let live = LiveHost::with("[[port]]\nfamily = \"avf\"\nvfs = 2\n");
    let mut machine = qemu::boot_as(&live.socket(0), qemu::AVF, qemu::share);
    let mut driver = AvfDriver::probe(&mut machine, MacAddress([2, 0, 0, 0, 9, 0])).unwrap();
    driver.start(&mut machine).unwrap();
    let before = live.show(0).filters;
    assert_eq!((before.most, before.cut), (18, false));
    let mut join = |count: u8| {
        let groups: Vec<EtherAddress> =
            (0..count).map(|n| EtherAddress { mac: group(n).0, usage: EtherAddressType::Extra }).collect();
        driver
            .ask(&mut machine, VirtchnlRequest::Addresses(true, 1, EncodedMessageList::new(&groups).list()))
            .is_ok()
    };
    assert!(join(10));
    assert_eq!(live.show(0).filters, VfFilterStatus { used: before.used + 10, ..before });
    assert!(!join(45));
    assert!(live.show(0).filters.cut);
    assert_eq!(live.change(0, trust()).filters.most, 128);
}
