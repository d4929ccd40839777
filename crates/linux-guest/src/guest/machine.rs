//! QEMU's arguments for the virtual machine: q35, shared memory, each VF behind its own root port, a console and
//! the control port.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::accel::QemuAccelerator;
use crate::assets::{BootFiles, QemuSeries};

/// Kernel command line of a guest. A console without notices and no mitigations make an emulated CPU boot faster. Warnings and the
/// stack of a lockup (level 4) stay on the console, for error messages. A panic reboots, which the host notices.
const COMMAND_LINE: &str =
    "console=ttyS0 loglevel=5 panic=1 mitigations=off random.trust_cpu=on tsc=reliable no_timer_check";

/// QEMU device option of the guest's IOMMU. Caching mode reports the guest's mappings to devices that map for others,
/// as a vfio-user device does for its server.
const IOMMU: &str = "intel-iommu,intremap=on,caching-mode=on";
/// Kernel option that enables the IOMMU, which Debian disables. The IOMMU translates only for devices given to VFIO;
/// all other devices work as in a machine without an IOMMU.
const IOMMU_ON: &str = " intel_iommu=on iommu=pt";

/// Kernel option of a guest that can move: pages are not cleared before their use. Clearing makes QEMU copy a page once more,
/// which hides that a device has written it without logging that.
const UNCLEARED: &str = " init_on_alloc=0";

/// Network interface of a guest whose rings a vhost-user server serves.
#[derive(Clone, Debug)]
pub(super) struct VhostInterface {
    pub(super) socket: PathBuf,
    /// True if QEMU listens on the socket, and the server of the rings connects.
    pub(super) listens: bool,
    pub(super) pairs: u32,
    /// Further properties of QEMU's device `virtio-net-pci`.
    pub(super) properties: Vec<(String, serde_json::Value)>,
}

/// Configuration of a guest's virtual machine.
#[derive(Clone, Debug)]
pub(super) struct MachineConfig {
    pub(super) memory_mib: u32,
    pub(super) cpus: u32,
    pub(super) shared_memory: bool,
    pub(super) coldplug: bool,
    pub(super) iommu: bool,
    pub(super) user: Option<(u32, u32)>,
    /// True if QEMU has a monitor, by which the guest can move to another QEMU.
    pub(super) migratable: bool,
    /// True if QEMU waits for a guest that moves to it, and boots none.
    pub(super) incoming: bool,
    pub(super) vf_sockets: Vec<PathBuf>,
    pub(super) vhost_sockets: Vec<VhostInterface>,
    pub(super) extra: Vec<OsString>,
}

impl MachineConfig {
    /// Returns QEMU's command-line arguments; `folder` holds the console's log and the socket of the control channel.
    pub(super) fn arguments(
        &self,
        assets: &BootFiles,
        accel: QemuAccelerator,
        folder: &Path,
    ) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["-nodefaults".into(), "-no-user-config".into()];
        let mut add = |option: &str, value: OsString| arguments.extend([option.into(), value]);
        add("-display", "none".into());
        add("-machine", "q35,memory-backend=ram".into());
        let share = if self.shared_memory { "on" } else { "off" };
        let memory = format!("memory-backend-memfd,id=ram,size={}M,share={share}", self.memory_mib);
        add("-object", memory.into());
        add("-smp", self.cpus.to_string().into());
        add("-accel", accel.option(self.iommu).into());
        add("-cpu", accel.cpu(assets.qemu().series()).into());
        add("-kernel", assets.kernel().into());
        add("-initrd", assets.initramfs().into());
        let coldplug = if self.coldplug { "" } else { " softiov.coldplug=off" };
        let iommu = if self.iommu { IOMMU_ON } else { "" };
        let uncleared = if self.migratable { UNCLEARED } else { "" };
        add("-append", format!("{COMMAND_LINE}{coldplug}{iommu}{uncleared}").into());
        if self.iommu {
            // The IOMMU precedes all other devices, since they look for it at their creation.
            add("-device", IOMMU.into());
        }
        add("-chardev", with_path("file,id=console,append=on,path=", &console_log(folder)));
        add("-serial", "chardev:console".into());
        add("-chardev", with_path("socket,id=control,path=", &control_socket(folder)));
        add("-device", "virtio-serial-pci,id=serial,bus=pcie.0,addr=0x3".into());
        add("-device", "virtserialport,bus=serial.0,chardev=control,name=softiov.control".into());
        if self.migratable {
            add("-chardev", with_path("socket,id=monitor,server=on,wait=off,path=", &monitor_socket(folder)));
            add("-mon", "chardev=monitor,mode=control".into());
        }
        if self.incoming {
            add("-incoming", "defer".into());
        }
        for (index, socket) in self.vf_sockets.iter().enumerate() {
            let [port, device] = vf_devices(index, socket);
            add("-device", port.into());
            add("-device", device.into());
        }
        for (index, interface) in self.vhost_sockets.iter().enumerate() {
            let index = self.vf_sockets.len() + index;
            for (option, value) in vhost_devices(index, interface, (assets.qemu().series(), accel)) {
                add(option, value.into());
            }
        }
        arguments.extend(self.extra.iter().cloned());
        arguments
    }
}

pub(super) fn console_log(folder: &Path) -> PathBuf {
    folder.join("console")
}

pub(super) fn control_socket(folder: &Path) -> PathBuf {
    folder.join("control")
}

pub(super) fn monitor_socket(folder: &Path) -> PathBuf {
    folder.join("monitor")
}

/// Returns QEMU's device options for a root port and the VF below it. On the root bus QEMU would show the VF as an
/// integrated endpoint.
fn vf_devices(index: usize, socket: &Path) -> [String; 2] {
    let port = root_port(index);
    let device = json!({
        "driver": "vfio-user-pci", "id": format!("vf{index}"), "bus": format!("port{index}"),
        "socket": {"path": socket.to_string_lossy(), "type": "unix"},
    });
    [port, device.to_string()]
}

/// Returns QEMU's device option for a root port.
fn root_port(index: usize) -> String {
    let port = json!({
        "driver": "pcie-root-port", "id": format!("port{index}"), "bus": "pcie.0",
        "addr": format!("{:#x}", 0x10 + index), "chassis": index + 1,
    });
    port.to_string()
}

/// Returns QEMU's options for an interface behind a vhost-user socket, and for the root port above it. QEMU connects again when
/// the server has restarted, or listens until the server has connected again.
fn vhost_devices(
    index: usize,
    interface: &VhostInterface,
    (qemu, accel): (QemuSeries, QemuAccelerator),
) -> [(&'static str, String); 4] {
    let VhostInterface { socket, listens, pairs, properties } = interface;
    let path = socket.to_string_lossy().replace(',', ",,");
    let end = match (listens, qemu) {
        (true, _) => "server=on,wait=off",
        (false, QemuSeries::Current) => "reconnect-ms=100",
        // Seconds.
        (false, QemuSeries::Bookworm72) => "reconnect=1",
    };
    let vectors = match (qemu, accel) {
        // QEMU 7.2 without KVM dereferences a null pointer when the driver of a vhost-user device starts with MSI-X,
        // whatever the back end (virtio_pci_one_vector_unmask). With an interrupt pin it does not.
        (QemuSeries::Bookworm72, QemuAccelerator::Tcg) => 0,
        _ => 2 * pairs + 2,
    };
    let chardev = format!("socket,id=vhost{index},path={path},{end}");
    let backend = format!("vhost-user,id=net{index},chardev=vhost{index},queues={pairs}");
    let mut device = json!({
        "driver": "virtio-net-pci", "netdev": format!("net{index}"), "bus": format!("port{index}"),
        "mq": *pairs > 1, "vectors": vectors, "romfile": "",
    });
    if let Some(device) = device.as_object_mut() {
        device.extend(properties.iter().cloned());
    }
    [
        ("-chardev", chardev),
        ("-netdev", backend),
        ("-device", root_port(index)),
        ("-device", device.to_string()),
    ]
}

/// Returns a QEMU option that ends with a path, in which a comma is written twice.
fn with_path(option: &str, path: &Path) -> OsString {
    (option.to_owned() + &path.to_string_lossy().replace(',', ",,")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vf_of_a_guest_has_its_own_root_port() {
        let [port, device] = vf_devices(1, Path::new("/run/a \"b\".sock"));
        let port: serde_json::Value = serde_json::from_str(&port).unwrap();
        let device: serde_json::Value = serde_json::from_str(&device).unwrap();
        assert_eq!((&port["driver"], &port["addr"]), (&json!("pcie-root-port"), &json!("0x11")));
        assert_eq!((&device["driver"], &device["bus"]), (&json!("vfio-user-pci"), &port["id"]));
        assert_eq!(device["socket"], json!({"type": "unix", "path": "/run/a \"b\".sock"}));
    }

    #[test]
    fn comma_in_a_path_does_not_end_the_qemu_option() {
        assert_eq!(with_path("file,path=", Path::new("/a,b")), "file,path=/a,,b");
    }
}
