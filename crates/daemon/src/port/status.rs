//! What a port tells about itself. Left out: how it is printed.

use super::Port;
use super::bus::Reach;
use super::connection::Half;
use super::family::{Family, VfFacts};
use super::hal::now;
use super::slot::Slot;
use crate::control::status::{Drops, FunctionStatus, Peer, PortStatus, Traffic, VfStatus};
use host::cpus::Cpus;
use host::dma::DmaTable;
use nic::PoolCounters;
use pcie::Function;
use std::collections::BTreeMap;

/// What to do about a guest whose memory the card cannot reach.
pub(super) const SHARE_HINT: &str = "the guest's memory is not shared, so no frame can move: \
     add share=on to QEMU's memory-backend (memory-backend-memfd, and -machine memory-backend=ID), \
     or shared=on to Cloud Hypervisor's --memory";

/// Whether a guest drives the function though none of its memory can be reached.
pub(super) fn lacks_memory(card: &dyn Family, slot: &Slot, reach: &Reach) -> bool {
    let unreachable = reach.memory.shareable_regions() == 0 && !reach.memory.is_empty();
    (unreachable || slot.private_memory) && card.is_bus_master(slot.function)
}

/// Guests with less memory than this are not judged: no operating system fits in there, and what does may
/// well begin with nothing written.
const JUDGED: u64 = 64 << 20;

/// Whether a guest that has just begun to drive its function writes to copies of the memory that its VMM shares
/// (QEMU's `share=off` on a memory backend with a file): the card would read zeros for ever.
pub(super) fn is_private(memory: &DmaTable) -> bool {
    memory.mapped_bytes() >= JUDGED && memory.is_blank()
}

impl Port {
    /// Returns the port's status, with counters that continue predecessors'. Where settings come from is left out: the port
    /// does not know.
    pub(super) fn status(&mut self) -> PortStatus {
        let mut status = self.uncarried_status();
        self.publish(&mut status);
        status
    }

    /// Returns the status with the counters of this process alone.
    pub(super) fn uncarried_status(&mut self) -> PortStatus {
        let vfs: Vec<_> = (0..self.slots.len()).filter_map(|index| self.vf_status(index)).collect();
        let cpus = self.held_to();
        let answers = self.card.is_hosted().then(|| self.answers.status());
        PortStatus {
            name: self.name.clone(),
            family: self.card.family(),
            mac: self.mac.to_string(),
            uplink: self.uplink.to_string(),
            uplink_status: self.uplink.status(),
            cpus,
            link: self.card.link(),
            settings: self.card.settings(vfs.len()),
            origins: BTreeMap::new(),
            storms: self.card.storms(),
            answers,
            pf: self.pf_status(),
            vfs,
        }
    }

    /// The processors that the kernel says the thread is held to, if it is.
    fn held_to(&self) -> Vec<u32> {
        let held = !self.cpus.is_empty();
        held.then(Cpus::allowed).and_then(Result::ok).map_or_else(Vec::new, |cpus| cpus.iter().collect())
    }

    /// The PF, if a guest may have it.
    fn pf_status(&mut self) -> Option<FunctionStatus> {
        let slot = self.slots.iter().find(|slot| slot.function == Function::Pf)?;
        let counters = self.card.counters(Function::Pf);
        Some(self.function_status(slot, &counters))
    }

    fn vf_status(&mut self, index: usize) -> Option<VfStatus> {
        let slot = self.slots.get(index)?;
        let vf = slot.function.vf()?;
        let counters = self.card.counters(slot.function);
        let function = self.function_status(slot, &counters);
        let VfFacts { mac, vlans, link, active, filters, settings, conduct, mailbox } =
            self.card.facts(vf)?;
        Some(VfStatus {
            name: slot.name.clone(),
            index: vf.get(),
            rid: self.card.rid(vf).unwrap_or_default(),
            mac: mac.unwrap_or(slot.mac).to_string(),
            vlans,
            link,
            active,
            filters,
            settings,
            origins: BTreeMap::new(),
            conduct,
            function,
            mailbox,
        })
    }

    fn function_status(&self, slot: &Slot, counters: &PoolCounters) -> FunctionStatus {
        let reach = self.bus.reach(slot.function);
        FunctionStatus {
            socket: slot.socket.clone(),
            peer: peer(slot, reach),
            hint: hint(&*self.card, slot, reach),
            rx: received(counters),
            tx: sent(counters),
            drops: drops(counters),
            waiting: self.card.waiting(slot.function),
            interventions: slot.interventions(reach.interrupts),
        }
    }
}

/// Returns a hint for the administrator about a function's client.
fn hint(card: &dyn Family, slot: &Slot, reach: &Reach) -> Option<String> {
    let connection = slot.connection.as_ref()?;
    if let Some(half) = connection.half(now()).filter(Half::is_shown) {
        return Some(format!("the client has stopped in the middle of a message: {half}"));
    }
    lacks_memory(card, slot, reach).then(|| SHARE_HINT.to_owned())
}

fn peer(slot: &Slot, reach: &Reach) -> Option<Peer> {
    let credentials = slot.connection.as_ref()?.stream().peer().ok()?;
    Some(Peer {
        pid: credentials.pid,
        uid: credentials.uid,
        windows: reach.memory.len(),
        shareable: reach.memory.shareable_regions(),
        shareable_bytes: reach.memory.mapped_bytes(),
    })
}

fn received(counters: &PoolCounters) -> Traffic {
    Traffic {
        packets: counters.rx_packets,
        bytes: counters.rx_bytes,
        multicast: counters.rx_multicast,
        broadcast: counters.rx_broadcast,
        dropped: counters.rx_no_descriptors + counters.rx_disabled,
    }
}

fn sent(counters: &PoolCounters) -> Traffic {
    Traffic {
        packets: counters.tx_packets,
        bytes: counters.tx_bytes,
        dropped: counters.tx_invalid + counters.tx_blocked,
        ..Traffic::default()
    }
}

fn drops(counters: &PoolCounters) -> Drops {
    Drops {
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
