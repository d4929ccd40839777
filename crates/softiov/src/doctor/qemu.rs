//! Checks QEMU, which needs a vfio-user client.

use super::finding::DoctorFinding;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHECK: &str = "qemu";
const PROGRAM: &str = "qemu-system-x86_64";
/// First QEMU version with a vfio-user client.
const NEEDED: (u32, u32) = (10, 1);
const INSTALL: &str = "install QEMU 10.1 or newer (Debian 13: `apt install -t trixie-backports qemu-system-x86`; \
                                          Fedora 43), or name another program with --qemu";

/// QEMU program on this machine, with its version and its devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QemuProgram {
    path: PathBuf,
    /// Text that QEMU prints for `--version`.
    version: String,
    /// Text that QEMU prints for `-device help`.
    devices: String,
}

/// Runs the QEMU at the path `named`, or the one in PATH. Returns `None` if no such program runs.
pub(super) fn find(named: Option<&Path>) -> Option<QemuProgram> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|folder| folder.join(PROGRAM))
            .find(|path| path.is_file())?,
    };
    let output_of = |argument: &[&str]| {
        let output = Command::new(&path).args(argument).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    Some(QemuProgram { version: output_of(&["--version"])?, devices: output_of(&["-device", "help"])?, path })
}

pub(super) fn judge(qemu: Option<&QemuProgram>) -> DoctorFinding {
    let Some(QemuProgram { path, version, devices }) = qemu else {
        return DoctorFinding::warning(CHECK, format!("cannot run {PROGRAM}"), INSTALL);
    };
    let path = path.display();
    let first = version.lines().next().unwrap_or_default();
    let Some(number) = number(first) else {
        let seen = format!("cannot read the version of {path}: {first:?}");
        return DoctorFinding::problem(CHECK, seen, "name a QEMU program with --qemu");
    };
    let (major, minor) = number;
    if number < NEEDED {
        let seen = format!("{path} is QEMU {major}.{minor}; vfio-user needs {}.{}", NEEDED.0, NEEDED.1);
        return DoctorFinding::problem(CHECK, seen, INSTALL);
    }
    if !devices.contains("\"vfio-user-pci\"") {
        let seen = format!("{path} (QEMU {major}.{minor}) was built without the device vfio-user-pci");
        return DoctorFinding::problem(CHECK, seen, INSTALL);
    }
    DoctorFinding::ok(CHECK, format!("{path} (QEMU {major}.{minor}) has vfio-user-pci"))
}

/// Returns the major and minor version in "QEMU emulator version 11.1.3 (Debian ...)".
fn number(line: &str) -> Option<(u32, u32)> {
    let mut parts = line.split_once("version ")?.1.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::finding::DoctorVerdict;
    use super::{QemuProgram, judge};

    fn seen(version: &str, devices: &str) -> (DoctorVerdict, String) {
        let qemu = QemuProgram { path: "/q".into(), version: version.into(), devices: devices.into() };
        let finding = judge(Some(&qemu));
        (finding.verdict, finding.seen)
    }

    #[test]
    fn qemu_needs_version_10_1_and_vfio_user_pci() {
        let device = "name \"vfio-user-pci\", bus PCI\n";
        let version = "QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1)";
        assert_eq!(seen(version, device), (DoctorVerdict::Ok, "/q (QEMU 11.1) has vfio-user-pci".into()));
        assert_eq!(seen("QEMU emulator version 10.1.0", device).0, DoctorVerdict::Ok);
        let (verdict, text) = seen("QEMU emulator version 7.2.22 (Debian)", device);
        assert_eq!(
            (verdict, text.as_str()),
            (DoctorVerdict::Problem, "/q is QEMU 7.2; vfio-user needs 10.1")
        );
        assert_eq!(seen(version, "name \"virtio-net-pci\"").0, DoctorVerdict::Problem);
        assert_eq!(seen("", device).0, DoctorVerdict::Problem);
        assert_eq!(judge(None).verdict, DoctorVerdict::Warning);
    }
}
