//! Version of QEMU, and the first versions with the options that VFs need.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// Major and minor version of QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QemuVersion {
    major: u32,
    minor: u32,
}

impl QemuVersion {
    /// First version with a vfio-user client.
    pub(crate) const VFIO_USER: Self = Self { major: 10, minor: 1 };
    /// First version in which a command line makes an SR-IOV PF of `virtio-net-pci` devices. 10.0.13 has no `sriov-pf`.
    pub(crate) const SRIOV_PF: Self = Self { major: 10, minor: 1 };
    /// First version whose sockets have the option `reconnect-ms`. Earlier ones have `reconnect`, in seconds.
    pub(crate) const RECONNECT_MS: Self = Self { major: 9, minor: 2 };

    /// Returns the version in the first line of `qemu-system-x86_64 --version`: "QEMU emulator version 11.1.3 (Debian ...)".
    pub(crate) fn of_program(line: &str) -> Option<Self> {
        let version = line.split_once("version ")?.1;
        let end = version.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        version.get(..end.unwrap_or(version.len()))?.parse().ok()
    }
}

impl FromStr for QemuVersion {
    type Err = String;

    /// Parses a version such as 9.2 or 9.2.1.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
        let (major, minor) = (parts.next().flatten(), parts.next().flatten());
        match (major, minor, parts.all(|part| part.is_some())) {
            (Some(major), Some(minor), true) => Ok(Self { major, minor }),
            _ => Err("write major and minor version, such as 9.2".to_owned()),
        }
    }
}

impl Display for QemuVersion {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::QemuVersion;

    #[test]
    fn qemu_version_has_a_major_and_a_minor_number() {
        let version = |text: &str| text.parse::<QemuVersion>().map(|version| version.to_string());
        for (text, expected) in [("9.2", "9.2"), ("10.0", "10.0"), ("7.2.22", "7.2")] {
            assert_eq!(version(text).as_deref(), Ok(expected));
        }
        for text in ["", "9", "9.", "9.x", "9.2.", "9.2.x", "-9.2", "v9.2", "9.99999999999"] {
            assert!(version(text).is_err(), "{text}");
        }
        assert!("9.10".parse::<QemuVersion>().unwrap() > QemuVersion::RECONNECT_MS);
    }

    #[test]
    fn qemu_program_states_its_version() {
        let version = |line| QemuVersion::of_program(line).map(|version| version.to_string());
        for (line, expected) in [
            ("QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1)", "11.1"),
            ("QEMU emulator version 7.2.22", "7.2"),
            ("QEMU emulator version 10.1.0-rc2", "10.1"),
        ] {
            assert_eq!(version(line).as_deref(), Some(expected));
        }
        assert_eq!(version("QEMU"), None);
    }
}
