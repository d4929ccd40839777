//! Arguments that attach a function behind vfio-user, as a VMM's PCI device.

use super::text::{RootPort, libvirt_command_line, memory_shell, memory_words, quoted};
use std::path::Path;

/// Returns QEMU's arguments for a VF, and for guest memory that QEMU shares with the card. Each element is one
/// argument.
pub(super) fn words(socket: &Path, memory: &str) -> Vec<String> {
    memory_words(memory).into_iter().chain(["-device".to_owned(), device(socket, "")]).collect()
}

/// Returns the value of QEMU's option `-device` for a VF, as JSON. `address` is the device's bus and slot in the guest,
/// or empty.
fn device(socket: &Path, address: &str) -> String {
    let path = serde_json::Value::from(socket.to_string_lossy());
    format!("{{\"driver\":\"vfio-user-pci\",{address}\"socket\":{{\"path\":{path},\"type\":\"unix\"}}}}")
}

/// Returns QEMU's arguments for a VF as shell text, quoted, on several lines.
pub(super) fn shell(socket: &Path, memory: &str) -> String {
    format!("{}-device {}\n", memory_shell(memory), quoted(&device(socket, "")))
}

/// Returns Cloud Hypervisor's arguments for a VF as shell text, quoted, on several lines.
pub(super) fn cloud_hypervisor(socket: &Path, memory: &str) -> String {
    let device = format!("socket={}", socket.display());
    format!("--memory size={memory},shared=on \\\n--user-device {}\n", quoted(&device))
}

/// Returns the elements that attach a VF to a libvirt domain, as XML in the order of libvirt's schema.
pub(super) fn libvirt(socket: &Path, port: RootPort) -> String {
    let address = format!("\"bus\":\"pci.{}\",\"addr\":\"0x0\",", port.libvirt_bus());
    libvirt_command_line(&["-device".to_owned(), device(socket, &address)], port)
}

#[cfg(test)]
mod tests {
    use super::{RootPort, cloud_hypervisor, libvirt, shell, words};
    use std::path::Path;

    #[test]
    fn qemu_socket_argument_has_the_form_of_qemu_10() {
        let text = shell(Path::new("/run/softiov/pf0vf3/vf.sock"), "2G");
        assert_eq!(
            text,
            "-object memory-backend-memfd,id=mem0,size=2G,share=on \\\n\
             -machine q35,memory-backend=mem0 -m 2G \\\n\
             -device '{\"driver\":\"vfio-user-pci\",\
             \"socket\":{\"path\":\"/run/softiov/pf0vf3/vf.sock\",\"type\":\"unix\"}}'\n"
        );
    }

    #[test]
    fn json_qemu_arguments_equal_the_unquoted_shell_words() {
        let path = Path::new("/run/softiov/pf0vf3/vf.sock");
        let unquoted = shell(path, "2G").replace(['\'', '\\'], "");
        assert!(words(path, "2G").iter().eq(unquoted.split_whitespace()));
    }

    #[test]
    fn cloud_hypervisor_arguments_share_memory() {
        let text = cloud_hypervisor(Path::new("/run/s.sock"), "1G");
        assert_eq!(text, "--memory size=1G,shared=on \\\n--user-device 'socket=/run/s.sock'\n");
    }

    #[test]
    fn two_vfs_of_a_libvirt_domain_have_two_root_ports() {
        let path = Path::new("/run/s.sock");
        for (number, bus) in [("0", 9), ("1", 10)] {
            let text = libvirt(path, number.parse().unwrap());
            for part in [format!("<controller type='pci' index='{bus}'"), format!("\"bus\":\"pci.{bus}\"")] {
                assert!(text.contains(&part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn socket_path_cannot_end_its_quotes_in_qemu_arguments() {
        let path = Path::new("/tmp/a'b\"<c&.sock");
        let text = shell(path, "1G");
        assert!(text.contains(r#"/tmp/a'\''b\"<c&.sock"#), "{text}");
        let text = libvirt(path, RootPort::default());
        assert!(text.contains(r#"/tmp/a&apos;b\"&lt;c&amp;.sock"#), "{text}");
    }
}
