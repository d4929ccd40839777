//! Guest for tests: a virtual machine whose VF driver has started, and which sends and receives frames by
//! interrupt.

use super::live::LiveHost;
use super::machine::{VmWithPciFunction, Vmm};
use super::qemu::{self, QemuClient};
use super::{PATIENCE, cloud_hypervisor, eventually};
use cloud_hypervisor::CloudHypervisorClient;
use driver::Hal;
use driver::vf::{
    MAILBOX_VECTOR, RECEIVE_VECTOR, TxOffload, Vf, VfDriverConfig, VfInterruptCause, VfLinkStatus,
};
use i82576::MacAddress;
use std::time::{Duration, Instant};

/// EtherType for local experiments (IEEE 802).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const HEADER: usize = 14;

/// Guest with a started driver: a virtual machine and the driver of its VF.
pub(crate) struct VfGuest<V> {
    pub(crate) machine: VmWithPciFunction<V>,
    pub(crate) vf: Vf,
}

impl VfGuest<QemuClient> {
    /// Boots a guest under QEMU on a VF of the first port.
    pub(crate) fn under_qemu(live: &LiveHost, vf: u8) -> Self {
        Self::bring_up(qemu::boot(&live.socket(vf)))
    }
}

impl VfGuest<QemuClient> {
    /// Boots a guest under QEMU on the VF of this name, on any port.
    pub(crate) fn on(live: &LiveHost, vf: &str) -> Self {
        Self::bring_up(qemu::boot(&live.socket_of(vf)))
    }
}

impl VfGuest<CloudHypervisorClient> {
    /// Boots a guest under Cloud Hypervisor on a VF of the first port.
    pub(crate) fn under_cloud_hypervisor(live: &LiveHost, vf: u8) -> Self {
        Self::bring_up(cloud_hypervisor::boot(&live.socket(vf)))
    }
}

impl<V: Vmm> VfGuest<V> {
    /// Probes and starts the driver: reset, mailbox handshake, rings, interrupts, link.
    pub(crate) fn bring_up(mut machine: VmWithPciFunction<V>) -> Self {
        let vf = Vf::probe(&mut machine, &VfDriverConfig::default()).unwrap();
        let mut guest = Self { machine, vf };
        guest.start();
        guest
    }

    pub(crate) fn start(&mut self) {
        self.vf.start(&mut self.machine).unwrap();
        self.wait_for_link();
    }

    /// Runs the driver's watchdog repeatedly until the link is up.
    pub(crate) fn wait_for_link(&mut self) {
        eventually("the link comes up", || match self.vf.watchdog(&mut self.machine) {
            VfLinkStatus::Up(_) => true,
            VfLinkStatus::ResetNeeded => {
                self.vf.restart(&mut self.machine).unwrap();
                false
            }
            _ => false,
        });
    }

    /// Returns STATUS.LU, the link as the function shows it.
    pub(crate) fn shows_link(&mut self) -> bool {
        self.machine.read(i82576::register::vf::STATUS) & i82576::bits::status::LU != 0
    }

    /// Waits for a mailbox interrupt, and handles it. Returns false if none arrives.
    pub(crate) fn hears_mailbox(&mut self) -> bool {
        let heard = self.machine.wait_for(MAILBOX_VECTOR, PATIENCE);
        if heard {
            self.vf.handle_interrupt(&mut self.machine, MAILBOX_VECTOR);
        }
        heard
    }

    /// Sends a frame from the guest to an Ethernet address. Returns false if the transmit ring is full.
    pub(crate) fn send(&mut self, to: MacAddress, payload: &[u8]) -> bool {
        self.send_from(self.vf.mac(), to, payload)
    }

    /// Sends a frame from any Ethernet address. Returns false if the transmit ring is full.
    pub(crate) fn send_from(&mut self, from: MacAddress, to: MacAddress, payload: &[u8]) -> bool {
        let frame = [&to.0[..], &from.0, &ETHERTYPE, payload].concat();
        let sent = self.vf.transmit(&mut self.machine, &frame, &TxOffload::default()).is_ok();
        self.vf.flush(&mut self.machine);
        if !sent {
            self.vf.clean(&mut self.machine);
        }
        sent
    }

    /// Sends frames from the guest without expecting an answer. Frames beyond the ring's room are not sent.
    pub(crate) fn send_many(&mut self, to: MacAddress, count: usize) {
        for _ in 0..count {
            self.send(to, &[1; 200]);
        }
    }

    /// Takes every frame that has arrived, without waiting, and returns the payloads.
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        let mut buffer = [0; 2048];
        let mut payloads = Vec::new();
        while let Ok(Some(received)) = self.vf.receive(&mut self.machine, &mut buffer) {
            payloads.push(buffer[HEADER..received.length].to_vec());
        }
        self.vf.receive_done(&mut self.machine);
        payloads
    }

    /// Sleeps until an interrupt announces frames, and returns their payloads; an empty list if `patience` is
    /// over.
    pub(crate) fn receive_within(&mut self, patience: Duration) -> Vec<Vec<u8>> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.machine.wait_for(RECEIVE_VECTOR, left) {
                return Vec::new();
            }
            assert_eq!(
                self.vf.handle_interrupt(&mut self.machine, RECEIVE_VECTOR),
                VfInterruptCause::Received
            );
            let payloads = self.take();
            if !payloads.is_empty() {
                return payloads;
            }
        }
    }

    /// Receives frames like [`Self::receive_within`], and fails if none arrive.
    #[track_caller]
    pub(crate) fn receive(&mut self) -> Vec<Vec<u8>> {
        let payloads = self.receive_within(PATIENCE);
        assert!(
            !payloads.is_empty(),
            "no frame, VTEIMS {:#x}",
            self.machine.read(i82576::register::vf::VTEIMS)
        );
        payloads
    }
}

/// Exchanges frames between two guests, each announced by an interrupt.
#[track_caller]
pub(crate) fn exchange<A: Vmm, B: Vmm>(a: &mut VfGuest<A>, b: &mut VfGuest<B>, rounds: u32) {
    for round in 0..rounds {
        let payload = [&round.to_le_bytes()[..], &[0xa5; 60]].concat();
        assert!(a.send(b.vf.mac(), &payload));
        assert_eq!(b.receive(), std::slice::from_ref(&payload), "round {round}, there");
        assert!(b.send(a.vf.mac(), &payload));
        assert_eq!(a.receive(), [payload], "round {round}, back");
    }
}
