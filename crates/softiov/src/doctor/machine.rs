//! Checks the machine: kernel, virtualization, taps, and asynchronous I/O.

use super::finding::DoctorFinding;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Oldest supported Linux version: the first with epoll_pwait2.
const KERNEL: (u32, u32) = (5, 11);
/// Number of asynchronous I/O requests that each QEMU with a disk reserves (fs.aio-nr).
const AIO_PER_GUEST: u64 = 1024;

/// State of the machine, which `softiov doctor` checks.
#[derive(Debug)]
pub(super) struct HostMachineState {
    pub(super) release: String,
    /// `flags` line of the first processor in /proc/cpuinfo.
    pub(super) flags: String,
    /// Result of opening /dev/kvm.
    pub(super) kvm: io::Result<()>,
    /// Result of opening /dev/net/tun, if a port of the configuration has a tap.
    pub(super) tun: Option<io::Result<()>>,
    /// Limit and number of reserved asynchronous I/O requests (fs.aio-max-nr, fs.aio-nr).
    pub(super) aio: Option<(u64, u64)>,
}

impl HostMachineState {
    /// Reads the state of this machine for the checks of `softiov doctor`.
    pub(super) fn read(has_taps: bool) -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let number = |path: &str| text(path).trim().parse().ok();
        let cpuinfo = text("/proc/cpuinfo");
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        Self {
            release: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            flags: flags.to_owned(),
            kvm: open("/dev/kvm"),
            tun: has_taps.then(|| open("/dev/net/tun")),
            aio: number("/proc/sys/fs/aio-max-nr").zip(number("/proc/sys/fs/aio-nr")),
        }
    }

    pub(super) fn judge(&self) -> Vec<DoctorFinding> {
        let mut findings = vec![self.kernel(), self.acceleration()];
        findings.extend(self.tun.as_ref().map(tun));
        findings.extend(self.aio.map(aio));
        findings
    }

    fn kernel(&self) -> DoctorFinding {
        let mut parts = self.release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        let version = parts.next().zip(parts.next());
        match version {
            Some(version) if version < KERNEL => DoctorFinding::problem(
                "kernel",
                format!("Linux {} is older than {}.{}", self.release, KERNEL.0, KERNEL.1),
                "boot a newer kernel: the host waits with epoll_pwait2",
            ),
            _ => DoctorFinding::ok("kernel", format!("Linux {}", self.release)),
        }
    }

    fn acceleration(&self) -> DoctorFinding {
        let has = |flag: &str| self.flags.split_whitespace().any(|found| found == flag);
        let slow = "guests are emulated, about ten times slower";
        match &self.kvm {
            _ if !has("vmx") && !has("svm") => DoctorFinding::warning(
                "kvm",
                format!("the processor offers no virtualization: {slow}"),
                "enable VT-x or AMD-V in the firmware; in a virtual machine, nested virtualization in its hypervisor",
            ),
            Err(error) => DoctorFinding::warning(
                "kvm",
                format!("cannot open /dev/kvm ({error}): {slow}"),
                match error.kind() {
                    ErrorKind::PermissionDenied => "add the user who starts QEMU to the group kvm",
                    _ => "load the module kvm_intel or kvm_amd",
                },
            ),
            Ok(()) => DoctorFinding::ok("kvm", "/dev/kvm can be opened"),
        }
    }
}

fn open(path: &str) -> io::Result<()> {
    OpenOptions::new().read(true).write(true).open(Path::new(path)).map(drop)
}

fn tun(opened: &io::Result<()>) -> DoctorFinding {
    match opened {
        Ok(()) => DoctorFinding::ok("tap", "/dev/net/tun can be opened"),
        Err(error) => DoctorFinding::problem(
            "tap",
            format!("a port has a tap, but /dev/net/tun cannot be opened: {error}"),
            match error.kind() {
                ErrorKind::PermissionDenied => {
                    "start the host as root or with CAP_NET_ADMIN; in a container, pass the device"
                }
                _ => "load the module tun; in a container, pass the device (--device /dev/net/tun)",
            },
        ),
    }
}

fn aio((most, taken): (u64, u64)) -> DoctorFinding {
    let left = most.saturating_sub(taken);
    let seen = format!("{taken} of {most} asynchronous I/O requests are reserved");
    if left < AIO_PER_GUEST {
        return DoctorFinding::warning(
            "aio",
            seen,
            "run `sysctl fs.aio-max-nr=1048576`: QEMU cannot start a disk with aio=native",
        );
    }
    DoctorFinding::ok("aio", seen)
}

#[cfg(test)]
mod tests {
    use super::super::finding::DoctorVerdict;
    use super::HostMachineState;
    use std::io::ErrorKind;

    fn good() -> HostMachineState {
        HostMachineState {
            release: "6.1.0-56-amd64".into(),
            flags: "flags : fpu vmx".into(),
            kvm: Ok(()),
            tun: Some(Ok(())),
            aio: Some((65_536, 0)),
        }
    }

    /// Checks a machine's state. Returns the check's name and the severity of each finding that reports a fault.
    fn found(machine: &HostMachineState) -> Vec<(&'static str, DoctorVerdict)> {
        let findings = machine.judge().into_iter().filter(|finding| finding.verdict != DoctorVerdict::Ok);
        findings.map(|finding| (finding.check, finding.verdict)).collect()
    }

    #[test]
    fn doctor_reports_one_finding_for_each_machine_problem() {
        let (warning, problem) = (DoctorVerdict::Warning, DoctorVerdict::Problem);
        assert_eq!(found(&good()), []);
        assert_eq!(found(&HostMachineState { release: "5.10.0-3".into(), ..good() }), [("kernel", problem)]);
        assert_eq!(found(&HostMachineState { flags: String::new(), ..good() }), [("kvm", warning)]);
        let denied = || Err(ErrorKind::PermissionDenied.into());
        assert_eq!(found(&HostMachineState { kvm: denied(), ..good() }), [("kvm", warning)]);
        assert_eq!(found(&HostMachineState { tun: Some(denied()), ..good() }), [("tap", problem)]);
        assert_eq!(
            found(&HostMachineState { tun: Some(Err(ErrorKind::NotFound.into())), ..good() }),
            [("tap", problem)]
        );
        assert_eq!(found(&HostMachineState { aio: Some((65_536, 65_000)), ..good() }), [("aio", warning)]);
        assert_eq!(found(&HostMachineState { tun: None, aio: None, ..good() }), []);
    }
}
