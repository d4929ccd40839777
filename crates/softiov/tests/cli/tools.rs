//! Tests `softiov lspci`, `devlink` and `ethtool` on a running host. The Linux tests compare ethtool with the real one.

use crate::process::{CommandOutput, ServeProcess, softiov};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

fn tool(folder: &Path, words: &str) -> CommandOutput {
    softiov(folder, &words.split(' ').collect::<Vec<_>>())
}

fn is_missing(program: &str) -> bool {
    let missing = Command::new(program).arg("--version").output().is_err();
    if missing {
        println!("SKIPPED: {program} is not installed");
    }
    missing
}

/// Checks that lspci reads back each byte of the host's configuration spaces, and identifies each function.
#[test]
fn lspci_shows_the_configuration_spaces_of_a_running_host() {
    if is_missing("lspci") {
        return;
    }
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let list = tool(serve.folder(), "lspci -n -D");
    assert_eq!((list.status, list.err.as_str()), (Some(0), ""));
    let lines: Vec<_> = list.out.lines().collect();
    assert_eq!((lines.len(), lines[0]), (8, "0000:00:01.0 0200: 8086:10c9 (rev 01)"));
    assert!(lines[1..].iter().all(|line| line.ends_with(" 0200: 8086:10ca (rev 01)")), "{lines:?}");
    let shown = tool(serve.folder(), "lspci -vv -s 00:01.0").out;
    for part in ["Single Root I/O Virtualization (SR-IOV)", "Initial VFs: 8, Total VFs: 8", "Device ID: 10ca"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let bytes = tool(serve.folder(), "lspci -n -xxxx -s 00:01.0").out;
    assert!(bytes.contains("\n00: 86 80 c9 10 "), "{bytes}");
    assert_eq!(bytes.lines().filter(|line| line.contains(": ")).count(), 1 + 256, "all 4,096 bytes");
}

#[test]
fn lspci_refuses_options_for_other_devices() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let said = tool(serve.folder(), "lspci -v -F /etc/passwd");
    assert_eq!((said.status, said.out.as_str()), (Some(1), ""));
    assert!(
        said.err
            .starts_with("lspci: -F is not supported: the functions are those of a running host\nsoftiov: "),
        "{}",
        said.err
    );
}

#[test]
fn devlink_shows_the_uplink_port_and_one_for_each_vf() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let said = tool(serve.folder(), "devlink -j port show");
    let shown: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let ports = shown["port"].as_object().unwrap();
    assert_eq!(ports.len(), 8);
    let vf = &ports["pci/0000:00:01.0/3"];
    assert_eq!((&vf["flavour"], &vf["vfnum"], &vf["netdev"]), (&"pcivf".into(), &2.into(), &"pf0vf2".into()));
    assert_eq!(vf["function"]["opstate"], "detached", "no driver has enabled the VF");
    let text = tool(serve.folder(), "devlink port show pf0").out;
    assert_eq!(text, "pci/0000:00:01.0/0: type eth netdev pf0 flavour physical port 0 splittable false\n");
    let said = tool(serve.folder(), "devlink port show pf7");
    assert_eq!((said.status, said.err.as_str()), (Some(1), "Netdevice \"pf7\" not found\n"));
}

/// Checks that every tool shows the same address of a function: the second port is the second PCI domain.
#[test]
fn every_tool_shows_the_same_mac_address_of_a_function() {
    if is_missing("lspci") {
        return;
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    std::fs::write(&file, "[[port]]\n[[port]]\nvfs = 2\n").unwrap();
    let serve = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
    let told = |words: &str| tool(serve.folder(), words).out;
    let (pf, vf) = ("0001:00:01.0", "0001:00:11.2");
    for (name, address) in [("pf1", pf), ("pf1vf1", vf)] {
        let driver = told(&format!("ethtool -i {name}"));
        assert!(driver.contains(&format!("\nbus-info: {address}\n")), "{driver}");
        let listed = told(&format!("lspci -D -s {address}"));
        assert!(listed.starts_with(&format!("{address} Ethernet controller")), "{listed}");
    }
    let ports = told("devlink port show pf1vf1");
    assert!(
        ports.starts_with(&format!("pci/{pf}/2: ")),
        "a port is an instance at its PF's address: {ports}"
    );
    let metrics = told("metrics");
    let metric = format!("sriov_vf_rx_packets{{numa_node=\"\",pciAddr=\"{vf}\",pf=\"pf1\",vf=\"1\"}}");
    assert!(metrics.contains(&metric), "{metrics}");
}

#[test]
fn ethtool_sets_the_interrupt_rate_of_a_vf() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let said = tool(serve.folder(), "ethtool -C pf0vf0 adaptive-rx on rx-usecs 125");
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (Some(0), "", ""));
    let shown = tool(serve.folder(), "ethtool -c pf0vf0").out;
    assert!(shown.contains("Adaptive RX: on  TX: n/a\n") && shown.contains("\nrx-usecs: 125\n"), "{shown}");
    let vf = tool(serve.folder(), "vf show pf0vf0").out;
    assert!(vf.contains("8000") && vf.contains("adaptive"), "{vf}");
    for usecs in ["900000", "1000001", "4294967295"] {
        let said = tool(serve.folder(), &format!("ethtool -C pf0vf0 rx-usecs {usecs}"));
        assert_eq!(said.status, Some(1), "{usecs}");
        assert!(said.err.starts_with("netlink error: Invalid argument\nsoftiov: "), "{}", said.err);
    }
}

/// Compares errors for an unsupported command and an unknown interface with the real ethtool on a tap.
#[test]
fn softiov_ethtool_prints_the_errors_of_the_real_ethtool() {
    let folder = tempdir().unwrap();
    let serve = ServeProcess::start(&folder, &[]);
    let mut all = String::new();
    for words in [
        "-g pf0",
        "-k pf0vf0",
        "-l pf0vf0",
        "-i pf9",
        "-S pf9",
        "-c pf9",
        "-C pf9 rx-usecs 3",
        "-i",
        "-C pf0vf0 rx-frames 4",
    ] {
        let said = tool(serve.folder(), &format!("ethtool {words}"));
        let first = said.err.lines().next().unwrap_or_default();
        let _ = writeln!(all, "{words}: {} {first}", said.status.unwrap_or(-1));
    }
    let expected = "\
-g pf0: 1 netlink error: Operation not supported
-k pf0vf0: 1 netlink error: Operation not supported
-l pf0vf0: 1 netlink error: Operation not supported
-i pf9: 71 Cannot get driver information: No such device
-S pf9: 96 Cannot get stats strings information: No such device
-c pf9: 1 netlink error: no device matches name (offset 24)
-C pf9 rx-usecs 3: 1 netlink error: no device matches name (offset 24)
-i: 1 ethtool: bad command line argument(s)
-C pf0vf0 rx-frames 4: 1 netlink error: cannot modify an unsupported parameter (offset 32)
";
    assert_eq!(all, expected);
}
