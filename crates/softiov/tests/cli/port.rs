//! Tests `softiov port`: its changes, its output, and its errors.

use crate::process::{CommandOutput, ServeProcess, softiov};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

fn host() -> (TempDir, ServeProcess) {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    (folder, serve)
}

fn port(serve: &ServeProcess, words: &str) -> CommandOutput {
    softiov(serve.folder(), &["port"].into_iter().chain(words.split(' ')).collect::<Vec<_>>())
}

fn rules(serve: &ServeProcess) -> Value {
    let said = port(serve, "show pf0 --json");
    serde_json::from_str::<Value>(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))["settings"]
        .clone()
}

#[test]
fn port_show_prints_limits_storm_control_and_mirrors() {
    let (_folder, serve) = host();
    let said = port(&serve, "show pf0");
    assert_eq!(said.status, Some(0), "{said:?}");
    for part in [
        "pf0: link/ether",
        "limit mailbox: warn 200/s, throttle 1000/s, quarantine never",
        "storm control: broadcast any, multicast any, interval 100ms, storms 0",
    ] {
        assert!(said.out.contains(part), "{part} in {}", said.out);
    }
    assert_eq!(rules(&serve)["mirror"], Value::Null);
}

#[test]
fn port_set_changes_given_storm_limits_and_keeps_the_rest() {
    let (_folder, serve) = host();
    let said = port(&serve, "set pf0 --storm-broadcast 1000 --storm-interval 50");
    assert!(said.out.contains("broadcast 1000Kbps, multicast any, interval 50ms"), "{said:?}");
    let said = port(&serve, "set pf0 --storm-multicast 11");
    assert!(said.out.contains("broadcast 1000Kbps, multicast 11Kbps, interval 50ms"), "{said:?}");
    for (words, part) in [
        ("set pf0 --storm-interval 1001 --storm-broadcast 1", "1 to 1000"),
        ("set pf0 --storm-interval 1000 --storm-broadcast 999999", "268434"),
        ("set pf0 --storm-interval 1 --storm-multicast 1", "below the 512 Kb/s"),
    ] {
        let refused = port(&serve, words);
        assert!(refused.status == Some(1) && refused.err.contains(part), "{words}: {refused:?}");
    }
    assert_eq!(rules(&serve)["storm"], json!({ "broadcast": 1000, "multicast": 11, "interval": 50 }));
}

#[test]
fn port_set_changes_the_policy_for_link_local_frames() {
    let (_folder, serve) = host();
    assert_eq!(rules(&serve)["link_local"], "drop");
    let said = port(&serve, "set pf0 --link-local forward");
    assert!(said.out.contains("kept: link_local forward"), "{said:?}");
    assert_eq!(rules(&serve)["link_local"], "forward");
    let refused = port(&serve, "set pf0 --link-local pass");
    assert!(
        refused.status == Some(2) && refused.err.contains("[possible values: drop, forward]"),
        "{refused:?}"
    );
    port(&serve, "set pf0 --default link_local");
    assert_eq!(rules(&serve)["link_local"], "drop");
}

#[test]
fn port_reset_keeps_mirror_and_storm_rules() {
    let (_folder, serve) = host();
    let before = port(&serve, "mirror pf0 1 --to 2 --uplink both");
    let said = port(&serve, "reset pf0");
    assert_eq!((said.status, &said.out), (Some(0), &before.out), "{said:?}");
}

#[test]
fn port_limit_changes_offence_thresholds_of_a_running_host() {
    let (_folder, serve) = host();
    let said = port(&serve, "limit pf0 mailbox --quarantine 5000");
    assert!(said.out.contains("mailbox: warn 200/s, throttle 1000/s, quarantine 5000/s"), "{said:?}");
    let said = port(&serve, "limit pf0 mailbox --throttle 0 --warn 1");
    assert!(said.out.contains("mailbox: warn 1/s, throttle never, quarantine 5000/s"), "{said:?}");
    let refused = port(&serve, "limit pf0 noise --warn 1");
    assert!(refused.status == Some(1) && refused.err.contains("dma-faults"), "{refused:?}");
}

#[test]
fn port_mirror_adds_and_removes_mirror_rules() {
    let (_folder, serve) = host();
    let said = port(&serve, "mirror pf0 0 --to 6 --vfs 0,1 --uplink both --vlans 10,20-29");
    let line = "mirror 0: to pf0vf6, received by pf0vf0 pf0vf1, uplink both, vlans 10,20-29";
    assert!(said.out.contains(line), "{said:?}");
    let said = port(&serve, "mirror pf0 3 --to 5 --uplink ingress");
    assert!(said.out.contains("mirror 3: to pf0vf5, uplink ingress") && said.out.contains(line), "{said:?}");
    let said = port(&serve, "mirror pf0 0 --off");
    assert!(said.status == Some(0) && !said.out.contains("mirror 0"), "{said:?}");
    for (words, part) in [
        ("mirror pf0 4 --to 1 --uplink both", "4"),
        ("mirror pf0 0 --to 7 --uplink both", "7 VFs"),
        ("mirror pf0 0 --to 1", "names no traffic to copy"),
        ("mirror pf0 0 --to 1 --vfs 1", "name other VFs"),
        ("mirror pf0 0 --to 1 --vlans 0", "4095"),
    ] {
        let refused = port(&serve, words);
        assert!(refused.status == Some(1) && refused.err.contains(part), "{words}: {refused:?}");
    }
    assert_eq!(rules(&serve)["mirror"], json!({ "3": { "to": 5, "uplink": "ingress" } }));
}

/// Tests `softiov port show` for a port whose PF a guest drives. Such a port has no VFs, so the command shows
/// the state of the PF's own client.
#[test]
fn port_show_prints_the_client_of_a_pf_that_a_guest_drives() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    std::fs::write(&file, "[[port]]\npf = \"guest\"").unwrap();
    let serve = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
    let said = port(&serve, "show pf0");
    for part in
        ["no client", "pf0/pf.sock", "RX: bytes 0", "TX: bytes 0", "dma faults 0", "VMM interventions: 0"]
    {
        assert!(said.out.contains(part), "{part} in {said:?}");
    }
    assert_eq!(softiov(serve.folder(), &["vf", "show", "pf0"]).out, said.out);
}

#[test]
fn unknown_port_error_lists_the_ports() {
    let (_folder, serve) = host();
    for words in ["show pf9", "reset pf9", "limit pf9 storm --warn 1", "mirror pf9 0 --off"] {
        let said = port(&serve, words);
        assert!(
            said.status == Some(1) && said.err.contains("pf9") && said.err.contains("valid names are pf0"),
            "{said:?}"
        );
    }
}

#[test]
fn port_set_without_an_option_is_a_usage_error() {
    let folder = tempdir().unwrap();
    for words in
        ["port set pf0", "port limit pf0 storm", "port mirror pf0 0", "port mirror pf0 0 --to 1 --off"]
    {
        let said = softiov(folder.path(), &words.split(' ').collect::<Vec<_>>());
        assert_eq!(said.status, Some(2), "{words}: {}", said.err);
    }
}
