//! Registers whose value is a sensitive resource: where a ring is in memory, who hears of an interrupt, which function this
//! is, where its BARs are. Most of them are the guest's own, which has put them there. Some tell of the machine: a guest
//! that sees its device elsewhere than it is and believes such a register goes wrong (Dong et al., SYSTOR 2009), so whoever
//! assigns the device has to trap its page.
//!
//! Registers are found by their name in the register table, and by their value: any register that reads as the address of a
//! BAR. A register is not read if reading it changes the card. Left out: configuration space, which every VMM shows in its
//! own words.

use crate::hal::Subject;
use driver::Hal;
use i82576::table::{Access, CHAPTERS, Effect};
use i82576::window;
use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// What a register tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// The address of a descriptor ring, or of its write-back.
    DmaRing,
    /// The mailbox between VF and PF.
    Mailbox,
    /// Which MSI-X vector hears of what.
    MsixVector,
    /// The address of the station.
    StationAddress,
    /// Which function of the device this is.
    FunctionNumber,
    /// The address of a BAR.
    Bar,
}

/// Whom a value tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// The driver, which has put it there or may know it.
    Guest,
    /// The machine.
    Machine,
}

/// A register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The function.
    pub function: String,
    /// The datasheet's name; for one of several with its number.
    pub register: String,
    /// From the start of BAR0.
    pub offset: u32,
    /// What it reads; nothing if reading it would change the card.
    pub value: Option<u32>,
    /// What that is.
    pub resource: Resource,
    /// Whom it tells of.
    pub whose: Whose,
}

/// An audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// The registers, by function and offset.
    pub registers: Vec<Entry>,
    /// Pages of BAR0 that have to be trapped: those with registers that tell of the machine.
    pub trap_pages: Vec<u32>,
}

/// Resources by the names of registers.
const BY_NAME: [(&str, Resource); 14] = [
    ("RDBAL", Resource::DmaRing),
    ("RDBAH", Resource::DmaRing),
    ("TDBAL", Resource::DmaRing),
    ("TDBAH", Resource::DmaRing),
    ("TDWBAL", Resource::DmaRing),
    ("TDWBAH", Resource::DmaRing),
    ("VMBMEM", Resource::Mailbox),
    ("V2PMAILBOX", Resource::Mailbox),
    ("IVAR", Resource::MsixVector),
    ("VTIVAR", Resource::MsixVector),
    ("VTIVAR_MISC", Resource::MsixVector),
    ("RAL", Resource::StationAddress),
    ("RAH", Resource::StationAddress),
    ("STATUS", Resource::FunctionNumber),
];
const PAGE: u32 = 0x1000;

/// A row of a register table, as far as an audit goes.
struct Row {
    name: &'static str,
    offsets: Vec<u32>,
    /// Reading it changes nothing.
    safe: bool,
}

/// What the values are compared with.
#[derive(Debug, Clone)]
pub struct Known {
    /// Where the driver's memory is.
    pub memory: Range<u64>,
    /// Where the machine has the BARs.
    pub bars: Vec<u64>,
}

/// The PF's registers.
pub(crate) fn pf<H: Hal>(function: &str, hal: &mut H, known: &Known) -> Vec<Entry> {
    let rows = CHAPTERS.iter().flat_map(|(_, rows)| *rows).map(|row| Row {
        name: row.name,
        offsets: row.offsets().collect(),
        safe: is_safe(row.access) && (!matches!(row.effect, Effect::Acts(_)) || is_named(row.name)),
    });
    audit(function, hal, known, rows)
}

/// A VF's registers.
pub(crate) fn vf<B: Subject>(hal: &mut B) -> Vec<Entry> {
    let rows = window::TABLE.iter().map(|row| Row {
        name: row.name,
        offsets: (0..row.count).map(|element| row.offset + element * row.stride).collect(),
        safe: is_safe(row.access) && row.name != "VTEICR",
    });
    let (name, known) = (hal.name(), hal.known());
    audit(&name, hal, &known, rows)
}

fn is_safe(access: Access) -> bool {
    matches!(access, Access::Rw(_) | Access::Ro | Access::W1s(_))
}

fn is_named(name: &str) -> bool {
    BY_NAME.iter().any(|(known, _)| *known == name)
}

fn audit<H: Hal>(function: &str, hal: &mut H, known: &Known, rows: impl Iterator<Item = Row>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for Row { name, offsets, safe } in rows {
        let several = offsets.len() > 1;
        for (number, offset) in offsets.into_iter().enumerate() {
            let value = safe.then(|| hal.read(offset));
            let Some((resource, whose)) = judge(name, value, known) else { continue };
            let register = if several { format!("{name}[{number}]") } else { name.to_owned() };
            entries.push(Entry { function: function.to_owned(), register, offset, value, resource, whose });
        }
    }
    entries.sort_by_key(|entry| entry.offset);
    entries
}

/// What a register tells, if it tells anything. Zero is no address and no vector, but it is a function's number. (Half an
/// address of zeros goes with the other half, which is told.)
fn judge(name: &str, value: Option<u32>, known: &Known) -> Option<(Resource, Whose)> {
    let resource = BY_NAME.iter().find(|(known, _)| *known == name).map(|(_, resource)| *resource);
    match (resource, value) {
        (Some(Resource::FunctionNumber), _) => Some((Resource::FunctionNumber, Whose::Machine)),
        (_, Some(0)) => None,
        (Some(Resource::DmaRing), Some(value)) => {
            let mut halves = known.memory.start >> 32..=known.memory.end.saturating_sub(1) >> 32;
            let is_guests = if name.ends_with('H') {
                halves.contains(&value.into())
            } else {
                halves.any(|high| known.memory.contains(&(high << 32 | u64::from(value))))
            };
            Some((Resource::DmaRing, if is_guests { Whose::Guest } else { Whose::Machine }))
        }
        (Some(resource), _) => Some((resource, Whose::Guest)),
        (None, Some(value)) => {
            let tells = |bar: &u64| {
                let (low, upper) = (*bar as u32, (*bar >> 16) as u32 & 0xffff);
                // The whole of it; or its upper half, and above that where it ends.
                let is_range = upper != 0 && value & 0xffff == upper && value >> 16 >= upper;
                low != 0 && (value & !0xf == low || is_range)
            };
            known.bars.iter().any(tells).then_some((Resource::Bar, Whose::Machine))
        }
        (None, None) => None,
    }
}

impl AuditReport {
    pub(crate) fn new(registers: Vec<Entry>) -> Self {
        let of_machine = registers.iter().filter(|entry| entry.whose == Whose::Machine);
        let mut trap_pages: Vec<u32> = of_machine.map(|entry| entry.offset / PAGE * PAGE).collect();
        trap_pages.sort_unstable();
        trap_pages.dedup();
        Self { registers, trap_pages }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = match self.resource {
            Resource::DmaRing => "address of a DMA ring",
            Resource::Mailbox => "mailbox to the PF",
            Resource::MsixVector => "MSI-X vectors",
            Resource::StationAddress => "station address",
            Resource::FunctionNumber => "number of the function",
            Resource::Bar => "address of a BAR",
        };
        let value = self.value.map_or_else(|| "not read".to_owned(), |value| format!("{value:#010x}"));
        let whose = match self.whose {
            Whose::Guest => "the guest's own",
            Whose::Machine => "THE MACHINE'S",
        };
        write!(
            f,
            "{} {:<14} {:#07x} {value:<10} {resource}, {whose}",
            self.function, self.register, self.offset
        )
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.registers {
            writeln!(f, "{entry}")?;
        }
        let holes = self.registers.iter().filter(|entry| entry.whose == Whose::Machine).count();
        write!(f, "{} registers, {holes} of them the machine's", self.registers.len())?;
        let pages: Vec<String> = self.trap_pages.iter().map(|page| format!("{page:#x}")).collect();
        if pages.is_empty() { Ok(()) } else { write!(f, "; pages of BAR0 to trap: {}", pages.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::{AuditReport, Known, Resource, Row, Whose, audit, judge};
    use driver::Hal;
    use i82576::Time;
    use std::time::Duration;

    /// Registers that read as twice their offset, but one.
    struct Bus(u32, u32);

    impl Hal for Bus {
        fn read(&mut self, offset: u32) -> u32 {
            if offset == self.0 { self.1 } else { 2 * offset }
        }

        fn write(&mut self, _: u32, _: u32) {}

        fn now(&self) -> Time {
            Time::ZERO
        }

        fn wait(&mut self, _: Duration) {}
    }

    fn known() -> Known {
        Known { memory: 0x1_0000_0000..0x1_0040_0000, bars: vec![0xfe80_0000] }
    }

    #[test]
    fn a_ring_in_the_drivers_memory_is_its_own_and_any_other_the_machines() {
        let judge = |name, value| judge(name, Some(value), &known());
        assert_eq!(judge("RDBAL", 0x3000), Some((Resource::DmaRing, Whose::Guest)));
        assert_eq!(judge("RDBAH", 1), Some((Resource::DmaRing, Whose::Guest)));
        assert_eq!(judge("TDBAL", 0x7fff_0000), Some((Resource::DmaRing, Whose::Machine)));
        assert_eq!(judge("TDBAL", 0), None, "no ring");
        assert_eq!(judge("TDBAH", 2), Some((Resource::DmaRing, Whose::Machine)));
        assert_eq!(judge("RDLEN", 0x1000), None);
    }

    #[test]
    fn a_register_that_tells_where_a_bar_is_is_found_by_its_value() {
        let row = |safe| Row { name: "MC_FB_LOCATION", offsets: vec![0x148, 0x2148], safe };
        // As a Radeon tells it: the upper half of the address, twice.
        let mut bus = Bus(0x2148, 0xfe8f_fe80);
        let found = audit("01:00.0", &mut bus, &known(), [row(true)].into_iter());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].register.as_str(), found[0].offset), ("MC_FB_LOCATION[1]", 0x2148));
        let report = AuditReport::new(found);
        assert_eq!(report.trap_pages, [0x2000]);
        let text = report.to_string();
        assert!(text.contains("address of a BAR, THE MACHINE'S\n1 registers, 1 of them"), "{text}");
        assert!(audit("01:00.0", &mut bus, &known(), [row(false)].into_iter()).is_empty(), "it is not read");
    }
}
