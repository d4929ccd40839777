//! Formats a captured frame as a line of text, like `tcpdump -e`. Only the Ethernet header is decoded: tcpdump and
//! Wireshark read the file of `-w`.

use crate::output;
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, EnhancedPacketBlock, OptionCode, parse_block_le};
use std::fmt::Write;

/// pcapng option `opt_comment`: text about a packet.
const COMMENT: OptionCode = OptionCode(1);
/// pcapng option `epb_flags`: direction of a packet.
const FLAGS: OptionCode = OptionCode(2);
/// pcapng option `epb_dropcount`: frames missing before a packet.
const MISSING: OptionCode = OptionCode(4);
/// Ethernet types of VLAN tags (IEEE 802.1Q, 802.1ad).
const TAGS: [u16; 2] = [0x8100, 0x88a8];

/// Formatter of captured frames. Holds the names of the capture's interfaces, by pcapng interface id.
#[derive(Debug, Default)]
pub(super) struct FrameFormatter(Vec<String>);

impl FrameFormatter {
    /// Returns a line of text for a packet's pcapng block. Stores an interface's name from its block; other blocks give
    /// an empty text.
    pub(super) fn format(&mut self, block: &[u8]) -> String {
        match parse_block_le(block) {
            Ok((_, Block::InterfaceDescription(interface))) => {
                let name = interface.if_name().and_then(Result::ok).unwrap_or("?");
                self.0.push(output::escape_controls(name));
                String::new()
            }
            Ok((_, Block::EnhancedPacket(packet))) => self.line(&packet),
            _ => String::new(),
        }
    }

    fn line(&self, packet: &EnhancedPacketBlock<'_>) -> String {
        let option = |code: OptionCode| packet.options.iter().find(|option| option.code == code);
        let name = self.0.get(packet.if_id as usize).map_or("?", String::as_str);
        let receives =
            option(FLAGS).and_then(|flags| flags.value.first()).is_some_and(|flags| flags & 3 == 1);
        let direction = if receives { "In " } else { "Out" };
        let time = time(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low));
        let mut line = format!("{time} {name:8} {direction} ");
        describe(packet.packet_data(), packet.origlen, &mut line);
        if let Some(comment) = option(COMMENT).and_then(|comment| comment.as_str().ok()) {
            let _ = write!(line, ", {}", output::escape_controls(comment));
        }
        if let Some(missing) = option(MISSING).and_then(|count| count.as_u64_le().ok()) {
            let _ = write!(line, " ({missing} frames before this one are missing)");
        }
        line.push('\n');
        line
    }
}

/// Returns the time of day (UTC) for nanoseconds since 1970.
pub(crate) fn time(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:06}", seconds % 60, nanos % 1_000_000_000 / 1000)
}

/// Appends a frame's addresses, VLAN tags, Ethernet type and length.
fn describe(frame: &[u8], length: u32, line: &mut String) {
    let Some((addresses, mut rest)) = frame.split_first_chunk::<12>() else {
        let _ = write!(line, "length {length}");
        return;
    };
    let mac = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
    let _ = write!(line, "{} > {}", mac(&addresses[6..]), mac(&addresses[..6]));
    while let [high, low, more @ ..] = rest {
        let kind = u16::from_be_bytes([*high, *low]);
        if let (true, [high, low, more @ ..]) = (TAGS.contains(&kind), more) {
            let tag = u16::from_be_bytes([*high, *low]);
            let _ = write!(line, ", vlan {}", tag & 0xfff);
            if tag >> 13 > 0 {
                let _ = write!(line, " p {}", tag >> 13);
            }
            rest = more;
            continue;
        }
        let _ = match name(kind) {
            Some(name) => write!(line, ", ethertype {name} ({kind:#06x})"),
            None if kind <= 1500 => write!(line, ", 802.3"),
            None => write!(line, ", ethertype {kind:#06x}"),
        };
        break;
    }
    let _ = write!(line, ", length {length}");
}

fn name(kind: u16) -> Option<&'static str> {
    let named = [(0x0800, "IPv4"), (0x0806, "ARP"), (0x86dd, "IPv6"), (0x88cc, "LLDP"), (0x88f7, "PTPv2")];
    named.into_iter().find(|(number, _)| *number == kind).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(tail: &[u8]) -> String {
        let mut line = String::new();
        describe(&[&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1], tail].concat(), 60, &mut line);
        line
    }

    #[test]
    fn printed_frame_matches_the_line_of_tcpdump() {
        let ends = "02:00:00:00:00:01 > 02:00:00:00:00:09";
        assert_eq!(described(&[8, 6, 1]), format!("{ends}, ethertype ARP (0x0806), length 60"));
        assert_eq!(described(&[0x88, 0xb5]), format!("{ends}, ethertype 0x88b5, length 60"));
        assert_eq!(described(&[0, 46]), format!("{ends}, 802.3, length 60"));
        let tagged = [0x88, 0xa8, 0, 7, 0x81, 0, 0x60, 100, 8, 0];
        assert_eq!(
            described(&tagged),
            format!("{ends}, vlan 7, vlan 100 p 3, ethertype IPv4 (0x0800), length 60")
        );
        assert_eq!(described(&[0x81]), format!("{ends}, length 60"));
        let mut line = String::new();
        describe(&[1; 11], 60, &mut line);
        assert_eq!(line, "length 60");
    }

    #[test]
    fn time_of_a_printed_frame_has_hours_to_microseconds() {
        assert_eq!(time((86_400 * 3 + 3600 + 61) * 1_000_000_000 + 1_234_567), "01:01:01.001234");
    }
}
