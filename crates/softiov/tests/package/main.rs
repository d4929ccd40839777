//! The Debian package as an administrator meets it: installed on a clean Debian 13 whose systemd starts the hardened
//! unit, upgraded under running guests, restarted, hung, removed; libvirt's machines on its VFs; and the example for
//! a CI.
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
