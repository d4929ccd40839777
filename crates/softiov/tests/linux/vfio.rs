//! The tables turned: our own PF and VF drivers on an 82576 that is not ours, QEMU's igb device, and our VF driver
//! under a PF driver that is not ours. `softiov drive` runs in a guest, whose kernel hands it the functions through
//! VFIO, and makes its checks; here each of them has to pass, but for what is known of the card. Left out: what these
//! checks are, which is the command's own.

use crate::guest::{BOOT, COMMAND};
use crate::report::Outcome;
use crate::world::{SECOND_VISITOR, VISITOR, World};
use anyhow::{Context, Result, ensure};
use linux_guest::{GuestBuilder, LinuxGuest};
use serde_json::Value;
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_softiov");

/// QEMU's igb device behind a root port: the PF is [`PF`] in the guest.
const IGB: [&str; 6] = [
    "-netdev",
    "hubport,id=wire,hubid=0",
    "-device",
    "pcie-root-port,id=port0,bus=pcie.0,addr=0x10,chassis=1",
    "-device",
    "igb,bus=port0,netdev=wire",
];
const PF: &str = "0000:01:00.0";
/// Its first two VFs: the first is at offset 0x80, the next two further on.
const VFS: [&str; 2] = ["0000:01:10.0", "0000:01:10.2"];
/// Two VFs of ours, each with a root port of its own.
const OUR_VFS: [&str; 2] = ["0000:01:00.0", "0000:02:00.0"];

/// Our VF driver gets along with stock igb as its PF's driver.
pub(crate) fn our_vf_driver_works_under_stock_igb(world: &mut World) -> Result<Outcome> {
    let guest = boot(world, with_igb())?;
    let make_vfs = format!(
        "modprobe igb && ip link set eth0 up && echo {} > /sys/bus/pci/devices/{PF}/sriov_numvfs",
        VFS.len()
    );
    guest.check(&make_vfs, COMMAND)?;
    hand_over(&guest, &VFS)?;
    drive(&guest, &vf_arguments(&VFS), &[])
}

/// Our VF driver works on VFs of our card as well when a guest's kernel has them and an IOMMU translates: the card
/// reaches no more of the guest's memory than the program gave it.
pub(crate) fn our_vf_driver_drives_our_card_in_a_guest(world: &mut World) -> Result<Outcome> {
    let builder = world.builder("vfio", VISITOR).vf_socket(world.socket(SECOND_VISITOR));
    let guest = boot(world, builder)?;
    hand_over(&guest, &OUR_VFS)?;
    drive(&guest, &vf_arguments(&OUR_VFS), &[])
}

fn with_igb() -> GuestBuilder {
    IGB.into_iter().fold(LinuxGuest::builder("vfio"), GuestBuilder::qemu_argument)
}

/// Boots a guest that has the command, an IOMMU, and VFIO.
fn boot(world: &World, builder: GuestBuilder) -> Result<LinuxGuest> {
    let assets = world.assets().clone().with_program(Path::new(PROGRAM))?;
    let guest = builder.cpus(2).iommu(true).coldplug(false).spawn(&assets)?;
    guest.wait_ready(BOOT)?;
    guest.check("modprobe vfio-pci enable_sriov=1 && modprobe vfio_iommu_type1", COMMAND)?;
    Ok(guest)
}

/// Lets VFIO have functions. VFs that are made later go the way of their PF.
fn hand_over(guest: &LinuxGuest, functions: &[&str]) -> Result<()> {
    for function in functions {
        let script = format!(
            "cd /sys/bus/pci && echo vfio-pci > devices/{function}/driver_override &&
             echo {function} > drivers_probe && [ -e drivers/vfio-pci/{function} ]"
        );
        guest.check(&script, COMMAND)?;
    }
    Ok(())
}

fn vf_arguments(vfs: &[&str]) -> String {
    vfs.iter().map(|vf| format!(" --vf {vf}")).collect()
}

/// Runs the command. Each of its checks has to pass, but for those in which the card is known to differ.
fn drive(guest: &LinuxGuest, functions: &str, differs: &[&str]) -> Result<Outcome> {
    let output = guest.run(&format!("softiov drive --json {functions}"), COMMAND)?;
    let report: Value = serde_json::from_str(&output.stdout).with_context(|| format!("{output:?}"))?;
    let checks = report["checks"].as_array().filter(|checks| !checks.is_empty()).context("no check")?;
    for check in checks {
        let known = differs.iter().any(|name| check["check"] == *name);
        ensure!(check["result"] == if known { "differs" } else { "passes" }, "{check}, of {output:?}");
    }
    ensure!(output.success(), "{output:?}");
    Ok(Outcome::Passed)
}
