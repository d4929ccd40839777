//! Status report of a port, and the list of its functions as PCI devices.

use super::clients::PortClients;
use super::clients::connection::ClientStall;
use super::clients::service::{SHARE_HINT, lacks_memory};
use super::clients::slot::{BEHIND_HINT, OfferedFunction};
use super::engine::PortEngine;
use super::engine::bus::FunctionBus;
use super::engine::family::ReportedVfState;
use crate::config::file::CardFamily;
use crate::control::functions::{PciFunction, PortFunctions};
use crate::control::status::{
    ConnectedVmm, DropCounts, FunctionStatus, PortStatus, RefusedClaims, TrafficCounts, VfStatus,
    VirtioDeviceCounts,
};
use crate::pf_config::PF_RID;
use host::cpus::CpuList;
use i82576::{MacAddress, Time};
use nic::PoolCounters;
use pcie::{Function, VfIndex};
use plane::guard::GuardReason;
use std::collections::BTreeMap;
use std::fmt::Write;
use vfio_user::wire::pci_region::CONFIG;
use virtio_nic::DeviceCounters;

/// Parts of a port from which its status report is made.
pub(super) struct PortStatusSource<'a> {
    pub(super) name: &'a str,
    pub(super) mac: MacAddress,
    /// Processors that the port's thread is configured to run on.
    pub(super) cpus: &'a CpuList,
    pub(super) clients: &'a PortClients,
    pub(super) engine: &'a mut PortEngine,
    pub(super) now: Time,
}

impl PortStatusSource<'_> {
    /// Returns the port's status with the counters of this process alone. The origins of settings stay empty,
    /// because the port does not know them.
    pub(super) fn status(&mut self) -> PortStatus {
        let vfs: Vec<_> = self.clients.slots().iter().filter_map(|slot| self.vf_status(slot)).collect();
        let (cpus, pf) = (self.held_to(), self.pf_status());
        let workers = self.engine.card_mut().worker_status(vfs.len());
        let card = self.engine.card();
        let answers = card.is_hosted().then(|| self.clients.answers());
        PortStatus {
            name: self.name.to_owned(),
            family: card.family(),
            mac: self.mac.to_string(),
            uplink: self.engine.uplink_text(),
            uplink_status: self.engine.uplink_status(self.now),
            cpus,
            workers,
            link: card.link(),
            settings: self.engine.settings(vfs.len()),
            origins: BTreeMap::new(),
            storms: card.storms(),
            answers,
            pf,
            vfs,
        }
    }

    /// Returns the processors to which the kernel restricts the port's thread, or an empty list if the thread is not
    /// pinned.
    fn held_to(&self) -> Vec<u32> {
        let held = !self.cpus.is_empty();
        held.then(CpuList::allowed).and_then(Result::ok).map_or_else(Vec::new, |cpus| cpus.iter().collect())
    }

    /// Returns the status of the PF, or `None` if the PF has no socket for a guest.
    fn pf_status(&mut self) -> Option<FunctionStatus> {
        let slot = self.clients.slots().iter().find(|slot| slot.function == Function::Pf)?;
        let counters = self.engine.card_mut().counters(Function::Pf);
        Some(self.function_status(slot, &counters))
    }

    fn vf_status(&mut self, slot: &OfferedFunction) -> Option<VfStatus> {
        let vf = slot.function.vf()?;
        let counters = self.engine.card_mut().counters(slot.function);
        let function = self.function_status(slot, &counters);
        let ReportedVfState { mac, vlans, link, active, filters, quotas, settings, conduct, mailbox } =
            self.engine.card().vf_status(vf)?;
        let claims = self.engine.refused_claims(vf);
        let counts = GuardReason::ALL.into_iter().zip(self.engine.guarded_frames(vf));
        let guarded = counts.filter(|(_, count)| *count > 0);
        let guarded = guarded.map(|(reason, count)| (reason.name().to_owned(), count)).collect();
        Some(VfStatus {
            name: slot.name.clone(),
            index: vf.get(),
            family: Some(self.engine.card().vf_family(vf)),
            rid: self.engine.card().rid(vf).unwrap_or_default(),
            mac: mac.unwrap_or(slot.mac).to_string(),
            vlans,
            link,
            active,
            filters,
            quotas,
            settings,
            origins: BTreeMap::new(),
            conduct,
            function,
            mailbox,
            claims: RefusedClaims {
                refused: claims.refused,
                address: claims.last.map(|mac| mac.to_string()),
            },
            guarded,
            device: self.device_counts(vf),
        })
    }

    /// Returns the counts of a virtio VF's device.
    fn device_counts(&mut self, vf: VfIndex) -> Option<VirtioDeviceCounts> {
        if self.engine.card().vf_family(vf) != CardFamily::Virtio {
            return None;
        }
        let counters: DeviceCounters = *self.engine.card_mut().virtio()?.counters(vf.get())?;
        Some(VirtioDeviceCounts {
            kicks: counters.kicks,
            calls: counters.calls,
            malformed: counters.malformed,
            checksums: counters.checksums,
            segmented: counters.segmented,
            checksums_filled: counters.checksums_filled,
            packets_cut: counters.packets_cut,
            uncut_to_guests: counters.uncut_to_guests,
            uncut_to_uplink: counters.uncut_to_uplink,
            passed_uncut: counters.passed_uncut,
            coalesced_packets: counters.coalesced_packets,
            coalesced_frames: counters.coalesced_frames,
        })
    }

    fn function_status(&self, slot: &OfferedFunction, counters: &PoolCounters) -> FunctionStatus {
        let reach = self.engine.reach(slot.function);
        FunctionStatus {
            socket: slot.socket.clone(),
            socket_mode: slot.endpoint.role(),
            unconnected: slot.unconnected(self.engine.card()),
            peer: peer(slot, reach),
            hint: self.hint(slot, reach),
            refusals: slot.refusals,
            rx: received(counters),
            tx: sent(counters),
            drops: drops(counters),
            waiting: self.engine.card().waiting(slot.function),
            interventions: slot.interventions(reach.interrupts()),
        }
    }

    /// Returns a hint for the administrator about a problem with a function's client, or with one before it. Returns `None`
    /// without a problem.
    fn hint(&self, slot: &OfferedFunction, reach: &FunctionBus) -> Option<String> {
        if slot.is_worker_behind {
            return Some(BEHIND_HINT.to_owned());
        }
        let connection = slot.connection()?;
        if let Some(stall) = connection.stall(self.now).filter(ClientStall::is_shown) {
            return Some(stall.to_string());
        }
        lacks_memory(self.engine.card(), slot, reach).then(|| SHARE_HINT.to_owned())
    }

    /// Returns the port's PCI devices: the PF, if it has a configuration space, and each VF with a socket.
    pub(super) fn functions(&mut self) -> PortFunctions {
        let is_device = self.engine.card().region(Function::Pf, CONFIG) > 0;
        let pf = is_device.then(|| (Function::Pf, self.name.to_owned()));
        let vfs = self.clients.slots().iter().filter(|slot| slot.function != Function::Pf);
        let vfs = vfs.map(|slot| (slot.function, slot.name.clone()));
        let all: Vec<_> = pf.into_iter().chain(vfs).collect();
        let functions = all.into_iter().map(|(function, name)| self.pci_function(function, name)).collect();
        PortFunctions { functions }
    }

    fn pci_function(&mut self, function: Function, name: String) -> PciFunction {
        let mut bytes = vec![0; self.engine.card().region(function, CONFIG)];
        self.engine.card_mut().read(function, CONFIG, 0, &mut bytes, self.now);
        let config = bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let rid = match function.vf() {
            Some(vf) => self.engine.card().rid(vf).unwrap_or_default(),
            None => PF_RID.to_string(),
        };
        let (rx_rings, tx_rings) =
            function.vf().map_or_else(Default::default, |vf| self.engine.card_mut().rings(vf, self.now));
        PciFunction { name, rid, config, rx_rings, tx_rings }
    }
}

fn peer(slot: &OfferedFunction, reach: &FunctionBus) -> Option<ConnectedVmm> {
    let credentials = slot.connection()?.stream().peer().ok()?;
    Some(ConnectedVmm {
        pid: credentials.pid,
        uid: credentials.uid,
        windows: reach.memory().len(),
        shareable: reach.memory().shareable_regions(),
        shareable_bytes: reach.memory().mapped_bytes(),
    })
}

fn received(counters: &PoolCounters) -> TrafficCounts {
    TrafficCounts {
        packets: counters.rx_packets,
        bytes: counters.rx_bytes,
        multicast: counters.rx_multicast,
        broadcast: counters.rx_broadcast,
        dropped: counters.rx_no_descriptors + counters.rx_disabled,
    }
}

fn sent(counters: &PoolCounters) -> TrafficCounts {
    TrafficCounts {
        packets: counters.tx_packets,
        bytes: counters.tx_bytes,
        dropped: counters.tx_invalid + counters.tx_blocked,
        ..TrafficCounts::default()
    }
}

fn drops(counters: &PoolCounters) -> DropCounts {
    DropCounts {
        rx_no_descriptors: counters.rx_no_descriptors,
        rx_disabled: counters.rx_disabled,
        tx_invalid: counters.tx_invalid,
        tx_blocked: counters.tx_blocked,
        tx_spoofed: counters.tx_spoofed,
        tx_link_control: counters.tx_link_control,
        rx_storm: counters.rx_storm,
        tx_unclaimed: counters.tx_unclaimed,
        dma_faults: counters.dma_faults,
    }
}
