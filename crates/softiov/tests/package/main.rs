//! Tests the Debian package as an administrator meets it, on a clean Debian 13 whose systemd starts the hardened unit.
//! The package is installed, upgraded under running guests, restarted, hung and removed; libvirt's machines run on its
//! VFs, and so does the example for a CI.
//!
//! Each test has a machine of its own, in namespaces of this one. Other distributions, and kernels with AppArmor or
//! SELinux, are not tested.

mod built;
mod ci;
mod libvirt;
mod life;
mod machine;
mod musl;
#[path = "../process/page.rs"]
mod page;
mod vmm;
