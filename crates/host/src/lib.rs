//! Everything that touches the host: guest memory, sockets with descriptors, eventfd, epoll, tap, packet sockets,
//! rtnetlink, VFIO.
//!
//! This is the only crate of the workspace with `unsafe` in it, and the only one that makes system calls on
//! the frame path. It knows neither the card nor the vfio-user protocol: it moves bytes and descriptors, and
//! it treats whoever is at the other end of a socket or a mapping as hostile.
//!
//! | module | what it gives |
//! |---|---|
//! | [`memory`] | a file mapped shared, reached by bounds-checked copies, safe against being truncated |
//! | [`dma`] | what one client lets its device reach: I/O virtual address to mapping |
//! | [`shared`] | memory of our own to share with a device, and an allocator for it |
//! | [`socket`] | UNIX stream sockets that carry descriptors |
//! | [`eventfd`] | interrupts and wake-ups |
//! | [`poll`] | epoll, wakers, termination signals, the clock |
//! | [`tap`] | a tap network interface |
//! | [`namespace`] | network namespaces |
//! | [`packet`] | a network interface that is there, by a packet socket |
//! | [`links`] | what the kernel tells of network interfaces, by rtnetlink |
//! | [`vfio`] | PCI functions that Linux hands over |
//! | [`keep`] | descriptors that outlive this process: stores, heritage, and the keeper |
//! | [`cpus`] | processors, and holding a thread to some of them |
//! | [`limits`] | how many descriptors this process may have, and how much memory there is |
//! | [`measure`] | what calls, wake-ups, copies and a virtual machine's exits take here |
//! | [`vnet`] | what the kernel says of a frame: its checksum is missing, it is to be cut |
//! | [`worker`] | a thread for work that may take long: mapping, unmapping, closing |
//! | [`xdp`] | a network interface that is there, by rings shared with the kernel (AF_XDP) |
//! | [`runtime_dir`] | where sockets live when nobody says otherwise |
//! | [`folder`] | folders for sockets, safe against being replaced |
//! | [`confine`] | giving up what this process needs no longer: its user, capabilities, system calls, files |
//! | [`user`] | users and groups by name or number |
//! | [`state_dir`] | where files live that outlast the host, when nobody says otherwise |
//!
//! What it leaves out: netlink beyond interfaces, and any platform but Linux.

#[cfg(not(target_os = "linux"))]
compile_error!("softiov's host side is Linux only: it is made of memfd, eventfd, epoll and tap");

pub mod confine;
pub mod cpus;
pub mod dma;
pub mod eventfd;
pub mod folder;
pub mod keep;
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
