//! Stock Linux guests on the live card: what two people who boot Debian virtual machines on SoftIOV rely on,
//! each thing a named check that says what it saw.
//!
//! The checks share one host and its guests, because booting is what costs time, and run one after the other.
//! Each begins from the same state ([`world::World::settle`]), so any of them may be run alone:
//! `cargo test -p softiov --test linux -- vlan`. Output and counting are those of a plain test program; a check
//! that cannot run here says `SKIPPED:` with the reason.
//!
//! Left out: how fast it is, and VMMs other than QEMU.

mod driver;
mod guest;
mod isolation;
mod linux_612;
mod recovery;
mod report;
mod spoofing;
mod traffic;
mod uplink;
mod vlan;
mod wire;
mod world;

use report::Check;
use std::process::ExitCode;

/// Everything that is checked, in an order in which what goes wrong first says most.
const CHECKS: &[(&str, Check)] = &[
    ("driver::binds_and_brings_the_link_up", driver::binds_and_brings_the_link_up),
    ("driver::lspci_shows_the_vf_as_on_record", driver::lspci_shows_the_vf_as_on_record),
    ("driver::ethtool_reads_and_sets", driver::ethtool_reads_and_sets),
    ("traffic::pings_are_answered", traffic::pings_are_answered),
    ("traffic::tcp_is_offloaded", traffic::tcp_is_offloaded),
    ("traffic::udp_arrives", traffic::udp_arrives),
    ("traffic::ipv6_works", traffic::ipv6_works),
    ("traffic::jumbo_frames_pass_whole", traffic::jumbo_frames_pass_whole),
    ("driver::three_vectors_interrupt", driver::three_vectors_interrupt),
    ("driver::interrupts_are_moderated", driver::interrupts_are_moderated),
    ("vlan::members_reach_each_other", vlan::members_reach_each_other),
    ("vlan::others_see_nothing", vlan::others_see_nothing),
    ("vlan::port_vlan_is_tagged_for_the_guest", vlan::port_vlan_is_tagged_for_the_guest),
    ("spoofing::addresses_of_the_administrator_stay", spoofing::addresses_of_the_administrator_stay),
    ("spoofing::foreign_addresses_are_blocked", spoofing::foreign_addresses_are_blocked),
    ("recovery::link_follows_the_pf", recovery::link_follows_the_pf),
    ("recovery::interface_down_and_up", recovery::interface_down_and_up),
    ("recovery::driver_unloaded_and_loaded", recovery::driver_unloaded_and_loaded),
    ("recovery::guest_reboots", recovery::guest_reboots),
    ("uplink::vf_and_outside_exchange_traffic", uplink::vf_and_outside_exchange_traffic),
    ("uplink::vlans_cross_the_uplink", uplink::vlans_cross_the_uplink),
    ("isolation::second_client_is_turned_away", isolation::second_client_is_turned_away),
    ("isolation::killed_vmm_is_not_noticed", isolation::killed_vmm_is_not_noticed),
    ("isolation::unshared_memory_is_told", isolation::unshared_memory_is_told),
    ("linux_612::joins_in", linux_612::joins_in),
];

fn main() -> ExitCode {
    report::run(CHECKS)
}
