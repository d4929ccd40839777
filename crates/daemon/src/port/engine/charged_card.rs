//! Card whose VFs pay for the measured cost of their accesses (`access_watch`).

use plane::MeasuredShares;

/// Card with accounts of its VFs' frames.
pub(in crate::port) trait ChargedCard {
    /// Returns the accounts of the VFs' frames. Port n of the plane is VF n.
    fn frame_shares(&mut self) -> &mut dyn MeasuredShares;
}
