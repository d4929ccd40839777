//! Sources that confirm the registers of the generated pages: the header of a driver or of QEMU and the symbol in it, or a
//! decision of this project. `register_sources.txt` has them, a register a line.

/// Table of sources: table, offset, register, source and symbol in each line.
const SOURCES: &str = include_str!("register_sources.txt");

/// Text on the column of sources for both pages.
pub(crate) const LEGEND: &str = "\
The column *source* names a definition of the register with this offset:

| source | file |
|---|---|
| igb | `src/e1000_regs.h` of Intel's Linux driver igb 5.18.7 |
| igbvf | `drivers/net/ethernet/intel/igbvf/regs.h` of Linux |
| iavf | `src/iavf_register.h` of Intel's Linux driver iavf 4.13.27 |
| qemu | `hw/net/igb_regs.h` of QEMU |
| qemu-vf | `hw/net/igbvf.c` of QEMU: a symbol, or the offset where it has none |
| decision | a page of `docs/decisions` |
";

/// Returns the source of a register as text for the page: `igb E1000_CTRL`, or an empty text if there is none. `table`
/// is `PF`, `VF` or `AVF`.
pub(crate) fn source(table: &str, offset: u32, name: &str) -> String {
    let place = format!("{table} {offset:05x} {name} ");
    lines().find_map(|line| line.strip_prefix(&place)).unwrap_or_default().to_owned()
}

fn lines() -> impl Iterator<Item = &'static str> {
    SOURCES.lines().filter(|line| !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use i82576::{table, window};

    #[test]
    fn register_source_is_that_of_table_offset_and_name() {
        assert_eq!(source("PF", 0, "CTRL"), "igb E1000_CTRL");
        assert_eq!(source("VF", 0x0008, "STATUS"), "igbvf E1000_STATUS");
        assert_eq!(source("AVF", 0x8800, "VFGEN_RSTAT"), "iavf IAVF_VFGEN_RSTAT");
        assert_eq!(source("PF", 4, "CTRL"), "");
    }

    #[test]
    fn each_line_of_the_sources_names_a_register() {
        let place = |table: &str, offset: u32, name: &str| format!("{table} {offset:05x} {name} ");
        let mut places: Vec<_> = table::rows().map(|row| place("PF", row.offset, row.name)).collect();
        places.extend(window::TABLE.iter().map(|row| place("VF", row.offset, row.name)));
        places.extend(avf::table::rows().map(|row| place("AVF", row.offset, row.name)));
        for line in lines() {
            assert_eq!(places.iter().filter(|place| line.starts_with(*place)).count(), 1, "{line}");
        }
    }

    #[test]
    fn each_source_is_in_the_legend() {
        for line in lines() {
            let source = line.split(' ').nth(3).unwrap();
            assert!(LEGEND.contains(&format!("\n| {source} |")), "{line}");
        }
    }
}
