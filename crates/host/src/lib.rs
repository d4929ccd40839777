//! All system calls and all `unsafe` code of the host: guest memory, sockets with file descriptors, eventfd, epoll,
//! tap, packet sockets, rtnetlink, VFIO.
//!
//! This is the only crate of the workspace with `unsafe` in it, and the only one that makes system calls on the
//! frame path. It knows neither the card nor the vfio-user protocol: it moves bytes and descriptors, and treats the
//! peer of every socket and mapping as hostile.
//!
//! | module | contents |
//! |---|---|
//! | [`memory`] | a file mapped shared, accessed by bounds-checked copies, safe against truncation |
//! | [`dma`] | I/O virtual addresses of a client, translated to mapped memory |
//! | [`huge_pages`] | memory with known physical addresses, for a device without an IOMMU |
//! | [`shared`] | memory shared with a device, and an allocator for it |
//! | [`socket`] | UNIX stream sockets that carry descriptors |
//! | [`eventfd`] | interrupts and wake-ups |
//! | [`poll`] | epoll, wakers, termination signals, the clock |
//! | [`driver_thread`] | clock and waits of a driver's thread |
//! | [`tap`] | a tap network interface |
//! | [`namespace`] | network namespaces |
//! | [`packet`] | an existing network interface, by a packet socket |
//! | [`links`] | state and changes of network interfaces, by rtnetlink |
//! | [`vfio`] | PCI functions, by Linux VFIO or sysfs |
//! | [`descriptors`] | descriptors that the service manager has opened; open files |
//! | [`child`] | child processes that end with this process |
//! | [`fork`] | copies of this process |
//! | [`cpus`] | processors, and pinning a thread to them |
//! | [`limits`] | limits of descriptors and memory |
//! | [`measure`] | durations of calls, wake-ups, copies and VM exits on this machine |
//! | [`vnet`] | virtio-net headers of the kernel's frames: missing checksum, segmentation |
//! | [`worker`] | a thread for work that may block: mapping, unmapping, closing |
//! | [`xdp`] | an existing network interface, by rings shared with the kernel (AF_XDP) |
//! | [`runtime_dir`] | default folder of sockets |
//! | [`folder`] | folders for sockets, safe against replacement |
//! | [`confine`] | dropping this process's user, capabilities, system calls and files |
//! | [`user`] | users and groups by name or number |
//! | [`state_dir`] | default folder of files that outlast the host |
//!
//! Linux is the only supported platform.

#[cfg(not(target_os = "linux"))]
compile_error!("softiov's host side needs Linux: it uses memfd, eventfd, epoll and tap");

pub mod child;
pub mod confine;
pub mod cpus;
pub mod descriptors;
pub mod dma;
pub mod driver_thread;
pub mod eventfd;
pub mod folder;
pub mod fork;
pub mod huge_pages;
mod jobs;
#[cfg(any(test, feature = "test-support"))]
pub mod kernel_choices;
pub mod limits;
pub mod links;
pub mod measure;
pub mod memory;
pub mod namespace;
pub mod packet;
pub mod poll;
pub mod runtime_dir;
pub mod shared;
pub mod socket;
pub mod state_dir;
pub mod tap;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
pub mod user;
pub mod vfio;
pub mod vnet;
pub mod worker;
pub mod xdp;
