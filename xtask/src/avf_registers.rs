//! `docs/AVF-REGISTERS.md`: the register table of the Adaptive Virtual Function in words, and its messages by number.
//! Left out: what single bits mean.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};
use avf::table::{self, Access, AfterReset, Kind, Register};
use avf::virtchnl::Op;

use crate::metadata;
use crate::registers::{line, masked, number, place};

/// Path of the page, relative to the workspace.
pub(crate) const PATH: &str = "docs/AVF-REGISTERS.md";

const OPENING: &str = "\
# Registers and messages of an Adaptive Virtual Function

Printed by `cargo xtask registers` from `avf::table` and `avf::virtchnl`, which card and drivers are written against;
`cargo xtask tidy` sees to it that this page is theirs.

BAR 0 has 64 KiB. Registers are 32 bits, little endian. Where nothing is, reads are zero and writes are ignored.
Rings are not here: a VF describes them in messages, and rings only have a tail.

| access | reading | writing |
|---|---|---|
| RW *mask* | the value | keeps the bits within the mask; without one, all |
| RO | the value | is ignored |
| RC | the value, and clears it | is ignored |

A reset value with an asterisk outlives the resets of the VF: RESET_VF, one that the PF makes, and FLR.
";

const MESSAGES: &str = "
## Messages

A message's number is in the high cookie of its descriptor, its status in the low one. What each carries is in
`avf::virtchnl::request`, with the lengths that are refused. Other numbers are refused with -64, except RESET_VF every
request is answered once.

| number | message |
|---|---|
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
        _ = write!(
            page,
            "\n## {chapter}\n\n| register | offset | access | reset | the card | beyond that |\n|---|---|---|---|---|---|\n"
        );
        rows.iter().for_each(|row| register(&mut page, row));
    }
    page.push_str(MESSAGES);
    Op::ALL.iter().for_each(|op| line(&mut page, &[&op.number().to_string(), op.name()]));
    page
}

fn register(page: &mut String, row: &Register) {
    let kept = if row.after == AfterReset::Kept { "*" } else { "" };
    let reset = format!("{}{kept}", number(row.reset));
    line(
        page,
        &[row.name, &place(row.offset, 4, row.count), &access(row.access), &reset, part(row.kind), row.more],
    );
}

fn access(access: Access) -> String {
    match access {
        Access::Rw(mask) => masked("RW", mask),
        Access::Ro => "RO".to_owned(),
        Access::Rc => "RC".to_owned(),
    }
}

/// The part of the card that looks at a register.
fn part(kind: Kind) -> &'static str {
    match kind {
        Kind::TxTail | Kind::RxTail => "queue",
        Kind::Interval(_)
        | Kind::IntervalOfVector0
        | Kind::Control
        | Kind::ControlOfVector0
        | Kind::Causes
        | Kind::EnabledCauses => "interrupt",
        Kind::Mailbox(..) => "mailbox",
        Kind::Reset => "reset",
        Kind::HashTypes | Kind::HashKey | Kind::LookupTable => "scaling",
        Kind::Unused => "never",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_and_how() {
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
