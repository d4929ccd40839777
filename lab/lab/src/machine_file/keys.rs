//! Keys of machine files: settings of the catalogue, most of them in sections.

use crate::experiments::settings;

/// Settings outside sections that a machine file may have, besides its name and description.
pub(super) const TOP: [&str; 6] =
    [settings::TABLE, "scheduling", "loopback_mbps", "interrupt_hz", "driver_hz", "tcp_window"];
/// Sections of a machine file: prefixes of settings.
pub(super) const SECTIONS: [&str; 7] = ["machine", "wire", "kernel", "card", "disk", "features", "cost"];

/// Returns the section of a setting that a machine file may have, and the key within it. The section is empty for a
/// setting outside sections. Returns `None` for other settings.
pub(super) fn place(setting: &str) -> Option<(&str, &str)> {
    match setting.split_once('.') {
        Some((section, key)) => SECTIONS.contains(&section).then_some((section, key)),
        None => TOP.contains(&setting).then_some(("", setting)),
    }
}
