//! Tests of decoding frames from recordings in every format, in both byte orders.

use super::*;
use pcap_parser::create_reader;
use proptest::prelude::{any, proptest};
use std::io::Cursor;

/// Builder of the blocks of a pcapng file, in either byte order.
#[derive(Clone, Copy)]
struct PcapngWriter(ByteOrder);

impl PcapngWriter {
    fn short(self, number: u16) -> Vec<u8> {
        if self.0 == ByteOrder::Little { number.to_le_bytes() } else { number.to_be_bytes() }.to_vec()
    }

    fn word(self, number: u32) -> Vec<u8> {
        if self.0 == ByteOrder::Little { number.to_le_bytes() } else { number.to_be_bytes() }.to_vec()
    }

    fn words<const N: usize>(self, numbers: [u32; N]) -> Vec<u8> {
        numbers.into_iter().flat_map(|number| self.word(number)).collect()
    }

    fn block(self, kind: u32, content: &[u8]) -> Vec<u8> {
        let padded = content.len().next_multiple_of(4);
        let mut block = self.words([kind, padded as u32 + 12]);
        block.extend(content);
        block.resize(8 + padded, 0);
        block.extend(self.word(padded as u32 + 12));
        block
    }

    fn section(self) -> Vec<u8> {
        let content = [self.word(0x1a2b_3c4d), self.short(1), self.short(0), vec![0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &content)
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [self.short(code), self.short(value.len() as u16), value.to_vec()].concat();
        option.resize(4 + value.len().next_multiple_of(4), 0);
        option
    }

    fn interface(self, link_type: u16, snaplen: u32, options: &[Vec<u8>]) -> Vec<u8> {
        self.block(1, &[self.short(link_type), self.short(0), self.word(snaplen), options.concat()].concat())
    }

    fn simple(self, data: &[u8], length: u32) -> Vec<u8> {
        self.block(3, &[&self.word(length), data].concat())
    }

    fn enhanced(self, interface: u32, time: u64, data: &[u8], options: &[Vec<u8>]) -> Vec<u8> {
        let length = data.len() as u32;
        let head = self.words([interface, (time >> 32) as u32, time as u32, length, length]);
        let mut content = [&head, data].concat();
        content.resize(20 + data.len().next_multiple_of(4), 0);
        content.extend(options.concat());
        self.block(6, &content)
    }

    fn obsolete(self, interface: u16, time: u64, data: &[u8], options: &[Vec<u8>]) -> Vec<u8> {
        let length = data.len() as u32;
        let head = self.words([(time >> 32) as u32, time as u32, length, length]);
        let mut content = [&self.short(interface), &self.short(7), &head, data].concat();
        content.resize(20 + data.len().next_multiple_of(4), 0);
        content.extend(options.concat());
        self.block(2, &content)
    }
}

const BOTH: [PcapngWriter; 2] = [PcapngWriter(ByteOrder::Little), PcapngWriter(ByteOrder::Big)];

type TimedFrames = Vec<(Vec<u8>, Option<i128>)>;

/// Decodes a recording. Returns its frames with their times, and the number of malformed packets.
fn read(file: &[u8]) -> (TimedFrames, usize) {
    let mut reader = create_reader(1 << 16, Cursor::new(file.to_vec())).unwrap();
    let (mut recording, mut frames, mut malformed) = (RecordingDecoder::default(), Vec::new(), 0);
    while let Ok((length, block)) = reader.next() {
        match recording.take(&block) {
            RecordingBlockContent::Frame(frame, time) => frames.push((frame.to_vec(), time)),
            RecordingBlockContent::Malformed => malformed += 1,
            RecordingBlockContent::Nothing => {}
        }
        reader.consume(length);
    }
    (frames, malformed)
}

/// Returns a pcap file with one frame, recorded at two seconds and five units.
fn pcap(writer: PcapngWriter, magic: u32, link_type: u32, data: &[u8], length: u32) -> Vec<u8> {
    let version = [writer.short(2), writer.short(4)].concat();
    let header = [writer.word(magic), version, writer.words([0, 0, 65535, link_type])].concat();
    [header, writer.words([2, 5, data.len() as u32, length]), data.to_vec()].concat()
}

#[test]
fn simple_pcapng_packets_have_snaplen_bytes_and_no_time() {
    for writer in BOTH {
        let file = [writer.section(), writer.interface(1, 0, &[]), writer.simple(&[1; 61], 61)].concat();
        assert_eq!(read(&file), (vec![(vec![1; 61], None)], 0));
        let file = [
            writer.section(),
            writer.interface(1, 64, &[]),
            writer.simple(&[1; 64], 90),
            writer.simple(&[2; 60], 60),
        ];
        assert_eq!(read(&file.concat()), (vec![(vec![2; 60], None)], 1));
        let file = [writer.section(), writer.simple(&[1; 60], 60)].concat();
        assert_eq!(read(&file), (vec![], 1), "a packet without an interface");
    }
}

#[test]
fn obsolete_pcapng_packet_blocks_are_read_as_frames() {
    for writer in BOTH {
        let interfaces = [writer.interface(105, 0, &[]), writer.interface(1, 0, &[])].concat();
        let packets =
            [writer.obsolete(1, 3_000_001, &[1; 61], &[]), writer.obsolete(0, 0, &[2; 60], &[])].concat();
        let flags = writer.option(2, &writer.word(4 << 5));
        let comment = writer.option(1, b"hello");
        let with_fcs = writer.obsolete(1, 1 << 32, &[3; 64], &[comment, flags]);
        let file = [writer.section(), interfaces, packets, with_fcs].concat();
        let expected = vec![(vec![1; 61], Some(3_000_001_000)), (vec![3; 60], Some((1_i128 << 32) * 1000))];
        assert_eq!(read(&file), (expected, 1));
    }
}

#[test]
fn fcs_length_in_a_pcap_link_type_shortens_its_frames() {
    for writer in BOTH {
        let pcap = |word, data: &[u8]| read(&pcap(writer, 0xa1b2_c3d4, word, data, data.len() as u32));
        let frame = |length| (vec![(vec![7; length], Some(2_000_005_000))], 0);
        assert_eq!(pcap(1, &[7; 64]), frame(64));
        assert_eq!(pcap(0x2400_0001, &[7; 64]), frame(60));
        assert_eq!(pcap(0x1400_0001, &[7; 64]), frame(62));
        assert_eq!(pcap(0x2000_0001, &[7; 64]), frame(64), "without the bit for the length");
        assert_eq!(pcap(0x03ff_0001, &[7; 64]), frame(64), "reserved bits");
        assert_eq!(pcap(0x2400_0069, &[7; 64]), (vec![], 1));
        assert_eq!(pcap(0x2400_0001, &[7; 3]), (vec![], 1));
    }
}

#[test]
fn pcapng_packet_may_override_its_interfaces_fcs_length() {
    for writer in BOTH {
        for (length, bytes) in [(0, 0), (4, 4), (2, 2), (32, 4), (16, 2)] {
            let interface = writer.interface(1, 0, &[writer.option(13, &[length])]);
            let flags = writer.option(2, &writer.word(2 << 5 | 1));
            let packets =
                [writer.enhanced(0, 0, &[1; 64], &[]), writer.enhanced(0, 0, &[2; 64], &[flags])].concat();
            let simple = writer.simple(&[3; 64], 64);
            let file = [writer.section(), interface, packets, simple].concat();
            let lengths: Vec<_> = read(&file).0.into_iter().map(|(frame, _)| frame.len()).collect();
            assert_eq!(lengths, [64 - bytes, 62, 64 - bytes], "if_fcslen {length}");
        }
    }
}

#[test]
fn pcapng_times_use_unit_and_offset_of_their_interface() {
    for writer in BOTH {
        let signed = |number: i64| {
            let word = |shift: u32| writer.word((number >> shift) as u32);
            if writer.0 == ByteOrder::Little {
                [word(0), word(32)].concat()
            } else {
                [word(32), word(0)].concat()
            }
        };
        let interfaces = [
            writer.interface(1, 0, &[]),
            writer.interface(1, 0, &[writer.option(9, &[9])]),
            writer.interface(1, 0, &[writer.option(9, &[0x80 | 10]), writer.option(14, &signed(-3))]),
            writer.interface(1, 0, &[writer.option(9, &[0]), writer.option(14, &signed(1 << 33))]),
            writer.interface(1, 0, &[writer.option(9, &[20])]),
        ];
        let packets = (0..5).map(|n| writer.enhanced(n, 1536, &[n as u8; 60], &[]));
        let file: Vec<_> =
            [writer.section()].into_iter().chain(interfaces).chain(packets).flatten().collect();
        let (frames, malformed) = read(&file);
        let times: Vec<_> = frames.into_iter().filter_map(|(_, time)| time).collect();
        assert_eq!(times, [1_536_000, 1536, -1_500_000_000, ((1 << 33) + 1536) * 1_000_000_000]);
        assert_eq!(malformed, 1, "units of 10^-20 seconds");
    }
}

#[test]
fn pcap_has_micro_or_nanoseconds_in_either_byte_order() {
    for writer in BOTH {
        let time = |magic| read(&pcap(writer, magic, 1, &[1; 60], 60)).0[0].1;
        assert_eq!([time(0xa1b2_c3d4), time(0xa1b2_3c4d)], [Some(2_000_005_000), Some(2_000_000_005)]);
    }
}

#[test]
fn pcapng_sections_have_own_interfaces_and_byte_order() {
    let [little, big] = BOTH;
    let file = [
        little.section(),
        little.interface(1, 0, &[little.option(13, &[4])]),
        little.enhanced(0, 1, &[1; 64], &[]),
        big.section(),
        big.enhanced(0, 2, &[2; 64], &[]),
        big.interface(1, 0, &[]),
        big.enhanced(0, 3, &[3; 64], &[]),
        big.obsolete(0, 4, &[4; 64], &[]),
    ];
    let expected = vec![(vec![1; 60], Some(1000)), (vec![3; 64], Some(3000)), (vec![4; 64], Some(4000))];
    assert_eq!(read(&file.concat()), (expected, 1));
}

#[test]
fn truncated_pcapng_packets_are_malformed_padding_is_ignored() {
    let [little, _] = BOTH;
    let pcap = |captured: usize, length| read(&pcap(little, 0xa1b2_c3d4, 1, &vec![1; captured], length));
    assert_eq!(pcap(60, 100), (vec![], 1));
    // Wireshark too cuts a packet with more bytes than its original length.
    assert_eq!(pcap(76, 60).0[0].0.len(), 60);
    // A packet that was cut by no more than its frame check sequence is whole.
    let cut = self::pcap(little, 0xa1b2_c3d4, 0x2400_0001, &[1; 60], 64);
    assert_eq!(read(&cut).0[0].0.len(), 60);
    assert_eq!([pcap(13, 13), pcap(MAX_FRAME + 1, MAX_FRAME as u32 + 1)], [(vec![], 1), (vec![], 1)]);
}

proptest! {
    #[test]
    fn any_pcap_block_causes_no_panic(
        is_big in any::<bool>(),
        turned in proptest::collection::vec((28usize..400, any::<u8>()), 0..8),
    ) {
        let writer = BOTH[usize::from(is_big)];
        let options = [writer.option(9, &[9]), writer.option(13, &[4]), writer.option(14, &[1; 8])];
        let flags = [writer.option(2, &writer.word(4 << 5))];
        let mut file = [
            writer.section(),
            writer.interface(1, 0, &options),
            writer.obsolete(0, 1, &[1; 61], &flags),
            writer.enhanced(0, 2, &[2; 62], &flags),
            writer.simple(&[3; 63], 63),
        ]
        .concat();
        for (at, bits) in turned {
            if let Some(byte) = file.get_mut(at) {
                *byte ^= bits;
            }
        }
        read(&file);
    }
}
