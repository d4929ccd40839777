//! Compiles the primitive `llc` and its frame types (IEEE 802.2).

use crate::error::{FilterError, refuse};
use crate::layers::{LayerOffsets, LinkLayer};
use crate::node::{ComparisonRelation, ComputedNumber, FieldSize, FilterNode};

/// Subtypes of 802.2 supervisory frames by name, under the mask 0x0f.
const SUPERVISORY: [(&str, u32); 3] = [("rr", 0x01), ("rnr", 0x05), ("rej", 0x09)];
/// Subtypes of 802.2 unnumbered frames by name, under the mask 0xef.
const UNNUMBERED: [(&str, u32); 8] = [
    ("ui", 0x03),
    ("ua", 0x63),
    ("disc", 0x43),
    ("dm", 0x0f),
    ("sabme", 0x6f),
    ("test", 0xe3),
    ("xid", 0xaf),
    ("frmr", 0x87),
];

impl LayerOffsets {
    /// Compiles `llc [TYPE]`: a test for an 802.2 frame of a type or subtype, or for any 802.2 frame.
    pub(crate) fn is_llc(&self, kind: Option<&str>) -> Result<FilterNode, FilterError> {
        if self.link != LinkLayer::Ethernet {
            refuse!("llc cannot follow pppoes");
        }
        let node = self.is_length().and(self.llc_field(0, FieldSize::Half).equals(0xffff).negated());
        let Some(kind) = kind else { return Ok(node) };
        let control = self.llc_field(2, FieldSize::Byte);
        let by_name = |table: &[(&str, u32)]| {
            table.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind)).map(|(_, control)| *control)
        };
        let test = if kind.eq_ignore_ascii_case("i") {
            control.compare(ComparisonRelation::CommonBits, ComputedNumber::Number(1)).negated()
        } else if kind.eq_ignore_ascii_case("s") {
            control.equals_under(0x03, 1)
        } else if kind.eq_ignore_ascii_case("u") {
            control.equals_under(0x03, 3)
        } else if let Some(subtype) = by_name(&SUPERVISORY) {
            control.equals_under(0x0f, subtype)
        } else if let Some(subtype) = by_name(&UNNUMBERED) {
            control.equals_under(0xef, subtype)
        } else {
            refuse!(
                "llc has no type {kind}; it has i, s, u, rr, rnr, rej, ui, ua, disc, dm, sabme, test, xid and frmr"
            );
        };
        Ok(node.and(test))
    }
}
