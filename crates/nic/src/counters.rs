//! What the card shows of what was counted: for its owner a set of counters a pool, which the plane keeps, and for drivers the
//! VF's statistics registers, which wrap and are never cleared by reading. Left out: the port's registers, which count
//! what crosses the wire (`uplink`).

use crate::policy::{self, pool};
use crate::state::Card;
use crate::work::Work;
use i82576::Pool;
use i82576::ids::{FCS, MAX_VFS};
use i82576::register::{self as r, vf_stats};
use plane::ledger::{Sum, Traffic};

pub use plane::PortCounters as PoolCounters;

/// RQDPC has 12 bits and stops at its end.
pub(crate) const RQDPC_END: u32 = 0xfff;

/// The counters of all pools.
pub type Counters = [PoolCounters; MAX_VFS];

impl<B> Work<'_, B> {
    /// Adds what pools have received to their counters.
    pub(crate) fn settle_received(&mut self, plane: &mut policy::Plane) {
        for port in plane.ledger.reached().iter() {
            let (traffic, pool) = (plane.ledger.settle_received(port), pool(port));
            self.state.count_vf(pool, traffic.all(), (vf_stats::VFGPRC, vf_stats::VFGORC));
            self.state.count_vf(pool, traffic.local(), (vf_stats::VFGPRLBC, vf_stats::VFGORLBC));
            if let Some(vf) = self.state.owners.vf_of(pool) {
                let multicast = traffic.multicast as u32;
                self.state.file.count_around(r::vf_block(vf) + vf_stats::VFMPRC, multicast);
            }
        }
    }
}

impl Card {
    /// Counts what a pool has sent.
    pub(crate) fn count_sent(&mut self, pool: Pool, traffic: &Traffic) {
        self.count_vf(pool, traffic.all(), (vf_stats::VFGPTC, vf_stats::VFGOTC));
        self.count_vf(pool, traffic.local(), (vf_stats::VFGPTLBC, vf_stats::VFGOTLBC));
    }

    /// Counts frames in a VF's packet and octet registers; octets include the frame check sequence.
    fn count_vf(&mut self, pool: Pool, sum: Sum, (packets, octets): (u32, u32)) {
        if let Some(vf) = self.owners.vf_of(pool) {
            let Sum { packets: count, bytes } = sum;
            self.file.count_around(r::vf_block(vf) + packets, count as u32);
            self.file.count_around(r::vf_block(vf) + octets, (bytes + count * FCS as u64) as u32);
        }
    }
}
