//! Tests with a VMM like Cloud Hypervisor: the front end of the published `vhost` crate, with the requests of Cloud
//! Hypervisor's `vhost_user/net.rs` and `vhost_user/vu_common_ctrl.rs` in their order. Each request after the negotiation
//! asks for an acknowledgement.
//!
//! Records of unfinished descriptors (INFLIGHT) are created once, and sent after each reconnection, as Cloud Hypervisor does.
//! Cloud Hypervisor itself is not tested, since it needs KVM.

use super::PORT;
use super::front_end::USER;
use super::guest::{DriverSplitRing, GuestVmm, RING, VirtioGuest, exchange};
use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::ram::{GuestRam, HIGH, HOLE, SIZE};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use vhost::vhost_user::message::{VhostUserHeaderFlag, VhostUserInflight, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use virtio::VirtioFeatures;
use vmm_sys_util::eventfd::EventFd;

/// Rings of the guest's one queue pair.
const RINGS: usize = 2;
/// Feature bit of vhost-user's protocol features, which Cloud Hypervisor accepts without its guest.
const PROTOCOL: u64 = 1 << 30;
/// Feature bit by which a device uses buffers in the order in which they were made available (virtio 1.2, 6).
const IN_ORDER: u64 = 1 << 35;

/// Cloud Hypervisor's side of a connection to a VF, with the memory of its guest.
struct CloudHypervisorFrontEnd {
    vmm: Frontend,
    ram: GuestRam,
    /// Features that the guest's driver has accepted, with [`PROTOCOL`].
    accepted: u64,
    protocol: VhostUserProtocolFeatures,
    inflight: Option<(VhostUserInflight, File)>,
    kicks: [EventFd; RINGS],
    calls: [EventFd; RINGS],
}

impl GuestVmm for CloudHypervisorFrontEnd {
    fn ram(&self) -> &GuestRam {
        &self.ram
    }

    fn ram_mut(&mut self) -> &mut GuestRam {
        &mut self.ram
    }

    fn kick(&self, ring: u32) {
        self.kicks[ring as usize].write(1).unwrap();
    }
}

/// Connects and takes ownership (`connect_vhost_user`). Returns the offered features too.
fn connect(path: &Path) -> vhost::Result<(Frontend, u64)> {
    let vmm = Frontend::connect(path, RINGS as u64)?;
    vmm.set_owner()?;
    let offered = vmm.get_features()?;
    Ok((vmm, offered))
}

impl CloudHypervisorFrontEnd {
    /// Creates the device (`Net::new`): negotiates features, of which the guest's driver accepts few.
    fn create(path: &Path, in_order: bool) -> Self {
        let (mut vmm, offered) = connect(path).unwrap();
        let known = VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD
            | VhostUserProtocolFeatures::LOG_SHMFD
            | VhostUserProtocolFeatures::DEVICE_STATE;
        let protocol = vmm.get_protocol_features().unwrap() & known;
        vmm.set_protocol_features(protocol).unwrap();
        let needed = VhostUserProtocolFeatures::REPLY_ACK | VhostUserProtocolFeatures::INFLIGHT_SHMFD;
        assert!(protocol.contains(needed), "{protocol:?}");
        vmm.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
        assert!(vmm.get_queue_num().unwrap() >= RINGS as u64);
        let wanted = VirtioFeatures::VERSION_1.bits() | if in_order { IN_ORDER } else { 0 };
        assert_eq!(offered & wanted, wanted, "{offered:#x}");
        let eventfds = || [(); RINGS].map(|()| EventFd::new(0).unwrap());
        Self {
            vmm,
            ram: GuestRam::new(),
            accepted: wanted | PROTOCOL,
            protocol,
            inflight: None,
            kicks: eventfds(),
            calls: eventfds(),
        }
    }

    /// Starts both rings at these positions (`setup_vhost_user`).
    fn set_up(&mut self, rings: [(&DriverSplitRing, u16); RINGS]) {
        self.vmm.set_features(self.accepted).unwrap();
        let file = self.ram.fd();
        let region = |(start, end): (u64, u64)| VhostUserMemoryRegionInfo {
            guest_phys_addr: start,
            memory_size: end - start,
            userspace_addr: USER + start,
            mmap_offset: start,
            mmap_handle: file.as_raw_fd(),
        };
        self.vmm.set_mem_table(&[(0, HOLE), (HIGH, SIZE)].map(region)).unwrap();
        for ring in 0..RINGS {
            self.vmm.set_vring_num(ring, RING).unwrap();
        }
        self.set_inflight();
        for (index, (ring, base)) in rings.into_iter().enumerate() {
            let addresses = VringConfigData {
                queue_max_size: RING,
                queue_size: RING,
                flags: 0,
                desc_table_addr: USER + ring.addresses.descriptors,
                used_ring_addr: USER + ring.addresses.device,
                avail_ring_addr: USER + ring.addresses.driver,
                log_addr: None,
            };
            self.vmm.set_vring_addr(index, &addresses).unwrap();
            self.vmm.set_vring_base(index, base).unwrap();
            self.vmm.set_vring_call(index, &self.calls[index]).unwrap();
            self.vmm.set_vring_kick(index, &self.kicks[index]).unwrap();
        }
        for ring in 0..RINGS {
            self.vmm.set_vring_enable(ring, true).unwrap();
        }
    }

    /// Sends the records of unfinished descriptors, which the host has created at the first start.
    fn set_inflight(&mut self) {
        if self.inflight.is_none() {
            let wanted = VhostUserInflight::new(0, 0, RINGS as u16, RING);
            self.inflight = Some(self.vmm.get_inflight_fd(&wanted).unwrap());
        }
        let (area, file) = self.inflight.as_ref().unwrap();
        self.vmm.set_inflight_fd(area, file.as_raw_fd()).unwrap();
    }
}

impl VirtioGuest<DriverSplitRing, CloudHypervisorFrontEnd> {
    /// Boots a guest, whose driver posts receive buffers.
    fn under_cloud_hypervisor(live: &LiveHost, vf: u8, in_order: bool) -> Self {
        let mut guest = Self::behind(CloudHypervisorFrontEnd::create(&live.socket(vf), in_order), vf);
        guest.set_up_rings();
        guest.post_many();
        guest
    }

    /// Starts both rings at the available index, or at the used index if records of unfinished descriptors are missing and
    /// buffers are used in order (`reinitialize_vhost_user`).
    fn set_up_rings(&mut self) {
        let front = &self.front;
        let at_used = front.inflight.is_none() && front.accepted & IN_ORDER != 0;
        let base =
            |ring: &DriverSplitRing| if at_used { ring.used_index(&front.ram) } else { ring.available };
        let bases = [base(&self.receive), base(&self.transmit)];
        self.front.set_up([(&self.receive, bases[0]), (&self.transmit, bases[1])]);
    }

    /// Connects again after the host has closed the connection, by attempts of which the first may fail
    /// (`reconnect_inner`). Features are sent as accepted before.
    fn reconnect_cloud_hypervisor(&mut self, path: &Path) {
        let mut connected = None;
        eventually("the host accepts the connection", || {
            connected = connect(path).ok();
            connected.is_some()
        });
        (self.front.vmm, _) = connected.unwrap();
        self.front.vmm.set_protocol_features(self.front.protocol).unwrap();
        self.front.vmm.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
        self.set_up_rings();
    }

    /// Stops both rings as a reset of the device does (`reset_vhost_user`), and starts them again.
    fn reset_device(&mut self) {
        for (index, ring) in [&self.receive, &self.transmit].into_iter().enumerate() {
            self.front.vmm.set_vring_enable(index, false).unwrap();
            let base = self.front.vmm.get_vring_base(index).unwrap();
            assert_eq!(base, u32::from(ring.used_index(&self.front.ram)), "ring {index}");
        }
        self.set_up_rings();
    }
}

fn guests_continue(in_order: bool) {
    let mut live = LiveHost::with(PORT);
    let mut a = VirtioGuest::under_cloud_hypervisor(&live, 0, in_order);
    let mut b = VirtioGuest::boot(&live, 1);
    exchange(&mut a, &mut b);
    for _ in 0..3 {
        live.disconnect(0).unwrap();
        a.reconnect_cloud_hypervisor(&live.socket(0));
        exchange(&mut a, &mut b);
        live.hand_over(PORT);
        exchange(&mut a, &mut b);
        a.reset_device();
        exchange(&mut a, &mut b);
    }
}

#[test]
fn cloud_hypervisor_guest_continues_after_reconnections() {
    guests_continue(false);
}

#[test]
fn cloud_hypervisor_guest_continues_with_buffers_in_order() {
    guests_continue(true);
}
