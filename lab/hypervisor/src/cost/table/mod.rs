//! The cost table: a row for each constant, with a cell for each machine that states or estimates the constant's
//! value. A cell gives value, plausible range, kind of evidence and source.
//!
//! A machine without a cell in a row has the value of its base machine; no experiment on that machine charges the
//! constant, or the two machines do not differ in it.
//!
//! | module | rows |
//! |---|---|
//! | `processor` | processor, caches, copies, device registers, switches |
//! | `tlb` | the processor's TLB, and the pages of a packet's path |
//! | `exits` | VM exits and the hypervisor's timers |
//! | `paravirtual` | hypercalls, events, grants, split drivers |
//! | `kernel` | interrupts, packets, programs and disk requests of a kernel |
//! | `today` | KVM's paths between guest and network, and the IOTLB |

mod exits;
mod kernel;
mod paravirtual;
mod processor;
mod source;
mod tlb;
mod today;

use super::cell::{CostCell, CostTableRow};
use super::machine::MachineModel;
use super::row::{CostConstant, CostRow};

/// All rows of the cost table, by group.
pub(super) const GROUPS: [&[CostTableRow]; 6] =
    [processor::ROWS, tlb::ROWS, exits::ROWS, paravirtual::ROWS, kernel::ROWS, today::ROWS];

/// Returns the cost constants of a machine, in the order of [`CostConstant`]. A missing row, a row that occurs twice, or
/// a row without a cell for the machine or its bases is an error at compile time.
pub(super) const fn rows(machine: MachineModel) -> [CostRow; CostConstant::COUNT] {
    let mut rows: [Option<CostRow>; CostConstant::COUNT] = [None; CostConstant::COUNT];
    let mut group = 0;
    while group < GROUPS.len() {
        let mut at = 0;
        while at < GROUPS[group].len() {
            let row = &GROUPS[group][at];
            assert!(rows[row.constant as usize].is_none(), "a constant has two rows");
            rows[row.constant as usize] = Some(described(row.constant, cell(row.cells, machine)));
            at += 1;
        }
        group += 1;
    }
    let Some(first) = rows[0] else { panic!("the first constant has no row") };
    let mut found = [first; CostConstant::COUNT];
    let mut at = 0;
    while at < CostConstant::COUNT {
        let Some(row) = rows[at] else { panic!("a constant has no row") };
        found[at] = row;
        at += 1;
    }
    found
}

/// Returns the cell of a machine, or that of its nearest base machine with a cell.
const fn cell(cells: &[CostCell], machine: MachineModel) -> CostCell {
    let mut at = 0;
    while at < cells.len() {
        if cells[at].0 as u8 == machine as u8 {
            return cells[at];
        }
        at += 1;
    }
    match machine.base() {
        Some(base) => cell(cells, base),
        None => panic!("a row has no cell for a machine without a base"),
    }
}

/// Returns a constant's row from a machine's cell.
const fn described(cost: CostConstant, (_, value, range, kind, source): CostCell) -> CostRow {
    CostRow { cost, name: cost.name(), value, unit: cost.unit(), range, kind, source }
}
