//! Runs the program `attack-guest` in a stock guest: on VFs of our host, which must pass every case, and on QEMU's igb
//! device, of which the report is all that is required (docs/guide/attack-guest.md lists the results).

use crate::guest::BOOT;
use crate::report::LinuxCheckOutcome;
use crate::vfio::{OTHER_PF, PF as QEMU_PF, start_igb, with_igbs};
use crate::world::{BOB_AVF, CAROL_MAC, LinuxTestbed, PF, VISITOR, VISITOR_AVF};
use anyhow::{Context, Result, ensure};
use linux_guest::{GuestBuilder, LinuxGuest};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Target of the static program, which docs/guide/attack-guest.md names too.
const TARGET: &str = "x86_64-unknown-linux-musl";
/// Timeout of all cases on a device, on a busy machine. `cargo xtask test` ends a test that prints nothing for 900 seconds.
const CASES: Duration = Duration::from_secs(840);
/// PCI addresses, in the guest, of the functions of our host: a VF of each family, and a PF.
const OUR_FUNCTIONS: [&str; 3] = ["0000:01:00.0", "0000:02:00.0", "0000:03:00.0"];
/// PCI address of the first VF of QEMU's first igb device.
const QEMU_VF: &str = "0000:01:10.0";

/// Checks that a VF of each family and a PF withstand the cases of their own guest, and that the stock drivers
/// take them back.
pub(crate) fn functions_withstand_their_guest(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    world.send_visitors_home()?;
    let builder = world.builder("attacker", VISITOR);
    let builder =
        [VISITOR_AVF, PF].into_iter().fold(builder, |builder, name| builder.vf_socket(world.socket(name)));
    let Some(guest) = boot(world, builder)? else { return Ok(no_target()) };
    // A PF's guest asks no PF.
    let neighbours = [CAROL_MAC.to_owned(), world.vf(BOB_AVF)?.mac, CAROL_MAC.to_owned()];
    for (device, neighbour) in OUR_FUNCTIONS.into_iter().zip(neighbours) {
        let report = attack(&guest, &format!("{device} --neighbour {neighbour}"))?;
        let results = report["results"].as_array().context("the report has no results")?;
        let failed: Vec<_> = results.iter().filter(|result| result["result"] != "passed").collect();
        ensure!(failed.is_empty(), "{device}: {failed:#?}, not run: {}", report["not_run"]);
        ensure!(results.len() > 20, "{device}: only {} cases ran", results.len());
        let interface = format!("[ -e /sys/bus/pci/devices/{device}/net ]");
        guest.check(&interface, BOOT).with_context(|| format!("{device} has no driver after the cases"))?;
    }
    world.vf(VISITOR)?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that the program reports on QEMU's igb: on a VF, whose PF stock igb drives in the same guest, and on another PF.
pub(crate) fn qemus_igb_is_reported(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let Some(guest) = boot(world, with_igbs().coldplug(false))? else { return Ok(no_target()) };
    start_igb(&guest, QEMU_PF)?;
    // igb refuses the reset message of a VF without an address.
    let vf = format!(
        "cd /sys/bus/pci/devices/{QEMU_PF} && echo 1 > sriov_numvfs && ip link set $(ls net) vf 0 mac 02:82:57:60:0a:10"
    );
    guest.check(&vf, BOOT)?;
    for device in [QEMU_VF, OTHER_PF] {
        let report = attack(&guest, device)?;
        ensure!(report["results"][0]["case"].is_string(), "{report}");
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Runs all cases on a device, prints the results other than passed, and returns the report.
fn attack(guest: &LinuxGuest, device: &str) -> Result<Value> {
    // The guest's clock runs on while the host runs other programs, so no access is too slow for this check.
    let limit = CASES.as_millis();
    let program = format!("attack-guest --json --yes --longest-access {limit} --device {device}");
    let output = guest.run(&program, CASES)?;
    let report: Value = serde_json::from_str(&output.stdout).with_context(|| format!("{output:?}"))?;
    let results = report["results"].as_array().context("the report has no results")?;
    let failed: Vec<_> = results.iter().filter(|result| result["result"] != "passed").collect();
    let longest =
        results.iter().filter_map(|result| result["longest_access_us"].as_u64()).max().unwrap_or_default();
    let passed = results.len() - failed.len();
    println!("({passed} of {} cases on {device} passed, longest access {longest} us)", results.len());
    for result in failed {
        println!("    {}: {}: {}", result["case"], result["result"], result["detail"]);
    }
    Ok(report)
}

/// Boots a guest with the program, without an IOMMU. Returns `None` if this machine cannot build the program.
fn boot(world: &LinuxTestbed, builder: GuestBuilder) -> Result<Option<LinuxGuest>> {
    if !has_target() {
        return Ok(None);
    }
    let assets = world.assets().clone().with_program(&build()?)?;
    let guest = builder.spawn(&assets)?;
    guest.wait_ready(BOOT)?;
    Ok(Some(guest))
}

fn no_target() -> LinuxCheckOutcome {
    LinuxCheckOutcome::Skipped(format!("the target is missing: rustup target add {TARGET}"))
}

/// Returns true if the Rust toolchain has a standard library for the static target.
fn has_target() -> bool {
    let asked = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    asked.is_ok_and(|asked| Path::new(String::from_utf8_lossy(&asked.stdout).trim()).is_dir())
}

/// Builds the static program beside the program under test, so that both builds share their dependencies.
fn build() -> Result<PathBuf> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--locked", "--package", "attack", "--bin", "attack-guest"]);
    command.args(["--profile", "quick", "--target", TARGET]);
    let folder = Path::new(env!("CARGO_BIN_EXE_softiov"))
        .ancestors()
        .nth(2)
        .context("the program does not lie in a target folder")?;
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = command.arg("--target-dir").arg(folder).current_dir(&checkout).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(folder.join(TARGET).join("quick/attack-guest"))
}
