//! Frames in the blocks of a recording: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng),
//! including its obsolete packet blocks. The frame check sequence is removed from frames. `replay` reads the file
//! and plays the frames.

use i82576::ids::MAX_FRAME;
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    Block, InterfaceDescriptionBlock, Linktype, OptionCode, PcapBlockOwned, PcapHeader, PcapNGOption,
    UnknownBlock,
};

/// Maximum number of interfaces of a pcapng section. Further ones are ignored, so that a file cannot fill the memory.
const INTERFACES: usize = 1024;
/// Type of pcapng's obsolete Packet Block.
const PACKET_BLOCK: u32 = 2;
/// Code of the pcapng option `epb_flags`, and of `pack_flags` in the obsolete block.
const FLAGS: u16 = 2;
/// Code of the pcapng option `if_fcslen`: length of an interface's frame check sequence.
const FCS_LENGTH: OptionCode = OptionCode(13);
/// Code of the pcapng option `if_tsoffset`: offset of an interface's times in seconds.
const TIME_OFFSET: OptionCode = OptionCode(14);
/// Bit of a pcap file's link-type word: set if the upper four bits hold the length of the frame check sequence.
const HAS_FCS_LENGTH: u32 = 1 << 26;

/// Content of one block of a recording, as the replay uses it: a frame, a malformed packet, or other data.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordingBlockContent<'a> {
    /// Frame of the recording, and its time in nanoseconds. A Simple Packet Block has no time.
    Frame(&'a [u8], Option<i128>),
    /// The block has a packet that is not a whole Ethernet frame.
    Malformed,
    Nothing,
}

/// Interface on which a recording's packets were captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CaptureInterface {
    /// Link type of the interface, if it is not Ethernet.
    foreign: Option<u32>,
    /// Bytes of the frame check sequence at the end of each of the interface's frames.
    fcs: usize,
    /// Units per second of the packet times on this interface. `None` if the number does not fit 64 bits.
    units: Option<u64>,
    /// Seconds to add to the time of each packet of the interface.
    offset: i64,
    /// Maximum captured bytes of a packet; 0 means no limit.
    snaplen: u32,
}

impl CaptureInterface {
    /// Creates the one interface of a pcap file from the file's header.
    fn of_pcap(header: &PcapHeader) -> Self {
        let word = header.network.0 as u32;
        let link_type = word & 0xffff;
        Self {
            foreign: (link_type != Linktype::ETHERNET.0 as u32).then_some(link_type),
            fcs: if word & HAS_FCS_LENGTH == 0 { 0 } else { (word >> 28) as usize * 2 },
            units: Some(if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 }),
            offset: 0,
            snaplen: 0,
        }
    }

    fn of_pcapng(block: &InterfaceDescriptionBlock<'_>, order: ByteOrder) -> Self {
        let option =
            |code| block.options.iter().find(|option| option.code == code).map(|option| &*option.value);
        let fcs = option(FCS_LENGTH).and_then(<[u8]>::first).map_or(0, |length| usize::from(*length));
        // pcap-parser reads the offset as little-endian in any section.
        let offset = option(TIME_OFFSET)
            .and_then(|value| value.first_chunk::<8>())
            .map_or(0, |value| order.signed(*value));
        Self {
            foreign: (block.linktype != Linktype::ETHERNET).then_some(block.linktype.0 as u32),
            // Some writers give the length in bits.
            fcs: if fcs < 8 { fcs } else { fcs / 8 },
            units: units(block.if_tsresol),
            offset,
            snaplen: block.snaplen,
        }
    }

    /// Converts a packet's time on this interface to nanoseconds.
    fn time(&self, high: u32, low: u32) -> Option<i128> {
        let count = i128::from(u64::from(high) << 32 | u64::from(low));
        Some(count * 1_000_000_000 / i128::from(self.units?.max(1)) + i128::from(self.offset) * 1_000_000_000)
    }
}

/// Returns the time units per second of an `if_tsresol`: a negative power of ten, or with bit 7 set, of two.
fn units(resolution: u8) -> Option<u64> {
    let power = u32::from(resolution & 0x7f);
    if resolution & 0x80 == 0 { 10_u64.checked_pow(power) } else { 1_u64.checked_shl(power) }
}

/// Byte order of the recording's integers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ByteOrder {
    #[default]
    Little,
    Big,
}

impl ByteOrder {
    fn short(self, bytes: [u8; 2]) -> u16 {
        if self == Self::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    }

    fn word(self, bytes: [u8; 4]) -> u32 {
        if self == Self::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    }

    fn signed(self, bytes: [u8; 8]) -> i64 {
        if self == Self::Little { i64::from_le_bytes(bytes) } else { i64::from_be_bytes(bytes) }
    }
}

/// Packet in a block of a recording, before its frame check sequence is removed.
struct RecordedPacket<'a> {
    interface: usize,
    data: &'a [u8],
    /// Length of the packet on the wire in bytes.
    length: u32,
    /// Bytes of the frame check sequence in this packet, if the packet's flags have the length.
    fcs: Option<usize>,
    /// Upper and lower half of the packet's time.
    time: Option<(u32, u32)>,
}

/// Decoder of a recording's blocks, with the interfaces and the byte order that earlier blocks defined.
#[derive(Debug, Default)]
pub(super) struct RecordingDecoder {
    order: ByteOrder,
    interfaces: Vec<CaptureInterface>,
}

impl RecordingDecoder {
    /// Decodes the next block of the recording.
    pub(super) fn take<'a>(&mut self, block: &'a PcapBlockOwned<'_>) -> RecordingBlockContent<'a> {
        let packet = match block {
            PcapBlockOwned::LegacyHeader(header) => {
                self.interfaces = vec![CaptureInterface::of_pcap(header)];
                return RecordingBlockContent::Nothing;
            }
            PcapBlockOwned::Legacy(packet) => return self.of_pcap(packet),
            PcapBlockOwned::NG(Block::SectionHeader(header)) => {
                self.order = if header.big_endian() { ByteOrder::Big } else { ByteOrder::Little };
                self.interfaces.clear();
                return RecordingBlockContent::Nothing;
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(found)) => {
                if self.interfaces.len() < INTERFACES {
                    self.interfaces.push(CaptureInterface::of_pcapng(found, self.order));
                }
                return RecordingBlockContent::Nothing;
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => Some(RecordedPacket {
                interface: packet.if_id as usize,
                data: packet.packet_data(),
                length: packet.origlen,
                fcs: self.flags(&packet.options),
                time: Some((packet.ts_high, packet.ts_low)),
            }),
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let limit = self.interfaces.first().map_or(0, |interface| interface.snaplen as usize);
                let captured = packet.packet_data();
                let data = if limit == 0 { captured } else { &captured[..captured.len().min(limit)] };
                Some(RecordedPacket { interface: 0, data, length: packet.origlen, fcs: None, time: None })
            }
            PcapBlockOwned::NG(Block::Unknown(block)) if self.is_packet(block) => self.obsolete(block.data),
            PcapBlockOwned::NG(_) => return RecordingBlockContent::Nothing,
        };
        packet.map_or(RecordingBlockContent::Malformed, |packet| self.frame(&packet))
    }

    /// Returns the first link type of an interface that is not Ethernet.
    pub(super) fn foreign_link_type(&self) -> Option<u32> {
        self.interfaces.iter().find_map(|interface| interface.foreign)
    }

    fn of_pcap<'a>(&self, packet: &pcap_parser::LegacyPcapBlock<'a>) -> RecordingBlockContent<'a> {
        let part = self.interfaces.first().and_then(|interface| interface.time(0, packet.ts_usec));
        let found = RecordedPacket {
            interface: 0,
            data: packet.data,
            length: packet.origlen,
            fcs: None,
            time: Some((0, packet.ts_usec)),
        };
        match (self.frame(&found), part) {
            (RecordingBlockContent::Frame(frame, _), Some(part)) => {
                RecordingBlockContent::Frame(frame, Some(i128::from(packet.ts_sec) * 1_000_000_000 + part))
            }
            (found, _) => found,
        }
    }

    fn is_packet(&self, block: &UnknownBlock<'_>) -> bool {
        // pcap-parser reads the type as little-endian.
        self.order.word(block.block_type.to_le_bytes()) == PACKET_BLOCK
    }

    /// Decodes pcapng's obsolete Packet Block.
    fn obsolete<'a>(&self, block: &'a [u8]) -> Option<RecordedPacket<'a>> {
        let (head, rest) = block.split_first_chunk::<20>()?;
        let word = |at: usize| head[at..].first_chunk().map_or(0, |bytes| self.order.word(*bytes));
        let captured = word(12) as usize;
        let data = rest.get(..captured)?;
        let options = rest.get(captured.next_multiple_of(4)..).unwrap_or_default();
        Some(RecordedPacket {
            interface: self.order.short([head[0], head[1]]).into(),
            data,
            length: word(16),
            fcs: self.option(options, FLAGS).and_then(|value| self.fcs_of_flags(value)),
            time: Some((word(4), word(8))),
        })
    }

    /// Returns the value of an option among a pcapng block's options.
    fn option<'a>(&self, mut options: &'a [u8], wanted: u16) -> Option<&'a [u8]> {
        loop {
            let (head, rest) = options.split_first_chunk::<4>()?;
            let [code, length] =
                [[head[0], head[1]], [head[2], head[3]]].map(|bytes| self.order.short(bytes));
            let length = usize::from(length);
            match code {
                0 => return None,
                _ if code == wanted => return rest.get(..length),
                _ => options = rest.get(length.next_multiple_of(4)..)?,
            }
        }
    }

    fn flags(&self, options: &[PcapNGOption<'_>]) -> Option<usize> {
        let flags = options.iter().find(|option| option.code == OptionCode(FLAGS))?;
        self.fcs_of_flags(&flags.value)
    }

    /// Returns the bytes of the frame check sequence that a packet's flags state, or `None` for 0, which means
    /// unknown.
    fn fcs_of_flags(&self, value: &[u8]) -> Option<usize> {
        let length = self.order.word(*value.first_chunk()?) >> 5 & 0xf;
        (length > 0).then_some(length as usize)
    }

    fn frame<'a>(&self, packet: &RecordedPacket<'a>) -> RecordingBlockContent<'a> {
        let Some(interface) = self.interfaces.get(packet.interface) else {
            return RecordingBlockContent::Malformed;
        };
        let time = packet.time.map(|(high, low)| interface.time(high, low));
        if interface.foreign.is_some() || time == Some(None) {
            return RecordingBlockContent::Malformed;
        }
        let length = (packet.length as usize).checked_sub(packet.fcs.unwrap_or(interface.fcs));
        let frame = length.and_then(|length| packet.data.get(..length));
        match frame.filter(|frame| (14..=MAX_FRAME).contains(&frame.len())) {
            Some(frame) => RecordingBlockContent::Frame(frame, time.flatten()),
            None => RecordingBlockContent::Malformed,
        }
    }
}

#[cfg(test)]
mod tests;
