//! Tests libvirt machines on VFs of the packaged host, with the output of `softiov qemu-args --format libvirt`: on VFs
//! of a real card's family, and on virtio VFs.

mod vfio_user;
mod vhost_user;

use crate::built;
use crate::machine::DebianMachine;
use crate::vmm::{self, QEMU};
use anyhow::{Context, Result};
use linux_guest::{BootFiles, KernelSeries};
use std::path::Path;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/ci");

/// Boots a Debian machine with the package of softiov, the system's libvirt, and the files of a guest whose test is the
/// shell script `test`: /srv/kernel and /srv/initramfs. `drivers` are the modules of the guest's network card.
fn boot(drivers: &str, test: &str) -> Result<DebianMachine> {
    let assets = BootFiles::prepare(KernelSeries::Bookworm61)?;
    let cache = linux_guest::cache_folder()?;
    let example = Path::new(EXAMPLE).canonicalize()?;
    let machine = DebianMachine::boot(&[&cache, &example])?;
    let package = built::package("1.0", machine.files())?;
    machine.run(&format!("dpkg -i {}", package.display()))?;
    vmm::install(&machine, &assets)?;
    machine.run("systemctl start virtlogd libvirtd")?;
    machine.wait("virsh -c qemu:///system list")?;
    let example = example.display();
    std::fs::write(machine.files().join("test.sh"), test)?;
    let (kernel, initramfs) = (assets.kernel().display(), assets.initramfs().display());
    let files = machine.files().display();
    // Users of libvirt read their machines' XML in the shared folder.
    machine.run(&format!(
        "chmod 711 {files}; cd /srv && cp {kernel} kernel && cp -r {example} example
         sed -i 's/modprobe igbvf/modprobe -a {drivers}/' example/guest-init.sh
         sh example/guest-initramfs.sh {initramfs} {files}/test.sh initramfs && chmod 644 kernel initramfs"
    ))?;
    Ok(machine)
}

/// Writes the XML of a libvirt machine with the name guest`number` and VF pf0vf`number` into the shared folder: the
/// output of `softiov qemu-args` within the elements of any machine. The guest's console is the file `console`.
fn write_xml(machine: &DebianMachine, number: u8, console: &str) -> Result<()> {
    let printed = machine.run(&format!("softiov qemu-args pf0vf{number} --format libvirt"))?;
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
    let xml = format!("{head}\n{body}\n{}", rest.replacen("</devices>", &devices, 1));
    let path = machine.files().join(format!("{number}.xml"));
    std::fs::write(&path, xml)?;
    machine.run(&format!("chmod 644 {}", path.display())).map(drop)
}
