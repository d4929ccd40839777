//! Audits the registers whose value is a sensitive resource: a ring's address, an interrupt's vector, the number of
//! the function, the addresses of its BARs. The guest itself has set most of them. Some reveal the machine: a guest
//! that sees its device at another address than the machine's and trusts such a register fails (Dong et al., SYSTOR
//! 2009), so the assigner of the device has to trap its page.
//!
//! It selects registers by their name in the register table, and by their value: any register that reads as the
//! address of a BAR. It does not read a register if the read changes the card. Configuration space is not audited,
//! since every VMM emulates it.

use crate::hal::CheckedVfBus;
use driver::Hal;
use i82576::table::{CHAPTERS, RegisterAccessEffect, RegisterAccessRule};
use i82576::window;
use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// Resource of the machine or guest that a register's value reveals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RevealedResource {
    /// The register has the address of a descriptor ring, or of the ring's write-back.
    DmaRing,
    /// The register belongs to the mailbox between VF and PF.
    Mailbox,
    /// The register assigns interrupt causes to MSI-X vectors.
    MsixVector,
    /// The register has the Ethernet address of the station.
    StationAddress,
    /// The register has the function's number in the device.
    FunctionNumber,
    /// The register has the address of a BAR.
    Bar,
}

/// Party (guest or machine) that a register's value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RegisterValueOwner {
    /// The value belongs to the driver, which has set it or may know it.
    Guest,
    /// The register's value belongs to the machine.
    Machine,
}

/// Register that was audited, with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditedRegister {
    /// Name of the function that has the register.
    pub function: String,
    /// Name of the register in the datasheet, with an index for one of several.
    pub register: String,
    /// Offset of the register in BAR0, in bytes.
    pub offset: u32,
    /// Value of the register; `None` if a read would change the card.
    pub value: Option<u32>,
    /// Resource that the register's value reveals.
    pub resource: RevealedResource,
    /// Party (guest or machine) that the register's value belongs to.
    pub whose: RegisterValueOwner,
}

/// Result of an audit: the registers that reveal resources, and the BAR0 pages whose accesses must be trapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegisterAuditReport {
    /// Registers that reveal a resource, by function and offset.
    pub registers: Vec<AuditedRegister>,
    /// Offsets of the BAR0 pages with registers that reveal the machine. The program that assigns the device to a guest
    /// has to trap accesses to these pages.
    pub trap_pages: Vec<u32>,
}

/// Names of registers in the datasheet, each with the resource that its value reveals.
const BY_NAME: [(&str, RevealedResource); 14] = [
    ("RDBAL", RevealedResource::DmaRing),
    ("RDBAH", RevealedResource::DmaRing),
    ("TDBAL", RevealedResource::DmaRing),
    ("TDBAH", RevealedResource::DmaRing),
    ("TDWBAL", RevealedResource::DmaRing),
    ("TDWBAH", RevealedResource::DmaRing),
    ("VMBMEM", RevealedResource::Mailbox),
    ("V2PMAILBOX", RevealedResource::Mailbox),
    ("IVAR", RevealedResource::MsixVector),
    ("VTIVAR", RevealedResource::MsixVector),
    ("VTIVAR_MISC", RevealedResource::MsixVector),
    ("RAL", RevealedResource::StationAddress),
    ("RAH", RevealedResource::StationAddress),
    ("STATUS", RevealedResource::FunctionNumber),
];
const PAGE: u32 = 0x1000;

/// Row of a register table, reduced to the columns that an audit needs.
struct AuditRegisterRow {
    name: &'static str,
    offsets: Vec<u32>,
    /// True if reading the register has no side effect on the card.
    safe: bool,
}

/// Addresses of a function's memory and BARs, with which an audit compares registers.
#[derive(Debug, Clone)]
pub struct KnownAddresses {
    /// Device addresses of the driver's memory.
    pub memory: Range<u64>,
    /// Addresses of the BARs on the machine.
    pub bars: Vec<u64>,
}

/// Reads the registers of a PF, and returns those that reveal a resource.
pub(crate) fn pf<H: Hal>(function: &str, hal: &mut H, known: &KnownAddresses) -> Vec<AuditedRegister> {
    let rows = CHAPTERS.iter().flat_map(|(_, rows)| *rows).map(|row| AuditRegisterRow {
        name: row.name,
        offsets: row.offsets().collect(),
        safe: is_safe(row.access)
            && (!matches!(row.effect, RegisterAccessEffect::Acts(_)) || is_named(row.name)),
    });
    audit(function, hal, known, rows)
}

/// Reads the registers of a VF, and returns those that reveal a resource.
pub(crate) fn vf<B: CheckedVfBus>(hal: &mut B) -> Vec<AuditedRegister> {
    let rows = window::TABLE.iter().map(|row| AuditRegisterRow {
        name: row.name,
        offsets: (0..row.count).map(|element| row.offset + element * row.stride).collect(),
        safe: is_safe(row.access) && row.name != "VTEICR",
    });
    let (name, known) = (hal.name(), hal.known());
    audit(&name, hal, &known, rows)
}

fn is_safe(access: RegisterAccessRule) -> bool {
    matches!(access, RegisterAccessRule::Rw(_) | RegisterAccessRule::Ro | RegisterAccessRule::W1s(_))
}

fn is_named(name: &str) -> bool {
    BY_NAME.iter().any(|(known, _)| *known == name)
}

fn audit<H: Hal>(
    function: &str,
    hal: &mut H,
    known: &KnownAddresses,
    rows: impl Iterator<Item = AuditRegisterRow>,
) -> Vec<AuditedRegister> {
    let mut entries = Vec::new();
    for AuditRegisterRow { name, offsets, safe } in rows {
        let several = offsets.len() > 1;
        for (number, offset) in offsets.into_iter().enumerate() {
            let value = safe.then(|| hal.read(offset));
            let Some((resource, whose)) = judge(name, value, known) else { continue };
            let register = if several { format!("{name}[{number}]") } else { name.to_owned() };
            entries.push(AuditedRegister {
                function: function.to_owned(),
                register,
                offset,
                value,
                resource,
                whose,
            });
        }
    }
    entries.sort_by_key(|entry| entry.offset);
    entries
}

/// Returns the resource that a register's value reveals and the party that it belongs to; `None` if it reveals no
/// resource. Zero is neither an address nor a vector, but it is a function's number. (For an address with a half of
/// zeros, the other half is reported.)
fn judge(
    name: &str,
    value: Option<u32>,
    known: &KnownAddresses,
) -> Option<(RevealedResource, RegisterValueOwner)> {
    let resource = BY_NAME.iter().find(|(known, _)| *known == name).map(|(_, resource)| *resource);
    match (resource, value) {
        (Some(RevealedResource::FunctionNumber), _) => {
            Some((RevealedResource::FunctionNumber, RegisterValueOwner::Machine))
        }
        (_, Some(0)) => None,
        (Some(RevealedResource::DmaRing), Some(value)) => {
            let mut halves = known.memory.start >> 32..=known.memory.end.saturating_sub(1) >> 32;
            let is_guests = if name.ends_with('H') {
                halves.contains(&value.into())
            } else {
                halves.any(|high| known.memory.contains(&(high << 32 | u64::from(value))))
            };
            Some((
                RevealedResource::DmaRing,
                if is_guests { RegisterValueOwner::Guest } else { RegisterValueOwner::Machine },
            ))
        }
        (Some(resource), _) => Some((resource, RegisterValueOwner::Guest)),
        (None, Some(value)) => {
            let tells = |bar: &u64| {
                let (low, upper) = (*bar as u32, (*bar >> 16) as u32 & 0xffff);
                // The low half matches in itself; or the high half matches, and the low one up to the memory's end.
                let is_range = upper != 0 && value & 0xffff == upper && value >> 16 >= upper;
                low != 0 && (value & !0xf == low || is_range)
            };
            known.bars.iter().any(tells).then_some((RevealedResource::Bar, RegisterValueOwner::Machine))
        }
        (None, None) => None,
    }
}

impl RegisterAuditReport {
    pub(crate) fn new(registers: Vec<AuditedRegister>) -> Self {
        let of_machine = registers.iter().filter(|entry| entry.whose == RegisterValueOwner::Machine);
        let mut trap_pages: Vec<u32> = of_machine.map(|entry| entry.offset / PAGE * PAGE).collect();
        trap_pages.sort_unstable();
        trap_pages.dedup();
        Self { registers, trap_pages }
    }
}

impl fmt::Display for AuditedRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = match self.resource {
            RevealedResource::DmaRing => "address of a descriptor ring in memory",
            RevealedResource::Mailbox => "mailbox to the PF",
            RevealedResource::MsixVector => "MSI-X vectors",
            RevealedResource::StationAddress => "station address",
            RevealedResource::FunctionNumber => "PCI number of the function",
            RevealedResource::Bar => "address of a BAR",
        };
        let value = self.value.map_or_else(|| "not read".to_owned(), |value| format!("{value:#010x}"));
        let whose = match self.whose {
            RegisterValueOwner::Guest => "the guest's own",
            RegisterValueOwner::Machine => "THE MACHINE'S",
        };
        write!(
            f,
            "{} {:<14} {:#07x} {value:<10} {resource}, {whose}",
            self.function, self.register, self.offset
        )
    }
}

impl fmt::Display for RegisterAuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.registers {
            writeln!(f, "{entry}")?;
        }
        let holes = self.registers.iter().filter(|entry| entry.whose == RegisterValueOwner::Machine).count();
        write!(f, "{} registers, {holes} of them with values of the physical machine", self.registers.len())?;
        let pages: Vec<String> = self.trap_pages.iter().map(|page| format!("{page:#x}")).collect();
        if pages.is_empty() { Ok(()) } else { write!(f, "; pages of BAR0 to trap: {}", pages.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        AuditRegisterRow, KnownAddresses, RegisterAuditReport, RegisterValueOwner, RevealedResource, audit,
        judge,
    };
    use driver::Hal;
    use i82576::Time;
    use std::time::Duration;

    /// Fake bus on which each register reads as twice its offset, except one: offset and value of that register.
    struct PatternBus(u32, u32);

    impl Hal for PatternBus {
        fn read(&mut self, offset: u32) -> u32 {
            if offset == self.0 { self.1 } else { 2 * offset }
        }

        fn write(&mut self, _: u32, _: u32) {}

        fn now(&self) -> Time {
            Time::ZERO
        }

        fn wait(&mut self, _: Duration) {}
    }

    fn known() -> KnownAddresses {
        KnownAddresses { memory: 0x1_0000_0000..0x1_0040_0000, bars: vec![0xfe80_0000] }
    }

    #[test]
    fn audit_assigns_ring_addresses_in_driver_memory_to_the_guest() {
        let judge = |name, value| judge(name, Some(value), &known());
        assert_eq!(judge("RDBAL", 0x3000), Some((RevealedResource::DmaRing, RegisterValueOwner::Guest)));
        assert_eq!(judge("RDBAH", 1), Some((RevealedResource::DmaRing, RegisterValueOwner::Guest)));
        assert_eq!(
            judge("TDBAL", 0x7fff_0000),
            Some((RevealedResource::DmaRing, RegisterValueOwner::Machine))
        );
        assert_eq!(judge("TDBAL", 0), None, "an address of zero is no ring");
        assert_eq!(judge("TDBAH", 2), Some((RevealedResource::DmaRing, RegisterValueOwner::Machine)));
        assert_eq!(judge("RDLEN", 0x1000), None);
    }

    #[test]
    fn audit_finds_a_register_that_holds_a_bar_address() {
        let row = |safe| AuditRegisterRow { name: "MC_FB_LOCATION", offsets: vec![0x148, 0x2148], safe };
        // A Radeon shows the upper half of the address, twice.
        let mut bus = PatternBus(0x2148, 0xfe8f_fe80);
        let found = audit("01:00.0", &mut bus, &known(), [row(true)].into_iter());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].register.as_str(), found[0].offset), ("MC_FB_LOCATION[1]", 0x2148));
        let report = RegisterAuditReport::new(found);
        assert_eq!(report.trap_pages, [0x2000]);
        let text = report.to_string();
        assert!(text.contains("address of a BAR, THE MACHINE'S\n1 registers, 1 of them"), "{text}");
        assert!(
            audit("01:00.0", &mut bus, &known(), [row(false)].into_iter()).is_empty(),
            "a register with side effects is not read"
        );
    }
}
