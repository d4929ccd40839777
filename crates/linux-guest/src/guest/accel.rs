//! Chooses the guest's CPU: the host's (KVM) if that works, else an emulated one (TCG).

use std::env;
use std::fs::{self, File};
use std::sync::OnceLock;
use std::time::Duration;

use super::LinuxGuest;
use crate::assets::{BootFiles, QemuSeries};

/// Timeout of the trial boot that tests KVM. A working KVM needs one to three seconds.
const TRIAL: Duration = Duration::from_secs(20);

/// Method by which QEMU executes the guest's CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QemuAccelerator {
    /// Execution by the host's CPU, through /dev/kvm.
    Kvm,
    /// Execution by QEMU, which translates the guest's instructions.
    Tcg,
}

impl QemuAccelerator {
    /// Chooses KVM if it works on this host, else TCG; determined once per process. `SOFTIOV_ACCEL=kvm` or `tcg`
    /// decides without a trial.
    ///
    /// An existing /dev/kvm proves little: some cloud kernels offer one that cannot run a stock guest. So without
    /// virtualization in the CPU's flags it is not tried, and with it a trial guest has to boot.
    pub fn choose(assets: &BootFiles) -> Self {
        static CHOICE: OnceLock<QemuAccelerator> = OnceLock::new();
        *CHOICE.get_or_init(|| match env::var("SOFTIOV_ACCEL").as_deref() {
            Ok("kvm") => Self::Kvm,
            Ok("tcg") => Self::Tcg,
            _ if kvm_is_plausible() && kvm_boots(assets) => Self::Kvm,
            _ => Self::Tcg,
        })
    }

    /// Returns the name of the accelerator on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }

    /// Returns QEMU's machine option for this accelerator. With an IOMMU, KVM gets `kernel-irqchip=split`: its own
    /// interrupt controller does not work with remapped interrupts.
    pub(super) fn option(self, iommu: bool) -> &'static str {
        match self {
            Self::Kvm if iommu => "kvm,kernel-irqchip=split",
            Self::Kvm => "kvm",
            Self::Tcg => "tcg,thread=multi",
        }
    }

    /// Returns QEMU's model of the CPU: `max` boots as fast as the plain model under TCG, and has RDRAND, without
    /// which /dev/random is late. Its fast string operations are hidden from the guest: a kernel that sees them copies
    /// with `rep movsb`, which TCG executes byte by byte, and without them with `rep movsq`, 8 bytes at a time. QEMU 7.2
    /// knows only two of the names.
    pub(super) fn cpu(self, qemu: QemuSeries) -> &'static str {
        match (self, qemu) {
            (Self::Kvm, _) => "host",
            (Self::Tcg, QemuSeries::Current) => "max,-erms,-fsrm,-fsrs,-fzrm",
            (Self::Tcg, QemuSeries::Bookworm72) => "max,-erms,-fsrm",
        }
    }
}

fn kvm_is_plausible() -> bool {
    let opens = File::options().read(true).write(true).open("/dev/kvm").is_ok();
    opens && fs::read_to_string("/proc/cpuinfo").is_ok_and(|cpuinfo| has_virtualization(&cpuinfo))
}

fn has_virtualization(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.flat_map(str::split_whitespace).any(|flag| flag == "vmx" || flag == "svm")
}

fn kvm_boots(assets: &BootFiles) -> bool {
    let guest = LinuxGuest::builder("kvm-trial").accel(QemuAccelerator::Kvm).spawn(assets);
    guest.is_ok_and(|guest| guest.wait_ready(TRIAL).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtualization_flag_of_the_cpu_is_matched_as_a_whole_word() {
        assert!(has_virtualization("processor: 0\nflags\t\t: fpu vmx sse\n"));
        assert!(has_virtualization("flags\t\t: fpu svm\n"));
        assert!(!has_virtualization("flags\t\t: fpu svm_lock hypervisor\nvmx flags\t: vnmi\nbugs: vmx\n"));
    }
}
