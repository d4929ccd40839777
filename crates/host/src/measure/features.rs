//! Virtualization features of the processor and IOMMU, as the kernel reports them. A guest may be given fewer.

use std::fs;
use std::path::Path;

/// Virtualization feature of this machine, and the file that reports the feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualizationFeature {
    /// Name of the virtualization feature, of the processor or the IOMMU.
    pub what: &'static str,
    /// True if the machine has the virtualization feature; `None` if unknown.
    pub found: Option<bool>,
    /// File that reports the virtualization feature.
    pub source: &'static str,
}

const FLAGS: &str = "/proc/cpuinfo";
const APICV: &str = "/sys/module/kvm_intel/parameters/enable_apicv";
const IOMMUS: &str = "/sys/class/iommu";
/// Posted interrupts in an Intel IOMMU's capability register (VT-d 11.4.2, bit 59).
const POSTED: u64 = 1 << 59;

/// Returns x2APIC, virtual-interrupt delivery, and posted interrupts of devices.
#[must_use]
pub fn features() -> [VirtualizationFeature; 3] {
    let read = |path: &str| fs::read_to_string(path).ok();
    [
        VirtualizationFeature {
            what: "x2APIC",
            found: read(FLAGS).as_deref().and_then(|text| has_flag(text, "x2apic")),
            source: FLAGS,
        },
        VirtualizationFeature {
            what: "virtual-interrupt delivery",
            found: read(APICV).as_deref().and_then(is_on),
            source: APICV,
        },
        VirtualizationFeature {
            what: "posted interrupts of devices",
            found: capabilities(Path::new(IOMMUS)).map(|all| all.iter().all(|it| it & POSTED != 0)),
            source: IOMMUS,
        },
    ]
}

/// Returns true if the first processor in `text` (of `/proc/cpuinfo`) has a flag, or `None` without a list of flags.
fn has_flag(text: &str, flag: &str) -> Option<bool> {
    let flags = text.lines().find(|line| line.starts_with("flags"))?;
    Some(flags.split_ascii_whitespace().any(|known| known == flag))
}

fn is_on(text: &str) -> Option<bool> {
    match text.trim() {
        "Y" | "1" => Some(true),
        "N" | "0" => Some(false),
        _ => None,
    }
}

/// Returns the capability registers of Intel IOMMUs, or `None` if there are none.
fn capabilities(folder: &Path) -> Option<Vec<u64>> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let files = entries.filter_map(|entry| fs::read_to_string(entry.path().join("intel-iommu/cap")).ok());
    let all: Vec<u64> = files.filter_map(|text| u64::from_str_radix(text.trim(), 16).ok()).collect();
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::{capabilities, features, has_flag, is_on};
    use std::path::Path;

    #[test]
    fn unreported_virtualization_feature_is_unknown() {
        assert_eq!(has_flag("processor : 0\nflags : fpu x2apic\n", "x2apic"), Some(true));
        assert_eq!(has_flag("flags : fpu x2apicish\n", "x2apic"), Some(false));
        assert_eq!(has_flag("Features : fp asimd\n", "x2apic"), None);
        assert_eq!((is_on("Y\n"), is_on("0\n"), is_on("?")), (Some(true), Some(false), None));
        assert_eq!(capabilities(Path::new("/nowhere")), None);
        assert_eq!(features().len(), 3);
    }
}
