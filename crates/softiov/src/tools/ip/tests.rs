//! Tests `softiov ip` against iproute2: the words it reads, and the text, JSON and errors it prints.

use super::show::IpLinkSelection;
use super::{IpCommandWords, IpOutputFormat, LinkCommand, ToolExit, json, parse, show};
use crate::sample;
use daemon::control::status::{PortStatus, TrafficCounts, VfStatus};
use daemon::settings::{LinkState, VfSettings};
use serde_json::json;

fn read(line: &str) -> Result<(IpOutputFormat, LinkCommand), ToolExit> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse(&mut IpCommandWords::new(&words))
}

/// Parses `link set pf0 vf 0` with `attributes`, and returns the VF settings that it changes.
fn settings(attributes: &str) -> VfSettings {
    match read(&format!("link set pf0 vf 0 {attributes}")) {
        Ok((_, LinkCommand::Set(change))) => change.settings().expect("a VF").clone(),
        other => panic!("{attributes}: {other:?}"),
    }
}

fn refused(line: &str) -> (String, u8) {
    let ToolExit { text, code } = read(line).expect_err(line);
    (text.lines().next().unwrap_or_default().to_owned(), code)
}

#[test]
fn ip_commands_and_options_may_be_abbreviated() {
    let shown = LinkCommand::Show(IpLinkSelection::default());
    for line in ["link show", "link", "l sh", "l ls", "li list", "link lst"] {
        assert_eq!(read(line).map(|(_, command)| command), Ok(shown.clone()), "{line}");
    }
    let all = IpOutputFormat {
        statistics: 1,
        json: true,
        pretty: true,
        oneline: true,
        ..IpOutputFormat::default()
    };
    for line in ["-s -j -p -o link", "--statistics -json -pretty -oneline link", "-st -js -pr -one l"] {
        assert_eq!(read(line).map(|(format, _)| format), Ok(all), "{line}");
    }
    assert_eq!(settings("ma 02:00:00:00:00:01"), settings("mac 02:00:00:00:00:01"));
    assert_eq!(settings("max 5"), settings("max_tx_rate 5"));
    assert_eq!(settings("sp on st ena t off"), settings("spoofchk on state enable trust off"));
}

#[test]
fn ip_option_prefix_selects_the_first_match_of_iproute2() {
    let format = |set: fn(&mut IpOutputFormat)| {
        let mut format = IpOutputFormat::default();
        set(&mut format);
        format
    };
    for (line, expected) in [
        ("-br link", format(|format| format.brief = true)),
        ("-brief -j link", format(|format| (format.brief, format.json) = (true, true))),
        ("-s -s link", format(|format| format.statistics = 2)),
        (
            "-s -d -h -iec link",
            format(|format| {
                (format.statistics, format.details, format.human, format.iec) = (1, true, true, true);
            }),
        ),
        // Options without effect on links, some with a value.
        (
            "-c -color=always -co=auto -4 -6 -0 -M -B -f inet -family link -r -N -a -t -ts -l 3 -rc 4096 -echo link",
            format(|_| {}),
        ),
        ("-- link", format(|_| {})),
    ] {
        assert_eq!(read(line), Ok((expected, LinkCommand::Show(IpLinkSelection::default()))), "{line}");
    }
    for line in ["-V", "-Version", "-s -V", "--V link"] {
        assert_eq!(read(line).map(|(_, command)| command), Ok(LinkCommand::Version), "{line}");
    }
    assert_eq!(read("-help").map(|(_, command)| command), Ok(LinkCommand::Help));
    for (option, line) in
        [("-n", "-n other link"), ("-b", "-b file"), ("-ec", "-ec link"), ("-color=red", "-color=red link")]
    {
        assert_eq!(refused(line), (format!("Option \"{option}\" is unknown, try \"ip -help\"."), 255));
    }
}

#[test]
fn ip_link_show_accepts_the_filters_of_an_interface() {
    let shown = |line: &str| match read(line) {
        Ok((_, LinkCommand::Show(which))) => which.choose(&ports()).map(|links| links.len()),
        other => panic!("{line}: {other:?}"),
    };
    for line in
        ["link show up", "link show group default", "link show group 0 nomaster", "link show pf0 up novf"]
    {
        assert_eq!(shown(line), Ok(1), "{line}");
    }
    for line in ["link show down", "link show type vlan", "link show group 5", "link show pf0 type bridge"] {
        assert_eq!(shown(line), Ok(0), "{line}");
    }
    assert_eq!(read("link show help").map(|(_, command)| command), Ok(LinkCommand::Help));
    assert_eq!(refused("link show group x").0, "Error: argument \"x\" is wrong: Invalid \"group\" value");
    assert_eq!(refused("link show master br0").0, "Error: argument \"br0\" is wrong: Device does not exist");
}

#[test]
fn mac_addresses_of_ip_may_lack_leading_zeros() {
    for word in ["2:0:0:0:0:b", "02:00:00:00:00:0B", "2:00:0:00:0:0b"] {
        assert_eq!(settings(&format!("mac {word}")).mac.as_deref(), Some("02:00:00:00:00:0b"), "{word}");
    }
}

#[test]
fn ip_link_set_up_changes_no_setting() {
    for line in ["link set pf0 up", "link set up pf0", "link set dev pf0 up", "link set up dev pf0"] {
        let Ok((_, LinkCommand::Set(change))) = read(line) else { panic!("{line}") };
        assert_eq!(change.settings(), None, "{line}");
    }
    for line in ["link set pf0 up vf 0 trust on", "link set pf0 vf 0 trust on up"] {
        let Ok((_, LinkCommand::Set(change))) = read(line) else { panic!("{line}") };
        assert_eq!(change.settings().and_then(|set| set.trust), Some(true), "{line}");
    }
}

#[test]
fn several_vf_attributes_of_ip_are_applied_as_one_change() {
    let expected = VfSettings {
        mac: Some("02:00:00:00:00:01".into()),
        vlan: Some(100),
        qos: Some(3),
        proto: Some("802.1Q".into()),
        max_tx_rate: Some(250),
        spoofchk: Some(false),
        trust: Some(true),
        state: Some(LinkState::Disable),
        ..VfSettings::default()
    };
    let line = "mac 02:00:00:00:00:01 vlan 100 qos 3 proto 802.1q max_tx_rate 250 spoofchk off trust on state disable";
    assert_eq!(settings(line), expected);
}

#[test]
fn ip_vf_vlan_sets_priority_and_protocol_too() {
    let vlan = settings("vlan 0x64");
    assert_eq!((vlan.vlan, vlan.qos, vlan.proto.as_deref()), (Some(100), Some(0), Some("802.1Q")));
    for proto in ["802.1ad", "802.1AD", "0x88a8", "34984"] {
        assert_eq!(settings(&format!("vlan 1 proto {proto}")).proto.as_deref(), Some("802.1ad"), "{proto}");
    }
    let tagged = settings("vlan 0 qos 5");
    assert_eq!((tagged.vlan, tagged.qos), (Some(0), Some(5)));
    assert_eq!(
        [settings("vlan 010").vlan, settings("vlan 0X64").vlan, settings("vlan +7").vlan],
        [Some(8), Some(100), Some(7)]
    );
}

#[test]
fn ip_vf_max_tx_rate_overrides_its_older_name_rate() {
    assert_eq!(settings("rate 100").max_tx_rate, Some(100));
    assert_eq!(settings("rate 100 max_tx_rate 200").max_tx_rate, Some(200));
    assert_eq!(settings("max_tx_rate 200 rate 100").max_tx_rate, Some(200));
}

#[test]
fn invalid_ip_commands_have_the_errors_of_iproute2() {
    let unsupported = "RTNETLINK answers: Operation not supported";
    for (line, text, code) in [
        ("-x link", "Option \"-x\" is unknown, try \"ip -help\".", 255),
        ("addr", "Object \"addr\" is unknown, try \"ip help\".", 1),
        ("link frob", "Command \"frob\" is unknown, try \"ip link help\".", 255),
        ("link set", "Not enough information: \"dev\" argument is required.", 255),
        ("link set up", "Not enough information: \"dev\" argument is required.", 255),
        ("link set dev", "Command line is not complete. Try option \"help\"", 255),
        ("link set vf 0", "Error: argument \"dev\" is required", 255),
        ("link set pf0 vf", "Command line is not complete. Try option \"help\"", 255),
        ("link set pf0 vf 0", "Command line is not complete. Try option \"help\"", 255),
        ("link set pf0 vf x", "Error: argument \"x\" is wrong: Invalid \"vf\" value", 255),
        ("link set pf0 vf 0 vlan 4096", "Error: argument \"4096\" is wrong: Invalid \"vlan\" value", 255),
        ("link set pf0 vf 0 vlan 1 qos x", "Error: argument \"x\" is wrong: Invalid \"qos\" value", 255),
        (
            "link set pf0 vf 0 spoofchk yes",
            "Error: argument of \"spoofchk\" must be one of \"off\", \"on\", not \"yes\"",
            1,
        ),
        ("link set pf0 vf 0 state up", "Error: argument \"up\" is wrong: Invalid \"state\" value", 255),
        ("link set pf0 vf 0 mac 1:2", "Invalid address length 2 - must be 6 bytes", 1),
        ("link set pf0 vf 0 mac x", "\"x\" is invalid lladdr.", 1),
        (
            "link set pf0 vf 0 trust on frob",
            "Error: either \"dev\" is duplicate, or \"frob\" is garbage.",
            255,
        ),
        ("link set pf0 frob", "Error: either \"dev\" is duplicate, or \"frob\" is garbage.", 255),
        ("link set pf0 vf 0 mac 2:0:0:0:0:0:1", "Invalid address length 7 - must be 6 bytes", 1),
        ("link set pf0 vf 0 mac 10.0.0.1", "Invalid address length 4 - must be 6 bytes", 1),
        ("link set pf0 vf 0 mac 2:0:0:0:0:100", "\"2:0:0:0:0:100\" is invalid lladdr.", 1),
        ("link set pf0 vf 0 node_guid x", "Error: argument \"x\" is wrong: Invalid GUID format", 255),
        ("link set pf0 vf 0 vlan 1 proto x", "Error: argument \"x\" is wrong: protocol is invalid", 255),
        (
            "link set pf0 vf 0 vlan 1 proto 0x800",
            "Error: argument \"0x800\" is wrong: Invalid \"vlan protocol\" value - supported 802.1Q, 802.1ad",
            255,
        ),
        ("link set pf0 vf 0 vlan -1", "Error: argument \"-1\" is wrong: Invalid \"vlan\" value", 255),
        (
            "link set pf0 vf 0 rate 99999999999",
            "Error: argument \"99999999999\" is wrong: Invalid \"rate\" value",
            255,
        ),
        ("link show pf0 pf1", "Error: either \"dev\" is duplicate, or \"pf1\" is garbage.", 255),
        ("link set pf0 down", unsupported, 2),
        ("link set pf0 mtu 9000", unsupported, 2),
        ("link set pf0 vf 0 query_rss on", unsupported, 2),
        ("link set pf0 vf 0 node_guid 00:11:22:33:44:55:66:77", unsupported, 2),
        ("link set pf0 vf 0 trust on vf 1 trust on", unsupported, 2),
        ("link add pf9 type dummy", unsupported, 2),
    ] {
        assert_eq!(refused(line), (text.to_owned(), code), "{line}");
    }
    assert_eq!(read("link help").map(|(_, command)| command), Ok(LinkCommand::Help));
}

/// Returns the status of a port that has an uplink, and one VF with every setting.
fn ports() -> Vec<PortStatus> {
    let mut port = sample::port();
    let uplink = json!({
        "kind": "tap", "name": "t", "state": "up", "seconds": 1, "reattached": 0,
        "rx": {"packets": 100, "bytes": 6400, "multicast": 70}, "tx": {"packets": 50, "bytes": 3200},
        "drops": {"too_long": 4, "no_room": 6, "no_link": 5, "malformed": 8, "missed": 9, "impaired": 1, "unrecorded": 2},
    });
    port.uplink_status = serde_json::from_value(uplink).expect("the status of an uplink");
    let vf = &mut port.vfs[0];
    vf.settings = VfSettings {
        vlan: Some(100),
        qos: Some(3),
        spoofchk: Some(true),
        trust: Some(false),
        state: Some(LinkState::Auto),
        max_tx_rate: Some(250),
        min_tx_rate: Some(0),
        ..VfSettings::default()
    };
    (vf.function.rx, vf.function.tx) = (traffic(1), traffic(100));
    vec![port]
}

fn traffic(first: u64) -> TrafficCounts {
    TrafficCounts {
        packets: first,
        bytes: first + 1,
        multicast: first + 2,
        broadcast: first + 3,
        dropped: first + 4,
    }
}

#[test]
fn ip_text_output_equals_that_of_iproute2() {
    let links = IpLinkSelection::default().choose(&ports()).expect("all ports must be selected");
    let plain = "1: pf0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default \n    \
         link/ether 02:00:00:00:00:ff brd ff:ff:ff:ff:ff:ff\n    \
         vf 0     link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff, vlan 100, qos 3, tx rate 250 (Mbps), \
         max_tx_rate 250Mbps, spoof checking on, link-state auto, trust off";
    assert_eq!(show::print(&links, IpOutputFormat::default()), format!("{plain}\n"));
    let statistics = IpOutputFormat { statistics: 1, ..IpOutputFormat::default() };
    let (link, vf) = plain.split_once("\n    vf 0").expect("a VF");
    assert_eq!(
        show::print(&links, statistics),
        format!(
            "{link}\n    RX:  bytes packets errors dropped  missed   mcast           \
             \n          6400     100      8       0       9      70 \
             \n    TX:  bytes packets errors dropped carrier collsns           \
             \n          3200      50      9       6       5       0 \
             \n    vf 0{vf}\n    RX: bytes  packets  mcast   bcast   dropped \
             \n             2        1       3       4        5 \
             \n    TX: bytes  packets   dropped \n           101      100      104 \n"
        )
    );
}

#[test]
fn virtio_port_of_ip_has_no_pci_parent() {
    let links =
        IpLinkSelection::default().choose(&[sample::port(), sample::virtio_port()]).expect("two ports");
    let details = IpOutputFormat { details: true, ..IpOutputFormat::default() };
    let text = |index: u32, parent: &str| {
        format!(
            "{index}: pf0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default \n    \
             link/ether 02:00:00:00:00:ff brd ff:ff:ff:ff:ff:ff promiscuity 0 allmulti 0 {parent}\n    \
             vf 0     link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff, spoof checking off, link-state auto, \
             trust off\n"
        )
    };
    let parent = "parentbus pci parentdev 0000:00:01.0 ";
    assert_eq!(show::print(&links, details), text(1, parent) + &text(2, ""));
    let json = json::print(&links, IpOutputFormat { json: true, ..details }).expect("JSON");
    let (pci, virtio) = json.split_once("\"ifindex\":2").expect("two links");
    assert!(pci.contains("\"parentbus\":\"pci\",\"parentdev\":\"0000:00:01.0\""), "{pci}");
    assert!(virtio.contains("\"promiscuity\":0,\"allmulti\":0,\"vfinfo_list\""), "{virtio}");
}

#[test]
fn ip_brief_output_equals_that_of_iproute2() {
    let links = IpLinkSelection::default().choose(&ports()).expect("all ports must be selected");
    let brief = IpOutputFormat { brief: true, statistics: 1, ..IpOutputFormat::default() };
    let line = "pf0              UP             02:00:00:00:00:ff <BROADCAST,MULTICAST,UP,LOWER_UP> \n";
    assert_eq!(show::print(&links, brief), line);
    let json = json::print(&links, IpOutputFormat { json: true, ..brief }).expect("JSON");
    assert_eq!(
        json,
        "[{\"ifname\":\"pf0\",\"operstate\":\"UP\",\"address\":\"02:00:00:00:00:ff\",\
         \"flags\":[\"BROADCAST\",\"MULTICAST\",\"UP\",\"LOWER_UP\"]}]\n"
    );
}

#[test]
fn human_readable_ip_numbers_have_si_or_iec_prefixes() {
    let mut ports = ports();
    let vf = &mut ports[0].vfs[0];
    vf.function.rx =
        TrafficCounts { bytes: 123_456_789, packets: 999, multicast: 1000, broadcast: 20_480, dropped: 0 };
    let links = IpLinkSelection::default().choose(&ports).expect("all ports must be selected");
    let human = IpOutputFormat { statistics: 1, human: true, ..IpOutputFormat::default() };
    let text = show::print(&links, human);
    assert!(text.contains("\n          123M      999   1.00k   20.5k        0 \n"), "{text}");
    let text = show::print(&links, IpOutputFormat { iec: true, ..human });
    assert!(text.contains("\n         118Mi      999    1000  20.0ki        0 \n"), "{text}");
}

#[test]
fn ip_json_output_has_the_fields_and_order_of_iproute2() {
    let links = IpLinkSelection::default().choose(&ports()).expect("all ports must be selected");
    let text = json::print(&links, IpOutputFormat { json: true, statistics: 1, ..IpOutputFormat::default() })
        .expect("JSON");
    assert_eq!(
        text,
        "[{\"ifindex\":1,\"ifname\":\"pf0\",\"flags\":[\"BROADCAST\",\"MULTICAST\",\"UP\",\"LOWER_UP\"],\"mtu\":1500,\
         \"qdisc\":\"noqueue\",\"operstate\":\"UP\",\"linkmode\":\"DEFAULT\",\"group\":\"default\",\
         \"link_type\":\"ether\",\"address\":\"02:00:00:00:00:ff\",\"broadcast\":\"ff:ff:ff:ff:ff:ff\",\
         \"stats64\":{\"rx\":{\"bytes\":6400,\"packets\":100,\"errors\":8,\"dropped\":0,\"over_errors\":0,\"multicast\":70},\
         \"tx\":{\"bytes\":3200,\"packets\":50,\"errors\":9,\"dropped\":6,\"carrier_errors\":5,\"collisions\":0}},\
         \"vfinfo_list\":[{\"vf\":0,\"link_type\":\"ether\",\"address\":\"02:00:00:00:00:01\",\
         \"broadcast\":\"ff:ff:ff:ff:ff:ff\",\"vlan_list\":[{\"vlan\":100,\"qos\":3}],\"tx_rate\":250,\
         \"rate\":{\"max_tx\":250,\"min_tx\":0},\"spoofchk\":true,\"link_state\":\"auto\",\"trust\":false,\
         \"stats\":{\"rx\":{\"bytes\":2,\"packets\":1,\"multicast\":3,\"broadcast\":4,\"dropped\":5},\
         \"tx\":{\"tx_bytes\":101,\"tx_packets\":100,\"dropped\":104}}}]}]\n"
    );
}

#[test]
fn unknown_port_of_ip_is_named_in_the_error() {
    let ports = ports();
    let choose = |line: &str| match read(line) {
        Ok((_, LinkCommand::Show(which))) => which.choose(&ports).map(|links| links.len()),
        other => panic!("{other:?}"),
    };
    assert_eq!(choose("link show dev pf0"), Ok(1));
    assert_eq!(choose("link show pf0 up"), Ok(1));
    assert_eq!(choose("link show pf9"), Err(ToolExit::new("Device \"pf9\" does not exist.", 1)));
    let unlinked = vec![PortStatus { link: false, ..ports[0].clone() }];
    assert_eq!(
        IpLinkSelection::default().choose(&unlinked).map(|links| links[0].flags()[0]),
        Ok("NO-CARRIER")
    );
}

#[test]
fn ip_shows_a_vf_without_settings_with_defaults() {
    let mut ports = ports();
    let vf: &mut VfStatus = &mut ports[0].vfs[0];
    vf.settings = VfSettings::default();
    let links = IpLinkSelection::default().choose(&ports).expect("all ports must be selected");
    let text = show::print(&links, IpOutputFormat::default());
    assert!(text.ends_with("ff, spoof checking off, link-state auto, trust off\n"), "{text}");
}
