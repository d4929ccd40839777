//! Tests libvirt machines on VFs of the packaged host, with the output of `softiov qemu-args --format libvirt`: on VFs
//! of a real card's family, and on virtio VFs.

mod vfio_user;
mod vhost_user;

use crate::built;
use crate::machine::DebianMachine;
use crate::vmm::{self, QEMU};
use anyhow::{Context, Result, ensure};
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

/// Domain that the binding plugin for KubeVirt returns, with VFs of both protocols, for a domain of KubeVirt's converter.
const KUBEVIRT_DOMAIN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../kubernetes/tools/kubevirt/testdata/domain.xml");

/// Lets libvirt define the domain of a KubeVirt machine with VFs, as virt-launcher does. Checks libvirt's form of it
/// against libvirt's schema, that QEMU gets a root port with the name of the VF's bus, and that no device of libvirt has
/// that bus. libvirt here has no KVM, so the domain is one without.
fn define_kubevirt_domain(machine: &DebianMachine) -> Result<()> {
    const VIRSH: &str = "virsh -c qemu:///system";
    /// Name of the VF's bus, which is the alias of its root port.
    const BUS: &str = "ua-softiov-port-real";
    let path = machine.files().join("kubevirt.xml");
    let domain = std::fs::read_to_string(KUBEVIRT_DOMAIN)?;
    ensure!(domain.contains(&format!("&#34;bus&#34;:&#34;{BUS}&#34;")), "the VF has another bus: {domain}");
    let emulator = format!("<devices>\n    <emulator>{QEMU}</emulator>");
    let domain = domain.replace("type=\"kvm\"", "type=\"qemu\"").replace("<devices>", &emulator);
    std::fs::write(&path, domain)?;
    let path = path.display();
    machine.run(&format!("chmod 644 {path}; {VIRSH} define {path}"))?;
    let defined = machine.run(&format!("{VIRSH} dumpxml --inactive default_web"))?;
    for part in
        ["<access mode='shared'/>", "path='/run/softiov/template/nics/fast/vf.sock'", "vfio-user-pci", BUS]
    {
        ensure!(defined.contains(part), "the defined domain lacks {part}: {defined}");
    }
    let arguments = machine.run(&format!("{VIRSH} domxml-to-native qemu-argv --domain default_web"))?;
    let port = arguments.split_whitespace().find(|word| word.contains(&format!("\"id\":\"{BUS}\"")));
    ensure!(port.is_some_and(|port| port.contains("pcie-root-port")), "QEMU gets no port {BUS}: {arguments}");
    // The VF itself has this bus, and nothing else has.
    ensure!(
        arguments.matches(&format!("\"bus\":\"{BUS}\"")).count() == 1,
        "bus {BUS} is shared: {arguments}"
    );
    machine
        .run(&format!("{VIRSH} dumpxml --inactive default_web > {path}; virt-xml-validate {path} domain"))?;
    machine.run(&format!("{VIRSH} undefine default_web")).map(drop)
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
