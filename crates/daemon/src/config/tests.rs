//! Tests of the whole configuration: valid files, and the messages for invalid ones.

mod families;
mod paths;

use super::file::{CardFamily, PortLinkRule, SocketRole};
use super::uplink::{UplinkConfig, XdpMode};
use super::{ConfigError, HostConfig, MAX_PORTS};
use crate::settings::LinkLocalPolicy;
use pcie::{VfIndex, VfSet};
use policy::{
    FilterQuota, FilterQuotas, InterruptBounds, Offence, OffenceThresholds, PortPolicy, PortVlan,
    StormControl, VfLinkPolicy, VfMirrorRule, VfPolicy, VlanSet,
};
use std::path::Path;

pub(super) fn check(text: &str) -> Result<HostConfig, ConfigError> {
    let file = HostConfig::parse(text).expect("the configuration is valid TOML");
    HostConfig::check(file, Path::new("/run/softiov"))
}

pub(super) fn refused(text: &str) -> String {
    check(text).expect_err("the configuration is refused").to_string()
}

#[test]
fn empty_configuration_is_one_port_with_seven_vfs_no_uplink() {
    let config = check("").unwrap();
    let [port] = &config.ports[..] else { panic!("{config:?}") };
    assert_eq!((port.name.as_str(), port.vfs.len(), &port.uplink), ("pf0", 7, &UplinkConfig::None));
    assert_eq!(port.vfs[3].socket, Path::new("/run/softiov/pf0vf3/vf.sock"));
    let policy = port.vfs[3].policy;
    assert!(
        port.vfs[3].mac.is_valid_unicast()
            && policy == VfPolicy { mac: Some(port.vfs[3].mac), ..VfPolicy::default() }
    );
}

#[test]
fn port_with_a_guests_pf_driver_has_one_socket_and_no_vfs() {
    let config =
        check("[[port]]\n[[port]]\npf = \"guest\"\n[[port]]\npf = \"guest\"\nsocket = \"/tmp/x\"").unwrap();
    let sockets: Vec<_> = config.ports.iter().map(|port| port.pf_socket.as_deref()).collect();
    assert_eq!(sockets, [None, Some(Path::new("/run/softiov/pf1/pf.sock")), Some(Path::new("/tmp/x"))]);
    let vfs: Vec<_> = config.ports.iter().map(|port| port.vfs.len()).collect();
    assert_eq!(vfs, [7, 0, 0]);
}

#[test]
fn default_device_family_is_82576() {
    let text = "[[port]]\n[[port]]\nfamily = \"avf\"\nvfs = 2\n[[port]]\nfamily = \"virtio\"";
    let config = check(text).unwrap();
    let families: Vec<_> = config.ports.iter().map(|port| (port.family, port.vfs.len())).collect();
    assert_eq!(families, [(CardFamily::I82576, 7), (CardFamily::Avf, 2), (CardFamily::Virtio, 7)]);
    let unknown = HostConfig::parse("[[port]]\nfamily = \"e1000\"").unwrap_err();
    assert!(unknown.contains("82576") && unknown.contains("avf"), "{unknown}");
}

#[test]
fn tx_rate_limit_is_at_most_the_link_speed_of_the_device() {
    for (family, most) in [("82576", 1_000), ("avf", 25_000), ("virtio", 100_000)] {
        let file =
            |mbps| format!("[[port]]\nfamily = \"{family}\"\nvf = [{{ index = 0, max_tx_rate = {mbps} }}]");
        check(&file(most)).unwrap();
        let problem = format!(
            "invalid setting pf0vf0.max_tx_rate: transmit rate {} Mb/s exceeds the link's {most} Mb/s; 0 is no limit",
            most + 1
        );
        assert_eq!(refused(&file(most + 1)), problem);
    }
}

#[test]
fn port_has_at_most_the_number_of_vfs_of_its_device_family() {
    let most = |lines: &str| check(&format!("[[port]]\n{lines}")).unwrap().ports.remove(0);
    let port = most(
        "family = \"avf\"\nvfs = 64\nvf = [{ index = 63, vlan = 9 }]\nmirror = [{ to = 63, vfs = [62] }]",
    );
    let last = &port.vfs[63];
    assert_eq!((port.vfs.len(), port.withheld.len(), last.index.get()), (64, 0, 63));
    assert_eq!((last.name.as_str(), last.policy.vlan.map(|vlan| vlan.id)), ("pf0vf63", Some(9)));
    assert_eq!(last.socket, Path::new("/run/softiov/pf0vf63/vf.sock"));
    assert_eq!(port.policy.mirrors[0].map(|rule| rule.vfs), Some(VfSet::new(1 << 62)));
    let default = most("family = \"avf\"");
    assert_eq!((default.vfs.len(), default.withheld.len()), (7, 57));
    let igb = most("vfs = 8");
    assert_eq!((igb.vfs.len(), igb.withheld.len()), (8, 0));
}

#[test]
fn derived_mac_addresses_are_stable_and_differ() {
    let (one, two) = (check("").unwrap(), check("").unwrap());
    assert_eq!(one, two);
    assert_ne!(one.ports[0].vfs[0].mac, one.ports[0].vfs[1].mac);
}

/// Two hosts may have ports of the same names on one bridge. With equal MAC addresses these ports would receive each
/// other's frames.
#[test]
fn two_host_processes_on_one_machine_derive_different_macs() {
    let [one, two] = ["/run/one", "/run/two"].map(|runtime_dir| {
        let config = check(&format!("runtime_dir = {runtime_dir:?}")).unwrap();
        (config.ports[0].mac, config.ports[0].vfs[0].mac)
    });
    assert!(one.0 != two.0 && one.1 != two.1, "{one:?} and {two:?}");
}

/// Text of a valid configuration file with every key.
const EVERYTHING: &str = r#"
    runtime_dir = "/tmp/x"
    [[port]]
    name = "left"
    mac = "02:00:00:00:01:00"
    uplink = { tap = "softiov0" }
    vfs = 2
    limits = { dma-faults = { warn = 5, quarantine = 50 } }
    storm = { broadcast = 1000, multicast = 5000, interval = 200 }
    [[port.mirror]]
    to = 1
    vfs = [0]
    [[port.mirror]]
    to = 0
    uplink = "both"
    vlans = "10,20-29"
    [[port.vf]]
    index = 1
    mac = "02:00:00:00:01:02"
    vlan = 100
    qos = 3
    proto = "802.1Q"
    vlans = "10,20-29,100"
    spoofchk = false
    trust = true
    max_tx_rate = 250
    min_tx_rate = 0
    state = "enable"
    allmulti = false
    max_mtu = 1500
    share_mac = true
    min_mac_filters = 3
    max_mac_filters = 5
    min_vlan_filters = 4
    max_vlan_filters = 9
    rss = true
    min_interrupts = 500
    max_interrupts = 20000
    coalesce = "adaptive"
    socket = "/tmp/one.sock"
    "#;

#[test]
fn every_documented_setting_is_accepted() {
    let config = check(EVERYTHING).unwrap();
    let vf = &config.ports[0].vfs[1];
    let some_vlans: Option<VlanSet> = Some(std::iter::once(10).chain(20..30).collect());
    let joinable: VlanSet = std::iter::once(10).chain(20..30).chain([100]).collect();
    let expected = VfPolicy {
        mac: Some(vf.mac),
        admin_mac: true,
        vlan: Some(PortVlan { id: 100, qos: 3 }),
        vlans: Some(joinable),
        spoofchk: false,
        trust: true,
        enabled: true,
        state: VfLinkPolicy::Enable,
        allmulti: false,
        max_mtu: Some(1500),
        rss: true,
        interrupts: InterruptBounds { min_interrupts: 500, max_interrupts: 20_000, adaptive: true },
        max_tx_rate: 250,
        share_mac: true,
        guards: policy::FrameGuards::default(),
        quotas: FilterQuotas { mac: FilterQuota { min: 3, max: 5 }, vlan: FilterQuota { min: 4, max: 9 } },
    };
    assert_eq!((vf.name.as_str(), vf.policy), ("leftvf1", expected));
    let index = |n| VfIndex::new(n).unwrap();
    let first =
        VfMirrorRule { to: index(1), vfs: VfSet::new(0b01), ingress: false, egress: false, vlans: None };
    let second =
        VfMirrorRule { to: index(0), vfs: VfSet::NONE, ingress: true, egress: true, vlans: some_vlans };
    let mut policy = PortPolicy {
        mirrors: [Some(first), Some(second), None, None],
        storm: StormControl { broadcast: 1_000, multicast: 5_000, window_ms: 200 },
        ..PortPolicy::default()
    };
    policy.limits[Offence::DmaFaults as usize] = OffenceThresholds { warn: 5, throttle: 0, quarantine: 50 };
    assert_eq!(config.ports[0].policy, policy);
    assert_eq!(config.ports[0].uplink, UplinkConfig::Tap("softiov0".into()));
    assert_eq!(config.control_socket(), Path::new("/tmp/x/control/control.sock"));
}

#[test]
fn unknown_settings_are_named_in_the_error() {
    for (text, key, line) in [
        ("[[port]]\nuplnk = \"none\"", "uplnk", "line 2"),
        ("[[port]]\n[[port.vf]]\nindex = 1\nvlna = 3", "vlna", "line 4"),
        ("[[port]]\n[[port.vf]]\nindex = 1\ntrust = \"on\"", "boolean", "line 4"),
        ("[[port]]\n[[port.vf]]\nindex = 1\nqos = 256", "256", "line 4"),
        ("[[port]]\n[[port.vf]]\nvlan = 1", "index", "line 2"),
    ] {
        let message = HostConfig::parse(text).unwrap_err();
        assert!(message.contains(key) && message.contains(line), "{text}\n{message}");
    }
}

#[test]
fn former_names_of_renamed_settings_are_accepted() {
    let vf = |text: &str| {
        check(&format!("[[port]]\n[[port.vf]]\nindex = 0\n{text}")).unwrap().ports[0].vfs[0].policy
    };
    assert!(!vf("spoof_check = false").spoofchk);
    assert_eq!(vf("link_state = \"enable\"").state, VfLinkPolicy::Enable);
}

#[test]
fn invalid_uplink_is_refused_with_the_valid_uplinks() {
    for (text, parts) in [
        ("\"tap\"", ["string \"tap\"", "\"none\", { tap = \"NAME\" }"]),
        ("7", ["integer `7`", "{ wire = \"NAME\" }"]),
        ("{ tun = \"x\" }", ["`tun`", "`tap`"]),
        ("{ tap = \"x\", mtu = 1 }", ["`mtu`", "`tap`"]),
        ("{}", ["no uplink is given", "{ tap = \"NAME\" }"]),
        ("{ tap = \"x\", wire = \"y\" }", ["two uplinks are given", "{ wire = \"NAME\" }"]),
        ("{ tap = \"x\", xdp = \"native\" }", ["xdp needs an interface", "interface = \"NAME\""]),
        ("{ interface = \"x\", xdp = \"fast\" }", ["`fast`", "`best-effort`"]),
    ] {
        let message = HostConfig::parse(&format!("[[port]]\nuplink = {text}")).unwrap_err();
        assert!(parts.iter().all(|part| message.contains(part)), "{text}\n{message}");
    }
}

#[test]
fn interface_uplink_uses_a_packet_socket_without_xdp() {
    let uplink = |text: &str| check(&format!("[[port]]\nuplink = {text}")).unwrap().ports.remove(0).uplink;
    assert_eq!(uplink("{ interface = \"eth1\" }"), UplinkConfig::Interface("eth1".into()));
    for (word, xdp) in [
        ("best-effort", XdpMode::BestEffort),
        ("native-with-zerocopy", XdpMode::NativeWithZerocopy),
        ("native", XdpMode::Native),
        ("generic", XdpMode::Generic),
    ] {
        let uplink = uplink(&format!("{{ interface = \"eth1\", xdp = \"{word}\" }}"));
        assert_eq!(uplink, UplinkConfig::Xdp("eth1".into(), xdp));
        assert_eq!(uplink.to_string(), "interface:eth1");
    }
    let twice = "[[port]]\nuplink.interface = \"eth1\"\n[[port]]\nuplink = { interface = \"eth1\", xdp = \"native\" }";
    assert!(refused(twice).contains("eth1"), "two ports must not share an interface");
}

#[test]
fn vf_number_beyond_the_device_familys_limit_is_refused() {
    for (text, parts) in [
        ("[[port]]\nvfs = 9", ["pf0.vfs: 9 is out of range (1-8 ", "family = \"avf\" has up to 64 VFs"]),
        ("[[port]]\nfamily = \"avf\"\nvfs = 65", ["pf0.vfs: 65 is out of range (1-64 ", "add a port"]),
        ("[[port]]\nfamily = \"virtio\"\nvfs = 65", ["pf0.vfs: 65 is out of range (1-64 ", "add a port"]),
        ("[[port]]\nfamily = \"avf\"\nvfs = 0", ["pf0.vfs: 0 is out of range (1-64 ", "at least one VF"]),
        (
            "[[port]]\nvfs = 9\n[[port.vf]]\nindex = 8",
            ["pf0.vfs: 9 is out of range (1-8 ", "family = \"avf\""],
        ),
        ("[[port]]\nfamily = \"avf\"\nvfs = 64\n[[port.vf]]\nindex = 64", ["pf0.vf.index", "(0-63)"]),
        (
            "[[port]]\nfamily = \"avf\"\nvfs = 64\n[[port.mirror]]\nto = 64\nvfs = [0]",
            ["pf0.mirror.to", "64 VFs"],
        ),
    ] {
        let said = check(text).unwrap_err().to_string();
        assert!(parts.iter().all(|part| said.contains(part)), "{parts:?} in {said}");
    }
}

#[test]
fn socket_mode_of_a_vf_overrides_that_of_its_port() {
    let port = "[[port]]\nfamily = \"virtio\"\nvfs = 2\n";
    let vf = "[[port.vf]]\nindex = 1\nsocket_mode = \"server\"\n";
    let modes = |text: &str| {
        let config = check(text).unwrap();
        config.ports[0].vfs.iter().map(|vf| vf.socket_mode).collect::<Vec<_>>()
    };
    let (server, client) = (SocketRole::Server, SocketRole::Client);
    assert_eq!(modes(port), [server, server]);
    assert_eq!(modes(&format!("{port}socket_mode = \"client\"\n{vf}")), [client, server]);
    let message = HostConfig::parse("[[port]]\nsocket_mode = \"both\"").unwrap_err();
    assert!(message.contains("socket_mode") && message.contains("`server` or `client`"), "{message}");
}

#[test]
fn configuration_with_too_many_ports_is_refused() {
    let ports = |count: usize| "[[port]]\nvfs = 1\n".repeat(count);
    assert_eq!(check(&ports(MAX_PORTS)).unwrap().ports.len(), MAX_PORTS);
    let message = refused(&ports(MAX_PORTS + 1));
    assert!(message.contains("port: 257 ports are too many (at most 256)"), "{message}");
}

#[test]
fn configuration_error_names_the_setting_and_the_remedy() {
    for (text, parts) in [
        ("[[port]]\nvfs = 2\n[[port.vf]]\nindex = 2", ["pf0.vf.index", "raise vfs"]),
        ("[[port]]\n[[port.vf]]\nindex = 1\n[[port.vf]]\nindex = 1", ["pf0.vf.index", "two VFs"]),
        ("[[port]]\n[[port.vf]]\nindex = 0\nvlan = 4096", ["pf0vf0.vlan", "1 to 4095"]),
        ("[[port]]\n[[port.vf]]\nindex = 0\nqos = 1", ["pf0vf0.qos", "vlan"]),
        ("[[port]]\n[[port.vf]]\nindex = 0\nvlans = \"9-1\"", ["pf0vf0.vlans", "write 1-9"]),
        ("[[port]]\n[[port.vf]]\nindex = 0\nproto = \"802.1ad\"", ["pf0vf0.proto", "802.1Q"]),
        ("[[port]]\n[[port.vf]]\nindex = 0\nmax_mtu = 9707", ["pf0vf0.max_mtu", "9706"]),
        ("[[port]]\npf = \"guest\"\nvfs = 2", ["pf0.vfs", "SR-IOV"]),
        ("[[port]]\npf = \"guest\"\n[[port.vf]]\nindex = 0", ["pf0.vfs", "add another port"]),
        ("[[port]]\npf = \"guest\"\nstorm = { broadcast = 1 }", ["pf0.pf", "leave them out"]),
        ("[[port]]\npf = \"guest\"\nlink_local = \"forward\"", ["pf0.pf", "link_local"]),
        ("[[port]]\nlimits = { noise = { warn = 1 } }", ["pf0.limits", "dma-faults"]),
        ("[[port]]\nstorm = { interval = 0 }", ["pf0.storm.interval", "1 to 1000"]),
        ("[[port]]\nstorm = { interval = 1000, broadcast = 268435 }", ["pf0.storm", "268434"]),
        ("[[port]]\n[[port.mirror]]\nto = 7\nvfs = [0]", ["pf0.mirror.to", "7 VFs"]),
        ("[[port]]\n[[port.mirror]]\nto = 0", ["pf0.mirror", "names no traffic to copy"]),
        ("[[port]]\n[[port.mirror]]\nto = 0\nvfs = [0]", ["pf0.mirror", "name other VFs"]),
        ("[[port]]\nstorm = { interval = 1, broadcast = 1 }", ["pf0.storm", "below the 512 Kb/s"]),
        ("[[port]]\n[[port.vf]]\nindex = 0\nvlan = 9\nvlans = \"10\"", ["pf0vf0.vlan", "add it"]),
        (
            "[[port]]\n[[port.vf]]\nindex = 0\nmax_interrupts = 122",
            ["pf0vf0.max_interrupts", "123 to 1000000"],
        ),
        (
            "[[port]]\n[[port.vf]]\nindex = 0\nmin_interrupts = 2000\nmax_interrupts = 1000",
            ["pf0vf0.min_interrupts", "raise the ceiling"],
        ),
        ("[[port]]\nsocket = \"/run/x.sock\"", ["pf0.socket", "pf = \"guest\""]),
        (
            "[[port]]\npf = \"guest\"\nsocket = \"/run/x\"\n[[port]]\npf = \"guest\"\nsocket = \"/run/x\"",
            ["pf1.socket", "pf0.socket"],
        ),
        ("[[port]]\npf = \"guest\"\nname = \"control\"", ["port.name", "choose another"]),
        ("[[port]]\n[[port.vf]]\nindex = 0\nmax_tx_rate = 1001", ["pf0vf0.max_tx_rate", "1000"]),
        ("[[port]]\nmac = \"01:00:5e:00:00:01\"", ["pf0.mac", "even"]),
        ("[[port]]\n[[port.vf]]\nindex = 0\nsocket = \"web.sock\"", ["pf0vf0.socket", "absolute path"]),
        ("[[port]]\npf = \"guest\"\nsocket = \"x/y\"", ["pf0.socket", "absolute path"]),
        ("state_dir = \"kept\"", ["state_dir", "absolute path"]),
        ("[[port]]\nmac = \"nonsense\"", ["pf0.mac", "02:00:00:00:00:01"]),
        ("[[port]]\nname = \"a/b\"", ["port.name", "letters"]),
        ("[[port]]\nuplink = { tap = \"a/b\" }", ["pf0.uplink", "1 to 15"]),
        ("[[port]]\nuplink.wire = \"a b\"", ["pf0.uplink", "1 to 32"]),
        (
            "[[port]]\nuplink.wire = \"w\"\n[[port]]",
            ["pf0.uplink: the wire \"w\" has only one end", "second port"],
        ),
        (
            "[[port]]\nuplink.wire = \"w\"\n[[port]]\nuplink.wire = \"w\"\n[[port]]\nuplink.wire = \"w\"",
            ["pf2.uplink: the wire \"w\" has two ends", "is the uplink of pf0, pf1, pf2"],
        ),
        ("[[port]]\nname = \"a\"\n[[port]]\nname = \"a\"", ["two ports are named \"a\"", "rename one"]),
    ] {
        let message = refused(text);
        assert!(parts.iter().all(|part| message.contains(part)), "{text}\n{message}");
    }
}

#[test]
fn link_state_follows_the_uplink_by_default() {
    let link = |text: &str| {
        let text = format!("[[port]]\nuplink = {{ tap = \"softiov0\" }}\n{text}");
        let file = HostConfig::parse(&text).map_err(|message| message.to_string())?;
        Ok::<_, String>(HostConfig::check(file, Path::new("/tmp/x")).unwrap().ports[0].link)
    };
    assert_eq!(link(""), Ok(PortLinkRule::Uplink));
    assert_eq!(link("link = \"uplink\""), Ok(PortLinkRule::Uplink));
    assert_eq!(link("link = \"up\""), Ok(PortLinkRule::Up));
    let message = link("link = \"down\"").unwrap_err();
    assert!(message.contains("line 3") && message.contains("`uplink` or `up`"), "{message}");
}

#[test]
fn link_local_frames_are_dropped_unless_forwarded() {
    let link_local = |text: &str| {
        let file = HostConfig::parse(&format!("[[port]]\n{text}")).map_err(|message| message.to_string())?;
        Ok::<_, String>(HostConfig::check(file, Path::new("/tmp/x")).unwrap().ports[0].link_local)
    };
    assert_eq!(link_local(""), Ok(LinkLocalPolicy::Drop));
    assert_eq!(link_local("link_local = \"drop\""), Ok(LinkLocalPolicy::Drop));
    assert_eq!(link_local("link_local = \"forward\""), Ok(LinkLocalPolicy::Forward));
    let message = link_local("link_local = \"pass\"").unwrap_err();
    assert!(message.contains("line 2") && message.contains("`drop` or `forward`"), "{message}");
}

#[test]
fn client_memory_limit_is_a_number_with_a_unit() {
    let check =
        |text| HostConfig::check(HostConfig::parse(text).unwrap(), Path::new("/run/softiov")).unwrap();
    let of = |config: HostConfig| config.ports.iter().map(|port| port.client_memory).collect::<Vec<_>>();
    assert_eq!(of(check("client_memory = \"64G\"\n[[port]]\n[[port]]")), [Some(64 << 30); 2]);
    assert_eq!(of(check("")), [None], "the machine's memory");
    for text in ["client_memory = \"banana\"", "client_memory = 5", "client_memory = \"0M\""] {
        let error = HostConfig::parse(text).unwrap_err();
        assert!(error.contains("client_memory"), "{text}: {error}");
    }
}

#[test]
fn unreadable_configuration_file_is_named_in_the_error() {
    let error = HostConfig::text(Some(Path::new("/nonexistent/softiov.toml"))).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/softiov.toml"));
    assert_eq!(HostConfig::text(None).unwrap(), "");
}
