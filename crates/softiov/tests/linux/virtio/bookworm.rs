//! Checks the third family with an old VMM: QEMU 7.2 of Debian 12, which has no vfio-user.

use super::every::pass_all;
use super::pairs::TESTBED;
use crate::report::LinuxCheckOutcome;
use crate::world::LinuxTestbed;
use anyhow::Result;

/// Checks two guests under QEMU 7.2 by the checks of guests under a current QEMU. QEMU 7.2 adds each memory region once for every
/// queue pair.
pub(crate) fn qemu_7_2_is_enough(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let bookworm = world.assets().clone().with_bookworm_qemu()?;
    pass_all(["nora", "omar"], [&bookworm; 2], TESTBED, 20)?;
    Ok(LinuxCheckOutcome::Passed)
}
