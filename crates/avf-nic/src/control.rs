//! What the PF driver has the card do for a VF. What is beyond the VF's queues and vectors is ignored: the PF driver has
//! checked it. Left out: resets and messages, which have registers (`admin`).

use crate::card::Card;
use crate::function::{Filters, Function};
use crate::receive::RxQueue;
use crate::transmit::TxQueue;
use alloc::vec::Vec;
use avf::control::{Cause, Control, HashFunction, Restraint, RxContext, Tags, TxContext};
use avf::virtchnl::Statistics;

impl Card {
    /// By what a VF receives and may send.
    #[must_use]
    pub fn filters(&self, vf: u8) -> Option<&Filters> {
        self.functions.get(usize::from(vf)).map(|function| &function.filters)
    }

    /// Descriptors of the receive and of the transmit rings that are set up.
    #[must_use]
    pub fn rings(&self, vf: u8) -> (Vec<u32>, Vec<u32>) {
        let Some(function) = self.functions.get(usize::from(vf)) else { return Default::default() };
        let rx = function.rx.iter().filter_map(RxQueue::length).map(u32::from);
        let tx = function.tx.iter().filter_map(TxQueue::length).map(u32::from);
        (rx.collect(), tx.collect())
    }

    fn with(&mut self, vf: u8, act: impl FnOnce(&mut Function)) {
        self.functions.get_mut(usize::from(vf)).map(act).unwrap_or_default();
    }
}

impl Control for Card {
    fn configure_rx(&mut self, vf: u8, queue: u8, context: RxContext) {
        self.with(vf, |f| _ = f.rx.get_mut(usize::from(queue)).map(|rx| rx.configure(context)));
    }

    fn configure_tx(&mut self, vf: u8, queue: u8, context: TxContext) {
        self.with(vf, |f| {
            if f.held.is_of(queue) {
                f.held.clear();
            }
            _ = f.tx.get_mut(usize::from(queue)).map(|tx| tx.configure(context));
        });
    }

    fn run(&mut self, vf: u8, rx: u16, tx: u16) {
        self.with(vf, |f| {
            f.rx.iter_mut().enumerate().for_each(|(at, queue)| queue.run(rx >> at & 1 == 1));
            f.tx.iter_mut().enumerate().for_each(|(at, queue)| queue.running = tx >> at & 1 == 1);
            f.tx_ready |= tx;
        });
    }

    fn map_rx(&mut self, vf: u8, queue: u8, cause: Option<Cause>) {
        self.with(vf, |f| _ = f.rx_causes.get_mut(usize::from(queue)).map(|own| *own = cause));
    }

    fn map_tx(&mut self, vf: u8, queue: u8, cause: Option<Cause>) {
        self.with(vf, |f| _ = f.tx_causes.get_mut(usize::from(queue)).map(|own| *own = cause));
    }

    fn address(&mut self, vf: u8, mac: [u8; 6], on: bool) {
        self.with(vf, |f| {
            f.filters.addresses.retain(|own| *own != mac);
            if on {
                f.filters.addresses.push(mac);
            }
        });
    }

    fn vlan(&mut self, vf: u8, vlan: u16, on: bool) {
        self.with(vf, |f| {
            f.filters.vlans.retain(|own| *own != vlan);
            if on {
                f.filters.vlans.push(vlan);
            }
        });
    }

    fn tags(&mut self, vf: u8, tags: Tags) {
        self.with(vf, |f| f.filters.tags = tags);
    }

    fn promiscuity(&mut self, vf: u8, unicast: bool, multicast: bool) {
        self.with(vf, |f| (f.filters.unicast, f.filters.multicast) = (unicast, multicast));
    }

    fn spoof_check(&mut self, vf: u8, on: bool) {
        self.with(vf, |f| f.filters.spoof_check = on);
    }

    fn rate(&mut self, vf: u8, mbps: u32) {
        self.with(vf, |f| f.filters.rate = mbps);
    }

    fn restrain(&mut self, vf: u8, restraint: Restraint) {
        self.with(vf, |f| f.brake.restraint = restraint);
    }

    fn hash_key(&mut self, vf: u8, key: &[u8]) {
        self.with(vf, |f| f.scaling.set_key(key));
    }

    fn lookup_table(&mut self, vf: u8, table: &[u8]) {
        self.with(vf, |f| f.scaling.set_table(table));
    }

    fn hash_types(&mut self, vf: u8, types: u64) {
        self.with(vf, |f| f.scaling.types = [types as u32, (types >> 32) as u32]);
    }

    fn hash_function(&mut self, vf: u8, function: HashFunction) {
        self.with(vf, |f| f.scaling.function = function);
    }

    fn statistics(&mut self, vf: u8) -> Statistics {
        self.functions.get(usize::from(vf)).map_or(Statistics::default(), |f| f.statistics)
    }
}
