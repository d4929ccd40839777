//! What holds for a whole poll and is looked up once, at its start: only software changes it, and software has no turn
//! while the card polls. Left out: what frames change, and the filters, which are decoded when they are written
//! (`decoded`).

use crate::interrupt::Owners;
use crate::interrupt::single::Form;
use crate::state::Card;
use i82576::bits::{mrqc, rctl, rfctl, rxcsum};
use i82576::register as r;
use plane::uplink::Uplink;

/// The conditions of a poll.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    /// VFs that exist, and the functions that may master the bus now.
    pub(crate) owners: Owners,
    /// How the PF interrupts.
    pub(crate) form: Form,
    /// How the wire is: whether the port has a link, receives at all, and loops back what it sends, in the PHY or before it.
    pub(crate) uplink: Uplink,
    /// Queues belong to pools.
    pub(crate) pools: bool,
    /// Frames are hashed.
    pub(crate) hashes: bool,
    /// RXCSUM.
    pub(crate) checks: u32,
}

impl Conditions {
    /// The conditions as they are now.
    pub(crate) fn of(state: &Card) -> Self {
        let (control, queues) = (state.file.get(r::RCTL), state.file.get(r::MRQC) & mrqc::MODE_MASK);
        Self {
            owners: state.masters(),
            form: state.form(),
            uplink: Uplink {
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

    /// Descriptors have the RSS hash in the place of a fragment's sum and identification.
    pub(crate) fn tells_hash(&self) -> bool {
        self.checks & rxcsum::PCSD != 0
    }
}
