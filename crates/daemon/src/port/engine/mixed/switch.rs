//! The switch of a mixed port: one plane, which both cards use in turn. Its tables have the ports of both.

use super::MixedCard;
use crate::port::engine::bus::GuestBus;
use crate::port::engine::uplink::PortUplink;
use crate::port::engine::workers::BUDGET;
use i82576::Time;
use nic::PollResult;
use pcie::{VfIndex, VfSet};
use plane::PortSet;
use plane::guard::GuardedPlane;
use plane::uplink::UplinkTally;
use virtio_nic::VfRules;

impl MixedCard {
    /// Moves frames and sends interrupts, within the budget of a poll.
    pub(super) fn move_frames(
        &mut self,
        now: Time,
        bus: &mut GuestBus,
        uplink: &mut PortUplink,
    ) -> PollResult {
        self.follow_changes();
        let Self { avf, virtio, to_avf, to_virtio, .. } = self;
        let (card, plane, rules) = (&mut virtio.card, &mut *virtio.plane, &mut virtio.rules);
        plane.now = now;
        (plane.uplink.link, plane.uplink.receives) = (avf.link, true);
        rules.pass_windows(plane);
        // Only virtio VFs take packets that are not segmented, so the uplink's packets enter through their card.
        let from_uplink = card.arrive(plane, BUDGET, bus, uplink) | card.flush_trunk();
        to_avf.empty(|batch| avf.card.nic.leave_trunk(plane, batch, bus));
        // One round for both cards: each VF has one share of a poll, as on a port of one family.
        plane.shares.begin_round();
        // After each VF, so that a VF that fills a trunk loses its own frames and no neighbour's.
        let from_avf = avf.card.nic.visit_ready_vfs(plane, BUDGET, bus, uplink, |plane, bus| {
            to_virtio.empty(|batch| card.leave_trunk(plane, batch, bus));
        });
        let from_virtio = card.visit_ready_vfs(plane, BUDGET, bus, uplink, |plane, bus| {
            to_avf.empty(|batch| avf.card.nic.leave_trunk(plane, batch, bus));
        });
        avf.card.nic.give_back(bus);
        plane.tally = UplinkTally::default();
        let poll = avf.card.nic.poll(now, &mut avf.pf_memory.bus(bus));
        avf.asking = avf.asking.or(VfSet::new(poll.for_pf));
        bus.charge_interrupts(&mut plane.shares);
        let more = from_uplink || from_avf || from_virtio || poll.more || poll.for_pf != 0;
        let deadlines = [poll.deadline, avf.card.nic.due(), card.due(), rules.watch(plane)];
        PollResult { more, deadline: deadlines.into_iter().flatten().min() }
    }

    /// Makes the switch's tables and rates again if addresses, filters or rules of a VF have changed.
    pub(super) fn follow_changes(&mut self) {
        let Self { avf, virtio, .. } = self;
        let by_guests = virtio.card.take_changed();
        let addresses = virtio.card.address_count() + virtio.plane.absent_addresses();
        let changed = [
            by_guests.is_some(),
            avf.take_changed(addresses, by_guests.unwrap_or_default()),
            std::mem::take(&mut virtio.changed),
        ];
        if !changed.contains(&true) {
            return;
        }
        self.reserve_addresses();
        let Self { avf, virtio, .. } = self;
        let own = !PortSet::new(virtio.others.bits());
        let mut tables = avf.card.nic.tables(virtio.card.address_count());
        virtio.card.add_ports(&mut tables, own);
        tables.mirrors = virtio.rules.mirrors();
        virtio.plane.set_tables(tables);
        avf.card.nic.set_rates(&mut virtio.plane);
        virtio.card.set_rates(&mut virtio.plane, own);
    }

    /// Has each card refuse the addresses of the other card's VFs. A virtio VF loses a learned address that an AVF VF has:
    /// their PF driver has granted it.
    fn reserve_addresses(&mut self) {
        let Self { avf, virtio, .. } = self;
        for vf in virtio.others.iter() {
            let mut addresses: Vec<_> = avf.card.nic.addresses(vf.get()).collect();
            // The VF gets its main address back after a reset.
            addresses.extend(avf.pf.vf_mac(vf.get()).filter(|mac| !addresses.contains(mac)));
            let rules = VfRules {
                enabled: false,
                addresses,
                promised: avf.decided[vf.index()].policy.mac,
                ..VfRules::default()
            };
            if virtio.card.rules(vf.get()) != Some(&rules) {
                virtio.card.set_rules(vf.get(), rules);
            }
        }
        virtio.card.take_changed();
        for vf in VfIndex::first(virtio.decided.len()).filter(|vf| !virtio.others.has(*vf)) {
            let promised = virtio.decided[vf.index()].policy.mac;
            avf.pf.reserve_address(vf.get(), virtio.card.address(vf.get()).or(promised));
        }
    }
}
