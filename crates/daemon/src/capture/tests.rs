//! Tests captures by the pcapng files that readers get.

use super::*;
use plane::watch::FrameDropReason;
use plane::{DeliveryError, PortIndex};

const ALL: CaptureSelection = CaptureSelection {
    ports: PortSet::new(u64::MAX),
    uplink: true,
    drops: false,
    snaplen: LONGEST,
    is_filtered: false,
};

fn seen(at: u8, way: PlaneWay, lost: Option<FrameDropReason>) -> FrameObservation {
    FrameObservation { at: PortIndex::new(at).map_or(FrameOrigin::Uplink, FrameOrigin::Port), way, lost }
}

/// Packet that a test has read from a capture file.
#[derive(Debug, PartialEq)]
struct CapturedPacket {
    interface: u32,
    way: u8,
    data: Vec<u8>,
    length: u32,
    comment: Option<String>,
    missing: u64,
}

fn read(file: &[u8]) -> Vec<CapturedPacket> {
    use pcap_parser::traits::PcapNGPacketBlock;
    let (_, read) = pcap_parser::parse_pcapng(file).unwrap();
    let blocks = read.sections.into_iter().flat_map(|section| section.blocks);
    let packets = blocks.filter_map(|block| {
        let pcap_parser::Block::EnhancedPacket(packet) = block else { return None };
        let option = |code| packet.options.iter().find(|option| option.code == code);
        let comment = option(pcapng::COMMENT).map(|said| said.as_str().unwrap().to_owned());
        let missing = option(pcapng::DROP_COUNT).map_or(0, |count| count.as_u64_le().unwrap());
        let way = option(pcapng::FLAGS).unwrap().value[0];
        let (interface, length, data) = (packet.if_id, packet.origlen, packet.packet_data().to_vec());
        Some(CapturedPacket { interface, way, data, length, comment, missing })
    });
    packets.collect()
}

#[test]
fn captured_frames_have_interface_direction_and_drop_reason() {
    let (capture, mut frames) = begin(CaptureSelection { snaplen: 4, ..ALL });
    let mut captures = PortCaptures::default();
    assert!(captures.is_empty() && captures.add(capture));
    captures.note(seen(3, PlaneWay::In, None), &[1; 60]);
    captures.note(seen(UPLINK, PlaneWay::Out, None), &[1; 60]);
    captures.note(seen(UPLINK, PlaneWay::In, None), &[2; 60]);
    captures.note(seen(3, PlaneWay::Out, Some(FrameDropReason::Missed(DeliveryError::Dropped))), &[2; 60]);
    captures.note(seen(5, PlaneWay::Out, None), &[3; 60]);
    let mut file = frames.head(&[(UPLINK, "uplink".into()), (3, "pf0vf3".into())]).unwrap();
    file.extend(frames.take(usize::MAX, |_, _| true).unwrap().unwrap());
    let [receives, sends] = [1, 2];
    let packet = |interface, way, byte, why: Option<&str>| CapturedPacket {
        interface,
        way,
        data: vec![byte; 4],
        length: 60,
        comment: why.map(str::to_owned),
        missing: 0,
    };
    let expected = [
        packet(1, sends, 1, None),
        packet(0, sends, 1, None),
        packet(0, receives, 2, None),
        packet(1, receives, 2, Some("dropped: no receive descriptors")),
    ];
    assert_eq!(read(&file), expected);
}

#[test]
fn capture_of_drops_omits_other_ports_and_delivered_frames() {
    let wanted = CaptureSelection { ports: PortSet::new(1 << 2), uplink: false, drops: true, ..ALL };
    let (capture, mut frames) = begin(wanted);
    let mut captures = PortCaptures(vec![capture]);
    for at in [1, 2, UPLINK] {
        for lost in [None, Some(FrameDropReason::Storm)] {
            captures.note(seen(at, PlaneWay::Out, lost), &[at; 60]);
        }
    }
    captures.note(seen(2, PlaneWay::Out, Some(FrameDropReason::Storm)), &[99; 60]);
    let mut file = frames.head(&[(2, "pf0vf2".into())]).unwrap();
    file.extend(frames.take(usize::MAX, |frame, _| frame[0] < 99).unwrap().unwrap());
    let found = read(&file);
    let [CapturedPacket { data, comment: Some(why), .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&data[..], why.as_str()), (&[2; 60][..], "dropped: storm control"));
}

#[test]
fn capture_filter_reads_whole_frames_before_they_are_truncated() {
    let (mut capture, mut frames) = begin(CaptureSelection { snaplen: 96, is_filtered: true, ..ALL });
    for length in [60, 1500] {
        capture.note(0, seen(1, PlaneWay::In, None), &vec![length as u8; length]);
    }
    let mut file = frames.head(&[(1, "pf0vf1".into())]).unwrap();
    let is_long = |frame: &[u8], length| frame.len() == length && length > 1000;
    file.extend(frames.take(usize::MAX, is_long).unwrap().unwrap());
    let found = read(&file);
    let [CapturedPacket { data, length: 1500, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(data.len(), 96);
}

#[test]
fn capture_read_that_selects_no_frame_does_not_end_the_capture() {
    let (mut capture, mut frames) = begin(ALL);
    for _ in 0..2 {
        capture.note(0, seen(1, PlaneWay::In, None), &[1; 60]);
    }
    let mut take = || frames.take(1, |_, _| false).unwrap();
    assert_eq!([take(), take(), take()], [Some(vec![]), Some(vec![]), None]);
}

#[test]
fn flood_of_one_function_leaves_room_for_frames_of_others() {
    let (capture, mut frames) = begin(ALL);
    let mut captures = PortCaptures(vec![capture]);
    for _ in 0..2 * RING / 1000 {
        captures.note(seen(1, PlaneWay::In, None), &[1; 1000]);
    }
    captures.note(seen(2, PlaneWay::In, None), &[2; 1000]);
    captures.note(seen(UPLINK, PlaneWay::In, None), &[3; 1000]);
    let names = [(UPLINK, "uplink".into()), (1, "pf0vf1".into()), (2, "pf0vf2".into())];
    let mut file = frames.head(&names).unwrap();
    file.extend(frames.take(usize::MAX, |_, _| true).unwrap().unwrap());
    let packets = read(&file);
    let of = |interface| packets.iter().filter(move |packet| packet.interface == interface);
    assert_eq!(
        [0, 2].map(|interface| (
            of(interface).count(),
            of(interface).map(|packet| packet.missing).sum::<u64>()
        )),
        [(1, 0); 2]
    );
    let flood = of(1).count() * 1000;
    assert!((RING / 2..RING * 4 / 5).contains(&flood), "{flood} bytes of {RING}");
    let missing = (2 * RING / 1000 - flood / 1000) as u64;
    assert_eq!(of(1).map(|packet| packet.missing).sum::<u64>(), missing);
    // What the reader has taken makes room again.
    captures.note(seen(1, PlaneWay::In, None), &[1; 1000]);
    assert!(frames.take(usize::MAX, |_, _| true).unwrap().is_some());
}

#[test]
fn slow_capture_reader_misses_frames_that_are_counted() {
    let (capture, mut frames) = begin(ALL);
    let mut captures = PortCaptures(vec![capture]);
    let sent = 2 * RING as u64 / 1000;
    for _ in 0..sent {
        captures.note(seen(1, PlaneWay::In, None), &[1; 1000]);
    }
    let mut file = frames.head(&[(1, "pf0vf1".into())]).unwrap();
    file.extend(frames.take(usize::MAX, |_, _| true).unwrap().unwrap());
    captures.note(seen(1, PlaneWay::In, None), &[1; 1000]);
    file.extend(frames.take(usize::MAX, |_, _| true).unwrap().unwrap());
    let packets = read(&file);
    assert_eq!(packets.iter().map(|packet| packet.missing + 1).sum::<u64>(), sent + 1);
    let mut others = Vec::new();
    for _ in 1..MOST {
        let (capture, frames) = begin(ALL);
        others.push(frames);
        assert!(captures.add(capture));
    }
    assert!(!captures.add(begin(ALL).0), "more than {MOST} captures");
    drop(frames);
    let (capture, last) = begin(ALL);
    assert!(captures.add(capture), "an ended capture still counts");
    drop(captures);
    assert!(last.have_ended());
}
