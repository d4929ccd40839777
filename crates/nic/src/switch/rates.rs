//! Transmit rates in registers. RTTDQSEL selects a pool, RTTBCNRC is its rate, and RTTBCNRM bounds the lateness that the
//! card makes up for. The two queues of a pool share its rate, so the highest bit of RTTDQSEL has no effect.
//!
//! The status and drift registers of the rate scheduler are not implemented, since no driver uses them.

use super::pools::{PoolPlane, port};
use crate::file::RegisterFile;
use i82576::PoolIndex;
use i82576::bits::rttbcnrc;
use i82576::ids::MAX_VFS;
use i82576::register as r;

/// Transmit rate of each pool, as in RTTBCNRC.
#[derive(Debug, Clone, Default)]
pub(crate) struct PoolRates([u32; MAX_VFS]);

impl PoolRates {
    /// Creates the rates from each pool's saved value of RTTBCNRC.
    pub(crate) const fn new(controls: [u32; MAX_VFS]) -> Self {
        Self(controls)
    }

    /// Returns the transmit rate of a pool, as in RTTBCNRC.
    pub(crate) const fn control(&self, pool: PoolIndex) -> u32 {
        self.0[pool.index()]
    }

    /// Applies the effect of a write to a rate register. RTTBCNRC shows the rate of the pool that RTTDQSEL selects.
    pub(crate) fn written(&mut self, file: &mut RegisterFile, plane: &mut PoolPlane, offset: u32) {
        let pool = PoolIndex::of_field(file.get(r::RTTDQSEL));
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

/// Returns the link rate divided by the pool's, with 14 binary places (RF_INT and RF_DEC), or `None` without a limit.
pub(crate) fn factor(control: u32) -> Option<u32> {
    (control & rttbcnrc::RS_ENA != 0).then_some(control & rttbcnrc::FACTOR)
}
