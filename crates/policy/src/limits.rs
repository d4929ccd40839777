//! Abilities of a family of cards, on which its policies depend. Each family has them as a constant beside its PF
//! driver.

use crate::filters::FilterTables;
use core::ops::RangeInclusive;

/// Valid lengths of storm control's counting window, in milliseconds.
pub const WINDOWS_MS: RangeInclusive<u16> = 1..=1_000;

/// Abilities of a family of cards: the settings and values that its policies may have.
#[derive(Debug)]
pub struct CardFamilyLimits {
    /// Name of the family in the configuration.
    pub family: &'static str,
    /// Number of VFs that a port has.
    pub vfs: usize,
    /// Speed of the port's link in Mb/s.
    pub link_speed: u32,
    /// MTUs in bytes to which a VF may be limited.
    pub mtu: RangeInclusive<u16>,
    /// Longest frame of the card in bytes, frame check sequence included.
    pub max_frame: u16,
    /// Bytes of a frame around its packet, as drivers of the family count them: header, tags, frame check sequence.
    pub frame_overhead: u16,
    /// Valid ceilings of a VF's interrupts per second. `Err` is the reason why the family has none, and the remedy.
    pub interrupts: Result<RangeInclusive<u32>, &'static str>,
    /// `Ok` if RSS can be switched on and off. `Err` is the reason why not, and the remedy.
    pub rss: Result<(), &'static str>,
    /// Highest threshold of storm control, in blocks per window.
    pub storm_blocks: u32,
    /// Tables of receive filters that VFs request. `Err` is the reason why the family has none, and the remedy.
    pub filters: Result<FilterTables, &'static str>,
}

/// Limits of an imaginary family of cards for tests: it supports every setting, and counts storms in 19 bits.
#[cfg(test)]
pub(crate) const TOY: CardFamilyLimits = CardFamilyLimits {
    family: "toy",
    vfs: 8,
    link_speed: 1_000,
    mtu: 68..=9_706,
    max_frame: 9_728,
    frame_overhead: 22,
    interrupts: Ok(123..=1_000_000),
    rss: Ok(()),
    storm_blocks: (1 << 19) - 1,
    filters: Ok(FilterTables { mac: 19, vlan: 31, is_shared: true }),
};
