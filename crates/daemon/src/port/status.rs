//! What a port tells about itself. Left out: how it is printed.

use super::Port;
use super::bus::Reach;
use super::side::{Hosted, vf};
use super::slot::Slot;
use crate::control::status::{Conduct, Drops, FunctionStatus, Mailbox, Peer, PortStatus, Traffic, VfStatus};
use crate::settings::{PortSettings, VfSettings};
use driver::pf::{Cause, Counters, Kind, Offence, Pf, Refusal};
use host::dma::DmaTable;
use i82576::VfIndex;
use nic::{Nic, PoolCounters};
use pcie::Function;
use std::collections::BTreeMap;

/// What to do about a guest whose memory the card cannot reach.
pub(super) const SHARE_HINT: &str = "the guest's memory is not shared, so no frame can move: \
     add share=on to QEMU's memory-backend (memory-backend-memfd, and -machine memory-backend=ID), \
     or shared=on to Cloud Hypervisor's --memory";

/// Whether a guest drives the function though none of its memory can be reached.
pub(super) fn lacks_memory(nic: &Nic, slot: &Slot, reach: &Reach) -> bool {
    let unreachable = reach.memory.shareable_regions() == 0 && !reach.memory.is_empty();
    (unreachable || slot.private_memory) && nic.is_bus_master(slot.function)
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
    /// How things are. Where settings come from is left out: the port does not know.
    pub(super) fn status(&mut self) -> PortStatus {
        let vfs: Vec<_> = (0..self.slots.len()).filter_map(|index| self.vf_status(index)).collect();
        let hosted = self.side.hosted();
        PortStatus {
            name: self.name.clone(),
            mac: self.mac.to_string(),
            uplink: self.uplink.to_string(),
            tap: self.uplink.status(),
            link: self.nic.link(),
            settings: hosted.as_ref().map(|hosted| PortSettings::of(hosted.pf.port_policy(), vfs.len())),
            origins: BTreeMap::new(),
            storms: hosted.map_or(0, |hosted| hosted.pf.storms()),
            pf: self.pf_status(),
            vfs,
        }
    }

    /// The PF, if a guest may have it. Every pool is its own.
    fn pf_status(&self) -> Option<FunctionStatus> {
        let slot = self.slots.iter().find(|slot| slot.function == Function::Pf)?;
        let counters = self.nic.counters().iter().fold(PoolCounters::default(), |sum, pool| sum + *pool);
        Some(self.function_status(slot, &counters))
    }

    fn vf_status(&mut self, index: usize) -> Option<VfStatus> {
        let slot = self.slots.get(index)?;
        let vf: VfIndex = vf(slot.function)?;
        let function = self.function_status(slot, &self.nic.counters()[vf.index()]);
        let Hosted { pf, manager, .. } = self.side.hosted()?;
        let shut_in = pf.quarantined(vf) == Some(Cause::Administrator);
        Some(VfStatus {
            name: slot.name.clone(),
            index: vf.get(),
            rid: manager.function(vf).map(|function| function.rid().to_string()).unwrap_or_default(),
            mac: pf.vf_mac(vf).unwrap_or(slot.mac).to_string(),
            vlans: pf.vf_vlans(vf).collect(),
            link: self.nic.vf_link(vf),
            active: pf.vf_is_active(vf),
            settings: VfSettings::of(pf.policy(vf), shut_in),
            origins: BTreeMap::new(),
            conduct: conduct(pf, vf),
            function,
            mailbox: mailbox(pf.counters(vf)),
        })
    }

    fn function_status(&self, slot: &Slot, counters: &PoolCounters) -> FunctionStatus {
        let reach = self.bus.reach(slot.function);
        FunctionStatus {
            socket: slot.socket.clone(),
            peer: peer(slot, reach),
            hint: hint(&self.nic, slot, reach),
            rx: received(counters),
            tx: sent(counters),
            drops: drops(counters),
            interventions: slot.interventions(reach.interrupts),
        }
    }
}

fn hint(nic: &Nic, slot: &Slot, reach: &Reach) -> Option<String> {
    (slot.connection.is_some() && lacks_memory(nic, slot, reach)).then(|| SHARE_HINT.to_owned())
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

fn conduct(pf: &Pf, vf: VfIndex) -> Conduct {
    let offences = Offence::ALL.into_iter().zip(pf.offences(vf)).filter(|(_, count)| **count > 0);
    Conduct {
        quarantine: pf.quarantined(vf).map(|cause| cause.name().to_owned()),
        throttled: pf.throttled(vf),
        offences: offences.map(|(offence, count)| (offence.name().to_owned(), *count)).collect(),
    }
}

fn mailbox(counters: &Counters) -> Mailbox {
    let some = |name: &str, count: u64| (count > 0).then(|| (name.to_owned(), count));
    Mailbox {
        requests: Kind::ALL.into_iter().filter_map(|k| some(k.name(), counters.messages(k))).collect(),
        granted: counters.granted,
        refused: Refusal::ALL.into_iter().filter_map(|r| some(r.name(), counters.refused(r))).collect(),
        unanswered: counters.unanswered + counters.dropped,
        resets: counters.resets,
        notices: counters.notices,
    }
}
