//! Receive-side scaling over a VF's two queues: the card's only key and table, the mode, and the enabled pools.
//!
//! The table's lowest bit selects one of a pool's queues, so it serves every VF alike. The hash types are igb's:
//! ports count for TCP only, because a fragment has none, and fragments of a datagram must not overtake one
//! another.
//!
//! While no VF uses RSS, the mode is that of Linux igb, and the card computes no hash.
//!
//! The card has no key or table per VF.

use super::Pf;
use super::switch::update;
use crate::hal::Hal;
use i82576::VfIndex;
use i82576::bits::{mrqc, rctl, vmolr};
use i82576::register as r;

/// RSS key of Microsoft's "Verifying the RSS Hash Calculation": it spreads well, and hashes in descriptors can be
/// compared with published vectors. Linux draws a random one, so that a remote sender cannot target one of many
/// queues; with two queues there is little to target, and any guest could compute the key from its hashes.
const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];
/// Number of registers of the redirection table, with four entries each (82576 datasheet 8.10.18).
const TABLE_WORDS: u32 = 32;
/// Value of a redirection table register whose four entries alternate between the first queue and the second.
const IN_TURN: u32 = 0x0100_0100;
/// MRQC hash types while a VF uses receive-side scaling.
const TYPES: u32 = mrqc::TCP_IPV4 | mrqc::IPV4 | mrqc::TCP_IPV6 | mrqc::TCP_IPV6_EX | mrqc::IPV6;

impl Pf {
    /// Writes the RSS key, table and mode of a card that was reset and does not receive yet.
    pub(super) fn set_up_scaling<H: Hal>(&self, hal: &mut H) {
        for (word, bytes) in (0..).zip(KEY.as_chunks().0) {
            hal.write(r::rssrk(word), u32::from_le_bytes(*bytes));
        }
        for word in 0..TABLE_WORDS {
            hal.write(r::reta(word), IN_TURN);
        }
        hal.write(r::MRQC, self.queueing());
    }

    /// Enables or disables RSS for the VF's pool. If the card's RSS mode must change, stops reception of the port for
    /// the change.
    pub(super) fn apply_scaling<H: Hal>(&self, hal: &mut H, vf: VfIndex) {
        let scales = if self.state(vf).policy.rss { vmolr::RSSE } else { 0 };
        update(hal, r::vmolr(vf.pool()), vmolr::RSSE, scales);
        let queueing = self.queueing();
        if hal.read(r::MRQC) != queueing {
            update(hal, r::RCTL, rctl::EN, 0);
            hal.write(r::MRQC, queueing);
            update(hal, r::RCTL, 0, rctl::EN);
        }
    }

    /// Returns the MRQC value that the policies of all VFs require.
    fn queueing(&self) -> u32 {
        let scaled = VfIndex::all().any(|vf| self.state(vf).policy.rss);
        if scaled { mrqc::VMDQ_RSS | TYPES } else { mrqc::VMDQ }
    }
}
