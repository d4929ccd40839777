//! Carries out the PF driver's orders for a VF. An order for a queue or vector that the VF does not have is ignored,
//! because the PF driver checks orders. Resets and messages have registers (`pf`).

use crate::card::Nic;
use crate::function::{VfFilters, VfHardware};
use crate::rx_ring::ReceiveQueue;
use crate::tx_ring::TransmitQueue;
use alloc::vec::Vec;
use avf::control::{CardCommand, CardControl, QueueInterruptCause, TxQueueContext};
use avf::virtchnl::VfTrafficStatistics;

impl Nic {
    /// Returns the address and VLAN filters, checks and transmit rate of a VF.
    #[must_use]
    pub fn filters(&self, vf: u8) -> Option<&VfFilters> {
        self.functions.get(usize::from(vf)).map(|function| &function.filters)
    }

    /// Returns the lengths of the VF's receive and transmit rings that are set up, in descriptors.
    #[must_use]
    pub fn rings(&self, vf: u8) -> (Vec<u32>, Vec<u32>) {
        let Some(function) = self.functions.get(usize::from(vf)) else { return Default::default() };
        let rx = function.rx.iter().filter_map(ReceiveQueue::length).map(u32::from);
        let tx = function.tx.iter().filter_map(TransmitQueue::length).map(u32::from);
        (rx.collect(), tx.collect())
    }
}

impl CardControl for Nic {
    fn order(&mut self, vf: u8, order: CardCommand<'_>) {
        let Some(function) = self.functions.get_mut(usize::from(vf)) else { return };
        let is_paused = !function.held.is_empty();
        function.obey(order);
        if is_paused && function.held.is_empty() {
            self.note_dropped(vf);
        }
    }

    fn statistics(&mut self, vf: u8) -> VfTrafficStatistics {
        self.functions.get(usize::from(vf)).map_or(VfTrafficStatistics::default(), |f| f.statistics)
    }
}

impl VfHardware {
    fn obey(&mut self, order: CardCommand<'_>) {
        let Self { filters, scaling, .. } = &mut *self;
        match order {
            CardCommand::ConfigureRx(queue, context) => {
                _ = self.rx.get_mut(usize::from(queue)).map(|rx| rx.configure(context));
            }
            CardCommand::ConfigureTx(queue, context) => self.configure_tx(queue, context),
            CardCommand::Run { rx, tx } => self.run(rx, tx),
            CardCommand::MapRx(queue, cause) => set_cause(&mut self.rx_causes, queue, cause),
            CardCommand::MapTx(queue, cause) => set_cause(&mut self.tx_causes, queue, cause),
            CardCommand::Address { mac, on } => set_address(&mut filters.addresses, mac, on),
            CardCommand::Vlan { vlan, on: true } => _ = filters.vlans.insert(vlan),
            CardCommand::Vlan { vlan, on: false } => _ = filters.vlans.remove(vlan),
            CardCommand::Tags(tags) => filters.tags = tags,
            CardCommand::Promiscuity { unicast, multicast } => {
                (filters.unicast, filters.multicast) = (unicast, multicast);
            }
            CardCommand::SpoofCheck(on) => filters.spoof_check = on,
            CardCommand::Rate(mbps) => filters.rate = mbps,
            CardCommand::Restrain(restraint) => self.brake.restraint = restraint,
            CardCommand::HashKey(key) => scaling.set_key(key),
            CardCommand::LookupTable(table) => scaling.set_table(table),
            CardCommand::HashTypes(types) => scaling.types = [types as u32, (types >> 32) as u32],
            CardCommand::HashFunction(function) => scaling.set_function(function),
        }
    }

    fn configure_tx(&mut self, queue: u8, context: TxQueueContext) {
        if self.held.is_of(queue) {
            self.held.clear();
        }
        self.stale |= 1_u16.checked_shl(queue.into()).unwrap_or(0);
        _ = self.tx.get_mut(usize::from(queue)).map(|tx| tx.configure(context));
    }

    fn run(&mut self, rx: u16, tx: u16) {
        self.rx.iter_mut().enumerate().for_each(|(at, queue)| queue.run(rx >> at & 1 == 1));
        self.tx.iter_mut().enumerate().for_each(|(at, queue)| queue.running = tx >> at & 1 == 1);
        self.tx_ready |= tx;
    }
}

fn set_cause(causes: &mut [Option<QueueInterruptCause>], queue: u8, cause: Option<QueueInterruptCause>) {
    _ = causes.get_mut(usize::from(queue)).map(|own| *own = cause);
}

/// Adds an address to a VF's list, or removes it.
fn set_address(addresses: &mut Vec<[u8; 6]>, mac: [u8; 6], on: bool) {
    addresses.retain(|own| *own != mac);
    if on {
        addresses.push(mac);
    }
}
