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
///
/// A port whose bus is to be reset has `x-speed=2_5`: of a faster one Linux wants to hear that its link is back, which QEMU
/// does not say (docs/conformance.md).
const IGBS: [&str; 12] = [
    "-netdev",
    "hubport,id=wire0,hubid=0",
    "-device",
    "pcie-root-port,id=port0,bus=pcie.0,addr=0x10,chassis=1,x-speed=2_5",
    "-device",
    "igb,bus=port0,netdev=wire0,mac=02:82:57:60:0a:00",
    "-netdev",
    "hubport,id=wire1,hubid=0",
    "-device",
    "pcie-root-port,id=port1,bus=pcie.0,addr=0x11,chassis=2",
    "-device",
    "igb,bus=port1,netdev=wire1,mac=02:82:57:60:0b:00",
];
/// Two of QEMU's e1000e devices, which have no function-level reset: [`BEHIND_A_PORT`], on the same wire and alone on its bus,
/// and [`ON_THE_ROOT`], on a bus that cannot be reset.
const E1000ES: [&str; 8] = [
    "-netdev",
    "hubport,id=wire2,hubid=0",
    "-device",
    "pcie-root-port,id=port2,bus=pcie.0,addr=0x12,chassis=3,x-speed=2_5",
    "-device",
    "e1000e,bus=port2,netdev=wire2,mac=02:82:57:60:0c:00,romfile=",
    "-device",
    "e1000e,bus=pcie.0,addr=0x13,mac=02:82:57:60:0d:00,romfile=",
];
const BEHIND_A_PORT: &str = "0000:03:00.0";
const ON_THE_ROOT: &str = "0000:00:13.0";
pub(crate) const PF: &str = "0000:01:00.0";
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
    let guest = boot(world, E1000ES.into_iter().fold(with_igbs(), GuestBuilder::qemu_argument))?;
    hand_over(&guest, &[PF, BEHIND_A_PORT, ON_THE_ROOT])?;
    let peer = start_igb(&guest, OTHER_PF)?;
    let functions = format!("--pf {PF} --vfs {}", VFS.len());
    drive(&guest, &functions, &peer, &Known { differs: &QEMU_DIFFERS, skipped: &[] })?;
    audit(&guest, &functions)?;
    ladder(&guest)?;
    Ok(Outcome::Passed)
}

/// What QEMU's device tells of the machine is what ours does: the port's number, in STATUS.
fn audit(guest: &LinuxGuest, functions: &str) -> Result<()> {
    let report = report(guest, &format!("--audit {functions}"))?;
    let registers = report["registers"].as_array().context("no register")?;
    let machines: Vec<&Value> = registers.iter().filter(|entry| entry["whose"] == "machine").collect();
    ensure!(machines.iter().all(|entry| entry["register"] == "STATUS"), "{machines:?}");
    ensure!(machines.len() == VFS.len() + 1, "the PF and each VF: {machines:?}");
    let rings = registers.iter().filter(|entry| entry["resource"] == "dma-ring").count();
    ensure!(rings >= 3 * VFS.len(), "{rings} registers of rings");
    Ok(())
}

/// How a device is to be reset, and what has to come of it.
#[derive(Debug)]
struct Reset {
    words: &'static str,
    function: &'static str,
    rung: &'static str,
    /// Whether it writes to its new owner's memory, since it was not reset.
    late: bool,
}

/// QEMU's devices say that D3hot and back resets them, and it does not.
const RESETS: [Reset; 6] = [
    Reset { words: "", function: PF, rung: "flr", late: false },
    Reset { words: "--hide flr", function: PF, rung: "d3hot", late: true },
    Reset { words: "--hide flr,d3hot", function: PF, rung: "bus", late: false },
    Reset { words: "--without-reset", function: PF, rung: "none", late: true },
    Reset { words: "", function: BEHIND_A_PORT, rung: "d3hot", late: true },
    Reset { words: "--hide d3hot", function: BEHIND_A_PORT, rung: "bus", late: false },
];

/// Devices that receive frames all the time write nothing to their new owner's memory after a function-level reset and after
/// a reset of their bus; without one, and after D3hot, they do, and the command says so. One without a rung is refused.
fn ladder(guest: &LinuxGuest) -> Result<()> {
    // Frames for a station that is not there, so that every device on the wire hears them.
    let flood = format!(
        "ip neigh replace 10.82.0.77 lladdr 02:82:57:60:ff:77 nud permanent dev $(ls /sys/bus/pci/devices/{OTHER_PF}/net) &&
         {{ ping -i 0.01 10.82.0.77 > /dev/null 2>&1 < /dev/null & echo $!; }}"
    );
    let flood = guest.check(&flood, COMMAND)?;
    let mut others = Vec::new();
    for reset in RESETS {
        let report = reset.run(guest)?;
        if !reset.is_as_it_has_to_be(&report) {
            others.push(format!("{reset:?}: {report}"));
        }
    }
    guest.check(&format!("kill {}", flood.trim()), COMMAND)?;
    ensure!(others.is_empty(), "{}", others.join("\n"));
    let report = report(guest, &format!("--reset {ON_THE_ROOT} --hide d3hot"))?;
    ensure!(report["refused"] == true && report["rung"] == "none" && report["bus"] == "none", "{report}");
    Ok(())
}

/// How often a reset is tried until frames have come while the command watched: a busy machine may send none for a while.
const TRIES: u32 = 4;

impl Reset {
    fn run(&self, guest: &LinuxGuest) -> Result<Value> {
        let words = format!("--reset {} {}", self.function, self.words);
        for _ in 1..TRIES {
            let report = report(guest, &words)?;
            if self.tells(&report) {
                return Ok(report);
            }
        }
        report(guest, &words)
    }

    /// Whether frames came to be written before, and after if the device still writes then.
    fn tells(&self, report: &Value) -> bool {
        report["busy_pages"] != 0 && (!self.late || report["late_pages"] != 0)
    }

    fn is_as_it_has_to_be(&self, report: &Value) -> bool {
        report["rung"] == self.rung
            && report["refused"] == false
            && self.tells(report)
            && (report["late_pages"] != 0) == self.late
    }
}

/// What `softiov drive` reports as JSON, whatever its exit status.
fn report(guest: &LinuxGuest, words: &str) -> Result<Value> {
    let output = guest.run(&format!("softiov drive --json {words}"), COMMAND)?;
    serde_json::from_str(&output.stdout).with_context(|| format!("{words}: {output:?}"))
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

/// A guest with QEMU's igb devices.
pub(crate) fn with_igbs() -> GuestBuilder {
    IGBS.into_iter().fold(LinuxGuest::builder("vfio"), GuestBuilder::qemu_argument)
}

/// Boots a guest that has the command, an IOMMU, and VFIO.
pub(crate) fn boot(world: &World, builder: GuestBuilder) -> Result<LinuxGuest> {
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
pub(crate) fn start_igb(guest: &LinuxGuest, pf: &str) -> Result<String> {
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
