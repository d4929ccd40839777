//! Amounts of memory in the configuration file, such as "512M" or "64G": whole numbers of a binary unit.

use serde::Deserialize;
use std::str::FromStr;

/// Amount of memory in the configuration, bytes, written as a number with a unit such as "64G".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MemorySize(pub u64);

/// Unit letters of memory sizes with their powers of two, as in QEMU's options.
const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unit =
            UNITS.into_iter().find(|(letter, _)| text.ends_with([*letter, letter.to_ascii_lowercase()]));
        let bytes = unit.and_then(|(_, shift)| {
            let number: u64 = text[..text.len() - 1].parse().ok()?;
            number.checked_mul(1 << shift)
        });
        let bytes = bytes.filter(|bytes| *bytes > 0).map(Self);
        bytes.ok_or_else(|| format!("{text:?} is not a size; write a size such as 512M, 64G or 2T"))
    }
}

impl TryFrom<String> for MemorySize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::MemorySize;

    #[test]
    fn memory_size_is_a_number_with_a_unit() {
        for (text, bytes) in [("4K", 4 << 10), ("512M", 512 << 20), ("64g", 64 << 30), ("2T", 2 << 40)] {
            assert_eq!(text.parse(), Ok(MemorySize(bytes)), "{text}");
        }
        for text in ["", "G", "64", "0G", "-1G", "1.5G", "banana", "99999999999T", "64 GiB", "6ä"] {
            assert!(text.parse::<MemorySize>().is_err_and(|error| error.contains("512M")), "{text}");
        }
    }
}
