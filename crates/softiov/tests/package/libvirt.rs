//! Tests libvirt machines on VFs of the packaged host, with the output of `softiov qemu-args --format libvirt`. One
//! belongs to the system's libvirt, which runs QEMU as another user, and one to a user's session.

use crate::built;
use crate::machine::{DebianMachine, obstacle};
use crate::vmm::{self, QEMU};
use anyhow::{Context, Result};
use host::test_support::skipped;
use linux_guest::{BootFiles, KernelSeries};
use std::path::Path;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/ci");
/// Shell words before a command that the user ann runs in her own session.
const AS_USER: &str = "runuser -u ann -- env XDG_RUNTIME_DIR=/run/ann HOME=/home/ann";

#[test]
fn libvirt_system_and_session_guests_exchange_pings() -> Result<()> {
    if let Some(obstacle) = obstacle() {
        skipped("libvirt", obstacle);
        return Ok(());
    }
    let assets = BootFiles::prepare(KernelSeries::Bookworm61)?;
    let cache = linux_guest::cache_folder()?;
    let example = Path::new(EXAMPLE).canonicalize()?;
    let machine = DebianMachine::boot(&[&cache, &example])?;
    let package = built::package("1.0", machine.files())?;
    machine.run(&format!("dpkg -i {}", package.display()))?;
    vmm::install(&machine, &assets)?;
    // A user's session needs the group, and folders that a login creates.
    machine.run("useradd -m -G kvm ann && install -d -o ann -m 0700 /run/ann")?;
    machine.run("systemctl start virtlogd libvirtd")?;
    machine.wait("virsh -c qemu:///system list")?;
    let example = example.display();
    let (kernel, initramfs) = (assets.kernel().display(), assets.initramfs().display());
    machine.run(&format!(
        "cd /srv && cp {kernel} kernel && sh {example}/guest-initramfs.sh {initramfs} {example}/ping.sh initramfs
         chmod 644 kernel initramfs && install -d -o ann /srv/ann"
    ))?;
    for number in [1, 2] {
        std::fs::write(machine.files().join(format!("{number}.xml")), domain(&machine, number)?)?;
    }
    let files = machine.files().display();
    machine.run(&format!("chmod 711 {files}; chmod 644 {files}/*.xml"))?;
    machine.run(&format!("virsh -c qemu:///system create {files}/1.xml"))?;
    machine.run(&format!("{AS_USER} virsh -c qemu:///session create {files}/2.xml"))?;
    for console in ["/var/log/libvirt/console1", "/srv/ann/console2"] {
        machine.wait(&format!("grep -a '^TEST PASSED' {console} || {{ tail {console}; false; }}"))?;
    }
    machine.run(&format!(
        "virsh -c qemu:///system destroy guest1; {AS_USER} virsh -c qemu:///session destroy guest2"
    ))?;
    Ok(())
}

/// Returns the XML of a libvirt domain with VF pf0vf`number`: the output of `softiov qemu-args` within the elements of
/// any domain.
fn domain(machine: &DebianMachine, number: u8) -> Result<String> {
    let printed = machine.run(&format!("softiov qemu-args pf0vf{number} --format libvirt"))?;
    let console = if number == 1 { "/var/log/libvirt/console1" } else { "/srv/ann/console2" };
    let (head, rest) = printed.split_once('\n').context("it prints lines")?;
    let body = format!(
        "<name>guest{number}</name><memory unit='MiB'>256</memory><vcpu>1</vcpu>
         <os><type arch='x86_64' machine='q35'>hvm</type><kernel>/srv/kernel</kernel><initrd>/srv/initramfs</initrd>
         <cmdline>console=ttyS0 quiet panic=-1 number={number}</cmdline></os>
         <features><acpi/><apic/></features><cpu mode='maximum'/>"
    );
    let devices = format!(
        "<emulator>{QEMU}</emulator><serial type='file'><source path='{console}'/></serial></devices>"
    );
    let head = head.replace("type='kvm'", "type='qemu'");
    Ok(format!("{head}\n{body}\n{}", rest.replacen("</devices>", &devices, 1)))
}
