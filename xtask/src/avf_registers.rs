//! Generates `docs/AVF-REGISTERS.md`: the registers of the Adaptive Virtual Function, and its messages by number.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};
use avf::table::{self, Register, RegisterKind, RegisterResetEffect, VfRegisterAccessMode};
use avf::virtchnl::VirtchnlOpcode;

use crate::metadata;
use crate::register_sources::{self, source};
use crate::registers::{line, masked, number, place};

/// Path of the page on the AVF registers, relative to the workspace.
pub(crate) const PATH: &str = "docs/AVF-REGISTERS.md";

const OPENING: &str = "\
# Registers and messages of an Adaptive Virtual Function

`cargo xtask registers` generates this page from `avf::table` and `avf::virtchnl`, which card and drivers use, and
`cargo xtask tidy` compares it with them.

BAR 0 has 64 KiB. Registers are 32 bits, little endian. An offset without a register reads zero and ignores writes. Transmit
and receive rings only have a register for their tail: a VF sends base and length in message 6 (CONFIG_VSI_QUEUES).

| access | reading | writing |
|---|---|---|
| RW *mask* | the value | stores the bits within the mask, or all bits without a mask |
| RO | the value | is ignored |
| RC | the value, then clears it | is ignored |

A value with an asterisk survives a reset of the VF by RESET_VF, by the PF or by FLR.
";

const MESSAGES: &str = "
## Messages

The high cookie of a descriptor holds the number of its message, the low cookie the status. `avf::virtchnl::request` has the body of
each message, and the lengths that are refused. Every request except RESET_VF has one reply; an unknown number is refused with
-64.

| number | message |
|---|---|
";

/// Writes `docs/AVF-REGISTERS.md`, the page on the AVF registers.
pub(crate) fn write() -> Result<()> {
    let path = metadata::workspace_root()?.join(PATH);
    fs::write(&path, page()).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the text of `docs/AVF-REGISTERS.md`, generated from the present register tables.
pub(crate) fn page() -> String {
    let mut page = format!("{OPENING}\n{}", register_sources::LEGEND);
    for (chapter, rows) in table::CHAPTERS {
        _ = write!(
            page,
            "\n## {chapter}\n\n| register | offset | access | reset | card | notes | source |\n|---|---|---|---|---|---|---|\n"
        );
        rows.iter().for_each(|row| register(&mut page, row));
    }
    page.push_str(MESSAGES);
    VirtchnlOpcode::ALL.iter().for_each(|op| line(&mut page, &[&op.number().to_string(), op.name()]));
    page
}

fn register(page: &mut String, row: &Register) {
    let kept = if row.after == RegisterResetEffect::Kept { "*" } else { "" };
    let reset = format!("{}{kept}", number(row.reset));
    let (place, access) = (place(row.offset, 4, row.count), access(row.access));
    let source = source("AVF", row.offset, row.name);
    line(page, &[row.name, &place, &access, &reset, part(row.kind), row.more, &source]);
}

fn access(access: VfRegisterAccessMode) -> String {
    match access {
        VfRegisterAccessMode::Rw(mask) => masked("RW", mask),
        VfRegisterAccessMode::Ro => "RO".to_owned(),
        VfRegisterAccessMode::Rc => "RC".to_owned(),
    }
}

/// Returns the name of the part of the card that acts on registers of this kind.
fn part(kind: RegisterKind) -> &'static str {
    match kind {
        RegisterKind::TxTail | RegisterKind::RxTail => "queue",
        RegisterKind::Interval(_)
        | RegisterKind::IntervalOfVector0
        | RegisterKind::Control
        | RegisterKind::ControlOfVector0
        | RegisterKind::Causes
        | RegisterKind::EnabledCauses => "interrupt",
        RegisterKind::Mailbox(..) => "mailbox",
        RegisterKind::Reset => "reset",
        RegisterKind::HashTypes | RegisterKind::HashKey | RegisterKind::LookupTable => "scaling",
        RegisterKind::Unused => "never",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avf_register_row_has_offset_access_reset_and_part() {
        let page = page();
        for line in [
            "| QTX_TAIL1 | 00000 + 4i, i < 16 | RW | 0 | queue |",
            "| VFGEN_RSTAT | 08800 | RO | 00000002 | reset |",
            "| 3 | resources |",
        ] {
            assert!(page.contains(line), "{line}");
        }
    }
}
