//! Bugs of a well-known software model of this card, each as a named test. 20 were reported and fixed there; the gaps
//! are still open. Each file is a case of the table.
//!
//! A case repeats the accesses under which that model went wrong. The rules themselves have tests beside this folder.

mod c01_reset_notices;
mod c02_gates;
mod c03_legacy_rxdw;
mod c04_oversize;
mod c05_pool_rss;
mod c06_vf_statistics;
mod c07_port_vlan;
mod c08_requester_id;
mod c09_packet_type;
mod c10_vlan_insert;
mod c11_icr;
mod c12_short_frames;
mod c13_auto_clear;
mod c13_group_counters;
mod c14_single_vector;
mod c15_udp_sctp;
mod c16_double_vlan;
mod c17_sriov_capability;
mod c18_throttle;
mod c19_state;
mod c20_empty_ring;
mod gap_anti_spoof;
mod gap_auto_mask;
mod gap_ignore_mac;
mod gap_ivar;
mod gap_legacy_descriptors;
mod gap_local_vlan;
mod gap_loopback_to_sender;
mod gap_mirror;
mod gap_own_broadcast;
mod gap_promiscuous;
mod gap_rate;
mod gap_rqdpc;
mod gap_storm;
mod gap_txctl3;
mod gap_vteicr;

use std::collections::BTreeSet;

/// Bug cases: the name of each file, and the rule that the other 82576 model broke.
const CASES: &[(&str, &str)] = &[
    ("c01_reset_notices", "RSTI holds until PFRSTD, RSTD clears on read; VFs outlive a reset of the PF"),
    ("c02_gates", "VFRE and VFTE gate traffic, a VF's reset closes them"),
    ("c03_legacy_rxdw", "RXDW and TXDW are raised when interrupts are MSI or INTx"),
    ("c04_oversize", "each pool limits its frames' length; a jumbo frame takes several buffers"),
    ("c05_pool_rss", "RSS within a pool uses queues n and n + 8"),
    ("c06_vf_statistics", "every VF statistic counts, multicast at both of its offsets"),
    ("c07_port_vlan", "VMVIR's default tag is inserted, VMOLR.STRVLAN strips it"),
    ("c08_requester_id", "every request of a VF's queue carries the VF's id"),
    ("c09_packet_type", "packet types of UDP, SCTP and IPv6 with extension headers"),
    ("c10_vlan_insert", "tags are inserted without CTRL.VME, as the first descriptor says"),
    ("c11_icr", "ICR masks by IAM, clears when asserted, and notifies of new causes only"),
    ("c12_short_frames", "frames shorter than a header, and padding"),
    ("c13_auto_clear", "EICR of a delayed message; EIAC clears its own bits alone"),
    ("c13_group_counters", "broadcast and multicast are counted"),
    ("c14_single_vector", "with GPIE zero every cause goes to MSI-X vector 0"),
    ("c15_udp_sctp", "RSS types of UDP; SCTP's checksum both ways"),
    ("c16_double_vlan", "CTRL_EXT.EXT_VLAN: the inner tag is filtered and stripped"),
    ("c17_sriov_capability", "NumVFs is bounded and locked, resets take VFs away, VFE toggles"),
    ("c18_throttle", "EITR in microseconds, its counter and CNT_IGNR; no spurious or lost interrupt"),
    ("c19_state", "link, contexts and throttles survive a copy of the card"),
    ("c20_empty_ring", "a ring without descriptors, or a tail beyond it, makes no endless loop"),
    ("gap_anti_spoof", "spoofed addresses and VLANs are dropped and reported in WVBR"),
    ("gap_auto_mask", "EIAM reads as written, for PF and VF"),
    ("gap_ignore_mac", "VT_CTL.IGNORE_MAC chooses pools by VLAN alone"),
    ("gap_ivar", "EIAC and VTIVAR read as written; VTIVAR serves queue 1"),
    ("gap_legacy_descriptors", "legacy receive and transmit descriptors"),
    ("gap_local_vlan", "VLVF.LVLAN keeps a VLAN off the wire"),
    ("gap_loopback_to_sender", "DTXSWC.LLE returns a pool's frames to it"),
    ("gap_mirror", "mirroring rules copy to a pool"),
    ("gap_own_broadcast", "a sender does not get its own broadcast"),
    ("gap_promiscuous", "VMOLR.MPME and VMOLR.ROPE"),
    ("gap_rate", "RTTBCNRC limits what a queue sends"),
    ("gap_rqdpc", "RQDPC counts on every queue"),
    ("gap_storm", "storm control stops broadcast and multicast, and reports it"),
    ("gap_txctl3", "the legacy alias of queue 3's TXCTL"),
    ("gap_vteicr", "VTEIMS and VTEICR are the same bits for PF and VF"),
];

/// Returns the names of the files beside this one, without their extension.
fn files() -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/card/bug_cases");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let stems = names.filter_map(|name| name.to_str()?.strip_suffix(".rs").map(str::to_owned));
    stems.filter(|stem| stem != "mod").collect()
}

#[test]
fn bug_case_table_matches_the_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/card/bug_cases");
    let cases: BTreeSet<String> = CASES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files(), cases);
    for case in cases {
        let text = std::fs::read_to_string(format!("{folder}/{case}.rs")).unwrap();
        assert!(text.contains("#[test]") && text.starts_with("//! "), "{case}");
    }
}

#[test]
fn bug_case_table_is_sorted_and_names_each_rule() {
    assert!(CASES.is_sorted());
    assert!(CASES.iter().all(|(_, rule)| !rule.is_empty()));
}
