//! Settings that hold for a whole poll and are read from the registers once, at its start. Only software changes them,
//! and no register access happens during a poll. Filters are decoded when they are written (`decoded`).

use crate::interrupt::VectorAndQueueOwners;
use crate::interrupt::single::InterruptMode;
use crate::state::DeviceState;
use i82576::bits::{mrqc, rctl, rfctl, rxcsum};
use i82576::register as r;
use plane::uplink::UplinkMode;

/// Settings of the card that hold for a whole poll.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PollSettings {
    /// Owners of queues and vectors: the number of VFs, and the functions that may master the bus.
    pub(crate) owners: VectorAndQueueOwners,
    /// Kind of interrupt that the PF uses.
    pub(crate) form: InterruptMode,
    /// State of the wire: link, receive enable (RCTL.EN), and loopback in the PHY or in the MAC.
    pub(crate) uplink: UplinkMode,
    /// True if queues belong to pools (MRQC selects VMDq).
    pub(crate) pools: bool,
    /// True if received frames are hashed (MRQC selects RSS).
    pub(crate) hashes: bool,
    /// Value of RXCSUM, which selects the checksums to verify and report.
    pub(crate) checks: u32,
}

impl PollSettings {
    /// Reads the settings of a poll from the card's registers and its other state.
    pub(crate) fn of(state: &DeviceState) -> Self {
        let (control, queues) = (state.file.get(r::RCTL), state.file.get(r::MRQC) & mrqc::MODE_MASK);
        Self {
            owners: state.masters(),
            form: state.form(),
            uplink: UplinkMode {
                link: state.link,
                receives: control & rctl::EN != 0,
                loops_back: state.phy.loops_back() || control & rctl::LBM_MASK == rctl::LBM_MAC,
                passes_truncated: state.file.get(r::RFCTL) & rfctl::LEF != 0,
            },
            pools: matches!(queues, mrqc::VMDQ | mrqc::VMDQ_RSS),
            hashes: matches!(queues, mrqc::RSS | mrqc::VMDQ_RSS),
            checks: state.file.get(r::RXCSUM),
        }
    }

    /// Returns true if descriptors carry the RSS hash and not a fragment's checksum and identification (RXCSUM.PCSD).
    pub(crate) fn reports_hash(&self) -> bool {
        self.checks & rxcsum::PCSD != 0
    }
}
