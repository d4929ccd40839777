//! Network cards and addresses of the measured guests, and the configurations of their hosts.

use crate::guest::{BOOT, COMMAND, eventually};
use crate::served::HostWithKeeper;
use anyhow::Result;
use linux_guest::{GuestBuilder, LinuxGuest};

/// Adds to a guest a VF of a host, by the protocol of the VF's family.
pub(super) fn plugged(
    builder: GuestBuilder,
    served: &HostWithKeeper,
    vf: &str,
    (family, number): (&str, u8),
) -> GuestBuilder {
    match family {
        "virtio" => {
            let address = ("mac", format!("02:82:57:60:09:{number:02x}").into());
            builder.vhost_socket(served.socket(vf), 1, &[address])
        }
        _ => builder.vf_socket(served.socket(vf)),
    }
}

/// Returns the configuration of a host with one port of a family, whose uplink is a tap. Doorbells are mapped, except that a
/// virtio guest rings by eventfd.
pub(super) fn configuration(family: &str, vfs: u8, tap: &str) -> String {
    let wait = if family == "virtio" { "sleep" } else { "mapped" };
    format!("[[port]]\nfamily = {family:?}\nvfs = {vfs}\nwait = {wait:?}\nuplink.tap = {tap:?}\n")
}

/// Waits until a guest has booted, gives its interface an IPv4 address whose last byte is `number`, and returns the
/// address.
pub(super) fn prepare(guest: &LinuxGuest, number: u8) -> Result<String> {
    guest.wait_ready(BOOT)?;
    guest.check("modprobe virtio_net", COMMAND)?;
    eventually(|| Ok(guest.check("ls -d /sys/class/net/eth0", COMMAND)?))?;
    let address = format!("10.82.0.{number}");
    // The guest would log the time that it misses between turns.
    guest.check(
        &format!(
            "echo 1 > /sys/module/rcupdate/parameters/rcu_cpu_stall_suppress
             echo 0 > /proc/sys/kernel/watchdog
             ip addr add {address}/24 dev eth0 && ip link set eth0 up"
        ),
        COMMAND,
    )?;
    Ok(address)
}

/// Adds to a guest a virtio-net on a back end of QEMU's `-netdev`, with additional device options.
pub(super) fn virtio(builder: GuestBuilder, netdev: &str, number: u8, options: &str) -> GuestBuilder {
    let device = format!("virtio-net-pci,netdev=net,mac=02:82:57:60:09:{number:02x},romfile={options}");
    ["-netdev", netdev, "-device", &device].into_iter().fold(builder, GuestBuilder::qemu_argument)
}
