//! Options of `attack-guest`, and the program itself.

use super::binding::UnboundDevice;
use super::bus::{AttackedFunction, SysfsBus};
use super::examine::check_usable;
use super::memory_map::MemoryMap;
use super::result::{GuestReport, GuestResult};
use super::run::{GuestRun, steps};
use super::tell;
use crate::case::{AttackCase, AttackGroup};
use crate::cases::GROUPS;
use crate::device::AttackedDevice;
use crate::run::select;
use anyhow::{Context, Result, ensure};
use host::poll::SignalHandlers;
use host::vfio::{PciAddress, PciIds, PciSysfs};
use std::io::Write;
use std::time::Duration;

/// Options of the program.
#[derive(Debug, Clone, clap::Parser)]
#[command(
    bin_name = "attack-guest",
    about = "Attacks a network device of this virtual machine, to test the VMM's model of it. Run it as root in a machine \
             without an IOMMU, with at most 2 GiB of memory and nothing that you need.",
    after_help = "The program names each case on standard error before it runs: if the machine or its VMM ends, the last \
                  name is the case to look at."
)]
pub struct GuestAttackOptions {
    /// PCI address of the device, such as 0000:00:04.0: an 82576 VF (8086:10ca) or PF (8086:10c9), or an
    /// AVF (8086:1889).
    #[arg(long, value_name = "ADDRESS", value_parser = address, required_unless_present = "list")]
    pub device: Option<PciAddress>,
    /// Unbind the kernel driver of the device, and bind it again at the end.
    #[arg(long)]
    pub yes: bool,
    /// Run only the cases of this group, or the case of this name; may be repeated.
    #[arg(long, value_name = "GROUP|NAME")]
    pub only: Vec<String>,
    /// Do not run the case of this name; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Longest allowed access to a register, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 100)]
    pub longest_access: u64,
    /// Longest allowed time until the device works again after a case, in seconds.
    #[arg(long, value_name = "S", default_value_t = 60)]
    pub patience: u64,
    /// Ethernet address of another VF of the device's port. Requests for that address, which the PF must refuse, run only with
    /// this option.
    #[arg(long, value_name = "MAC", value_parser = mac)]
    pub neighbour: Option<[u8; 6]>,
    /// List the cases with their rules, and run none.
    #[arg(long)]
    pub list: bool,
    /// Print the results as JSON, and the table on standard error.
    #[arg(long)]
    pub json: bool,
}

fn address(text: &str) -> Result<PciAddress, String> {
    text.parse()
        .map_err(|_| format!("{text} is no PCI address such as 0000:00:04.0: see `ls /sys/bus/pci/devices`"))
}

fn mac(text: &str) -> Result<[u8; 6], String> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| format!("{text} is no Ethernet address such as 02:00:00:00:00:01"))
}

/// Runs or lists the selected cases. Returns true if all of them passed.
///
/// # Errors
/// The device is not attackable, or does not work before the first case.
pub fn attack(options: &GuestAttackOptions) -> Result<bool> {
    if options.list {
        list();
        return Ok(true);
    }
    let cases = selected(&options.only, &options.skip)?;
    let pci = PciSysfs::default();
    let device = options.device.context("--device is missing")?;
    let PciIds { vendor, device: id } = pci.ids(device)?;
    let kind = AttackedDevice::of(vendor, id).with_context(|| {
        format!(
            "device {device} has ID {vendor:04x}:{id:04x}: there are cases for 8086:10ca, 8086:10c9 and 8086:1889 only"
        )
    })?;
    let memory_map = MemoryMap::read()?;
    // Signals end the run between cases: until then the device is not reset, and its driver not bound.
    let signals = SignalHandlers::install().context("cannot handle signals")?;
    UnboundDevice::take(&pci, device, options.yes)?.during(|| {
        let run = run_of(options, kind, &memory_map);
        let report = attack_device(&run, &cases, SysfsBus::open(&pci, device, &signals)?)?;
        let report =
            GuestReport { device: device.to_string(), id: format!("{vendor:04x}:{id:04x}"), ..report };
        print(&report, options.json).context("cannot print the report")?;
        Ok(report.has_passed())
    })
}

fn print(report: &GuestReport, json: bool) -> Result<()> {
    let mut output = std::io::stdout();
    if json {
        tell(format_args!("{report}"));
        writeln!(output, "{}", serde_json::to_string_pretty(report)?)?;
    } else {
        writeln!(output, "{report}")?;
    }
    Ok(())
}

type SelectedCases = Vec<(&'static AttackGroup, &'static AttackCase)>;

/// Returns the cases of `only` without those of `skip`.
fn selected(only: &[String], skip: &[String]) -> Result<SelectedCases> {
    let mut cases = select(GROUPS, only);
    for name in skip {
        let count = cases.len();
        cases.retain(|(_, case)| case.name != name);
        ensure!(cases.len() < count, "no selected case is called {name:?}: `--list` lists all");
    }
    ensure!(!cases.is_empty(), "no group or case is called {only:?}: `--list` lists all");
    Ok(cases)
}

fn list() {
    for (group, case) in select(GROUPS, &[]) {
        if AttackedDevice::ALL.iter().any(|device| steps(case, *device).is_some()) {
            println!("{:<16} {:<44} {:<7} {}", group.name, case.name, case.family, case.rule);
        }
    }
}

/// Returns the limits and addresses of a run.
fn run_of<'a>(
    options: &GuestAttackOptions,
    device: AttackedDevice,
    memory_map: &'a MemoryMap,
) -> GuestRun<'a> {
    GuestRun {
        device,
        limit: Duration::from_millis(options.longest_access),
        patience: Duration::from_secs(options.patience),
        neighbour: options.neighbour,
        memory_map,
    }
}

/// Runs the selected cases on a device that no driver holds, and resets the device.
fn attack_device(run: &GuestRun<'_>, cases: &SelectedCases, mut bus: SysfsBus<'_>) -> Result<GuestReport> {
    let device = run.device;
    check_usable(&mut bus, device, run.patience).context("the device does not work before the first case")?;
    let mut report = GuestReport { not_applicable: run.not_applicable(cases), ..GuestReport::default() };
    let not_run = run.run(
        &mut bus,
        cases,
        |case| tell(format_args!("{}", case.name)),
        |result| {
            let GuestResult { result: verdict, longest_access_us, .. } = &result;
            tell(format_args!("  {}, longest access {longest_access_us} us", verdict.words()));
            report.results.push(result);
        },
    );
    report.not_run = not_run;
    report.interrupted = bus.is_interrupted();
    ensure!(
        report.interrupted || !report.results.is_empty(),
        "no selected case is for this device: `--list` lists all"
    );
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn unknown_case_names_are_refused() {
        let name = |text: &str| vec![text.to_owned()];
        let one = selected(&name("resets"), &name("every-bit-of-ctrl")).unwrap();
        assert!(one.iter().all(|(group, case)| group.name == "resets" && case.name != "every-bit-of-ctrl"));
        assert!(selected(&name("no-such"), &[]).is_err());
        assert!(selected(&[], &name("no-such")).unwrap_err().to_string().contains("no-such"));
    }

    #[test]
    fn options_need_a_device_address() {
        assert!(GuestAttackOptions::try_parse_from(["attack-guest"]).is_err());
        assert!(GuestAttackOptions::try_parse_from(["attack-guest", "--list"]).is_ok());
        let error = GuestAttackOptions::try_parse_from(["attack-guest", "--device", "eth0"]).unwrap_err();
        assert!(error.to_string().contains("eth0 is no PCI address"), "{error}");
        let error =
            GuestAttackOptions::try_parse_from(["attack-guest", "--list", "--neighbour", "1:2"]).unwrap_err();
        assert!(error.to_string().contains("1:2 is no Ethernet address"), "{error}");
    }
}
