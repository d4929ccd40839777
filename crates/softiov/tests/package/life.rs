//! Tests the life of the package from its installation to its removal, with two guests on the host's VFs.

use crate::built;
use crate::machine::{DebianMachine, obstacle};
use anyhow::{Result, ensure};
use host::test_support::skipped;
use linux_guest::{BackgroundScript, BootFiles, KernelSeries, LinuxGuest};
use std::collections::BTreeSet;
use std::time::Duration;

const BOOT: Duration = Duration::from_secs(180);
const COMMAND: Duration = Duration::from_secs(240);
/// Highest exposure that `systemd-analyze security` may find in the host's unit, in tenths.
const EXPOSURE: u32 = 25;
/// Shell script that pings one guest from the other until the file /stop exists, and prints a word for each ping.
const PINGS: &str = "while [ ! -e /stop ]; do
    ping -c 1 -W 30 10.0.0.2 >/dev/null && echo answered || echo lost
    usleep 20000
done";

#[test]
fn package_upgrade_keeps_guests_and_purge_leaves_no_file() -> Result<()> {
    if let Some(obstacle) = obstacle() {
        skipped("the package", obstacle);
        return Ok(());
    }
    let machine = DebianMachine::boot(&[])?;
    let before = files(&machine)?;
    let first = built::package("1.0", machine.files())?;
    machine.run(&format!("dpkg -i {}", first.display()))?;
    the_unit_is_up_and_confined(&machine)?;

    let assets = BootFiles::prepare(KernelSeries::Bookworm61)?;
    let guests = [1, 2].map(|number| boot(&machine, &assets, number));
    let [one, two] = guests;
    let (one, two) = (one?, two?);
    for (guest, number) in [(&one, 1), (&two, 2)] {
        set_up(guest, number)?;
    }
    let flow = one.spawn_background(PINGS)?;
    let second = built::package("1.1", machine.files())?;
    an_upgrade_hands_over(&machine, &one, &second.display().to_string())?;
    a_restart_keeps_the_guests(&machine, &one)?;
    every_ping_was_answered(&one, &flow)?;

    machine.run("dpkg -r softiov")?;
    ensure!(machine.command("systemctl is-active softiov").output()?.stdout.trim_ascii() != b"active");
    one.check("true", COMMAND)?;
    two.check("true", COMMAND)?;
    machine.run("dpkg -P softiov")?;
    let left: Vec<_> = files(&machine)?.difference(&before).cloned().collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}

#[test]
fn hung_host_is_restarted_by_systemd() -> Result<()> {
    if let Some(obstacle) = obstacle() {
        skipped("the watchdog", obstacle);
        return Ok(());
    }
    let machine = DebianMachine::boot(&[])?;
    let package = built::package("1.0", machine.files())?;
    let folder = "/run/systemd/system/softiov.service.d";
    machine
        .run(&format!("mkdir -p {folder}; printf '[Service]\\nWatchdogSec=5\\n' > {folder}/short.conf"))?;
    machine.run(&format!("dpkg -i {}", package.display()))?;
    machine.run("kill -STOP $(softiov vf list >/dev/null; pgrep -n -x softiov)")?;
    machine.wait(
        "[ $(systemctl show softiov -P NRestarts) -ge 1 ]; systemctl is-active softiov; softiov vf list",
    )
}

/// Returns the paths of all files on the machine's disk. Leaves out files that a system writes by itself, and the
/// account files of user `softiov`, which the package's removal keeps.
fn files(machine: &DebianMachine) -> Result<BTreeSet<String>> {
    let written = "-path /var/log -o -path /var/lib/dpkg -o -path /var/cache -o -path /var/lib/systemd -o -path /old \
                   -o -name '*passwd*' -o -name '*shadow*' -o -name '*group*' -o -name .pwd.lock -o -path '/proc/*'";
    let found = machine
        .run(&format!("find / -xdev \\( {written} \\) -prune -o -print; find /run/softiov* || true"))?;
    Ok(found.lines().map(str::to_owned).collect())
}

fn the_unit_is_up_and_confined(machine: &DebianMachine) -> Result<()> {
    machine.run("systemctl is-active softiov && systemctl is-enabled softiov && softiov vf show pf0vf6")?;
    let complaints = machine.command("systemd-analyze verify softiov.service").output()?;
    let complaints = String::from_utf8_lossy(&complaints.stderr).into_owned();
    // This Debian has no man.
    let others: Vec<_> = complaints.lines().filter(|line| !line.contains("man softiov")).collect();
    ensure!(others.is_empty(), "{others:?}");
    machine.run(&format!("systemd-analyze security --no-pager --threshold={EXPOSURE} softiov.service"))?;
    let user = machine.ask("ps -o user= -p $(systemctl show softiov -P MainPID)")?;
    ensure!(user == "softiov", "the keeper is {user}'s");
    for path in ["/usr/share/man/man1/softiov-vf-set.1.gz", "/usr/share/bash-completion/completions/softiov"]
    {
        machine.run(&format!("test -s {path}"))?;
    }
    machine.run("systemctl reload softiov && softiov apply -f /etc/softiov/softiov.toml")?;
    Ok(())
}

fn boot(machine: &DebianMachine, assets: &BootFiles, number: u8) -> Result<LinuxGuest> {
    let socket = machine.place(&format!("/run/softiov/pf0vf{number}/vf.sock"));
    Ok(LinuxGuest::builder(format!("guest{number}")).vf_socket(socket).spawn(assets)?)
}

fn set_up(guest: &LinuxGuest, number: u8) -> Result<()> {
    guest.wait_ready(BOOT)?;
    let script = format!(
        "ip addr add 10.0.0.{number}/24 dev eth0 && ip link set eth0 up
         until [ \"$(cat /sys/class/net/eth0/carrier)\" = 1 ]; do usleep 20000; done"
    );
    guest.check(&script, COMMAND)?;
    Ok(())
}

/// Returns signs of a reset of VF pf0vf1: the carrier changes of the guest's interface, and the resets that the host
/// counts.
fn disturbances(machine: &DebianMachine, guest: &LinuxGuest) -> Result<[String; 2]> {
    let changes = guest.check("cat /sys/class/net/eth0/carrier_changes", COMMAND)?;
    let resets = machine.ask("softiov vf show pf0vf1 | grep -w resets")?;
    Ok([changes, resets])
}

fn an_upgrade_hands_over(machine: &DebianMachine, guest: &LinuxGuest, package: &str) -> Result<()> {
    let host = || machine.ask("softiov vf list >/dev/null; pgrep -n -x softiov");
    let keeper = || machine.ask("systemctl show softiov -P MainPID");
    let (calm, host_before, keeper_before) = (disturbances(machine, guest)?, host()?, keeper()?);
    let said = machine.run(&format!("dpkg -i {package} 2>&1"))?;
    ensure!(!said.contains("keeps serving its guests"), "{said}");
    ensure!(host()? != host_before, "the host is the old one: {said}");
    ensure!(keeper()? == keeper_before, "the unit was restarted");
    ensure!(disturbances(machine, guest)? == calm, "the guest saw a reset");
    Ok(())
}

fn a_restart_keeps_the_guests(machine: &DebianMachine, guest: &LinuxGuest) -> Result<()> {
    let calm = disturbances(machine, guest)?;
    let kept: u32 = machine.ask("systemctl show softiov -P NFileDescriptorStore")?.parse()?;
    ensure!(kept > 9, "systemd keeps {kept} descriptors");
    machine.run("systemctl restart softiov")?;
    ensure!(disturbances(machine, guest)? == calm, "the guest saw a reset");
    Ok(())
}

fn every_ping_was_answered(guest: &LinuxGuest, flow: &BackgroundScript) -> Result<()> {
    guest.check("touch /stop", COMMAND)?;
    let words = guest.wait(flow, COMMAND)?.stdout;
    let (answered, lost) = (words.matches("answered").count(), words.matches("lost").count());
    ensure!(answered > 20 && lost == 0, "{answered} pings were answered, {lost} were not");
    Ok(())
}
