//! Transmit rates in registers: RTTDQSEL selects a pool, RTTBCNRC is its rate, RTTBCNRM how much lateness is made up for.
//! The two queues of a pool share its rate; hence RTTDQSEL selects a pool, and its highest bit makes no difference.
//!
//! Left out: the status and drift registers of the rate scheduler, which no driver uses.

use super::pools::{Plane, port};
use crate::file::RegisterFile;
use i82576::Pool;
use i82576::bits::rttbcnrc;
use i82576::ids::MAX_VFS;
use i82576::register as r;

/// RTTBCNRC of each pool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rates([u32; MAX_VFS]);

impl Rates {
    /// As they were saved.
    pub(crate) const fn new(controls: [u32; MAX_VFS]) -> Self {
        Self(controls)
    }

    /// RTTBCNRC of a pool.
    pub(crate) const fn control(&self, pool: Pool) -> u32 {
        self.0[pool.index()]
    }

    /// A register was written. The registers behind RTTDQSEL show the pool that is selected.
    pub(crate) fn written(&mut self, file: &mut RegisterFile, plane: &mut Plane, offset: u32) {
        let pool = Pool::of_field(file.get(r::RTTDQSEL));
        match offset {
            r::RTTDQSEL => file.set(r::RTTBCNRC, self.control(pool)),
            r::RTTBCNRC => {
                self.0[pool.index()] = file.get(r::RTTBCNRC);
                plane.pacing.set_rate(port(pool), factor(self.control(pool)));
            }
            _ => {}
        }
    }
}

/// Link rate over the pool's, with 14 binary places; `None` without a limit.
pub(crate) fn factor(control: u32) -> Option<u32> {
    (control & rttbcnrc::RS_ENA != 0).then_some(control & rttbcnrc::FACTOR)
}
