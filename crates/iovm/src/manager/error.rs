//! Errors of the SR-IOV manager, each with a remedy. A guest's accesses have no errors.

use super::VfOwner;
use crate::FunctionResetError;
use i82576::VfIndex;

/// Reason why a device has no VFs to manage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VfDiscoveryError {
    /// The device's configuration space reads as all ones: no function is there.
    #[error("the physical function does not respond: check that the device is present")]
    NoFunction,
    /// The device has no SR-IOV capability.
    #[error("the physical function has no SR-IOV capability: this device has no VFs")]
    NoSrIov,
    /// The SR-IOV capability defines no BAR for a VF.
    #[error("the SR-IOV capability has no VF BARs")]
    NoBars,
}

/// Reason why VFs cannot be enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VfEnableError {
    /// The request was to enable 0 VFs, which is refused.
    #[error("0 VFs were requested: disable SR-IOV instead")]
    None,
    /// The request was for more VFs than the device has.
    #[error("{asked} VFs were requested, but the device has {total}: request at most {total}")]
    TooMany {
        /// Requested number of VFs, which the device does not have.
        asked: u16,
        /// Number of VFs that the device has.
        total: u16,
    },
    /// The number of VFs cannot change while VFs are enabled.
    #[error("{enabled} VFs are enabled already: disable them first")]
    AlreadyEnabled {
        /// Number of VFs that are enabled at present.
        enabled: u16,
    },
    /// The last VF's routing id would be beyond the last bus.
    #[error("the VFs need bus numbers beyond ff: move the device to a lower bus, or enable ARI above it")]
    OffTheBus,
    /// The device did not keep the written number of VFs.
    #[error("the device did not accept {asked} VFs: reset it and try again")]
    Refused {
        /// Requested number of VFs, which the device did not keep.
        asked: u16,
    },
}

/// Reason why a VF cannot be added, removed, assigned or taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VfAssignmentError {
    /// The VF to add, remove, assign or take back is not enabled.
    #[error("{vf} does not exist: {enabled} VFs are enabled")]
    NotEnabled {
        /// Index of the VF that is not enabled.
        vf: VfIndex,
        /// Number of VFs that are enabled at present.
        enabled: u16,
    },
    /// The VF was removed by the manager and not added again.
    #[error("{0} was removed: add it first")]
    Absent(VfIndex),
    /// The VF to add is present in the manager already.
    #[error("cannot add {0}: the VF is present in the manager already")]
    AlreadyPresent(VfIndex),
    /// The VF has an owner, and must be taken back first.
    #[error("{vf} is assigned to {owner}: take the VF back first")]
    Assigned {
        /// Index of the VF that has an owner.
        vf: VfIndex,
        /// Owner that the VF has.
        owner: VfOwner,
    },
    /// The VF to take back has no owner.
    #[error("{0} has no owner to take it back from")]
    NotAssigned(VfIndex),
    /// The VF is quarantined, since its last reset failed.
    #[error("{0} is quarantined because its last reset failed: reset the VF first")]
    Quarantined(VfIndex),
    /// The VF could not be reset between two owners, and is quarantined.
    #[error(transparent)]
    Ladder(#[from] FunctionResetError),
}

/// Reason why a saved state of the manager does not fit the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ManagerRestoreError {
    /// The device has no VFs to manage.
    #[error(transparent)]
    Discover(#[from] VfDiscoveryError),
    /// The saved state and the device have different numbers of VFs.
    #[error("the saved state has {saved} VFs and the device has {enabled}: restore the device first")]
    Mismatch {
        /// Number of VFs in the manager's saved state.
        saved: usize,
        /// Number of VFs that are enabled on the device.
        enabled: u16,
    },
    /// The saved configuration space of a VF is longer than 4096 bytes.
    #[error(
        "the saved state of {0} is damaged: bytes lie beyond the 4096 of configuration space; restart the \
         port without the saved state"
    )]
    Damaged(VfIndex),
}
