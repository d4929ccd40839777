//! Checks `softiov ip` against the real one: iproute2 in a guest, where stock igb has QEMU's 82576 with VFs, runs the
//! same commands. Output, resulting settings and exit codes are equal. Not compared: link state and statistics of a VF,
//! which igb does not support.

use crate::guest::COMMAND;
use crate::report::LinuxCheckOutcome;
use crate::served::HostWithKeeper;
use crate::vfio::{PF, boot, start_igb, with_igbs};
use crate::world::LinuxTestbed;
use anyhow::{Context, Result, ensure};
use linux_guest::LinuxGuest;
use serde_json::Value;
use std::process::Command;

/// Commands of `ip` that iproute2 and `softiov ip` run, one after the other.
const COMMANDS: [&str; 24] = [
    "link set dev pf0 vf 0 mac 02:82:57:60:00:31",
    "link set pf0 vf 0 vlan 100 qos 3",
    "link set pf0 vf 0 vlan 101",
    "link set pf0 vf 1 vlan 102 proto 802.1Q spoofchk off trust on",
    "link set pf0 vf 0 max_tx_rate 250",
    "link set pf0 vf 1 rate 100",
    "link set pf0 vf 0 spoofchk on",
    "link set pf0 vf 0 vlan 0 max_tx_rate 0",
    "link set pf0 vf 0 vlan 5 proto 802.1ad",
    "link set pf0 vf 0 vlan 5 qos 8",
    "link set pf0 vf 0 vlan 4096",
    "link set pf0 vf 0 vlan 4095",
    "link set pf0 vf 0 vlan 0 qos 5",
    "link set pf0 vf 0 vlan 0 qos 0 proto 802.1q",
    "link set pf0 vf 0 mac 2:82:57:60:0:3A",
    "link set pf0 vf 0 vlan 5 proto 0x800",
    "link set up pf0",
    "link set pf0 vf 0 min_tx_rate 10 max_tx_rate 20",
    "link set pf0 vf 0 min_tx_rate 20 max_tx_rate 10",
    "link set pf0 vf 0 max_tx_rate 1001",
    "link set pf0 vf 0 mac 01:00:5e:00:00:01",
    "link set pf0 vf 0 query_rss on",
    "link set pf0 vf 7 trust on",
    "link set pf9 vf 0 trust on",
];

/// Result of an `ip` command: exit code, first line on standard error, and the settings of the changed VFs.
#[derive(Debug, PartialEq, Eq)]
struct IpCommandResult {
    status: i32,
    said: String,
    vfs: Vec<Value>,
}

/// Checks that `softiov ip` has the results of iproute2 under stock igb.
pub(crate) fn answers_are_those_under_stock_igb(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let guest = boot(world, with_igbs())?;
    start_igb(&guest, PF)?;
    let script = format!(
        "eth=$(ls /sys/bus/pci/devices/{PF}/net) && ip link set $eth down && ip link set $eth name pf0 &&
         echo 2 > /sys/bus/pci/devices/{PF}/sriov_numvfs && ip link set pf0 up &&
         until [ \"$(cat /sys/class/net/pf0/carrier)\" = 1 ]; do sleep 0.2; done"
    );
    guest.check(&script, COMMAND)?;
    let served = HostWithKeeper::start("[[port]]\n")?;
    for command in COMMANDS {
        let theirs = real(&guest, command).with_context(|| format!("ip {command}"))?;
        let ours = ours(&served, command).with_context(|| format!("softiov ip {command}"))?;
        ensure!(ours == theirs, "ip {command}\nunder igb:   {theirs:?}\nunder softiov: {ours:?}");
    }
    Ok(LinuxCheckOutcome::Passed)
}

fn real(guest: &LinuxGuest, command: &str) -> Result<IpCommandResult> {
    let output = guest.run(&format!("ip {command}"), COMMAND)?;
    let shown = guest.check("ip -j link show pf0", COMMAND)?;
    answer(output.status, &output.stderr, &shown)
}

fn ours(served: &HostWithKeeper, command: &str) -> Result<IpCommandResult> {
    let run = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_softiov"));
        command.args(["ip", "--runtime-dir"]).arg(served.runtime_dir()).args(words.split(' '));
        command.output().context("cannot run softiov ip")
    };
    let output = run(command)?;
    let shown = run("-j link show pf0")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    answer(output.status.code().unwrap_or(-1), &text(&output.stderr), &text(&shown.stdout))
}

/// Returns the result of an `ip` command on the first two VFs. An Ethernet address that was not set is equal to any
/// other, and link state and statistics are left out, since igb has none.
fn answer(status: i32, stderr: &str, shown: &str) -> Result<IpCommandResult> {
    let links: Value = serde_json::from_str(shown).with_context(|| shown.to_owned())?;
    let vfs = links[0]["vfinfo_list"].as_array().context("the link has no VFs in JSON")?;
    let mut vfs: Vec<Value> = vfs.iter().take(2).cloned().collect();
    for vf in &mut vfs {
        let vf = vf.as_object_mut().context("a VF in JSON is no object")?;
        vf.remove("link_state");
        if vf.get("vf") == Some(&Value::from(1)) {
            vf.remove("address");
        }
    }
    Ok(IpCommandResult { status, said: stderr.lines().next().unwrap_or_default().to_owned(), vfs })
}
