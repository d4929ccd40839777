//! Tests the conversion of a VF's settings to its policy and back.

use super::{CoalesceMode, LinkState, VfSettings};
use crate::settings::{SettingLayers, SettingsGroup};
use i82576::MacAddress;
use policy::{PortVlan, VfLinkPolicy, VfPolicy};

const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

fn refused(settings: &VfSettings) -> &'static str {
    settings.policy(OWN).expect_err("the settings are refused").key
}

#[test]
fn unset_vf_settings_have_their_defaults() {
    let default = VfPolicy { mac: Some(OWN), ..VfPolicy::default() };
    assert_eq!(VfSettings::default().policy(OWN), Ok(default));
    let linked = VfSettings::link(LinkState::Enable).policy(OWN);
    assert_eq!(linked, Ok(VfPolicy { state: VfLinkPolicy::Enable, ..default }));
}

#[test]
fn vf_policy_and_settings_convert_both_ways() {
    let told = VfSettings::of(&VfPolicy { mac: Some(OWN), ..VfPolicy::default() }, false);
    assert!(told.leaves().values().all(|value| !value.is_null()));
    assert_eq!(told.policy(OWN), VfSettings::default().policy(OWN));
    let some = VfSettings {
        state: Some(LinkState::Disable),
        mac: Some("02:00:00:00:00:09".into()),
        vlan: Some(100),
        qos: Some(3),
        vlans: Some("10-12,100".into()),
        spoofchk: Some(false),
        trust: Some(true),
        share_mac: Some(true),
        ips: Some(vec!["10.0.0.5".into(), "fd00:1::/64".into()]),
        dhcp_guard: Some(true),
        router_guard: Some(true),
        qinq: Some(true),
        min_mac_filters: Some(3),
        max_mac_filters: Some(5),
        min_vlan_filters: Some(0),
        max_vlan_filters: Some(9),
        max_tx_rate: Some(250),
        allmulti: Some(false),
        max_mtu: Some(1500),
        rss: Some(true),
        min_interrupts: Some(500),
        max_interrupts: Some(20_000),
        coalesce: Some(CoalesceMode::Adaptive),
        quarantine: Some(true),
        ..VfSettings::default()
    };
    let told = VfSettings::of(&some.policy(OWN).unwrap(), true);
    let expected = VfSettings { proto: Some("802.1Q".into()), min_tx_rate: Some(0), ..some };
    assert_eq!(told, expected);
    assert_eq!(VfSettings::from_leaves(&told.leaves()).unwrap(), told);
}

#[test]
fn default_guarantee_does_not_exceed_a_limit() {
    let vlan = |min_vlan_filters, max_vlan_filters| {
        let settings = VfSettings { min_vlan_filters, max_vlan_filters, ..VfSettings::default() };
        let quota = settings.policy(OWN).unwrap().quotas.vlan;
        (quota.min, quota.max)
    };
    assert_eq!([vlan(None, None), vlan(None, Some(9)), vlan(None, Some(1))], [(2, 0), (2, 9), (1, 1)]);
    assert_eq!(vlan(Some(5), Some(3)), (5, 3), "the policy's check refuses it");
}

#[test]
fn ips_any_and_none_are_read_back_as_written() {
    let guard = |ips: &[&str]| {
        let ips = Some(ips.iter().map(|&ip| ip.to_owned()).collect());
        let policy = VfSettings { ips, ..VfSettings::default() }.policy(OWN).unwrap();
        (policy.guards.ips.map(|ips| ips.iter().count()), VfSettings::of(&policy, false).ips.unwrap())
    };
    assert_eq!(guard(&["none"]), (Some(0), vec!["none".to_owned()]));
    assert_eq!(guard(&["any"]), (None, vec!["any".to_owned()]));
}

#[test]
fn zero_mac_address_setting_lets_the_guest_choose_its_address() {
    let address = |mac: &str| {
        let policy = VfSettings { mac: Some(mac.into()), ..VfSettings::default() }.policy(OWN).unwrap();
        (policy.mac, policy.admin_mac)
    };
    assert_eq!(address("02:00:00:00:00:09"), (Some(MacAddress([2, 0, 0, 0, 0, 9])), true));
    assert_eq!(address("00:00:00:00:00:00"), (Some(OWN), false));
}

#[test]
fn new_port_vlan_keeps_the_priority_until_the_vlan_is_removed() {
    let mut layers = SettingLayers::default();
    let mut set = |vlan, qos| {
        let change = VfSettings { vlan, qos, ..VfSettings::default() }.as_command();
        layers.change(change.leaves(), false);
        layers.effective::<VfSettings>().unwrap().policy(OWN).unwrap().vlan
    };
    assert_eq!(set(Some(100), Some(3)), Some(PortVlan { id: 100, qos: 3 }));
    assert_eq!(set(None, Some(5)), Some(PortVlan { id: 100, qos: 5 }));
    assert_eq!(set(Some(7), None), Some(PortVlan { id: 7, qos: 5 }), "an unset priority stays");
    assert_eq!(set(Some(0), None), None);
    assert_eq!(set(Some(7), None), Some(PortVlan { id: 7, qos: 0 }));
    assert_eq!(set(Some(0), Some(5)), Some(PortVlan { id: 0, qos: 5 }), "a priority alone");
    assert_eq!(set(Some(0), Some(0)), None);
    assert_eq!(set(Some(4095), None), Some(PortVlan { id: 4095, qos: 0 }));
}

#[test]
fn refused_vf_setting_is_named_in_the_error() {
    let none = VfSettings::default;
    assert_eq!(refused(&VfSettings { mac: Some("x".into()), ..none() }), "mac");
    assert_eq!(refused(&VfSettings { ips: Some(vec!["10.0.0.1/8".into()]), ..none() }), "ips");
    assert_eq!(refused(&VfSettings { ips: Some(vec!["10.0.0.1".into(); 17]), ..none() }), "ips");
    assert_eq!(refused(&VfSettings { ips: Some(vec![]), ..none() }), "ips");
    assert_eq!(refused(&VfSettings { qos: Some(1), ..none() }), "qos");
    assert_eq!(refused(&VfSettings { proto: Some("802.1ad".into()), ..none() }), "proto");
    assert_eq!(refused(&VfSettings { vlans: Some("0".into()), ..none() }), "vlans");
    assert_eq!(refused(&VfSettings { min_tx_rate: Some(1), ..none() }), "min_tx_rate");
    assert!(VfSettings { proto: Some("802.1q".into()), ..none() }.policy(OWN).is_ok());
}
