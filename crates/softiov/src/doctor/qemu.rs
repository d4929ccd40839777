//! Checks QEMU, which needs a vfio-user client, or for ports of family virtio a vhost-user client.

use super::finding::DoctorFinding;
use crate::qemu_version::QemuVersion;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHECK: &str = "qemu";
const PROGRAM: &str = "qemu-system-x86_64";
const INSTALL: &str = "install QEMU 10.1 or newer (Debian 13: `apt install -t trixie-backports qemu-system-x86`; \
                                          Fedora 43), or name another program with --qemu";

const INSTALL_VIRTIO: &str = "install QEMU 7.2 or newer (Debian 12: `apt install qemu-system-x86`), or name another program with --qemu";

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

/// Judges QEMU. A host whose ports are all of family virtio does not need vfio-user.
pub(super) fn judge(qemu: Option<&QemuProgram>, needs_vfio_user: bool) -> DoctorFinding {
    let Some(QemuProgram { path, version, devices }) = qemu else {
        let remedy = if needs_vfio_user { INSTALL } else { INSTALL_VIRTIO };
        return DoctorFinding::warning(CHECK, format!("cannot run {PROGRAM}"), remedy);
    };
    let path = path.display();
    let first = version.lines().next().unwrap_or_default();
    let Some(number) = QemuVersion::of_program(first) else {
        let seen = format!("cannot read the version of {path}: {first:?}");
        return DoctorFinding::problem(CHECK, seen, "name a QEMU program with --qemu");
    };
    if !needs_vfio_user {
        return virtio(&format!("{path} (QEMU {number})"), number, devices);
    }
    if number < QemuVersion::VFIO_USER {
        let seen = format!("{path} is QEMU {number}; vfio-user needs {}", QemuVersion::VFIO_USER);
        return DoctorFinding::problem(CHECK, seen, INSTALL);
    }
    if !devices.contains("\"vfio-user-pci\"") {
        let seen = format!("{path} (QEMU {number}) was built without the device vfio-user-pci");
        return DoctorFinding::problem(CHECK, seen, INSTALL);
    }
    DoctorFinding::ok(CHECK, format!("{path} (QEMU {number}) has vfio-user-pci"))
}

/// Judges a QEMU, described by `qemu`, for ports of family virtio.
fn virtio(qemu: &str, number: QemuVersion, devices: &str) -> DoctorFinding {
    if !devices.contains("\"virtio-net-pci\"") {
        let seen = format!("{qemu} was built without the device virtio-net-pci");
        return DoctorFinding::problem(CHECK, seen, "name another QEMU program with --qemu");
    }
    if number < QemuVersion::RECONNECT_MS {
        let remedy = format!("run softiov qemu-args with --qemu-version {number}");
        return DoctorFinding::warning(CHECK, format!("{qemu} does not know reconnect-ms"), remedy);
    }
    DoctorFinding::ok(CHECK, format!("{qemu} has virtio-net-pci"))
}

#[cfg(test)]
mod tests {
    use super::super::finding::DoctorVerdict;
    use super::{QemuProgram, judge};

    fn seen(version: &str, devices: &str) -> (DoctorVerdict, String) {
        let qemu = QemuProgram { path: "/q".into(), version: version.into(), devices: devices.into() };
        let finding = judge(Some(&qemu), true);
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
        assert_eq!(judge(None, true).verdict, DoctorVerdict::Warning);
    }

    #[test]
    fn virtio_ports_alone_need_no_vfio_user() {
        let judged = |version: &str, devices: &str| {
            let version = format!("QEMU emulator version {version}");
            let qemu = QemuProgram { path: "/q".into(), version, devices: devices.into() };
            judge(Some(&qemu), false)
        };
        let verdict = |version: &str, devices: &str| judged(version, devices).verdict;
        let device = "name \"virtio-net-pci\", bus PCI\n";
        assert_eq!(verdict("9.2.0", device), DoctorVerdict::Ok);
        assert_eq!(verdict("7.2.22 (Debian)", device), DoctorVerdict::Warning, "reconnect-ms is unknown");
        let remedy = judged("7.2.22 (Debian)", device).remedy.unwrap();
        assert!(remedy.contains("softiov qemu-args with --qemu-version 7.2"), "{remedy}");
        assert_eq!(verdict("9.2.0", ""), DoctorVerdict::Problem);
        assert!(judge(None, false).remedy.is_some_and(|remedy| remedy.contains("QEMU 7.2")));
    }
}
