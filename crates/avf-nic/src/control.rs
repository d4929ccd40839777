//! Carries out the PF driver's orders for a VF. An order for a queue or vector that the VF does not have is ignored: the PF
//! driver has checked it. Resets and messages have registers (`pf`).

use crate::card::Card;
use crate::function::{Filters, Function};
use crate::rx_ring::RxQueue;
use crate::tx_ring::TxQueue;
use alloc::vec::Vec;
use avf::control::{Cause, Control, Order, TxContext};
use avf::virtchnl::Statistics;

impl Card {
    /// Returns the filters of a VF.
    #[must_use]
    pub fn filters(&self, vf: u8) -> Option<&Filters> {
        self.functions.get(usize::from(vf)).map(|function| &function.filters)
    }

    /// Returns the lengths of the receive and transmit rings that are set up, in descriptors.
    #[must_use]
    pub fn rings(&self, vf: u8) -> (Vec<u32>, Vec<u32>) {
        let Some(function) = self.functions.get(usize::from(vf)) else { return Default::default() };
        let rx = function.rx.iter().filter_map(RxQueue::length).map(u32::from);
        let tx = function.tx.iter().filter_map(TxQueue::length).map(u32::from);
        (rx.collect(), tx.collect())
    }
}

impl Control for Card {
    fn order(&mut self, vf: u8, order: Order<'_>) {
        if let Some(function) = self.functions.get_mut(usize::from(vf)) {
            function.obey(order);
        }
    }

    fn statistics(&mut self, vf: u8) -> Statistics {
        self.functions.get(usize::from(vf)).map_or(Statistics::default(), |f| f.statistics)
    }
}

impl Function {
    fn obey(&mut self, order: Order<'_>) {
        let Self { filters, scaling, .. } = &mut *self;
        match order {
            Order::ConfigureRx(queue, context) => {
                _ = self.rx.get_mut(usize::from(queue)).map(|rx| rx.configure(context));
            }
            Order::ConfigureTx(queue, context) => self.configure_tx(queue, context),
            Order::Run { rx, tx } => self.run(rx, tx),
            Order::MapRx(queue, cause) => set_cause(&mut self.rx_causes, queue, cause),
            Order::MapTx(queue, cause) => set_cause(&mut self.tx_causes, queue, cause),
            Order::Address { mac, on } => set_member(&mut filters.addresses, mac, on),
            Order::Vlan { vlan, on } => set_member(&mut filters.vlans, vlan, on),
            Order::Tags(tags) => filters.tags = tags,
            Order::Promiscuity { unicast, multicast } => {
                (filters.unicast, filters.multicast) = (unicast, multicast);
            }
            Order::SpoofCheck(on) => filters.spoof_check = on,
            Order::Rate(mbps) => filters.rate = mbps,
            Order::Restrain(restraint) => self.brake.restraint = restraint,
            Order::HashKey(key) => scaling.set_key(key),
            Order::LookupTable(table) => scaling.set_table(table),
            Order::HashTypes(types) => scaling.types = [types as u32, (types >> 32) as u32],
            Order::HashFunction(function) => scaling.set_function(function),
        }
    }

    fn configure_tx(&mut self, queue: u8, context: TxContext) {
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

fn set_cause(causes: &mut [Option<Cause>], queue: u8, cause: Option<Cause>) {
    _ = causes.get_mut(usize::from(queue)).map(|own| *own = cause);
}

/// Adds a member to a list, or removes the member.
fn set_member<T: PartialEq>(members: &mut Vec<T>, member: T, on: bool) {
    members.retain(|own| *own != member);
    if on {
        members.push(member);
    }
}
