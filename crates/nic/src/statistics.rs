//! Statistics registers of VFs, which wrap and are not cleared by reading. The port's own registers count the frames on
//! the wire (`mac`).

use crate::switch::{self, pool};
use crate::work::FramePathState;
use i82576::PoolIndex;
use i82576::ids::FCS;
use i82576::register::{self as r, vf_stats};
use plane::ledger::{TrafficSum, UncountedTraffic};

impl<B> FramePathState<'_, B> {
    /// Adds the frames that pools have received to the statistics registers of their VFs.
    pub(crate) fn settle_received(&mut self, plane: &mut switch::PoolPlane) {
        for port in plane.ledger.reached().iter() {
            let (traffic, pool) = (plane.ledger.settle_received(port), pool(port));
            self.count_vf(pool, traffic.all(), (vf_stats::VFGPRC, vf_stats::VFGORC));
            self.count_vf(pool, traffic.local(), (vf_stats::VFGPRLBC, vf_stats::VFGORLBC));
            if let Some(vf) = self.scratch.conditions.owners.vf_of(pool) {
                let multicast = traffic.multicast as u32;
                self.file.count_around(r::vf_block(vf) + vf_stats::VFMPRC, multicast);
            }
        }
    }

    /// Adds the frames that a pool has sent to the statistics registers of its VF.
    pub(crate) fn count_sent(&mut self, pool: PoolIndex, traffic: &UncountedTraffic) {
        self.count_vf(pool, traffic.all(), (vf_stats::VFGPTC, vf_stats::VFGOTC));
        self.count_vf(pool, traffic.local(), (vf_stats::VFGPTLBC, vf_stats::VFGOTLBC));
    }

    /// Counts frames in a VF's packet and octet registers; octets include the frame check sequence.
    fn count_vf(&mut self, pool: PoolIndex, sum: TrafficSum, (packets, octets): (u32, u32)) {
        if let Some(vf) = self.scratch.conditions.owners.vf_of(pool) {
            let TrafficSum { packets: count, bytes } = sum;
            self.file.count_around(r::vf_block(vf) + packets, count as u32);
            self.file.count_around(r::vf_block(vf) + octets, (bytes + count * FCS as u64) as u32);
        }
    }
}
