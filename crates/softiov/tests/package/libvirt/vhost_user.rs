//! Tests libvirt machines on virtio VFs, which libvirt knows as `<interface type='vhostuser'>`: links, restarts of a
//! machine, and restarts of the host under running machines.

use super::{boot, define_kubevirt_domain, write_xml};
use crate::machine::{DebianMachine, obstacle};
use anyhow::{Result, ensure};
use host::test_support::skipped;

/// Configuration of the host, in place of the package's port.
const PORT: &str = r#"[[port]]
family = "virtio"

[[port.vf]]
index = 1
mac = "02:00:00:00:01:01"
"#;
/// Settings that `softiov apply` adds to the host: the address of the second machine.
const SECOND: &str = r#"
[[port.vf]]
index = 2
mac = "02:00:00:00:01:02"
"#;
/// Script of the guests' test, which does not end. It prints a line for each ping of the other guest.
const PINGS: &str = r#"while :; do
    if ping -c 1 -W 1 "$PEER" >/dev/null; then echo answered; else echo lost; fi
    sleep 0.1
done
"#;

#[test]
fn libvirt_vhostuser_interfaces_survive_restarts() -> Result<()> {
    if let Some(obstacle) = obstacle() {
        skipped("libvirt's interfaces of the type vhostuser", obstacle);
        return Ok(());
    }
    let machine = boot("virtio_pci virtio_net", PINGS)?;
    define_kubevirt_domain(&machine)?;
    configure(&machine)?;
    for number in [1, 2] {
        write_xml(&machine, number, &console(number))?;
        virsh(&machine, &format!("define {}/{number}.xml", machine.files().display()))?;
        virsh(&machine, &format!("start guest{number}"))?;
    }
    both_go_on(&machine)?;
    let interfaces = virsh(&machine, "domiflist guest1")?;
    ensure!(interfaces.contains("vhostuser") && interfaces.contains("02:00:00:00:01:01"), "{interfaces}");

    // `virsh domif-setlink` of libvirt 11.3 refuses interfaces of this type.
    machine.run("softiov vf set pf0vf1 --state disable")?;
    more(&machine, 2, "lost")?;
    machine.run("softiov vf set pf0vf1 --state auto")?;
    both_go_on(&machine)?;

    virsh(&machine, "destroy guest2")?;
    more(&machine, 1, "lost")?;
    virsh(&machine, "start guest2")?;
    both_go_on(&machine)?;

    machine.run("systemctl restart softiov")?;
    both_go_on(&machine)?;
    let host = machine.ask("softiov vf list >/dev/null; pgrep -n -x softiov")?;
    machine.run(&format!("kill -KILL {host}"))?;
    both_go_on(&machine)?;
    let running = virsh(&machine, "list --name")?;
    ensure!(running.contains("guest1") && running.contains("guest2"), "running: {running}");
    Ok(())
}

/// Replaces the package's port by a virtio port, and sets the second VF's address on the running host, which root applies
/// and another user's process carries out.
fn configure(machine: &DebianMachine) -> Result<()> {
    let path = machine.place("/etc/softiov/softiov.toml");
    let packaged = std::fs::read_to_string(&path)?;
    let head = packaged.split_once("[[port]]").map_or(&*packaged, |(head, _)| head);
    std::fs::write(&path, format!("{head}{PORT}"))?;
    machine.run("systemctl restart softiov && softiov vf show pf0vf2")?;
    std::fs::write(&path, format!("{head}{PORT}{SECOND}"))?;
    machine.run("softiov apply -f /etc/softiov/softiov.toml")?;
    let shown = machine.run("softiov vf show pf0vf2")?;
    ensure!(shown.contains("02:00:00:00:01:02"), "the second VF has another address: {shown}");
    Ok(())
}

fn virsh(machine: &DebianMachine, words: &str) -> Result<String> {
    machine.run(&format!("virsh -c qemu:///system {words}"))
}

/// Returns the path of the file of a guest's console.
fn console(number: u8) -> String {
    format!("/var/log/libvirt/console{number}")
}

/// Waits until three more pings of each guest were answered.
fn both_go_on(machine: &DebianMachine) -> Result<()> {
    [1, 2].into_iter().try_for_each(|number| more(machine, number, "answered"))
}

/// Waits until a guest has printed a word for three more pings.
fn more(machine: &DebianMachine, number: u8, word: &str) -> Result<()> {
    let path = console(number);
    machine.run(&format!(": > /tmp/mark; wc -c < {path} > /tmp/mark"))?;
    machine.wait(&format!(
        "from=$(cat /tmp/mark); [ $(wc -c < {path}) -ge $from ] || from=0
         [ $(tail -c +$((from + 1)) {path} | grep -a -c '^{word}') -ge 3 ] || {{ tail -n 3 {path}; false; }}"
    ))
}
