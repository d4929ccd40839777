//! Generates `docs/REGISTERS.md`, the register table of the 82576 for people who write drivers, from the table that the
//! card runs on.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};
use i82576::table::{self, DecodedRegisterSet, PfRegister, RegisterAccessEffect, RegisterAccessRule};
use i82576::window::{self, VfRegister, VfRegisterBacking};

use crate::metadata;
use crate::register_sources::{self, source};

/// Path of the page on the 82576 registers, relative to the workspace.
pub(crate) const PATH: &str = "docs/REGISTERS.md";

const OPENING: &str = "\
# Registers

`cargo xtask registers` generates this page from `i82576::table` and `i82576::window`, the tables that the card runs on, and
`cargo xtask tidy` compares it with them.

Registers are 32 bits, little endian. An access of 1, 2, 4 or 8 bytes at any alignment accesses every dword that it touches.
Unwritten bytes of a dword keep their value where a write only stores, and count as zeros elsewhere. An offset without a
register reads zero and ignores writes.

| access | reading | writing |
|---|---|---|
| RW *mask* | the value | stores the bits within the mask, or all bits without a mask |
| RO | the value | is ignored |
| RC | the value, then clears it | is ignored |
| W1C *mask* | the value | a one clears the bit, within the mask |
| W1S *mask* | the value | a one sets the bit, within the mask |
| WO | zero | has the effect in the last column |

The column *card* names the part of the card that acts on an access at once. *stores*: the card uses the stored value when a
frame passes. *never*: the card does not use the value. The column *decoded* names the tables that the card makes again from
the register before the next frame.

A reset value with an asterisk is not restored by CTRL.RST. \"(0: value)\" is the reset value of element 0, where it differs.
";

/// Text that the register page shows in place of a name for an offset without a register.
const NAMELESS: &str = "(no register)";

const VF_OPENING: &str = "
## A VF's BAR 0

A VF's registers are bits of the PF's registers: each value is stored once. n is the index of the VF.

| register | offset | access | stored in | source |
|---|---|---|---|---|
";

/// Writes `docs/REGISTERS.md`, the page on the 82576 registers.
pub(crate) fn write() -> Result<()> {
    let path = metadata::workspace_root()?.join(PATH);
    fs::write(&path, page()).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the text of `docs/REGISTERS.md`, generated from the present register tables.
pub(crate) fn page() -> String {
    let mut page = format!("{OPENING}\n{}", register_sources::LEGEND);
    for (chapter, rows) in table::CHAPTERS {
        page.push_str(&format!("\n## PF: {chapter}\n\n"));
        page.push_str("| register | offset | access | reset | card | decoded | notes | source |\n|---|---|---|---|---|---|---|---|\n");
        rows.iter().for_each(|row| pf_row(&mut page, row));
    }
    page.push_str(VF_OPENING);
    window::TABLE.iter().for_each(|row| vf_row(&mut page, row));
    page
}

fn pf_row(page: &mut String, row: &PfRegister) {
    let mut offset = place(row.offset, row.stride, row.count);
    if let Some(alias) = row.alias {
        _ = write!(offset, ", also {}", place(alias.offset, alias.stride, alias.count));
    }
    let first = row.first.map_or(String::new(), |first| format!(" (0: {})", number(first)));
    let sticky = if row.sticky { "*" } else { "" };
    let reset = format!("{}{sticky}{first}", number(row.reset));
    let (access, forms) = (access(row.access), forms(row.forms));
    let source = source("PF", row.offset, row.name);
    line(page, &[row.name, &offset, &access, &reset, effect(row.effect), &forms, row.more, &source]);
}

fn effect(effect: RegisterAccessEffect) -> &'static str {
    match effect {
        RegisterAccessEffect::Never => "never",
        RegisterAccessEffect::Stores => "stores",
        RegisterAccessEffect::Acts(part) => part.name(),
    }
}

fn forms(forms: DecodedRegisterSet) -> String {
    let names = [
        (DecodedRegisterSet::SWITCH, "switch"),
        (DecodedRegisterSet::RSS, "RSS"),
        (DecodedRegisterSet::STEERING, "steering"),
    ];
    names
        .into_iter()
        .filter(|(form, _)| forms.has(*form))
        .map(|(_, name)| name)
        .collect::<Vec<_>>()
        .join(", ")
}

fn vf_row(page: &mut String, row: &VfRegister) {
    let offset = place(row.offset, row.stride, row.count);
    let source = source("VF", row.offset, row.name);
    line(page, &[row.name, &offset, &access(row.access), &backing(row.backing), &source]);
}

pub(crate) fn line(page: &mut String, cells: &[&str]) {
    _ = writeln!(page, "| {} |", cells.join(" | ").trim_end());
}

/// Returns the offsets of a register as text: `5400 + 8i, i < 16` for an array of registers, or the offset alone.
pub(crate) fn place(offset: u32, stride: u32, count: u32) -> String {
    if count == 1 { format!("{offset:05x}") } else { format!("{offset:05x} + {stride:x}i, i < {count}") }
}

pub(crate) fn number(value: u32) -> String {
    if value == 0 { "0".to_owned() } else { format!("{value:08x}") }
}

fn access(access: RegisterAccessRule) -> String {
    match access {
        RegisterAccessRule::Rw(mask) => masked("RW", mask),
        RegisterAccessRule::Ro => "RO".to_owned(),
        RegisterAccessRule::Rc => "RC".to_owned(),
        RegisterAccessRule::W1c(mask) => masked("W1C", mask),
        RegisterAccessRule::W1s(mask) => masked("W1S", mask),
        RegisterAccessRule::Wo => "WO".to_owned(),
    }
}

/// Returns the access of a register as text: `RW`, or `RW 0000ffff` where only some bits are stored.
pub(crate) fn masked(kind: &str, mask: u32) -> String {
    match mask {
        u32::MAX => kind.to_owned(),
        mask => format!("{kind} {mask:08x}"),
    }
}

fn backing(backing: VfRegisterBacking) -> String {
    match backing {
        VfRegisterBacking::Shared(offset) => format!("the PF's {}", named(offset)),
        VfRegisterBacking::PerVf(offset, stride) => {
            format!("{} at {offset:05x} + {stride:x}n", named(offset))
        }
        VfRegisterBacking::VectorBits(offset) => format!("bits 24-3n to 22-3n of {}", named(offset)),
        VfRegisterBacking::Throttle => "EITR 22-3n + i".to_owned(),
        VfRegisterBacking::Receive(_) | VfRegisterBacking::Transmit(_) => {
            "the same register of queue n (i = 0) and of queue n + 8 (i = 1)".to_owned()
        }
    }
}

/// Returns the name of the PF's register at an offset.
fn named(offset: u32) -> &'static str {
    table::rows().find(|row| row.offsets().any(|at| at == offset)).map_or(NAMELESS, |row| row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_has_a_row_in_the_page_of_registers() {
        let page = page();
        for name in table::rows().map(|row| row.name).chain(window::TABLE.iter().map(|row| row.name)) {
            assert!(page.contains(&format!("| {name} |")), "{name}");
        }
    }

    #[test]
    fn register_page_row_has_offset_access_reset_and_notes() {
        let page = page();
        let lines = [
            "| IMS | 01508, also 000d0 | W1S 77d4fbfd | 0 | interrupt |  | causes interrupt while their bits are one |",
            "| TXPBS | 03404 | RW | 00000028* | never |  | stored only |",
            "| VTEIMS | 01524 | W1S 00000007 | bits 24-3n to 22-3n of EIMS |",
            "| RDBAL | 02800 + 100i, i < 2 | RW ffffff80 | the same register of queue n (i = 0) and of queue n + 8 (i = 1) |",
        ];
        for line in lines {
            assert!(page.contains(line), "{line}");
        }
    }

    #[test]
    fn every_vf_register_names_its_pf_register() {
        assert!(!page().contains(NAMELESS));
    }
}
