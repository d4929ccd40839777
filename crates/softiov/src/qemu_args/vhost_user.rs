//! Arguments that attach a virtio VF behind vhost-user. The VMM connects to the VF's socket, and again whenever the host
//! closes it. With `socket_mode = "client"` the VMM listens, and the host connects.

use super::text::{DeviceProperties, device_list, memory_shell, memory_words, quoted, xml};
use crate::qemu_version::QemuVersion;
use daemon::config::file::SocketRole;
use std::fmt::Write;
use std::path::PathBuf;

/// Delay in milliseconds until QEMU connects again, from version [`QemuVersion::RECONNECT_MS`] on.
const RECONNECT_MS: u32 = 100;
/// Delay in seconds until an earlier QEMU connects again.
const RECONNECT_SECONDS: u32 = 1;

/// Virtio VF, with the values that its VMM needs to attach it.
pub(super) struct VhostUserDevice {
    pub(super) name: String,
    /// Address of the device in the guest, which the VMM sets.
    pub(super) mac: String,
    pub(super) socket: PathBuf,
    /// Role of the host at the socket.
    pub(super) role: SocketRole,
    /// Number of queue pairs of the virtio device.
    pub(super) pairs: u32,
}

impl VhostUserDevice {
    /// Returns the properties of QEMU's device.
    pub(super) fn device(&self) -> DeviceProperties {
        let Self { name, mac, pairs, .. } = self;
        let mut properties: DeviceProperties = vec![
            ("driver", "virtio-net-pci".into()),
            ("netdev", format!("net-{name}").into()),
            ("mac", mac.as_str().into()),
        ];
        if *pairs > 1 {
            // Such a device has a vector for each ring, one for the configuration and one for the control queue.
            properties.extend([("mq", true.into()), ("vectors", (2 * pairs + 2).into())]);
        }
        properties
    }

    /// Returns the values of QEMU's options `-chardev` and `-netdev`.
    pub(super) fn backend(&self, version: QemuVersion) -> [String; 2] {
        let Self { name, role, pairs, .. } = self;
        // QEMU takes a doubled comma for a comma of the value.
        let path = self.socket.to_string_lossy().replace(',', ",,");
        let queues = if *pairs > 1 { format!(",queues={pairs}") } else { String::new() };
        let end = match role {
            SocketRole::Server if version < QemuVersion::RECONNECT_MS => {
                format!("reconnect={RECONNECT_SECONDS}")
            }
            SocketRole::Server => format!("reconnect-ms={RECONNECT_MS}"),
            SocketRole::Client => "server=on,wait=off".to_owned(),
        };
        [
            format!("socket,id=char-{name},path={path},{end}"),
            format!("vhost-user,id=net-{name},chardev=char-{name}{queues}"),
        ]
    }

    /// Returns the values of QEMU's options `-chardev`, `-netdev` and `-device`.
    fn values(&self, version: QemuVersion) -> [String; 3] {
        let [chardev, netdev] = self.backend(version);
        [chardev, netdev, device_list(&self.device())]
    }

    /// Returns QEMU's arguments for the VF, and for guest memory that QEMU shares with the card. Each element is one
    /// argument.
    pub(super) fn words(&self, memory: &str, version: QemuVersion) -> Vec<String> {
        let options = ["-chardev", "-netdev", "-device"].map(str::to_owned);
        let pairs = options.into_iter().zip(self.values(version));
        memory_words(memory).into_iter().chain(pairs.flat_map(|(option, value)| [option, value])).collect()
    }

    /// Returns QEMU's arguments for the VF as shell text, quoted, on several lines.
    pub(super) fn shell(&self, memory: &str, version: QemuVersion) -> String {
        let [chardev, netdev, device] = self.values(version);
        let memory = memory_shell(memory);
        format!("{memory}-chardev {} \\\n-netdev {netdev} \\\n-device {device}\n", quoted(&chardev))
    }

    /// Returns Cloud Hypervisor's arguments for the VF as shell text, quoted, on several lines.
    pub(super) fn cloud_hypervisor(&self, memory: &str) -> String {
        let Self { mac, socket, role, pairs, .. } = self;
        // Cloud Hypervisor counts rings, two for each pair.
        let (socket, rings) = (socket.display(), 2 * pairs);
        let mode = mode_of_vmm(*role);
        let net = format!("vhost_user=true,socket={socket},vhost_mode={mode},mac={mac},num_queues={rings}");
        format!("--memory size={memory},shared=on \\\n--net {}\n", quoted(&net))
    }

    /// Returns the elements that attach the VF to a libvirt domain, as XML in the order of libvirt's schema.
    pub(super) fn libvirt(&self) -> String {
        let Self { mac, socket, role, pairs, .. } = self;
        let path = xml(&socket.to_string_lossy());
        let mode = mode_of_vmm(*role);
        // Only a VMM that connects can connect again.
        let reconnect = match role {
            SocketRole::Server => ">\n        <reconnect enabled='yes' timeout='1'/>\n      </source>",
            SocketRole::Client => "/>",
        };
        let mut driver = String::new();
        if *pairs > 1 {
            let _ = write!(driver, "\n      <driver queues='{pairs}'/>");
        }
        format!(
            "<domain type='kvm'>
  <memoryBacking>
    <source type='memfd'/>
    <access mode='shared'/>
  </memoryBacking>
  <devices>
    <interface type='vhostuser'>
      <mac address='{mac}'/>
      <source type='unix' path='{path}' mode='{mode}'{reconnect}
      <model type='virtio'/>{driver}
    </interface>
  </devices>
</domain>
"
        )
    }
}

/// Returns the word of libvirt and Cloud Hypervisor for the role of the VMM at a socket.
fn mode_of_vmm(role: SocketRole) -> &'static str {
    match role {
        SocketRole::Server => "client",
        SocketRole::Client => "server",
    }
}

#[cfg(test)]
mod tests {
    use super::VhostUserDevice;
    use crate::qemu_version::QemuVersion;
    use daemon::config::file::SocketRole;

    const NEWEST: QemuVersion = QemuVersion::RECONNECT_MS;

    fn device(socket: &str, pairs: u32) -> VhostUserDevice {
        let (mac, role) = ("02:00:00:00:00:01".into(), SocketRole::Server);
        VhostUserDevice { name: "pf0vf3".into(), mac, socket: socket.into(), role, pairs }
    }

    #[test]
    fn vmm_listens_on_the_socket_of_a_vf_in_client_mode() {
        let device = VhostUserDevice { role: SocketRole::Client, ..device("/run/s.sock", 1) };
        let chardev = "socket,id=char-pf0vf3,path=/run/s.sock,server=on,wait=off".to_owned();
        assert!(device.shell("1G", NEWEST).contains(&format!("-chardev '{chardev}'")));
        assert!(device.words("1G", NEWEST).contains(&chardev));
        let text = device.libvirt();
        assert!(text.contains("<source type='unix' path='/run/s.sock' mode='server'/>\n"), "{text}");
        assert!(!text.contains("reconnect"), "{text}");
        assert!(device.cloud_hypervisor("1G").contains(",vhost_mode=server,"));
    }

    #[test]
    fn qemu_reconnects_to_a_virtio_vfs_socket() {
        assert_eq!(
            device("/run/softiov/pf0vf3/vf.sock", 1).shell("2G", NEWEST),
            "-object memory-backend-memfd,id=mem0,size=2G,share=on \\\n\
             -machine q35,memory-backend=mem0 -m 2G \\\n\
             -chardev 'socket,id=char-pf0vf3,path=/run/softiov/pf0vf3/vf.sock,reconnect-ms=100' \\\n\
             -netdev vhost-user,id=net-pf0vf3,chardev=char-pf0vf3 \\\n\
             -device virtio-net-pci,netdev=net-pf0vf3,mac=02:00:00:00:00:01\n"
        );
    }

    #[test]
    fn qemu_before_9_2_reconnects_after_a_second() {
        for (version, option) in [("7.2", "reconnect=1"), ("9.1", "reconnect=1"), ("9.2", "reconnect-ms=100")]
        {
            let version = version.parse().unwrap();
            let chardev = format!("socket,id=char-pf0vf3,path=/run/s.sock,{option}");
            let device = device("/run/s.sock", 1);
            assert!(device.words("1G", version).contains(&chardev), "{version}");
            assert!(device.shell("1G", version).contains(&format!("'{chardev}'")), "{version}");
            let listening = VhostUserDevice { role: SocketRole::Client, ..device };
            assert_eq!(listening.words("1G", version), listening.words("1G", NEWEST));
        }
    }

    #[test]
    fn each_queue_pair_of_a_virtio_vf_has_two_vectors() {
        let device = device("/run/s.sock", 4);
        let words = device.words("1G", NEWEST);
        assert!(words.contains(&"vhost-user,id=net-pf0vf3,chardev=char-pf0vf3,queues=4".to_owned()));
        let nic = "virtio-net-pci,netdev=net-pf0vf3,mac=02:00:00:00:00:01,mq=on,vectors=10".to_owned();
        assert!(words.contains(&nic), "{words:?}");
        assert!(device.cloud_hypervisor("1G").contains(",num_queues=8'"));
        assert!(device.libvirt().contains("<driver queues='4'/>"));
    }

    #[test]
    fn json_arguments_of_a_virtio_vf_equal_its_shell_words() {
        let device = device("/run/s.sock", 2);
        let unquoted = device.shell("2G", NEWEST).replace(['\'', '\\'], "");
        assert!(device.words("2G", NEWEST).iter().eq(unquoted.split_whitespace()));
    }

    #[test]
    fn libvirt_connects_and_reconnects_to_a_virtio_vf() {
        let text = device("/run/s.sock", 1).libvirt();
        assert!(text.contains("<source type='unix' path='/run/s.sock' mode='client'>"), "{text}");
        assert!(text.contains("<reconnect enabled='yes' timeout='1'/>"), "{text}");
        assert!(text.contains("<access mode='shared'/>") && !text.contains("queues"), "{text}");
    }

    #[test]
    fn cloud_hypervisor_arguments_use_client_mode_for_a_virtio_vf() {
        assert_eq!(
            device("/run/s.sock", 1).cloud_hypervisor("1G"),
            "--memory size=1G,shared=on \\\n--net 'vhost_user=true,socket=/run/s.sock,vhost_mode=client,\
             mac=02:00:00:00:00:01,num_queues=2'\n"
        );
    }

    #[test]
    fn socket_path_cannot_add_options_to_a_virtio_vf() {
        let device = device("/tmp/a'b,id=x<&.sock", 1);
        assert!(device.shell("1G", NEWEST).contains(r"path=/tmp/a'\''b,,id=x<&.sock,reconnect"));
        assert!(device.libvirt().contains("/tmp/a&apos;b,id=x&lt;&amp;.sock"));
    }
}
