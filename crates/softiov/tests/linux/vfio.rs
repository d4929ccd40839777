//! The tables turned: our own PF and VF drivers on an 82576 that is not ours, QEMU's igb device, and our VF driver
//! under a PF driver that is not ours. `softiov drive` runs in a guest, whose kernel hands it the functions through
//! VFIO, and makes its checks; here each of them has to come out as the card is known to be. Left out: what these
//! checks are, which is the command's own.

use crate::guest::{BOOT, COMMAND};
use crate::report::Outcome;
use crate::world::{SECOND_VISITOR, VISITOR, World};
use anyhow::{Context, Result, ensure};
use linux_guest::{GuestBuilder, LinuxGuest};
use serde_json::Value;
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_softiov");

/// Two of QEMU's igb devices on one wire, each behind a root port: [`PF`] and [`OTHER_PF`].
const IGBS: [&str; 12] = [
    "-netdev",
    "hubport,id=wire0,hubid=0",
    "-device",
    "pcie-root-port,id=port0,bus=pcie.0,addr=0x10,chassis=1",
    "-device",
    "igb,bus=port0,netdev=wire0,mac=02:82:57:60:0a:00",
    "-netdev",
    "hubport,id=wire1,hubid=0",
    "-device",
    "pcie-root-port,id=port1,bus=pcie.0,addr=0x11,chassis=2",
    "-device",
    "igb,bus=port1,netdev=wire1,mac=02:82:57:60:0b:00",
];
const PF: &str = "0000:01:00.0";
const OTHER_PF: &str = "0000:02:00.0";
/// The first two VFs of [`PF`]: the first is at offset 0x80, the next two further on.
const VFS: [&str; 2] = ["0000:01:10.0", "0000:01:10.2"];
/// Two VFs of ours, each with a root port of its own.
const OUR_VFS: [&str; 2] = ["0000:01:00.0", "0000:02:00.0"];

/// In what QEMU's igb device differs from the datasheet where our drivers do not depend on it. What it does is in
/// docs/conformance.md.
const QEMU_DIFFERS: [&str; 9] = [
    "broadcast",
    "loopback-statistics",
    "all-multicast",
    "spoofed-address",
    "spoofed-vlan",
    "segmentation",
    "interrupts",
    "masking",
    "vf-reset",
];
/// What cannot be asked of VFs alone.
const TAKES_THE_PF: [&str; 2] = ["port-vlan", "pf-reset"];

/// Our PF driver takes QEMU's igb device, makes VFs, and our VF drivers work on them. A station on the wire, which
/// stock igb on the other device makes, hears them.
pub(crate) fn our_drivers_drive_qemus_igb(world: &mut World) -> Result<Outcome> {
    let guest = boot(world, with_igbs())?;
    hand_over(&guest, &[PF])?;
    let peer = start_igb(&guest, OTHER_PF)?;
    let functions = format!("--pf {PF} --vfs {}", VFS.len());
    drive(&guest, &functions, &peer, &Known { differs: &QEMU_DIFFERS, skipped: &[] })
}

/// Our VF driver gets along with stock igb as its PF's driver, and reaches the PF.
pub(crate) fn our_vf_driver_works_under_stock_igb(world: &mut World) -> Result<Outcome> {
    let guest = boot(world, with_igbs())?;
    let peer = start_igb(&guest, PF)?;
    guest.check(&format!("echo {} > /sys/bus/pci/devices/{PF}/sriov_numvfs", VFS.len()), COMMAND)?;
    hand_over(&guest, &VFS)?;
    let known = Known { differs: &QEMU_DIFFERS, skipped: &TAKES_THE_PF };
    drive(&guest, &vf_arguments(&VFS), &peer, &known)
}

/// Our VF driver works on VFs of our card as well when a guest's kernel has them and an IOMMU translates: the card
/// reaches no more of the guest's memory than the program gave it.
pub(crate) fn our_vf_driver_drives_our_card_in_a_guest(world: &mut World) -> Result<Outcome> {
    let builder = world.builder("vfio", VISITOR).vf_socket(world.socket(SECOND_VISITOR));
    let guest = boot(world, builder)?;
    hand_over(&guest, &OUR_VFS)?;
    let peer = world.alice()?.address();
    let known = Known { differs: &[], skipped: &TAKES_THE_PF };
    drive(&guest, &vf_arguments(&OUR_VFS), &peer, &known)?;
    // What the first run had mapped is gone, and the second maps its own.
    drive(&guest, &vf_arguments(&OUR_VFS), &peer, &known)
}

fn with_igbs() -> GuestBuilder {
    IGBS.into_iter().fold(LinuxGuest::builder("vfio"), GuestBuilder::qemu_argument)
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

/// Lets stock igb have what is left, and gives an address to a PF, which it answers.
fn start_igb(guest: &LinuxGuest, pf: &str) -> Result<String> {
    let address = "10.82.0.254";
    let script = format!(
        "modprobe igb && eth=$(ls /sys/bus/pci/devices/{pf}/net) &&
         ip addr add {address}/24 dev $eth && ip link set $eth up"
    );
    guest.check(&script, COMMAND)?;
    Ok(address.to_owned())
}

fn vf_arguments(vfs: &[&str]) -> String {
    vfs.iter().map(|vf| format!(" --vf {vf}")).collect()
}

/// What comes out of the command's checks other than that they pass.
struct Known {
    differs: &'static [&'static str],
    skipped: &'static [&'static str],
}

impl Known {
    fn result(&self, check: &str) -> &'static str {
        match check {
            check if self.differs.contains(&check) => "differs",
            check if self.skipped.contains(&check) => "skipped",
            _ => "passes",
        }
    }
}

/// Runs the command, and compares what came of each check with what is known. `peer` is a station to ping.
fn drive(guest: &LinuxGuest, functions: &str, peer: &str, known: &Known) -> Result<Outcome> {
    let command = format!("softiov drive --json {functions} --peer {peer} --address 10.82.0.101");
    let output = guest.run(&command, COMMAND)?;
    let report: Value = serde_json::from_str(&output.stdout).with_context(|| format!("{output:?}"))?;
    let checks = report["checks"].as_array().filter(|checks| !checks.is_empty()).context("no check")?;
    for check in checks {
        let name = check["check"].as_str().context("a check without a name")?;
        ensure!(check["result"] == known.result(name), "{check}, and it should be {}", known.result(name));
    }
    ensure!(output.success(), "{output:?}");
    Ok(Outcome::Passed)
}
