//! Arguments that attach several virtio VFs as one PCI device with SR-IOV (QEMU, `docs/system/sriov.rst`): the first is
//! the PF, and the guest enables the others by `sriov_numvfs`.

use super::text::{
    DeviceProperties, RootPort, device_json, device_list, libvirt_command_line, memory_shell, memory_words,
    quoted,
};
use super::vhost_user::VhostUserDevice;
use crate::qemu_version::QemuVersion;

/// Maximum number of VFs of a PF: a bus has 256 function numbers, and the PF has the first (PCIe base specification,
/// ARI).
const MAX_VFS: usize = 255;
/// Functions of a PCI device without ARI. QEMU's addresses are written with that many functions for each device.
const FUNCTIONS: usize = 8;

/// SR-IOV PF in a guest, with its VFs: virtio devices behind a root port of their own.
pub(super) struct SriovPf {
    pf: VhostUserDevice,
    vfs: Vec<VhostUserDevice>,
    port: RootPort,
}

impl SriovPf {
    /// Creates a PF with its VFs, in this order, behind a root port.
    ///
    /// # Errors
    ///
    /// A device is named twice, or there are too many VFs.
    pub(super) fn new(
        pf: VhostUserDevice,
        vfs: Vec<VhostUserDevice>,
        port: RootPort,
    ) -> anyhow::Result<Self> {
        if vfs.len() > MAX_VFS {
            anyhow::bail!("--sriov-vfs names {} VFs; an SR-IOV PF has at most {MAX_VFS}", vfs.len());
        }
        let mut names = vec![&pf.name];
        for VhostUserDevice { name, .. } in &vfs {
            if names.contains(&name) {
                anyhow::bail!("{name} is named twice: PF and VFs are different VFs of the host");
            }
            names.push(name);
        }
        Ok(Self { pf, vfs, port })
    }

    /// Returns QEMU's options for the functions on a bus, with their values; `form` writes a device. VFs precede the PF,
    /// because QEMU collects the VFs of a PF before it creates the PF.
    fn functions(
        &self,
        bus: &str,
        version: QemuVersion,
        form: fn(&DeviceProperties) -> String,
    ) -> Vec<(&'static str, String)> {
        let pf = format!("pf-{}", self.pf.name);
        let mut options = Vec::new();
        let vfs = self.vfs.iter().zip(1..).map(|(vf, number)| (vf, number, "sriov-pf"));
        for (function, number, role) in vfs.chain([(&self.pf, 0, "id")]) {
            let [chardev, netdev] = function.backend(version);
            let address = format!("{:#x}.{:#x}", number / FUNCTIONS, number % FUNCTIONS);
            let mut device = function.device();
            device.extend([("bus", bus.into()), ("addr", address.into()), (role, pf.as_str().into())]);
            options.extend([("-chardev", chardev), ("-netdev", netdev), ("-device", form(&device))]);
        }
        options
    }

    /// Returns QEMU's options for the functions and the root port above them, with their values.
    fn options(&self, version: QemuVersion) -> Vec<(&'static str, String)> {
        let bus = format!("port-{}", self.pf.name);
        let port = ("-device", format!("pcie-root-port,id={bus},chassis={}", self.port.chassis()));
        [vec![port], self.functions(&bus, version, device_list)].concat()
    }

    /// Returns QEMU's arguments for PF and VFs, and for guest memory that QEMU shares with the card. Each element is one
    /// argument.
    pub(super) fn words(&self, memory: &str, version: QemuVersion) -> Vec<String> {
        let options = self.options(version).into_iter();
        let words = options.flat_map(|(option, value)| [option.to_owned(), value]);
        memory_words(memory).into_iter().chain(words).collect()
    }

    /// Returns QEMU's arguments for PF and VFs as shell text, quoted, on several lines.
    pub(super) fn shell(&self, memory: &str, version: QemuVersion) -> String {
        let lines = self.options(version).into_iter().map(|(option, value)| match option {
            "-chardev" => format!("{option} {}", quoted(&value)),
            _ => format!("{option} {value}"),
        });
        memory_shell(memory) + &lines.collect::<Vec<_>>().join(" \\\n") + "\n"
    }

    /// Returns the elements that attach PF and VFs to a libvirt domain, as XML. libvirt has no element for such a device, so
    /// QEMU gets its arguments past libvirt.
    pub(super) fn libvirt(&self, version: QemuVersion) -> String {
        let bus = format!("pci.{}", self.port.libvirt_bus());
        let options = self.functions(&bus, version, device_json).into_iter();
        let words = options.flat_map(|(option, value)| [option.to_owned(), value]);
        libvirt_command_line(&words.collect::<Vec<_>>(), self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::{RootPort, SriovPf, VhostUserDevice};
    use crate::qemu_version::QemuVersion;
    use daemon::config::file::SocketRole;
    use serde_json::Value;

    fn device(name: &str) -> VhostUserDevice {
        let mac = format!("02:00:00:00:00:{:0>2}", &name[5..]);
        let (socket, role) = (format!("/run/{name}.sock").into(), SocketRole::Server);
        VhostUserDevice { name: name.into(), mac, socket, role, pairs: 1 }
    }

    fn pf(vfs: &[&str]) -> anyhow::Result<SriovPf> {
        let vfs = vfs.iter().map(|name| device(name)).collect();
        SriovPf::new(device("pf0vf0"), vfs, RootPort::default())
    }

    #[test]
    fn sriov_vfs_precede_their_pf() {
        let text = pf(&["pf0vf1", "pf0vf2"]).unwrap().shell("2G", QemuVersion::SRIOV_PF);
        assert_eq!(
            text,
            "-object memory-backend-memfd,id=mem0,size=2G,share=on \\\n\
             -machine q35,memory-backend=mem0 -m 2G \\\n\
             -device pcie-root-port,id=port-pf0vf0,chassis=100 \\\n\
             -chardev 'socket,id=char-pf0vf1,path=/run/pf0vf1.sock,reconnect-ms=100' \\\n\
             -netdev vhost-user,id=net-pf0vf1,chardev=char-pf0vf1 \\\n\
             -device virtio-net-pci,netdev=net-pf0vf1,mac=02:00:00:00:00:01,bus=port-pf0vf0,addr=0x0.0x1,sriov-pf=pf-pf0vf0 \\\n\
             -chardev 'socket,id=char-pf0vf2,path=/run/pf0vf2.sock,reconnect-ms=100' \\\n\
             -netdev vhost-user,id=net-pf0vf2,chardev=char-pf0vf2 \\\n\
             -device virtio-net-pci,netdev=net-pf0vf2,mac=02:00:00:00:00:02,bus=port-pf0vf0,addr=0x0.0x2,sriov-pf=pf-pf0vf0 \\\n\
             -chardev 'socket,id=char-pf0vf0,path=/run/pf0vf0.sock,reconnect-ms=100' \\\n\
             -netdev vhost-user,id=net-pf0vf0,chardev=char-pf0vf0 \\\n\
             -device virtio-net-pci,netdev=net-pf0vf0,mac=02:00:00:00:00:00,bus=port-pf0vf0,addr=0x0.0x0,id=pf-pf0vf0\n"
        );
    }

    #[test]
    fn json_arguments_of_an_sriov_pf_equal_its_shell_words() {
        let pf = pf(&["pf0vf1", "pf0vf2"]).unwrap();
        let unquoted = pf.shell("2G", QemuVersion::SRIOV_PF).replace(['\'', '\\'], "");
        assert!(pf.words("2G", QemuVersion::SRIOV_PF).iter().eq(unquoted.split_whitespace()));
    }

    #[test]
    fn libvirt_passes_an_sriov_pf_to_qemu() {
        let text = pf(&["pf0vf1"]).unwrap().libvirt(QemuVersion::SRIOV_PF);
        assert!(text.contains("<controller type='pci' index='9' model='pcie-root-port'/>"), "{text}");
        let arguments: Vec<&str> =
            text.lines().filter_map(|line| line.trim().strip_prefix("<qemu:arg value='")).collect();
        assert_eq!(arguments.len(), 12, "{text}");
        let device = |place: usize| -> Value {
            serde_json::from_str(arguments[place].trim_end_matches("'/>")).unwrap()
        };
        assert_eq!(device(5)["addr"], "0x0.0x1", "{text}");
        assert_eq!((&device(5)["bus"], &device(5)["sriov-pf"]), (&"pci.9".into(), &device(11)["id"]));
        assert_eq!(
            (&device(11)["driver"], &device(11)["addr"]),
            (&"virtio-net-pci".into(), &"0x0.0x0".into())
        );
    }

    #[test]
    fn two_sriov_pfs_of_a_guest_have_two_root_ports() {
        for (number, chassis, bus) in [("0", 100, 9), ("1", 101, 10), ("31", 131, 40)] {
            let port = number.parse().unwrap();
            let pf = SriovPf::new(device("pf0vf0"), vec![device("pf0vf1")], port).unwrap();
            let text = pf.shell("1G", QemuVersion::SRIOV_PF);
            assert!(text.contains(&format!("id=port-pf0vf0,chassis={chassis} ")), "{text}");
            let text = pf.libvirt(QemuVersion::SRIOV_PF);
            assert!(text.contains(&format!("<controller type='pci' index='{bus}'")), "{text}");
            assert_eq!(text.matches(&format!("\"bus\":\"pci.{bus}\"")).count(), 2, "{text}");
        }
        assert!("32".parse::<RootPort>().is_err());
    }

    #[test]
    fn eighth_sriov_vf_is_in_the_next_slot() {
        let names: Vec<String> = (1..=9).map(|number| format!("pf0vf{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let words = pf(&names).unwrap().words("1G", QemuVersion::SRIOV_PF).join(" ");
        for (vf, address) in [(7, "0x0.0x7"), (8, "0x1.0x0"), (9, "0x1.0x1")] {
            assert!(
                words.contains(&format!("mac=02:00:00:00:00:0{vf},bus=port-pf0vf0,addr={address},")),
                "{words}"
            );
        }
    }

    #[test]
    fn sriov_pf_needs_distinct_vfs() {
        let error = |vfs: &[&str]| pf(vfs).err().map(|error| error.to_string());
        assert_eq!(error(&["pf0vf1"]), None);
        for vfs in [&["pf0vf0"][..], &["pf0vf1", "pf0vf1"]] {
            assert!(error(vfs).is_some_and(|error| error.contains("named twice")), "{vfs:?}");
        }
        let names: Vec<String> = (1..=256).map(|number| format!("pf0vf{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(
            error(&names).is_some_and(|error| error.contains("256 VFs") && error.contains("at most 255"))
        );
    }
}
