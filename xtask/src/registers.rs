//! `docs/REGISTERS.md`: the register table of the card in words, for people who write drivers. It is printed from
//! the table that the card runs on, so it cannot say anything else. Left out: what single bits mean.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};
use i82576::table::{self, Access, Effect, Forms, Register};
use i82576::window::{self, Backing, VfRegister};

use crate::metadata;

/// Path of the page, relative to the workspace.
pub(crate) const PATH: &str = "docs/REGISTERS.md";

const OPENING: &str = "\
# Registers

Printed by `cargo xtask registers` from `i82576::table` and `i82576::window`, the tables that the card itself runs
on; `cargo xtask tidy` sees to it that this page is theirs.

Registers are 32 bits, little endian. Accesses of 1, 2, 4 or 8 bytes at any alignment are cut into the dwords they
touch; where storing is all that a write does, the bytes that are not written stay as they are, and elsewhere they
count as zeros. Where nothing is, reads are zero and writes are ignored.

| access | reading | writing |
|---|---|---|
| RW *mask* | the value | keeps the bits within the mask; without one, all |
| RO | the value | is ignored |
| RC | the value, and clears it | is ignored |
| W1C *mask* | the value | ones clear bits within the mask |
| W1S *mask* | the value | ones set bits within the mask |
| WO | zero | does what the last column says |

The card's part says what comes of an access: *never* is nothing, now or later; *stores* is that the card looks at the
value when a frame passes; a name is the part of the card that acts at once. \"Decoded\" names the forms that are made
anew from a register before the next frame.

A reset value with an asterisk outlives CTRL.RST. \"(0: value)\" is the reset value of element 0 where it differs.
";

/// Returns the name of a register that no table has.
const NAMELESS: &str = "(no register)";

const VF_OPENING: &str = "
## A VF's BAR 0

A VF's registers are windows onto the port's: there is one value behind both. n is the VF's number.

| register | offset | access | it is |
|---|---|---|---|
";

/// Writes the page.
pub(crate) fn write() -> Result<()> {
    let path = metadata::workspace_root()?.join(PATH);
    fs::write(&path, page()).with_context(|| format!("write {}", path.display()))
}

/// The page as it should be.
pub(crate) fn page() -> String {
    let mut page = String::from(OPENING);
    for (chapter, rows) in table::CHAPTERS {
        page.push_str(&format!("\n## PF: {chapter}\n\n"));
        page.push_str("| register | offset | access | reset | the card | decoded | beyond that |\n|---|---|---|---|---|---|---|\n");
        rows.iter().for_each(|row| pf_row(&mut page, row));
    }
    page.push_str(VF_OPENING);
    window::TABLE.iter().for_each(|row| vf_row(&mut page, row));
    page
}

fn pf_row(page: &mut String, row: &Register) {
    let mut offset = place(row.offset, row.stride, row.count);
    if let Some(alias) = row.alias {
        _ = write!(offset, ", also {}", place(alias.offset, alias.stride, alias.count));
    }
    let first = row.first.map_or(String::new(), |first| format!(" (0: {})", number(first)));
    let sticky = if row.sticky { "*" } else { "" };
    let reset = format!("{}{sticky}{first}", number(row.reset));
    line(
        page,
        &[row.name, &offset, &access(row.access), &reset, effect(row.effect), &forms(row.forms), row.more],
    );
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Never => "never",
        Effect::Stores => "stores",
        Effect::Acts(part) => part.name(),
    }
}

fn forms(forms: Forms) -> String {
    let names = [(Forms::SWITCH, "switch"), (Forms::RSS, "RSS"), (Forms::STEERING, "steering")];
    names
        .into_iter()
        .filter(|(form, _)| forms.has(*form))
        .map(|(_, name)| name)
        .collect::<Vec<_>>()
        .join(", ")
}

fn vf_row(page: &mut String, row: &VfRegister) {
    let offset = place(row.offset, row.stride, row.count);
    line(page, &[row.name, &offset, &access(row.access), &backing(row.backing)]);
}

pub(crate) fn line(page: &mut String, cells: &[&str]) {
    _ = writeln!(page, "| {} |", cells.join(" | ").trim_end());
}

/// `5400 + 8i, i < 16`, or the offset alone.
pub(crate) fn place(offset: u32, stride: u32, count: u32) -> String {
    if count == 1 { format!("{offset:05x}") } else { format!("{offset:05x} + {stride:x}i, i < {count}") }
}

pub(crate) fn number(value: u32) -> String {
    if value == 0 { "0".to_owned() } else { format!("{value:08x}") }
}

fn access(access: Access) -> String {
    match access {
        Access::Rw(mask) => masked("RW", mask),
        Access::Ro => "RO".to_owned(),
        Access::Rc => "RC".to_owned(),
        Access::W1c(mask) => masked("W1C", mask),
        Access::W1s(mask) => masked("W1S", mask),
        Access::Wo => "WO".to_owned(),
    }
}

/// `RW`, or `RW 0000ffff` where only some bits are kept.
pub(crate) fn masked(kind: &str, mask: u32) -> String {
    match mask {
        u32::MAX => kind.to_owned(),
        mask => format!("{kind} {mask:08x}"),
    }
}

fn backing(backing: Backing) -> String {
    match backing {
        Backing::Shared(offset) => format!("the port's {}", named(offset)),
        Backing::PerVf(offset, stride) => format!("{} at {offset:05x} + {stride:x}n", named(offset)),
        Backing::VectorBits(offset) => format!("bits 24-3n to 22-3n of {}", named(offset)),
        Backing::Throttle => "EITR 22-3n + i".to_owned(),
        Backing::Receive(_) | Backing::Transmit(_) => "that of queue n (i = 0) and n + 8 (i = 1)".to_owned(),
    }
}

/// The name of the PF's register at an offset.
fn named(offset: u32) -> &'static str {
    table::rows().find(|row| row.offsets().any(|at| at == offset)).map_or(NAMELESS, |row| row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_has_its_line() {
        let page = page();
        for name in table::rows().map(|row| row.name).chain(window::TABLE.iter().map(|row| row.name)) {
            assert!(page.contains(&format!("| {name} |")), "{name}");
        }
    }

    #[test]
    fn a_line_says_where_and_how() {
        let page = page();
        let lines = [
            "| IMS | 01508, also 000d0 | W1S 77d4fbfd | 0 | interrupt |  | unmasked causes interrupt |",
            "| TXPBS | 03404 | RW | 00000028* | never |  | stored only |",
            "| VTEIMS | 01524 | W1S 00000007 | bits 24-3n to 22-3n of EIMS |",
            "| RDBAL | 02800 + 100i, i < 2 | RW ffffff80 | that of queue n (i = 0) and n + 8 (i = 1) |",
        ];
        for line in lines {
            assert!(page.contains(line), "{line}");
        }
    }

    #[test]
    fn every_vf_register_is_a_window_onto_one_of_the_ports() {
        assert!(!page().contains(NAMELESS));
    }
}
