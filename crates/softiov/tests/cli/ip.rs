//! `softiov ip`: administrators' words, and iproute2's answers. What the real one says is compared by the Linux tests.

use crate::process::{Said, Serve, softiov};
use serde_json::Value;
use std::path::Path;
use tempfile::tempdir;

fn ip(folder: &Path, words: &str) -> Said {
    softiov(folder, &["ip"].into_iter().chain(words.split(' ')).collect::<Vec<_>>())
}

fn vf(folder: &Path, index: usize) -> Value {
    let said = ip(folder, "-s -j link show pf0");
    let links: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    links[0]["vfinfo_list"][index].clone()
}

#[test]
fn a_vf_is_changed_and_shown_in_iproute2s_words() {
    let folder = tempdir().unwrap();
    let serve = Serve::start(&folder, &[]);
    let place = serve.folder();
    let set =
        "link set dev pf0 vf 2 mac 02:00:00:00:00:05 vlan 100 qos 3 max_tx_rate 250 spoofchk off trust on";
    let said = ip(place, set);
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (Some(0), "", ""));
    let shown = ip(place, "link show pf0").out;
    let line = "vf 2     link/ether 02:00:00:00:00:05 brd ff:ff:ff:ff:ff:ff, vlan 100, qos 3, tx rate 250 (Mbps), \
                max_tx_rate 250Mbps, spoof checking off, link-state auto, trust on";
    assert!(shown.lines().any(|shown| shown.trim() == line), "{shown}");
    let vf = vf(place, 2);
    assert_eq!((&vf["vlan_list"][0]["vlan"], &vf["stats"]["tx"]["tx_bytes"]), (&100.into(), &0.into()));
    let said = ip(place, "link set pf0 vf 2 vlan 0");
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    assert_eq!(self::vf(place, 2)["vlan_list"], serde_json::json!([{}]));
}

#[test]
fn what_the_card_cannot_do_is_refused_as_a_driver_refuses_it() {
    let folder = tempdir().unwrap();
    let serve = Serve::start(&folder, &[]);
    let place = serve.folder();
    let before = vf(place, 0);
    for (attributes, status, first) in [
        ("vf 0 vlan 100 proto 802.1ad trust on", 2, "RTNETLINK answers: Protocol not supported"),
        ("vf 0 max_tx_rate 1001 trust on", 2, "RTNETLINK answers: Invalid argument"),
        ("vf 0 min_tx_rate 10 trust on", 2, "RTNETLINK answers: Invalid argument"),
        ("vf 0 min_tx_rate 20 max_tx_rate 10", 1, "Invalid min_tx_rate 20 - must be <= max_tx_rate 10"),
        ("vf 0 trust on query_rss on", 2, "RTNETLINK answers: Operation not supported"),
        ("vf 0 vlan 5 qos 8", 2, "RTNETLINK answers: Invalid argument"),
        ("vf 0 mac 01:00:5e:00:00:01 trust on", 2, "RTNETLINK answers: Invalid argument"),
        ("vf 7 trust on", 2, "RTNETLINK answers: Invalid argument"),
    ] {
        let said = ip(place, &format!("link set pf0 {attributes}"));
        assert_eq!((said.status, said.err.lines().next()), (Some(status), Some(first)), "{attributes}");
        assert!(status == 1 || said.err.lines().any(|line| line.starts_with("softiov: ")), "{}", said.err);
    }
    assert_eq!(vf(place, 0), before, "a refused command changes nothing");
    let said = ip(place, "link set pf9 vf 0 trust on");
    assert_eq!((said.status, said.err.as_str()), (Some(1), "Cannot find device \"pf9\"\n"));
    let said = ip(place, "link show pf9");
    assert_eq!((said.status, said.err.as_str()), (Some(1), "Device \"pf9\" does not exist.\n"));
}
