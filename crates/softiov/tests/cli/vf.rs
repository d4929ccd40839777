//! Tests `softiov vf` and `softiov qemu-args`: their output and their errors.

use crate::process::{SOFTIOV, ServeProcess, finish, softiov};
use serde_json::Value;
use std::process::Command;
use tempfile::tempdir;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn vf_list_prints_a_line_per_vf_or_json() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let text = softiov(serve.folder(), &["vf", "list"]);
    assert_eq!((text.status, text.err.as_str()), (Some(0), ""));
    assert_eq!(text.out.lines().count(), 8, "{}", text.out);
    let ports = json(&softiov(serve.folder(), &["vf", "list", "--json"]).out);
    assert_eq!((&ports[0]["name"], &ports[0]["uplink"]), (&"pf0".into(), &"none".into()));
    for (line, vf) in text.out.lines().skip(1).zip(ports[0]["vfs"].as_array().unwrap()) {
        assert!(line.contains(vf["name"].as_str().unwrap()) && line.contains(vf["mac"].as_str().unwrap()));
        assert!(line.contains("no client") && vf["peer"].is_null());
    }
}

#[test]
fn vf_show_prints_the_settings_that_vf_set_has_changed() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let said = softiov(serve.folder(), &["vf", "show", "pf0vf2"]);
    for part in [
        "pf0vf2",
        "spoofchk on",
        "state auto",
        "by default: ",
        "RX: ",
        "TX: ",
        "VMM interventions",
        "pf0vf2/vf.sock",
    ] {
        assert!(said.out.contains(part), "{part} in {}", said.out);
    }
    let vf = json(&softiov(serve.folder(), &["vf", "show", "pf0vf2", "--json"]).out);
    assert_eq!((&vf["index"], &vf["link"], &vf["hint"]), (&2.into(), &true.into(), &Value::Null));
    for counters in ["rx", "tx", "drops", "interventions"] {
        assert!(vf[counters].is_object(), "{counters}");
    }
    let set = softiov(serve.folder(), &["vf", "set", "pf0vf2", "--state", "disable"]);
    assert!(set.status == Some(0) && set.out.contains("kept: state disable"), "{set:?}");
    serve.wait_logged(&format!("of user {}", rustix::process::geteuid().as_raw()));
    assert_eq!(json(&softiov(serve.folder(), &["vf", "show", "pf0vf2", "--json"]).out)["link"], false);
}

#[test]
fn vf_set_refuses_a_transmit_rate_above_1000_mbps() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let set = softiov(serve.folder(), &["vf", "set", "pf0vf2", "--max-tx-rate", "100"]);
    assert!(set.status == Some(0) && set.out.contains("max_tx_rate 100"), "{set:?}");
    let refused =
        softiov(serve.folder(), &["vf", "set", "pf0vf2", "--max_tx_rate", "1001", "--state", "disable"]);
    assert!(refused.status == Some(1) && refused.err.contains("1000"), "{refused:?}");
    let vf = json(&softiov(serve.folder(), &["vf", "show", "pf0vf2", "--json"]).out);
    assert_eq!(
        (&vf["settings"]["max_tx_rate"], &vf["link"]),
        (&100.into(), &true.into()),
        "nothing was changed"
    );
    let lifted = softiov(serve.folder(), &["vf", "set", "pf0vf2", "--max-tx-rate", "0"]);
    assert!(lifted.status == Some(0) && !lifted.out.contains("max_tx_rate 100"), "{lifted:?}");
}

#[test]
fn vf_set_changes_a_policy_completely_or_not_at_all() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let set = |words: &str| {
        let words: Vec<_> = ["vf", "set", "pf0vf1", "--json"].into_iter().chain(words.split(' ')).collect();
        softiov(serve.folder(), &words)
    };
    let said = set("--mac 02:00:00:00:00:77 --vlan 100 --qos 3 --proto 802.1Q --spoofchk off --trust on");
    let vf = json(&said.out);
    let is = &vf["settings"];
    assert_eq!((&vf["mac"], &is["mac"]), (&"02:00:00:00:00:77".into(), &"02:00:00:00:00:77".into()));
    assert_eq!((&is["vlan"], &is["qos"]), (&100.into(), &3.into()));
    assert_eq!((&is["spoofchk"], &is["trust"]), (&false.into(), &true.into()));
    let vf = json(&set("--vlan 20").out);
    assert_eq!(
        (&vf["settings"]["vlan"], &vf["settings"]["qos"]),
        (&20.into(), &3.into()),
        "other settings stay"
    );
    let vf = json(
        &set("--vlan 0 --vlans 10-12 --allmulti off --max-mtu 1500 --rss on --share-mac on --state enable")
            .out,
    );
    let is = &vf["settings"];
    assert_eq!((&is["vlan"], &is["qos"], &is["vlans"]), (&0.into(), &0.into(), &"10-12".into()));
    assert_eq!((&is["allmulti"], &is["max_mtu"], &is["rss"]), (&false.into(), &1500.into(), &true.into()));
    assert_eq!(is["share_mac"], true);
    assert_eq!((&is["state"], &is["trust"]), (&"enable".into(), &true.into()), "other settings stay");
    for (words, part) in [
        ("--min-tx-rate 5 --trust off", "min_tx_rate"),
        ("--proto 802.1ad --trust off", "802.1Q"),
        ("--mac 01:00:5e:00:00:01 --trust off", "first byte"),
        ("--trust off --qos 9", "qos"),
        ("--trust off --min-interrupts 2000 --max-interrupts 1000", "raise the ceiling"),
        ("--trust off --max-interrupts 100", "123 to 1000000"),
        ("--trust off --vlan 13", "add it to vlans"),
    ] {
        let refused = set(words);
        assert!(refused.status == Some(1) && refused.err.contains(part), "{words}: {refused:?}");
    }
    let vf = json(&softiov(serve.folder(), &["vf", "show", "pf0vf1", "--json"]).out);
    assert_eq!(vf["settings"]["trust"], true, "nothing was changed");
    assert!(vf["mailbox"]["refused"].is_object(), "{vf}");
}

#[test]
fn vf_set_quarantines_a_vf_and_releases_it() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let set = |words: &[&str]| softiov(serve.folder(), &[&["vf", "set", "pf0vf3"], words].concat());
    let said = set(&["--quarantine", "on"]);
    assert!(said.out.contains("quarantined: administrator") && said.out.contains("state DOWN"), "{said:?}");
    let listed = softiov(serve.folder(), &["vf", "list"]).out;
    assert_eq!(listed.matches(", quarantined (administrator)").count(), 1, "{listed}");
    let vf = json(&softiov(serve.folder(), &["vf", "show", "pf0vf3", "--json"]).out);
    assert_eq!(
        (&vf["conduct"]["quarantine"], &vf["settings"]["state"]),
        (&"administrator".into(), &"auto".into())
    );
    let said = set(&["--quarantine", "off"]);
    assert!(!said.out.contains("quarantined") && said.out.contains("state UP"), "{said:?}");
}

#[test]
fn vf_set_refuses_a_mac_in_use_and_names_its_vf() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let ports = json(&softiov(serve.folder(), &["vf", "list", "--json"]).out);
    for (owner, mac) in [("pf0vf1.mac", &ports[0]["vfs"][1]["mac"]), ("pf0.mac", &ports[0]["mac"])] {
        let said = softiov(serve.folder(), &["vf", "set", "pf0vf3", "--mac", mac.as_str().unwrap()]);
        assert_eq!((said.status, said.out.as_str()), (Some(1), ""));
        assert!(said.err.contains(&format!("pf0vf3.mac: address {}", mac.as_str().unwrap())), "{}", said.err);
        assert!(said.err.contains(&format!("is also given to {owner}; choose another")), "{}", said.err);
    }
}

#[test]
fn vf_set_limits_the_interrupt_rate() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let words = "vf set pf0vf3 --min-interrupts 500 --max-interrupts 20000 --coalesce adaptive";
    let said = softiov(serve.folder(), &words.split(' ').collect::<Vec<_>>());
    assert!(
        said.out.contains("kept: coalesce adaptive, max_interrupts 20000, min_interrupts 500"),
        "{said:?}"
    );
    let said = softiov(serve.folder(), &["vf", "set", "pf0vf3", "--coalesce", "guest", "--json"]);
    let vf = json(&said.out);
    assert_eq!(
        (&vf["settings"]["coalesce"], &vf["settings"]["min_interrupts"]),
        (&"guest".into(), &500.into())
    );
}

#[test]
fn unknown_vf_error_lists_the_vfs() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    for command in ["vf show pf9vf9", "vf set pf9vf9 --state auto", "qemu-args pf9vf9"] {
        let said = softiov(serve.folder(), &command.split(' ').collect::<Vec<_>>());
        assert_eq!((said.status, said.out.as_str()), (Some(1), ""), "{command}");
        assert!(
            said.err.contains("pf9vf9") && said.err.contains("pf0vf0, pf0vf1"),
            "{command}: {}",
            said.err
        );
    }
}

#[test]
fn command_without_a_running_host_exits_with_status_3() {
    let folder = tempdir().unwrap();
    for command in ["vf list", "vf list --json", "vf show pf0vf0", "vf set pf0vf0 --state auto"] {
        let said = softiov(folder.path(), &command.split(' ').collect::<Vec<_>>());
        assert_eq!((said.status, said.out.as_str()), (Some(3), ""), "{command}");
        assert!(said.err.contains("softiov serve") && said.err.contains("control.sock"), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}

#[test]
fn qemu_args_are_the_same_before_and_after_the_host_starts() {
    let folder = tempdir().unwrap();
    let sockets = folder.path().join("sockets");
    let before = softiov(&sockets, &["qemu-args", "pf0vf1", "--memory", "2G"]);
    assert!(before.status == Some(0) && before.err.contains("softiov serve"), "{before:?}");
    let serve = ServeProcess::start(&folder, &[]);
    let after = softiov(serve.folder(), &["qemu-args", "pf0vf1", "--memory", "2G"]);
    assert_eq!((after.status, after.err.as_str()), (Some(0), ""));
    assert_eq!(after.out, before.out);
    for part in ["size=2G,share=on", "vfio-user-pci", sockets.join("pf0vf1/vf.sock").to_str().unwrap()] {
        assert!(after.out.contains(part), "{part} in {}", after.out);
    }
}

#[test]
fn qemu_args_refuses_an_invalid_memory_size_and_a_port() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let ask = |words: &str| softiov(serve.folder(), &words.split(' ').collect::<Vec<_>>());
    for size in ["banana", "0", "2X", "1GG", "-1", "G"] {
        let said = ask(&format!("qemu-args pf0vf0 --memory={size}"));
        assert!(said.status == Some(2) && said.err.contains("512M"), "{size}: {said:?}");
    }
    for (size, printed) in [("512", "512M"), ("768M", "768M"), ("2g", "2g")] {
        let out = ask(&format!("qemu-args pf0vf0 --memory {size}")).out;
        assert!(
            out.contains(&format!("size={printed},")) && out.contains(&format!("-m {printed} ")),
            "{out}"
        );
    }
    let said = ask("qemu-args pf0");
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("pf0vf0") && said.err.contains("pf = \"guest\""), "{}", said.err);
}

#[test]
fn qemu_args_for_an_older_qemu_have_its_options() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    std::fs::write(&file, "[[port]]\nfamily = \"virtio\"\n[[port]]\n").unwrap();
    let serve = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
    let ask = |words: &str| softiov(serve.folder(), &words.split(' ').collect::<Vec<_>>());
    let newest = ask("qemu-args pf0vf0");
    assert!(newest.status == Some(0) && newest.out.contains(",reconnect-ms=100'"), "{newest:?}");
    assert_eq!(ask("qemu-args pf0vf0 --qemu-version 9.2").out, newest.out);
    for format in ["shell", "json"] {
        let older = ask(&format!("qemu-args pf0vf0 --qemu-version 7.2 --format {format}"));
        assert!(older.status == Some(0) && older.out.contains("vf.sock,reconnect=1"), "{older:?}");
        assert!(!older.out.contains("reconnect-ms"), "{}", older.out);
    }
    let refused = ask("qemu-args pf1vf0 --qemu-version 9.2");
    assert_eq!((refused.status, refused.out.as_str()), (Some(1), ""));
    assert!(
        refused.err.contains("QEMU 9.2") && refused.err.contains("QEMU 10.1 or newer"),
        "{}",
        refused.err
    );
    assert_eq!(ask("qemu-args pf1vf0 --qemu-version 10.1").out, ask("qemu-args pf1vf0").out);
    for version in ["9", "newest", "9.x"] {
        let said = ask(&format!("qemu-args pf0vf0 --qemu-version {version}"));
        assert!(said.status == Some(2) && said.err.contains("such as 9.2"), "{version}: {said:?}");
    }
}

#[test]
fn qemu_args_for_an_sriov_pf_have_the_addresses_of_the_policy() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    std::fs::write(&file, "[[port]]\nfamily = \"virtio\"\n[[port]]\n").unwrap();
    let options = ["--config", file.to_str().unwrap()];
    let sockets = folder.path().join("sockets");
    let ask = |words: &str| softiov(&sockets, &words.split(' ').collect::<Vec<_>>());
    let command = "qemu-args pf0vf0 --sriov-vfs pf0vf2,pf0vf1";
    let before = softiov(&sockets, &[&command.split(' ').collect::<Vec<_>>()[..], &options].concat());
    assert!(before.status == Some(0) && before.err.matches("no host is running").count() == 1, "{before:?}");
    let _serve = ServeProcess::start(&folder, &options);
    assert_eq!(ask(command).out, before.out);
    assert_eq!(ask("vf set pf0vf2 --mac 02:00:00:00:00:99").status, Some(0));
    let words = json(&ask(&format!("{command} --format json")).out);
    let place = |text: &str| {
        words
            .as_array()
            .unwrap()
            .iter()
            .position(|word| word.as_str().unwrap().contains(text))
            .unwrap_or_else(|| panic!("no {text} in {words}"))
    };
    let vf = place("mac=02:00:00:00:00:99,bus=port-pf0vf0,addr=0x0.0x1,sriov-pf=pf-pf0vf0");
    assert!(place("pcie-root-port,id=port-pf0vf0") < vf && vf < place("addr=0x0.0x2,sriov-pf=pf-pf0vf0"));
    assert!(place("addr=0x0.0x2,sriov-pf=pf-pf0vf0") < place("addr=0x0.0x0,id=pf-pf0vf0"));
    let xml = ask(&format!("{command} --format libvirt")).out;
    assert_eq!(xml.matches("<qemu:arg value='{").count(), 3, "{xml}");
    let second = ask(&format!("{command} --root-port 1")).out;
    assert_eq!(second, ask(command).out.replace("chassis=100", "chassis=101"));
    for device in ["pf0vf0", "pf1vf0"] {
        let said = ask(&format!("qemu-args {device} --root-port 1"));
        assert!(said.status == Some(1) && said.err.contains("leave --root-port out"), "{said:?}");
    }
    let xml = ask("qemu-args pf1vf0 --root-port 2 --format libvirt").out;
    assert!(xml.contains("index='11'") && xml.contains("pci.11"), "{xml}");
    for (options, reason) in [
        ("--qemu-version 10.0", "QEMU 10.0 has no"),
        ("--format cloud-hypervisor", "no devices with SR-IOV"),
        ("--sriov-vfs pf1vf0", "pf1vf0 is no virtio VF"),
        ("--sriov-vfs pf0vf1", "pf0vf1 is named twice"),
        ("--sriov-vfs pf0vf9", "pf0vf9"),
    ] {
        let said = ask(&format!("{command} {options}"));
        assert_eq!((said.status, said.out.as_str()), (Some(1), ""), "{options}");
        assert!(said.err.contains(reason), "{options}: {}", said.err);
    }
}

#[test]
fn vf_set_refuses_a_mac_address_of_another_port() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    std::fs::write(&file, "[[port]]\n[[port]]\n").unwrap();
    let serve = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
    let ports = json(&softiov(serve.folder(), &["vf", "list", "--json"]).out);
    for (owner, mac) in [("pf1vf2.mac", &ports[1]["vfs"][2]["mac"]), ("pf1.mac", &ports[1]["mac"])] {
        let said = softiov(serve.folder(), &["vf", "set", "pf0vf3", "--mac", mac.as_str().unwrap()]);
        assert!(said.status == Some(1) && said.err.contains(owner), "{owner}: {said:?}");
    }
}

#[test]
fn vf_list_to_a_full_output_is_an_error_not_a_panic() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    for command in ["vf list", "vf list --json", "vf show pf0vf0", "qemu-args pf0vf0"] {
        let script =
            format!("exec {SOFTIOV} {command} --runtime-dir {} > /dev/full", serve.folder().display());
        let said = finish(Command::new("sh").args(["-c", &script]));
        assert_eq!(said.status, Some(1), "{command}: {}", said.err);
        assert!(said.err.contains("cannot write to standard output"), "{command}: {}", said.err);
    }
}

#[test]
fn wrong_usage_of_vf_commands_exits_with_status_2() {
    let folder = tempdir().unwrap();
    for command in
        ["vf", "vf explode", "serve --uplink none", "vf set pf0vf0 --state sideways", "vf set pf0vf0"]
    {
        let said = softiov(folder.path(), &command.split(' ').collect::<Vec<_>>());
        assert_eq!(said.status, Some(2), "{command}: {}", said.err);
    }
}
