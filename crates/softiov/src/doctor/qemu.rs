//! QEMU: whether there is one that knows vfio-user.

use super::finding::Finding;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHECK: &str = "qemu";
const PROGRAM: &str = "qemu-system-x86_64";
/// The first version with a vfio-user client.
const NEEDED: (u32, u32) = (10, 1);
const WHERE: &str = "Debian 13 has a newer one in trixie-backports (`apt install -t trixie-backports qemu-system-x86`), \
                     Fedora from 43 on; or name another with --qemu";

/// What is known of a QEMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Qemu {
    path: PathBuf,
    /// What it says to --version.
    version: String,
    /// What it says to -device help.
    devices: String,
}

/// Asks the QEMU that is named, or the one in PATH. None: there is none.
pub(super) fn ask(named: Option<&Path>) -> Option<Qemu> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|folder| folder.join(PROGRAM))
            .find(|path| path.is_file())?,
    };
    let said = |argument: &[&str]| {
        let output = Command::new(&path).args(argument).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    Some(Qemu { version: said(&["--version"])?, devices: said(&["-device", "help"])?, path })
}

pub(super) fn judge(qemu: Option<&Qemu>) -> Finding {
    let Some(Qemu { path, version, devices }) = qemu else {
        return Finding::warning(CHECK, format!("there is no {PROGRAM} that runs"), WHERE);
    };
    let path = path.display();
    let first = version.lines().next().unwrap_or_default();
    let Some(number) = number(first) else {
        let seen = format!("{path} does not tell its version: {first:?}");
        return Finding::problem(CHECK, seen, "name a QEMU with --qemu");
    };
    let (major, minor) = number;
    if number < NEEDED {
        let seen = format!("{path} is QEMU {major}.{minor}; vfio-user needs {}.{}", NEEDED.0, NEEDED.1);
        return Finding::problem(CHECK, seen, WHERE);
    }
    if !devices.contains("\"vfio-user-pci\"") {
        let seen = format!("{path} (QEMU {major}.{minor}) was built without the device vfio-user-pci");
        return Finding::problem(CHECK, seen, WHERE);
    }
    Finding::ok(CHECK, format!("{path} (QEMU {major}.{minor}) has vfio-user-pci"))
}

/// Major and minor number of "QEMU emulator version 11.1.3 (Debian ...)".
fn number(line: &str) -> Option<(u32, u32)> {
    let mut parts = line.split_once("version ")?.1.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::{Qemu, judge};

    fn seen(version: &str, devices: &str) -> (Verdict, String) {
        let qemu = Qemu { path: "/q".into(), version: version.into(), devices: devices.into() };
        let finding = judge(Some(&qemu));
        (finding.verdict, finding.seen)
    }

    #[test]
    fn a_qemu_must_be_new_enough_and_have_the_device() {
        let device = "name \"vfio-user-pci\", bus PCI\n";
        let version = "QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1)";
        assert_eq!(seen(version, device), (Verdict::Ok, "/q (QEMU 11.1) has vfio-user-pci".into()));
        assert_eq!(seen("QEMU emulator version 10.1.0", device).0, Verdict::Ok);
        let (verdict, text) = seen("QEMU emulator version 7.2.22 (Debian)", device);
        assert_eq!((verdict, text.as_str()), (Verdict::Problem, "/q is QEMU 7.2; vfio-user needs 10.1"));
        assert_eq!(seen(version, "name \"virtio-net-pci\"").0, Verdict::Problem);
        assert_eq!(seen("", device).0, Verdict::Problem);
        assert_eq!(judge(None).verdict, Verdict::Warning);
    }
}
