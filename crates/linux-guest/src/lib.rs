//! Starts stock Linux guests under QEMU, with kernel and initramfs from Debian packages, and runs commands in them.
//!
//! The crate has two halves. [`assets`] prepares the files of a guest, once per machine: a QEMU new enough for
//! vfio-user, an unmodified Debian kernel with its igbvf module, and an initramfs with busybox, iperf3, ethtool, ip
//! and lspci. [`LinuxGuest`] boots it and runs commands in it over a control channel that does not depend on the
//! network card under test.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use linux_guest::{BootFiles, KernelSeries, LinuxGuest};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let assets = BootFiles::prepare(KernelSeries::Bookworm61)?;
//! let guest = LinuxGuest::builder("alice").vf_socket("/run/softiov/pf0vf0/vf.sock").spawn(&assets)?;
//! guest.wait_ready(Duration::from_secs(60))?;
//! let addresses = guest.run("ip -j addr", Duration::from_secs(10))?;
//! println!("{}", addresses.stdout);
//! # Ok(())
//! # }
//! ```
//!
//! Other distributions as guests, disk images, and host architectures other than x86-64 are not supported. A
//! scenario sets up the network itself, with [`LinuxGuest::run`].

pub mod assets;
mod guest;

pub use assets::{
    AssetError, BootFiles, DebianRoot, DpdkSeries, HostDpdk, HostTools, KernelSeries, OpenVSwitch,
    PrometheusPrograms, apparmor_parser, cache_folder, prometheus, tshark,
};
pub use guest::accel::QemuAccelerator;
pub use guest::control::GuestCommandOutput;
pub use guest::{BackgroundScript, GuestBuilder, GuestError, LinuxGuest, MigrationSummary};
