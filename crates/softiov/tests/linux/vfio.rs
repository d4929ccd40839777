//! Checks our PF and VF drivers on QEMU's igb device, and our VF driver under another PF driver. `softiov drive` runs
//! its checks in a guest whose kernel passes it the functions through VFIO; each check must have the result that is
//! known of the card.

use crate::guest::{BOOT, COMMAND};
use crate::report::LinuxCheckOutcome;
use crate::world::{LinuxTestbed, SECOND_VISITOR, VISITOR};
use anyhow::{Context, Result, ensure};
use linux_guest::{GuestBuilder, LinuxGuest};
use serde_json::Value;
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_softiov");

/// Two of QEMU's igb devices on one wire, each behind a root port: [`PF`] and [`OTHER_PF`].
///
/// A port whose bus is reset has `x-speed=2_5`: for a faster port, Linux waits for a link report that QEMU does not
/// send (docs/conformance.md).
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
/// Two of QEMU's e1000e devices, which have no function-level reset: [`BEHIND_A_PORT`], on the same wire and alone on
/// its bus, and [`ON_THE_ROOT`], on a bus that cannot be reset.
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
pub(crate) const OTHER_PF: &str = "0000:02:00.0";
/// PCI addresses of the first two VFs of QEMU's igb device that SoftIOV's driver drives: the first at offset 0x80, the
/// second at the stride after it.
const VFS: [&str; 2] = ["0000:01:10.0", "0000:01:10.2"];
/// PCI addresses, in the guest, of two VFs of SoftIOV's card, each behind a root port of its own.
const OUR_VFS: [&str; 2] = ["0000:01:00.0", "0000:02:00.0"];

/// Names of the driver checks that QEMU's igb device fails, because it differs from the datasheet
/// (docs/conformance.md). SoftIOV's drivers do not depend on these features.
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
/// Names of the driver checks that cannot run on VFs alone.
const TAKES_THE_PF: [&str; 2] = ["port-vlan", "pf-reset"];

/// Checks that SoftIOV's PF driver drives QEMU's igb device and enables VFs, and that SoftIOV's VF drivers work on
/// these VFs. Stock igb on the second device, a station on the wire, receives their frames.
pub(crate) fn our_drivers_drive_qemus_igb(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let guest = boot(world, E1000ES.into_iter().fold(with_igbs(), GuestBuilder::qemu_argument))?;
    hand_over(&guest, &[PF, BEHIND_A_PORT, ON_THE_ROOT])?;
    let peer = start_igb(&guest, OTHER_PF)?;
    let functions = format!("--pf {PF} --vfs {}", VFS.len());
    drive(&guest, &functions, &peer, &ExpectedDeviations { differs: &QEMU_DIFFERS, skipped: &[] })?;
    audit(&guest, &functions)?;
    ladder(&guest)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Audits registers of QEMU's device by `softiov drive --audit`. Checks that it exposes the same value of the machine
/// as SoftIOV's card: the port's number, in STATUS.
fn audit(guest: &LinuxGuest, functions: &str) -> Result<()> {
    let report = report(guest, &format!("--audit {functions}"))?;
    let registers = report["registers"].as_array().context("the audit report has no registers")?;
    let machines: Vec<&Value> = registers.iter().filter(|entry| entry["whose"] == "machine").collect();
    ensure!(machines.iter().all(|entry| entry["register"] == "STATUS"), "{machines:?}");
    ensure!(machines.len() == VFS.len() + 1, "not one register for the PF and for each VF: {machines:?}");
    let rings = registers.iter().filter(|entry| entry["resource"] == "dma-ring").count();
    ensure!(rings >= 3 * VFS.len(), "the audit found only {rings} registers of rings");
    Ok(())
}

/// Reset of a device by `softiov drive --reset`, with its options, and the expected result.
#[derive(Debug)]
struct ExpectedReset {
    words: &'static str,
    function: &'static str,
    rung: &'static str,
    /// True if the device is expected to write to its new owner's memory, because the reset has no effect.
    late: bool,
}

/// Resets of QEMU's devices and their results. The devices claim that a change to D3hot and back resets them, which is
/// not true.
const RESETS: [ExpectedReset; 6] = [
    ExpectedReset { words: "", function: PF, rung: "flr", late: false },
    ExpectedReset { words: "--hide flr", function: PF, rung: "d3hot", late: true },
    ExpectedReset { words: "--hide flr,d3hot", function: PF, rung: "bus", late: false },
    ExpectedReset { words: "--without-reset", function: PF, rung: "none", late: true },
    ExpectedReset { words: "", function: BEHIND_A_PORT, rung: "d3hot", late: true },
    ExpectedReset { words: "--hide d3hot", function: BEHIND_A_PORT, rung: "bus", late: false },
];

/// Checks that devices under constant traffic write nothing to their new owner's memory after a function-level reset
/// and after a bus reset. Without a reset, and after D3hot, they do, and the command reports it. A device without any
/// method is refused.
fn ladder(guest: &LinuxGuest) -> Result<()> {
    // Frames for an unknown station, so that every device on the wire receives them.
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

/// Number of attempts per reset until frames have arrived while the command watched: a machine under load may send
/// none for a while.
const TRIES: u32 = 4;

impl ExpectedReset {
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

    /// Returns true if the report shows frames that the device wrote before the reset, and, if that is expected, frames
    /// written after the reset.
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

/// Runs `softiov drive` in a guest, and returns its JSON report, whatever its exit status.
fn report(guest: &LinuxGuest, words: &str) -> Result<Value> {
    let output = guest.run(&format!("softiov drive --json {words}"), COMMAND)?;
    serde_json::from_str(&output.stdout).with_context(|| format!("{words}: {output:?}"))
}

/// Checks that SoftIOV's VF driver works with stock igb as the PF's driver, and reaches the PF.
pub(crate) fn our_vf_driver_works_under_stock_igb(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let guest = boot(world, with_igbs())?;
    let peer = start_igb(&guest, PF)?;
    guest.check(&format!("echo {} > /sys/bus/pci/devices/{PF}/sriov_numvfs", VFS.len()), COMMAND)?;
    hand_over(&guest, &VFS)?;
    let known = ExpectedDeviations { differs: &QEMU_DIFFERS, skipped: &TAKES_THE_PF };
    drive(&guest, &vf_arguments(&VFS), &peer, &known)
}

/// Checks that SoftIOV's VF driver works on VFs of SoftIOV's card in a guest with an IOMMU. The card reaches only the
/// memory that the program has mapped.
pub(crate) fn our_vf_driver_drives_our_card_in_a_guest(
    world: &mut LinuxTestbed,
) -> Result<LinuxCheckOutcome> {
    let builder = world.builder("vfio", VISITOR).vf_socket(world.socket(SECOND_VISITOR));
    let guest = boot(world, builder)?;
    hand_over(&guest, &OUR_VFS)?;
    let peer = world.alice()?.address();
    let known = ExpectedDeviations { differs: &[], skipped: &TAKES_THE_PF };
    drive(&guest, &vf_arguments(&OUR_VFS), &peer, &known)?;
    // The mappings of the first run are gone, and the second run makes its own.
    drive(&guest, &vf_arguments(&OUR_VFS), &peer, &known)
}

/// Returns the builder of a guest with QEMU's igb devices.
pub(crate) fn with_igbs() -> GuestBuilder {
    IGBS.into_iter().fold(LinuxGuest::builder("vfio"), GuestBuilder::qemu_argument)
}

/// Boots a guest that has the program `softiov`, an IOMMU and VFIO.
pub(crate) fn boot(world: &LinuxTestbed, builder: GuestBuilder) -> Result<LinuxGuest> {
    let assets = world.assets().clone().with_program(Path::new(PROGRAM))?;
    let guest = builder.cpus(2).iommu(true).coldplug(false).spawn(&assets)?;
    guest.wait_ready(BOOT)?;
    guest.check("modprobe vfio-pci enable_sriov=1 && modprobe vfio_iommu_type1", COMMAND)?;
    Ok(guest)
}

/// Binds functions of a guest to vfio-pci. VFs that are enabled later follow their PF.
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

/// Binds stock igb to the guest's remaining devices, assigns an IPv4 address to a PF's interface, and returns the
/// address.
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

/// Names of the driver checks that are not expected to pass: those with a different result, and those that are skipped.
struct ExpectedDeviations {
    differs: &'static [&'static str],
    skipped: &'static [&'static str],
}

impl ExpectedDeviations {
    fn result(&self, check: &str) -> &'static str {
        match check {
            check if self.differs.contains(&check) => "differs",
            check if self.skipped.contains(&check) => "skipped",
            _ => "passes",
        }
    }
}

/// Runs the driver checks by `softiov drive` in a guest, and compares the result of each with the known one. `peer` is
/// a station to ping.
fn drive(
    guest: &LinuxGuest,
    functions: &str,
    peer: &str,
    known: &ExpectedDeviations,
) -> Result<LinuxCheckOutcome> {
    let command = format!("softiov drive --json {functions} --peer {peer} --address 10.82.0.101");
    let output = guest.run(&command, COMMAND)?;
    let report: Value = serde_json::from_str(&output.stdout).with_context(|| format!("{output:?}"))?;
    let checks = report["checks"]
        .as_array()
        .filter(|checks| !checks.is_empty())
        .context("the report has no checks")?;
    for check in checks {
        let name = check["check"].as_str().context("a check without a name")?;
        ensure!(check["result"] == known.result(name), "{check}, and it should be {}", known.result(name));
    }
    ensure!(output.success(), "{output:?}");
    Ok(LinuxCheckOutcome::Passed)
}
