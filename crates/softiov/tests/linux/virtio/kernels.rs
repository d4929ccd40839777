//! Checks virtio_net of kernels newer than 6.1: of the next Debian release's kernel, and of its backports' kernel.

use super::every::pass_all;
use super::pairs::{PAIRS, PairDevices};
use crate::kernels::is_7_or_newer;
use crate::report::LinuxCheckOutcome;
use crate::world::LinuxTestbed;
use anyhow::{Result, ensure};
use linux_guest::{BootFiles, KernelSeries};

/// Checks two guests with Linux 6.12 by the checks of guests with 6.1. The VMM of the second is QEMU 7.2.
pub(crate) fn of_trixie_passes(_: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let devices = PairDevices { pairs: [PAIRS, 1], in_order: [false; 2] };
    let [current, old] = with_both_vmms(KernelSeries::Trixie612)?;
    for release in pass_all(["pia", "quinn"], [&current, &old], devices, 22)? {
        ensure!(release.starts_with("6.12."), "the guest runs Linux {release} instead of 6.12");
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks two guests with trixie-backports' kernel by the checks of guests with 6.1. The VMM of the first is QEMU 7.2. The second's
/// driver accepts that the card uses buffers in order. Linux 6.12 does not know this feature.
pub(crate) fn of_backports_keeps_order(_: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let devices = PairDevices { pairs: [1, PAIRS], in_order: [false, true] };
    let [current, old] = with_both_vmms(KernelSeries::TrixieBackports)?;
    let releases = pass_all(["rita", "sven"], [&old, &current], devices, 24)?;
    releases.iter().try_for_each(|release| is_7_or_newer(release))?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Prepares a kernel for a current QEMU, and for QEMU 7.2.
fn with_both_vmms(series: KernelSeries) -> Result<[BootFiles; 2]> {
    let current = BootFiles::prepare(series)?;
    let old = current.clone().with_bookworm_qemu()?;
    Ok([current, old])
}
