//! Tests `softiov ip` with commands and answers of iproute2. The Linux tests compare it with the real `ip`.

use crate::process::{CommandOutput, ServeProcess, finish, softiov};
use host::test_support::skipped;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

fn ip(folder: &Path, words: &str) -> CommandOutput {
    softiov(folder, &["ip"].into_iter().chain(words.split(' ')).collect::<Vec<_>>())
}

fn vf(folder: &Path, index: usize) -> Value {
    let said = ip(folder, "-s -j link show pf0");
    let links: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    links[0]["vfinfo_list"][index].clone()
}

#[test]
fn ip_command_changes_and_shows_a_vf() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
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
fn unsupported_ip_changes_have_the_errors_of_a_driver() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
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

/// Returns the output of the system's `ip link show` for one end of a veth pair, in a network namespace of its own;
/// `None` if `ip` fails.
fn real(words: &str) -> Option<String> {
    let script = format!(
        "ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up && ip {words} link show v0"
    );
    let mut command = Command::new("unshare");
    let said = finish(command.args(["--map-root-user", "--net", "sh", "-c"]).arg(script));
    (said.status == Some(0)).then_some(said.out)
}

/// Returns the lines of statistics in a text of `ip`, from `RX:` on, without the column of carrier changes, which a
/// port does not have.
fn block(text: &str, lines: usize) -> Vec<String> {
    let from_rx = text.lines().skip_while(|line| !line.trim_start().starts_with("RX:"));
    from_rx.take(lines).map(|line| line.replace("transns", "       ")).collect()
}

/// Returns the columns of a line of `ip` in which numbers end, as offsets from the line's start.
fn columns(line: &str) -> Vec<usize> {
    let digit = |at: usize| line.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    (0..line.len()).filter(|at| digit(*at) && !digit(at + 1)).collect()
}

#[test]
fn ip_statistics_have_the_columns_and_fields_of_iproute2() {
    let Some(theirs) = real("-s -s") else {
        return skipped(
            "statistics beside the real ip",
            "there is no ip or unshare, or no network namespace",
        );
    };
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let ours = ip(serve.folder(), "-s -s link show pf0").out;
    for (nth, (theirs, ours)) in block(&theirs, 8).iter().zip(&block(&ours, 8)).enumerate() {
        if nth % 2 == 0 {
            assert_eq!(ours, theirs, "a header line of ip's statistics");
        } else {
            // The real ip ends TX errors with a number that a port does not have.
            let theirs = columns(theirs);
            let ours = columns(ours);
            assert_eq!(ours, theirs[..ours.len()], "line {nth}");
            assert!(theirs.len() - ours.len() <= usize::from(nth == 7), "line {nth}");
        }
    }
    let ours = ip(serve.folder(), "-s link show pf0").out;
    let theirs = real("-s").unwrap();
    let (ours, theirs) = (block(&ours, 4), block(&theirs, 4));
    assert_eq!((&ours[0], &ours[2]), (&theirs[0], &theirs[2]));
    assert!(
        ip(serve.folder(), "-s link show pf0").out.contains("\n    vf 0     link/ether"),
        "VFs follow the statistics"
    );
    for words in ["-s -j", "-s -s -j"] {
        let theirs: Value = serde_json::from_str(&real(words).unwrap()).unwrap();
        let ours: Value =
            serde_json::from_str(&ip(serve.folder(), &format!("{words} link show pf0")).out).unwrap();
        for way in ["rx", "tx"] {
            let keys = |links: &Value| -> Vec<String> {
                let counts = links[0]["stats64"][way].as_object().unwrap();
                counts.keys().filter(|key| *key != "carrier_changes").cloned().collect()
            };
            assert_eq!(keys(&ours), keys(&theirs), "{words} {way}");
        }
    }
}

#[test]
fn ip_commands_accept_the_forms_of_iproute2() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let place = serve.folder();
    for (words, key, value) in [
        ("link set pf0 vf 0 mac 2:0:0:0:0:B", "address", Value::from("02:00:00:00:00:0b")),
        ("l set pf0 vf 0 vlan 0 qos 5", "vlan_list", serde_json::json!([{"qos": 5}])),
        ("link set pf0 vf 0 vlan 4095", "vlan_list", serde_json::json!([{"vlan": 4095}])),
        // As operators of clusters check a driver.
        ("link set pf0 vf 0 vlan 0 qos 0 proto 802.1q", "vlan_list", serde_json::json!([{}])),
        ("link set pf0 vf 0 vlan 0", "vlan_list", serde_json::json!([{}])),
        ("link set pf0 up vf 0 trust on", "trust", Value::from(true)),
        ("-c=never -0 link set dev pf0 vf 0 trust off up", "trust", Value::from(false)),
    ] {
        let said = ip(place, words);
        assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (Some(0), "", ""), "{words}");
        assert_eq!(vf(place, 0)[key], value, "{words}");
    }
    let brief = ip(place, "-br link show").out;
    assert!(
        brief.starts_with("pf0              UP             02:")
            && brief.ends_with("<BROADCAST,MULTICAST,UP,LOWER_UP> \n")
    );
    assert!(ip(place, "-V").out.starts_with("ip utility, iproute2-"));
    assert_eq!(ip(place, "link set pf0 up").status, Some(0));
    let said = ip(place, "link set pf9 up");
    assert_eq!((said.status, said.err.as_str()), (Some(1), "Cannot find device \"pf9\"\n"));
}
