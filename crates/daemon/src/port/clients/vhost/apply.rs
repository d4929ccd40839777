//! Applies events and tasks of a front end's session to the card and to the function's memory and interrupts.
//!
//! The session checks every number that the front end sends: rings exist, their addresses are in its memory, and no ring
//! is live while its memory changes.

use super::VhostUserConnection;
use super::regions::{PendingMemoryRegions, RegionMappingProgress};
use super::{costs, log, offer};
use crate::flight::FlightRecordKind;
use crate::port::clients::connection::DisconnectReason;
use crate::port::clients::device::VfioFunction;
use crate::port::clients::errand::{BlockingCallOutcome, RingEventfdPurpose};
use crate::port::tokens::RINGS;
use host::eventfd::{EventFd, EventFdError};
use host::memory::FileIdentity;
use host::worker::DeferredCloseFd;
use i82576::MacAddress;
use units::WorkCost;
use vfio_user::wire::pci_irq;
use vhost_user::backend::{BackendEvent, HostOperation, HostOperationOutcome, LiveRingParameters};
use vhost_user::features;
use vhost_user::message::RingBase;
use virtio::layout::RingAddresses;
use virtio_nic::{LONGEST_FRAME, Nic, RingStartParameters};

/// Bytes of an Ethernet header with one VLAN tag, by which a frame exceeds the MTU.
const FRAME_OVERHEAD: usize = 18;

/// Calls `act` with the card and the VF. Returns `None` for a port of another card family.
pub(super) fn with_nic<R>(device: &mut VfioFunction<'_>, act: impl FnOnce(&mut Nic, u8) -> R) -> Option<R> {
    let vf = device.function.vf()?;
    Some(act(device.engine.card_mut().virtio()?, vf.get()))
}

/// Records an event of the function in its flight recorder.
fn record(device: &mut VfioFunction<'_>, text: &'static str, value: u64) {
    device.own.flight.event(device.now, FlightRecordKind::Said(text), value);
}

impl VhostUserConnection {
    /// Applies an event of the session, and charges the function for it. The card charges for the switch's tables, if the VF's
    /// address changes.
    pub(super) fn apply_charged(
        &mut self,
        event: BackendEvent<DeferredCloseFd>,
        device: &mut VfioFunction<'_>,
    ) {
        device.own.account.charge(costs::of_event(&event));
        self.apply(event, device);
    }

    /// Applies an event of the session. The client may then have to wait for a blocking call.
    fn apply(&mut self, event: BackendEvent<DeferredCloseFd>, device: &mut VfioFunction<'_>) {
        match event {
            BackendEvent::FeaturesSet(bits) => {
                record(device, "the driver accepted features", bits);
                log::enable(bits, device);
                with_nic(device, |nic, vf| nic.set_features(vf, offer::accepted(bits)));
            }
            BackendEvent::RingLive(setup) => {
                log::place_used_ring(&setup, device);
                start(&setup, self.session.protocol_features(), device);
            }
            BackendEvent::RingPaused { ring } => {
                with_nic(device, |nic, vf| nic.pause_ring(vf, ring));
            }
            BackendEvent::RingEnabled { ring, enabled } => {
                record(device, if enabled { "ring enabled" } else { "ring disabled" }, ring.into());
                with_nic(device, |nic, vf| nic.enable_ring(vf, ring, enabled));
            }
            BackendEvent::RingFaulty { ring, fault } => {
                record(device, "ring is invalid", ring.into());
                device.own.ring_fault = Some(format!("ring {ring}: {fault}"));
                // QEMU sends no region of memory that it cannot share.
                device.own.ring_without_memory =
                    device.engine.reach_mut(device.function).memory_mut().mapped_bytes() == 0;
            }
            BackendEvent::KickSet { ring, fd } => {
                self.kicks.set(ring, None);
                if fd.is_none() {
                    // Such a ring would have to be polled. No known front end asks for that.
                    device.own.ring_fault =
                        Some(format!("ring {ring} has no eventfd for kicks; polled rings are unsupported"));
                }
                self.take_eventfd(ring, RingEventfdPurpose::Kick, fd, device);
            }
            BackendEvent::CallSet { ring, fd } => {
                set_call(ring, None, device);
                self.take_eventfd(ring, RingEventfdPurpose::Call, fd, device);
            }
            BackendEvent::DeviceReset => {
                record(device, "reset by the client", 0);
                log::enable(0, device);
                with_nic(device, |nic, vf| nic.reset(vf));
                (0..RINGS).for_each(|ring| forget_position(ring, device));
            }
            BackendEvent::SendRarp(address) => {
                let number = address.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
                record(device, "the client asked to announce an address", number);
                with_nic(device, |nic, vf| nic.announce(vf, MacAddress(address)));
            }
            BackendEvent::StatusSet(status) => record(device, "device status", status.into()),
            // No front end acts on errors of rings. The worker closes these descriptors.
            BackendEvent::ErrorSet { .. }
            | BackendEvent::LogEventSet(_)
            | BackendEvent::UnusedDescriptors(_)
            // The session answers by the protocol features, and disables the rings of a lost owner by events.
            | BackendEvent::OwnerSet
            | BackendEvent::OwnerReset
            | BackendEvent::ProtocolFeaturesSet(_) => {}
        }
    }

    /// Has the worker thread check that a file descriptor is an eventfd. The client waits for that.
    fn take_eventfd(
        &mut self,
        ring: u32,
        purpose: RingEventfdPurpose,
        fd: Option<DeferredCloseFd>,
        device: &mut VfioFunction<'_>,
    ) {
        if let Some(fd) = fd {
            device.errands().take_eventfd(ring, purpose, fd);
            self.waiting = true;
        }
    }

    /// Carries out a task of the session, or begins the task if its completion needs a blocking call.
    pub(super) fn begin(&mut self, task: HostOperation<DeferredCloseFd>, device: &mut VfioFunction<'_>) {
        let outcome = match task {
            HostOperation::ReplaceMemory(regions) => {
                self.regions = PendingMemoryRegions::replace(regions, device);
                let progress = self.regions.map_next(device);
                return self.continue_mapping(progress);
            }
            HostOperation::AddRegion(region) => {
                self.regions = PendingMemoryRegions::add(region);
                let progress = self.regions.map_next(device);
                return self.continue_mapping(progress);
            }
            HostOperation::RemoveRegion(region) => {
                device.engine.reach_mut(device.function).unmap(region.guest_address, region.size);
                HostOperationOutcome::Done
            }
            HostOperation::StopRing { ring } => self.stop(ring, device),
            HostOperation::SetMtu(mtu) => check_mtu(mtu, device),
            HostOperation::SetLog { area, fd } => return self.begin_log(area, fd, device),
            HostOperation::CreateInflight { queues, queue_size } => {
                self.create_inflight(queues, queue_size, device)
            }
            HostOperation::RestoreInflight { area, fd } => return self.begin_inflight(area, fd, device),
            // This protocol feature is not offered, so the session refuses such requests.
            HostOperation::ReadConfig { .. } | HostOperation::WriteConfig(_) => HostOperationOutcome::Failed,
        };
        self.session.complete(outcome);
    }

    fn continue_mapping(&mut self, progress: RegionMappingProgress) {
        match progress {
            RegionMappingProgress::Waiting => self.waiting = true,
            RegionMappingProgress::Done => self.session.complete(HostOperationOutcome::Done),
            RegionMappingProgress::Failed => self.session.complete(HostOperationOutcome::Failed),
        }
    }

    /// Stops a ring at its position, and removes the eventfd by which the guest kicks the ring.
    fn stop(&mut self, ring: u32, device: &mut VfioFunction<'_>) -> HostOperationOutcome<DeferredCloseFd> {
        record(device, "ring stopped", ring.into());
        self.kicks.set(ring, None);
        // An interrupt may be delayed. Another back end does not know of it.
        call(ring, device);
        let packed = self.session.features().unwrap_or(0) & features::device::RING_PACKED != 0;
        let base = with_nic(device, |nic, vf| nic.stop_ring(vf, ring));
        self.stopped = Some(ring);
        base.map_or(HostOperationOutcome::Failed, |base| {
            HostOperationOutcome::Base(RingBase::from_wire(base, packed))
        })
    }

    /// Forgets the record of a stopped ring. Not earlier than the front end can know the position: one whose back end dies before
    /// the answer starts the ring where it has started it last, and the record tells where the ring is.
    pub(super) fn forget_stopped(&mut self, device: &mut VfioFunction<'_>) {
        if let Some(ring) = self.stopped.take() {
            forget_position(ring, device);
        }
    }

    /// Applies the outcome of a blocking call for which the client has waited.
    pub(super) fn called(&mut self, outcome: BlockingCallOutcome, device: &mut VfioFunction<'_>) {
        match outcome {
            BlockingCallOutcome::RegionMapped(region) => {
                let progress = self.regions.mapped(region, device);
                self.continue_mapping(progress);
            }
            BlockingCallOutcome::RingEventfd { ring, purpose, eventfd } => {
                self.eventfd(ring, purpose, eventfd, device);
            }
            BlockingCallOutcome::LogMapped(log) => self.logged(log, device),
            BlockingCallOutcome::InflightChecked(checked) => self.checked_inflight(checked, device),
            // `finish_errand` handles the last two.
            BlockingCallOutcome::CaughtUp
            | BlockingCallOutcome::MemorySampled(_)
            | BlockingCallOutcome::QueueEmptied => {}
            // Only vfio-user clients make these calls.
            BlockingCallOutcome::Mapped(_)
            | BlockingCallOutcome::Assigned { .. }
            | BlockingCallOutcome::PartialKept(_) => device.errands().discard(outcome),
        }
    }

    fn eventfd(
        &mut self,
        ring: u32,
        purpose: RingEventfdPurpose,
        eventfd: Result<EventFd, EventFdError>,
        device: &mut VfioFunction<'_>,
    ) {
        match (eventfd, purpose) {
            (Ok(eventfd), RingEventfdPurpose::Kick) => {
                self.kicks.set(ring, Some(eventfd));
                device.engine.reach_mut(device.function).kicks_mut().renew(ring);
                with_nic(device, |nic, vf| nic.make_ready(vf, ring));
            }
            (Ok(eventfd), RingEventfdPurpose::Call) => {
                set_call(ring, Some(eventfd), device);
                if self.session.is_live(ring) {
                    call(ring, device);
                }
            }
            // The message has no reply by which to refuse it.
            (Err(error), _) => {
                let remedy = error.remedy();
                self.failed = Some(DisconnectReason::failed(format_args!("ring {ring}: {error}; {remedy}")));
            }
        }
    }
}

/// Returns true if the front end says that a ring has run on another card. A front end that announces its guests (QEMU) sends a
/// position of its own. Others, such as Cloud Hypervisor, send an index that the guest has written. Packed transmit rings do not
/// count: QEMU runs one itself for a moment after a lost connection, by flags that the guest has written.
fn has_run_elsewhere(ring: u32, base: RingBase, protocol_features: u64) -> bool {
    let is_packed = matches!(base, RingBase::Packed { .. });
    let counts = !is_packed || ring.is_multiple_of(2);
    counts && protocol_features >> features::protocol::RARP & 1 != 0 && base != RingBase::first(is_packed)
}

/// Starts a ring of a front end with these protocol features.
fn start(setup: &LiveRingParameters, protocol_features: u64, device: &mut VfioFunction<'_>) {
    let ring = setup.ring;
    let start = RingStartParameters {
        ring,
        size: setup.size,
        packed: setup.packed,
        enabled: setup.enabled,
        position: setup.base.map(|base| first_position(base, setup, device)),
        has_run_elsewhere: setup.base.is_some_and(|base| has_run_elsewhere(ring, base, protocol_features)),
        addresses: RingAddresses {
            descriptors: setup.descriptors.address,
            driver: setup.available.address,
            device: setup.used.address,
        },
        memory: memory_of(setup, device),
    };
    let started = device.function.vf().zip(device.engine.virtio());
    match started.map(|(vf, (nic, bus))| nic.start_ring(vf.get(), &start, bus)) {
        Some(Ok(())) => {
            record(device, "ring started", ring.into());
            device.own.ring_without_memory = false;
            // The previous process may have used buffers without an interrupt.
            call(ring, device);
        }
        Some(Err(error)) => {
            record(device, "ring refused by the card", ring.into());
            device.own.ring_fault = Some(format!("ring {ring}: {error}"));
        }
        None => {}
    }
}

/// Returns the identity of the memory that holds a ring: the number of its file, which its front end shares after a
/// reconnection too.
fn memory_of(setup: &LiveRingParameters, device: &VfioFunction<'_>) -> u64 {
    let at = setup.descriptors.address;
    let mut regions = device.engine.reach(device.function).memory().regions();
    let region = regions.find(|region| region.iova <= at && at <= region.last);
    let identity = region.and_then(|region| FileIdentity::of_memory(region.file?.0).ok());
    identity.map_or(0, FileIdentity::number)
}

/// Forgets the recorded position of a packed ring.
fn forget_position(ring: u32, device: &mut VfioFunction<'_>) {
    if let Some(vf) = device.function.vf()
        && let Some((_, bus)) = device.engine.virtio()
    {
        virtio_nic::forget_position(vf.get(), ring, bus);
    }
}

/// Returns the position at which a ring starts, as vhost-user's ring base. A split ring starts at the used index in guest
/// memory, where every device that completes its chains before it stops has left it. Cloud Hypervisor's base is the
/// available index, also after a reconnection, and the card would never use the buffers that were posted before.
fn first_position(base: RingBase, setup: &LiveRingParameters, device: &VfioFunction<'_>) -> u32 {
    /// Offset of the index in a used ring (virtio 1.2, 2.7.8).
    const INDEX: u64 = 2;
    let mut used = [0; 2];
    let memory = device.engine.reach(device.function).memory();
    match memory.read(setup.used.address + INDEX, &mut used) {
        Ok(()) if !setup.packed => u16::from_le_bytes(used).into(),
        _ => base.to_wire(),
    }
}

/// Sets or removes the eventfd by which a ring interrupts the guest. The card addresses it by the MSI-X vector with the
/// ring's index.
fn set_call(ring: u32, eventfd: Option<EventFd>, device: &mut VfioFunction<'_>) {
    device.engine.reach_mut(device.function).set_eventfd(pci_irq::MSIX, ring, eventfd);
}

/// Interrupts the guest once for a ring, so that its driver checks the ring. Drivers tolerate interrupts without new
/// buffers.
fn call(ring: u32, device: &mut VfioFunction<'_>) {
    device.own.account.charge(WorkCost::INTERRUPT);
    device.engine.signal(device.function, pci_irq::MSIX, ring);
}

/// Checks the MTU that the guest will see against the longest frame of the VF's policy and of the card.
fn check_mtu(mtu: u16, device: &mut VfioFunction<'_>) -> HostOperationOutcome<DeferredCloseFd> {
    let longest = with_nic(device, |nic, vf| {
        nic.rules(vf).map_or(LONGEST_FRAME, |rules| rules.longest_frame.min(LONGEST_FRAME))
    });
    let most = longest.unwrap_or(0).saturating_sub(FRAME_OVERHEAD);
    if usize::from(mtu) <= most { HostOperationOutcome::Done } else { HostOperationOutcome::Failed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vhost_user::message::PackedIndex;

    #[test]
    fn packed_transmit_ring_tells_of_no_move() {
        const RARP: u64 = 1 << features::protocol::RARP;
        let behind = PackedIndex { index: 1, wrap: true };
        let packed = RingBase::Packed { available: behind, used: behind };
        let split = RingBase::Split { available: 1 };
        for (ring, base, moved) in [(0, packed, true), (1, packed, false), (0, split, true), (1, split, true)]
        {
            assert_eq!(has_run_elsewhere(ring, base, RARP), moved, "ring {ring}: {base:?}");
            assert!(!has_run_elsewhere(ring, base, 0), "a front end that announces no guests");
        }
    }
}
