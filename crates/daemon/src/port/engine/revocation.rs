//! Addresses of others that VFs of a restored port hold by `trust` or `share_mac`, which the configuration has taken from them since
//! the previous host process. The port takes such addresses back once the host's ports have restored the addresses that VFs hold,
//! and the stations at the uplink: before, no card knows who else uses an address.

use super::bus::GuestBus;
use i82576::Time;
use pcie::VfSet;
use policy::{RefusedVf, VfPolicy};

/// Card that takes addresses of others back from VFs that have lost the right to use them.
pub(in crate::port) trait AddressRevocation {
    /// Returns the VFs that have lost the right to use addresses of others since the previous host process. A later call returns
    /// none.
    fn take_distrusted(&mut self) -> VfSet;

    /// Takes the addresses that others use back from these VFs.
    ///
    /// # Errors
    /// Returns the errors of a change of a VF's policy.
    fn revoke_addresses(&mut self, vfs: VfSet, bus: &mut GuestBus, now: Time) -> Result<(), RefusedVf>;
}

/// Returns true if a VF loses the right to use addresses of others when its policy changes.
pub(super) fn loses_right(before: &VfPolicy, now: &VfPolicy) -> bool {
    let has_right = |policy: &VfPolicy| policy.trust || policy.share_mac;
    has_right(before) && !has_right(now)
}

/// Returns two policies of a VF that has lost the right to use addresses of others. Setting one after the other has a PF driver
/// check the VF's addresses again.
pub(super) fn lost_again(policy: VfPolicy) -> [VfPolicy; 2] {
    [true, false].map(|share_mac| VfPolicy { share_mac, ..policy })
}
