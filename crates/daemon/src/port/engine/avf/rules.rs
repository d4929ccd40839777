//! What the administrator has decided for an AVF port as a whole, as the plane has it: copies and storm control. No register
//! stands between them, as one does on an 82576. Left out: single VFs, which are the PF driver's.

use avf::ids::MAX_VFS;
use i82576::Time;
use plane::switch::{Ids, Limit, Limits, Mirrors, Rule};
use plane::{Plane, Port, Ports};
use policy::{Mirror, PortPolicy, VlanSet};

/// Nanoseconds of a millisecond.
const MILLISECOND: u64 = 1_000_000;

/// The policy of the port, and what has come of it.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) policy: PortPolicy,
    /// Storms that have begun.
    pub(super) storms: u64,
    stormy: bool,
}

impl Rules {
    pub(super) fn new(policy: PortPolicy) -> Self {
        Self::resume(policy, (0, false))
    }

    /// Goes on where others stood: with so many storms, and one of them going on.
    pub(super) fn resume(policy: PortPolicy, (storms, stormy): (u64, bool)) -> Self {
        Self { policy, storms, stormy }
    }

    /// Storms that have begun, and whether one goes on.
    pub(super) fn seen(&self) -> (u64, bool) {
        (self.storms, self.stormy)
    }

    pub(super) fn mirrors(&self) -> Mirrors {
        let mut mirrors = Mirrors::default();
        self.policy.mirrors.iter().flatten().for_each(|mirror| mirrors.add(rule(mirror)));
        mirrors
    }

    /// Lets the windows of storm control pass, as they are decided now.
    pub(super) fn pass_windows(&self, plane: &mut Plane<MAX_VFS>) {
        let limits = self.limits();
        if plane.storm.limits != limits {
            plane.storm.limits = limits;
            plane.storm.restart(plane.now);
        }
        plane.storm.advance(plane.now);
    }

    /// Counts a storm that has begun. Answers when to look again whether it is over.
    pub(super) fn watch(&mut self, plane: &Plane<MAX_VFS>) -> Option<Time> {
        let stormy = plane.storm.is_on();
        self.storms += u64::from(stormy && !self.stormy);
        self.stormy = stormy;
        stormy.then(|| plane.storm.ends())
    }

    /// What goes beyond a threshold is dropped until the window ends.
    fn limits(&self) -> Limits {
        let storm = &self.policy.storm;
        let limit = |kbps| Limit { threshold: storm.blocks(kbps), drops: true, drops_next: false };
        let window = u64::from(storm.window_ms) * MILLISECOND;
        Limits { kinds: [limit(storm.broadcast), limit(storm.multicast)], window, counts_unknown: false }
    }
}

fn rule(mirror: &Mirror) -> Rule {
    let Mirror { to, vfs, ingress, egress, vlans } = mirror;
    Rule {
        to: Port::of_field(to.get().into()).only(),
        ports: Ports::new(vfs.bits()),
        from_uplink: *ingress,
        to_uplink: *egress,
        vlans: vlans.as_ref().map_or(Ids::NONE, ids),
    }
}

/// VLAN ids; 0 stands for frames without a tag, which are in no VLAN.
fn ids(set: &VlanSet) -> Ids {
    let mut ids = Ids::NONE;
    set.iter().filter(|vlan| *vlan != 0).for_each(|vlan| ids.add(vlan));
    ids
}
