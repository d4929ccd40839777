//! Compares a VF's configuration space, after the guest's firmware and driver have set it up, with the golden
//! description of `lspci -vv`. Names are left out since they change with the database of PCI ids.
//!
//! The golden file is for pciutils 3.9; other versions format some lines differently and are skipped.

use i82576::config;
use iovm::VirtualFunction;
use pcie::config::{Bar, FunctionIds, SIZE};
use pcie::{Rid, VfIndex};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Command;

const GOLDEN: &str = include_str!("lspci-vf.golden");
const BARS: &[(u8, Bar)] = &[(0, Bar::memory64(0x4000)), (3, Bar::memory64(0x4000))];

/// Returns the configuration space of VF 0 in use: BARs at fe000000h and fe004000h, and memory, bus master
/// and MSI-X enabled.
fn vf_in_use() -> [u8; SIZE] {
    let identity = FunctionIds { device: 0x10ca, ..config::identity() };
    let mut vf = VirtualFunction::new(VfIndex::new(0).unwrap(), Rid(0x0280), identity, BARS);
    let writes: [(u64, &[u8]); 4] = [
        (0x10, &0xfe00_0000u32.to_le_bytes()),
        (0x1c, &0xfe00_4000u32.to_le_bytes()),
        (0x04, &[0x06, 0x04]),
        (0x72, &[0x00, 0x80]),
    ];
    for (offset, bytes) in writes {
        vf.config_write(offset, bytes);
    }
    *vf.endpoint().space().bytes()
}

/// Formats a configuration space as `lspci -xxxx` prints it and `lspci -F` reads it.
fn dump(bytes: &[u8; SIZE]) -> String {
    let mut text = String::from("02:10.0 Class 0200: Device 8086:10ca (rev 01)\n");
    for (line, row) in bytes.chunks(16).enumerate() {
        write!(text, "{:02x}:", 16 * line).unwrap();
        for byte in row {
            write!(text, " {byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text
}

fn version() -> Option<String> {
    let output = Command::new("lspci").arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok()
}

fn lspci(dump: &str) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(dump.as_bytes()).unwrap();
    let mut command = Command::new("lspci");
    let output = command.args(["-n", "-vv", "-F"]).arg(file.path()).output().unwrap();
    assert!(output.status.success(), "lspci: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn lspci_describes_a_vf_as_in_the_golden_file() {
    match version() {
        None => println!("SKIPPED: lspci golden: lspci is not installed (Debian package pciutils)"),
        Some(version) if !version.contains("version 3.9") => {
            println!("SKIPPED: lspci golden: it is for pciutils 3.9, here is {}", version.trim());
        }
        Some(_) => {
            let found = lspci(&dump(&vf_in_use()));
            assert!(found == GOLDEN, "lspci now says:\n{found}");
        }
    }
}
