//! Checks stock Linux guests on the live card, as administrators boot them: each guarantee is a named check that
//! reports its observations.
//!
//! The checks share one host and its guests, because booting takes the time, and run one after the other. Guests that
//! no selected check needs are not booted. Each check begins from the same state ([`world::LinuxTestbed::settle`]), so
//! any of them may run alone: `cargo test -p softiov --test linux -- vlan`. Output and counts are those of a plain test
//! program; a check that cannot run here prints `SKIPPED:` with the reason.
//!
//! Speed, and VMMs other than QEMU, are not checked.

mod attack;
mod avf;
mod conformance;
mod demo;
mod dpdk;
mod driver;
mod guest;
mod hub;
mod igb;
mod ip;
mod ipxe;
mod isolation;
mod kernels;
mod measure;
mod policy;
mod recorder;
mod recovery;
mod report;
#[path = "../process/served.rs"]
mod served;
mod spoofing;
mod stream;
mod survival;
mod testpmd;
mod traffic;
mod uplink;
mod vfio;
mod virtio;
mod vlan;
mod wire;
mod world;

use report::ScenarioCheck;
use std::process::ExitCode;

/// Names and functions of all checks, ordered so that the first failure says most.
const CHECKS: &[(&str, ScenarioCheck)] = &[
    ("driver::binds_and_brings_the_link_up", driver::binds_and_brings_the_link_up),
    ("driver::lspci_shows_the_vf_as_on_record", driver::lspci_shows_the_vf_as_on_record),
    ("driver::ethtool_reads_and_sets", driver::ethtool_reads_and_sets),
    ("traffic::pings_are_answered", traffic::pings_are_answered),
    ("traffic::tcp_is_offloaded", traffic::tcp_is_offloaded),
    ("traffic::udp_arrives", traffic::udp_arrives),
    ("traffic::ipv6_works", traffic::ipv6_works),
    ("traffic::jumbo_frames_pass_whole", traffic::jumbo_frames_pass_whole),
    ("traffic::counters_are_the_hosts", traffic::counters_are_the_hosts),
    ("traffic::offloads_are_toggled", traffic::offloads_are_toggled),
    ("driver::three_vectors_interrupt", driver::three_vectors_interrupt),
    ("driver::interrupts_are_moderated", driver::interrupts_are_moderated),
    ("vlan::members_reach_each_other", vlan::members_reach_each_other),
    ("vlan::others_see_nothing", vlan::others_see_nothing),
    ("vlan::port_vlan_is_tagged_for_the_guest", vlan::port_vlan_is_tagged_for_the_guest),
    ("spoofing::addresses_of_the_administrator_stay", spoofing::addresses_of_the_administrator_stay),
    ("spoofing::foreign_addresses_are_blocked", spoofing::foreign_addresses_are_blocked),
    ("spoofing::a_bridges_address_takes_a_filter", spoofing::a_bridges_address_takes_a_filter),
    ("policy::link_state_is_the_administrators", policy::link_state_is_the_administrators),
    ("policy::port_vlan_comes_and_goes", policy::port_vlan_comes_and_goes),
    ("policy::vlans_are_those_on_the_list", policy::vlans_are_those_on_the_list),
    ("policy::address_reaches_the_guest_with_a_reset", policy::address_reaches_the_guest_with_a_reset),
    ("policy::trusted_guest_changes_its_address", policy::trusted_guest_changes_its_address),
    ("policy::spoofing_is_let_through_without_the_check", policy::spoofing_is_let_through_without_the_check),
    ("policy::groups_are_joined_and_left", policy::groups_are_joined_and_left),
    ("policy::rate_is_never_exceeded", policy::rate_is_never_exceeded),
    ("policy::mtu_is_limited", policy::mtu_is_limited),
    ("policy::interrupts_have_a_ceiling", policy::interrupts_have_a_ceiling),
    ("policy::watcher_is_sent_copies", policy::watcher_is_sent_copies),
    ("policy::storms_are_kept_from_guests", policy::storms_are_kept_from_guests),
    ("policy::flood_is_quarantined_until_released", policy::flood_is_quarantined_until_released),
    ("recovery::link_follows_the_pf", recovery::link_follows_the_pf),
    ("recovery::port_is_reset", recovery::port_is_reset),
    ("recovery::interface_down_and_up", recovery::interface_down_and_up),
    ("recovery::driver_unloaded_and_loaded", recovery::driver_unloaded_and_loaded),
    ("recovery::guest_reboots", recovery::guest_reboots),
    ("uplink::vf_and_outside_exchange_traffic", uplink::vf_and_outside_exchange_traffic),
    ("uplink::vlans_cross_the_uplink", uplink::vlans_cross_the_uplink),
    ("uplink::link_follows_the_tap", uplink::link_follows_the_tap),
    ("uplink::tap_is_removed_and_returned", uplink::tap_is_removed_and_returned),
    ("demo::iavf_is_shown_beside_igbvf", demo::iavf_is_shown_beside_igbvf),
    ("demo::virtio_is_shown_beside_igbvf", demo::virtio_is_shown_beside_igbvf),
    ("measure::cards_take_turns", measure::cards_take_turns),
    ("measure::pairs::of_virtio_guests_take_turns", measure::pairs::of_virtio_guests_take_turns),
    ("measure::queues::of_one_vf_take_turns", measure::queues::of_one_vf_take_turns),
    ("measure::versions::of_softiov_take_turns", measure::versions::of_softiov_take_turns),
    ("hub::ports_meet_in_qemus_hub", hub::ports_meet_in_qemus_hub),
    ("isolation::second_client_is_turned_away", isolation::second_client_is_turned_away),
    ("isolation::killed_vmm_is_not_noticed", isolation::killed_vmm_is_not_noticed),
    ("isolation::unshared_memory_is_told", isolation::unshared_memory_is_told),
    ("kernels::vf_drivers_of_trixie_join_in", kernels::vf_drivers_of_trixie_join_in),
    ("kernels::vf_drivers_of_backports_join_in", kernels::vf_drivers_of_backports_join_in),
    ("avf::binds", avf::binds),
    ("avf::ethtool::reads", avf::ethtool::reads),
    ("avf::ethtool::sets", avf::ethtool::sets),
    ("avf::ethtool::rss_spreads_flows", avf::ethtool::rss_spreads_flows),
    ("avf::traffic::files_come_whole", avf::traffic::files_come_whole),
    ("avf::traffic::udp_and_ipv6_arrive", avf::traffic::udp_and_ipv6_arrive),
    ("avf::traffic::jumbo_frames_pass_whole", avf::traffic::jumbo_frames_pass_whole),
    ("avf::vlan::members_reach_each_other", avf::vlan::members_reach_each_other),
    ("avf::policy::link_state_is_the_administrators", avf::policy::link_state_is_the_administrators),
    ("avf::policy::port_vlan_comes_and_goes", avf::policy::port_vlan_comes_and_goes),
    ("avf::policy::vlans_are_those_on_the_list", avf::policy::vlans_are_those_on_the_list),
    ("avf::policy::address_is_the_administrators", avf::policy::address_is_the_administrators),
    ("avf::policy::spoofing_is_checked", avf::policy::spoofing_is_checked),
    ("avf::policy::promiscuity_takes_trust", avf::policy::promiscuity_takes_trust),
    ("avf::policy::a_bridges_address_takes_a_filter", avf::policy::a_bridges_address_takes_a_filter),
    ("avf::policy::flood_is_quarantined_until_released", avf::policy::flood_is_quarantined_until_released),
    ("avf::policy::rate_is_never_exceeded", avf::policy::rate_is_never_exceeded),
    ("avf::recovery::resets_are_outlived", avf::recovery::resets_are_outlived),
    ("avf::recovery::interface_comes_back", avf::recovery::interface_comes_back),
    ("avf::recovery::guest_reboots", avf::recovery::guest_reboots),
    ("avf::fleet::eight_guests_exchange_frames", avf::fleet::eight_guests_exchange_frames),
    ("avf::fleet::last_of_64_vfs_is_like_the_first", avf::fleet::last_of_64_vfs_is_like_the_first),
    ("virtio::binds", virtio::binds),
    ("virtio::jumbo_frames_pass_whole", virtio::jumbo_frames_pass_whole),
    ("virtio::vlans_separate_guests", virtio::vlans_separate_guests),
    ("virtio::disabled_vf_moves_no_frame", virtio::disabled_vf_moves_no_frame),
    ("virtio::spoofing_is_checked", virtio::spoofing_is_checked),
    ("virtio::guests_come_back", virtio::guests_come_back),
    ("virtio::client::host_connects_again", virtio::client::host_connects_again),
    ("virtio::bookworm::qemu_7_2_is_enough", virtio::bookworm::qemu_7_2_is_enough),
    ("virtio::families::share_a_vlan", virtio::families::share_a_vlan),
    ("virtio::families::share_a_port", virtio::families::share_a_port),
    ("virtio::reduced::features_are_not_needed", virtio::reduced::features_are_not_needed),
    ("virtio::kernels::of_trixie_passes", virtio::kernels::of_trixie_passes),
    ("virtio::kernels::of_backports_keeps_order", virtio::kernels::of_backports_keeps_order),
    ("virtio::migration::guest_migrates_under_a_stream", virtio::migration::guest_migrates_under_a_stream),
    ("virtio::sriov::containers_of_two_nodes_meet", virtio::sriov::containers_of_two_nodes_meet),
    ("virtio::sriov::guide_commands_start_a_container", virtio::sriov::guide_commands_start_a_container),
    ("virtio::sriov::vfs_go_and_return_under_traffic", virtio::sriov::vfs_go_and_return_under_traffic),
    ("virtio::sriov::pf_has_more_than_seven_vfs", virtio::sriov::pf_has_more_than_seven_vfs),
    ("virtio::sriov::containers_outlive_the_host", virtio::sriov::containers_outlive_the_host),
    ("virtio::sriov::node_has_two_pfs", virtio::sriov::node_has_two_pfs),
    ("virtio::sriov::iommu_platform_is_refused", virtio::sriov::iommu_platform_is_refused),
    ("igb::binds_and_brings_the_link_up", igb::binds_and_brings_the_link_up),
    ("igb::ethtool_reads", igb::ethtool_reads),
    ("igb::registers_show_what_is_set", igb::registers_show_what_is_set),
    ("igb::ethtool_sets", igb::ethtool_sets),
    ("igb::exchanges_traffic", igb::exchanges_traffic),
    ("igb::jumbo_frames_pass_whole", igb::jumbo_frames_pass_whole),
    ("igb::vlan_offloads_are_toggled", igb::vlan_offloads_are_toggled),
    ("igb::offloads_are_toggled", igb::offloads_are_toggled),
    ("igb::rss_spreads_flows", igb::rss_spreads_flows),
    ("igb::counters_agree", igb::counters_agree),
    ("igb::self_tests_pass", igb::self_tests_pass),
    ("igb::comes_back", igb::comes_back),
    ("dpdk::igbvf_receives_and_sends", dpdk::igbvf_receives_and_sends),
    ("dpdk::igbvf_asks_the_pf", dpdk::igbvf_asks_the_pf),
    ("dpdk::igbvf_leaves_checksums_to_the_card", dpdk::igbvf_leaves_checksums_to_the_card),
    ("dpdk::iavf::receives_and_sends", dpdk::iavf::receives_and_sends),
    ("dpdk::iavf::asks_the_pf", dpdk::iavf::asks_the_pf),
    ("dpdk::virtio::receives_and_sends", dpdk::virtio::receives_and_sends),
    ("dpdk::virtio::user_port_exchanges_frames", dpdk::virtio::user_port_exchanges_frames),
    ("dpdk::pf_is_driven_with_four_queues", dpdk::pf_is_driven_with_four_queues),
    ("dpdk::iavf::of_trixie_receives_and_sends", dpdk::iavf::of_trixie_receives_and_sends),
    ("ipxe::fetches_a_file_over_the_pf", ipxe::fetches_a_file_over_the_pf),
    ("ipxe::fetches_a_file_over_a_vf", ipxe::fetches_a_file_over_a_vf),
    ("ipxe::fetches_a_file_over_virtio", ipxe::fetches_a_file_over_virtio),
    ("kernels::igb_of_trixie_drives_the_pf", kernels::igb_of_trixie_drives_the_pf),
    ("kernels::igb_of_backports_drives_the_pf", kernels::igb_of_backports_drives_the_pf),
    ("vfio::our_drivers_drive_qemus_igb", vfio::our_drivers_drive_qemus_igb),
    ("vfio::our_vf_driver_works_under_stock_igb", vfio::our_vf_driver_works_under_stock_igb),
    ("vfio::our_vf_driver_drives_our_card_in_a_guest", vfio::our_vf_driver_drives_our_card_in_a_guest),
    ("attack::functions_withstand_their_guest", attack::functions_withstand_their_guest),
    ("attack::qemus_igb_is_reported", attack::qemus_igb_is_reported),
    ("ip::answers_are_those_under_stock_igb", ip::answers_are_those_under_stock_igb),
    ("survival::hand_over_is_not_noticed", survival::hand_over_is_not_noticed),
    ("survival::crash_while_idle_is_not_noticed", survival::crash_while_idle_is_not_noticed),
    ("survival::connections_outlive_crashes", survival::connections_outlive_crashes),
    ("survival::policy_outlives_a_crash", survival::policy_outlives_a_crash),
    ("survival::avf_hand_over_is_not_noticed", survival::avf_hand_over_is_not_noticed),
    ("survival::avf_starts_anew", survival::avf_starts_anew),
    ("survival::virtio::hand_over_is_not_noticed", survival::virtio::hand_over_is_not_noticed),
    ("survival::virtio::streams_outlive_crashes", survival::virtio::streams_outlive_crashes),
    ("survival::vmm_of_another_user_connects", survival::vmm_of_another_user_connects),
    ("survival::disconnected_vf_costs_nothing_else", survival::disconnected_vf_costs_nothing_else),
    ("survival::orderly_end_costs_the_link_alone", survival::orderly_end_costs_the_link_alone),
];

fn main() -> ExitCode {
    report::run(CHECKS)
}
