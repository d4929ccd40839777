//! Writer of the blocks of a pcapng file (draft-ietf-opsawg-pcapng), for recordings and captures: a section, its
//! interfaces, and packets with times in nanoseconds. `replay` reads such files.

use pcap_parser::{
    EnhancedPacketBlock, InterfaceDescriptionBlock, InterfaceStatisticsBlock, Linktype, OptionCode,
    PcapNGOption, SectionHeaderBlock, ToVec,
};
use std::borrow::Cow;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Code of the pcapng option `opt_comment`: comment on a packet.
pub(crate) const COMMENT: OptionCode = OptionCode(1);
/// Code of the pcapng option `if_name`: name of an interface.
const NAME: OptionCode = OptionCode(2);
/// Code of the pcapng option `epb_flags`, which has a packet's direction.
pub(crate) const FLAGS: OptionCode = OptionCode(2);
/// Code of the pcapng option `epb_dropcount`: number of packets missing before this one.
pub(crate) const DROP_COUNT: OptionCode = OptionCode(4);

/// Code of the pcapng option `isb_ifdrop`: number of packets that an interface has lost.
const INTERFACE_DROPS: OptionCode = OptionCode(5);

/// Direction of a packet, seen from its interface. The values are those of `epb_flags`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketDirection {
    /// The interface received the packet.
    In = 1,
    /// The interface sent the packet.
    Out = 2,
}

/// Packet to write to a pcapng file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PcapngPacket<'a> {
    /// Index of the packet's interface, in the order of the interface blocks.
    pub(crate) interface: u32,
    /// Time of the packet, nanoseconds since 1970.
    pub(crate) time: u64,
    pub(crate) way: PacketDirection,
    /// Length of the packet on the wire, bytes.
    pub(crate) length: u32,
    /// Captured bytes of the packet, at most `length`.
    pub(crate) data: &'a [u8],
    pub(crate) comment: Option<&'a str>,
    /// Number of packets of any interface that are missing before this one.
    pub(crate) missing: u64,
}

/// Returns the wall-clock time, nanoseconds since 1970.
pub(crate) fn time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// Returns the block that begins a pcapng section.
///
/// # Errors
/// No error is known; the encoder's signature has one.
pub(crate) fn section() -> io::Result<Vec<u8>> {
    let mut block = SectionHeaderBlock {
        block_type: 0,
        block_len1: 0,
        bom: 0,
        major_version: 1,
        minor_version: 0,
        section_len: -1,
        options: Vec::new(),
        block_len2: 0,
    };
    block.to_vec().map_err(io::Error::other)
}

/// Returns the pcapng block of an interface.
///
/// # Errors
/// The name is longer than 65,535 bytes.
pub(crate) fn interface(name: Option<&str>) -> io::Result<Vec<u8>> {
    let mut block = InterfaceDescriptionBlock {
        block_type: 0,
        block_len1: 0,
        linktype: Linktype::ETHERNET,
        reserved: 0,
        snaplen: 0,
        options: name.map(|name| option(NAME, name.as_bytes())).into_iter().collect::<io::Result<_>>()?,
        block_len2: 0,
        if_tsresol: 9,
        if_tsoffset: 0,
    };
    block.to_vec().map_err(io::Error::other)
}

/// Returns the pcapng block of a packet.
///
/// # Errors
/// The comment is longer than 65,535 bytes.
pub(crate) fn packet(packet: &PcapngPacket<'_>) -> io::Result<Vec<u8>> {
    let &PcapngPacket { interface, time, way, length, data, comment, missing } = packet;
    let (flags, missing_bytes) = ((way as u32).to_le_bytes(), missing.to_le_bytes());
    let mut options = vec![option(FLAGS, &flags)?];
    if missing > 0 {
        options.push(option(DROP_COUNT, &missing_bytes)?);
    }
    if let Some(comment) = comment {
        options.push(option(COMMENT, comment.as_bytes())?);
    }
    let mut block = EnhancedPacketBlock {
        block_type: 0,
        block_len1: 0,
        if_id: interface,
        ts_high: (time >> 32) as u32,
        ts_low: time as u32,
        caplen: data.len() as u32,
        origlen: length,
        data,
        options,
        block_len2: 0,
    };
    block.to_vec().map_err(io::Error::other)
}

/// Returns a block with an interface's statistics at a time: the number of missing packets.
///
/// # Errors
/// No error is known; the encoder's signature has one.
pub(crate) fn statistics(interface: u32, time: u64, missing: u64) -> io::Result<Vec<u8>> {
    let missing = missing.to_le_bytes();
    let mut block = InterfaceStatisticsBlock {
        block_type: 0,
        block_len1: 0,
        if_id: interface,
        ts_high: (time >> 32) as u32,
        ts_low: time as u32,
        options: vec![option(INTERFACE_DROPS, &missing)?],
        block_len2: 0,
    };
    block.to_vec().map_err(io::Error::other)
}

/// Returns an option of a pcapng block. Its value must be shorter than 65,536 bytes.
fn option(code: OptionCode, value: &[u8]) -> io::Result<PcapNGOption<'_>> {
    let len = u16::try_from(value.len()).map_err(io::Error::other)?;
    Ok(PcapNGOption { code, len, value: Cow::Borrowed(value) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_parser::traits::PcapNGPacketBlock;
    use pcap_parser::{Block, parse_pcapng};

    #[test]
    fn written_pcapng_is_read_back_with_its_options() {
        let whole = PcapngPacket {
            interface: 1,
            time: 7_000_000_009,
            way: PacketDirection::Out,
            length: 15,
            data: &[9; 15],
            comment: None,
            missing: 0,
        };
        let cut = PcapngPacket {
            data: &[8; 3],
            interface: 0,
            way: PacketDirection::In,
            comment: Some("dropped: why"),
            missing: 77,
            ..whole
        };
        let names = [Some("pf0vf0"), None];
        let mut file = section().unwrap();
        names.iter().for_each(|name| file.extend(interface(*name).unwrap()));
        [&whole, &cut].iter().for_each(|one| file.extend(packet(one).unwrap()));
        file.extend(statistics(1, 8_000_000_000, 77).unwrap());
        let (rest, read) = parse_pcapng(&file).unwrap();
        assert!(rest.is_empty());
        let Some(Block::InterfaceStatistics(last)) = read.sections[0].blocks.last() else {
            panic!("{read:?}")
        };
        assert_eq!((last.if_id, last.options[0].as_u64_le().unwrap()), (1, 77));
        let blocks = &read.sections[0].blocks;
        let found: Vec<_> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::InterfaceDescription(found) => {
                    assert_eq!(found.ts_resolution(), Some(1_000_000_000));
                    Some(found.if_name().map(Result::unwrap))
                }
                _ => None,
            })
            .collect();
        assert_eq!(found, names);
        let packets: Vec<_> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::EnhancedPacket(found) => Some(found),
                _ => None,
            })
            .collect();
        let said = |n: usize, code| packets[n].options.iter().find(|found| found.code == code);
        assert_eq!((packets[0].if_id, packets[0].packet_data(), packets[0].origlen), (1, &[9; 15][..], 15));
        assert_eq!(u64::from(packets[0].ts_high) << 32 | u64::from(packets[0].ts_low), 7_000_000_009);
        assert_eq!((packets[1].if_id, packets[1].packet_data(), packets[1].origlen), (0, &[8; 3][..], 15));
        assert_eq!([0, 1].map(|n| said(n, FLAGS).unwrap().value[0]), [2, 1]);
        assert!(said(0, COMMENT).is_none() && said(0, DROP_COUNT).is_none());
        assert_eq!(said(1, COMMENT).unwrap().as_str().unwrap(), "dropped: why");
        assert_eq!(said(1, DROP_COUNT).unwrap().as_u64_le().unwrap(), 77);
    }
}
