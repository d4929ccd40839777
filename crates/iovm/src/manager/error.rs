//! What can go wrong, each with what to do about it. Left out: anything a guest does; a guest's accesses have
//! no errors.

use super::Owner;
use crate::LadderError;
use i82576::VfIndex;

/// A device that has no VFs to manage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiscoverError {
    /// Its configuration space reads as all ones.
    #[error("the physical function does not answer: is the device there?")]
    NoFunction,
    /// It has no SR-IOV capability.
    #[error("the physical function has no SR-IOV capability: this device has no VFs")]
    NoSrIov,
    /// A VF would decode nothing that can be presented.
    #[error("the SR-IOV capability has no VF BARs")]
    NoBars,
}

/// VFs that cannot be enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnableError {
    /// None were asked for.
    #[error("0 VFs were asked for: disable SR-IOV instead")]
    None,
    /// More were asked for than there are.
    #[error("{asked} VFs were asked for and the device has {total}: ask for at most {total}")]
    TooMany {
        /// VFs asked for.
        asked: u16,
        /// VFs there are.
        total: u16,
    },
    /// The number cannot change while VFs exist.
    #[error("{enabled} VFs are enabled already: disable them first")]
    AlreadyEnabled {
        /// VFs that exist.
        enabled: u16,
    },
    /// The last VF's routing id would be beyond the last bus.
    #[error("the VFs need bus numbers beyond ff: move the device to a lower bus, or enable ARI above it")]
    OffTheBus,
    /// The device did not keep what was written.
    #[error("the device did not take {asked} VFs: reset it and try again")]
    Refused {
        /// VFs asked for.
        asked: u16,
    },
}

/// A change of owner, or of presence, that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// There is no such VF.
    #[error("{vf} does not exist: {enabled} VFs are enabled")]
    NotEnabled {
        /// The VF meant.
        vf: VfIndex,
        /// VFs that exist.
        enabled: u16,
    },
    /// It was removed.
    #[error("{0} was removed: add it first")]
    Absent(VfIndex),
    /// It is there already.
    #[error("{0} is present already")]
    AlreadyPresent(VfIndex),
    /// Somebody has it.
    #[error("{vf} is assigned to {owner}: take it back first")]
    Assigned {
        /// The VF meant.
        vf: VfIndex,
        /// Who has it.
        owner: Owner,
    },
    /// Nobody has it.
    #[error("{0} is not assigned to anybody")]
    NotAssigned(VfIndex),
    /// Its last reset failed.
    #[error("{0} is quarantined because its last reset failed: reset it first")]
    Quarantined(VfIndex),
    /// It could not be made safe, and is quarantined.
    #[error(transparent)]
    Ladder(#[from] LadderError),
}

/// A state that does not fit the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The device cannot be managed at all.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// Different numbers of VFs.
    #[error("the state has {saved} VFs and the device {enabled}: restore the device first")]
    Mismatch {
        /// VFs in the state.
        saved: usize,
        /// VFs that exist.
        enabled: u16,
    },
    /// A configuration space with bytes that there are not.
    #[error(
        "the state of {0} is damaged: it names bytes beyond the 4096 of configuration space; start the port anew"
    )]
    Damaged(VfIndex),
}
