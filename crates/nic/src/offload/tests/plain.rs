//! Tests that the quick check of a frame finds the same descriptor fields as the complete parse, if it finds a plain
//! frame.

use super::frames::{built, ipv4, link, tcp4, udp4};
use super::parsed;
use crate::offload::plain::PlainRxFormat;
use crate::offload::receive::{FrameContentFields, classify};
use alloc::vec::Vec;
use etherparse::VlanId;
use i82576::bits::rxcsum;
use i82576::descriptor::DD;
use i82576::descriptor::rx::{AdvancedRxWriteBack, status};
use offload::plain;
use plane::bytes::be16;
use plane::frame::{TransportProtocol, TrustedChecksum};
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use rings::{FrameRunProperties, RxFormat};

/// Returns the descriptor fields that the quick check of a frame finds; `None` if the frame is not plain.
fn glance(frame: &[u8], control: u32, seal: Option<TrustedChecksum>) -> Option<FrameContentFields> {
    let found = plain::PlainFrame::of(frame.first_chunk()?, frame.len())?.find(frame, seal);
    if seal.is_none() {
        assert!(in_a_burst(frame).is_none_or(|seen| seen == found), "{frame:02x?}");
    }
    let terms = FrameRunProperties { tag: None, inexact: false, from_uplink: false };
    let [first, second, ..] = PlainRxFormat::new(control, terms).words(found, None, 0);
    let raw = (u128::from(second) << 64 | u128::from(first)).to_le_bytes();
    let AdvancedRxWriteBack { packet_type, status, .. } = AdvancedRxWriteBack::parse(&raw).unwrap();
    Some(FrameContentFields { packet_type, status: status & !(DD | status::EOP) })
}

/// Returns the descriptor properties of a plain frame from its first 64 bytes and the sum of the rest, as a burst finds
/// them. Returns `None` if the frame is not plain.
fn in_a_burst(frame: &[u8]) -> Option<plain::PlainFrameKind> {
    let (mut head, within) = ([0; 64], frame.len().min(64));
    head[..within].copy_from_slice(&frame[..within]);
    let rest =
        frame[within..].chunks(2).map(|word| u64::from(word[0]) | u64::from(*word.get(1).unwrap_or(&0)) << 8);
    let mut glance = plain::UnsummedFrame::default();
    glance.look(&head, frame.len() as u32).then(|| glance.finish(rest.sum()))
}

fn agrees(frame: &[u8], control: u32, seal: Option<TrustedChecksum>) -> bool {
    let Some(found) = glance(frame, control, seal) else { return false };
    let headers = parsed(frame);
    assert_eq!(found, classify(frame, &headers, control, seal), "{frame:02x?}");
    true
}

#[test]
fn quick_header_check_accepts_tcp_and_udp_over_ipv4() {
    for mut frame in [tcp4(b"payload"), udp4(b"payload"), tcp4(&[]), udp4(&[]), udp4(&[7; 1472])] {
        frame.resize(frame.len().max(60), 0);
        assert!(agrees(&frame, u32::MAX, None) && agrees(&frame, 0, None));
    }
}

#[test]
fn quick_header_check_rejects_tags_options_and_fragments() {
    let tagged =
        built!(link().single_vlan(VlanId::try_new(5).unwrap()).ipv4([1; 4], [2; 4], 9).udp(1, 2), &[0; 20]);
    let echo = built!(ipv4().icmpv4_echo_request(1, 2), &[0; 40]);
    let mut fragment = udp4(&[0; 40]);
    fragment[21] = 1;
    let mut options = tcp4(&[0; 40]);
    options[14] = 0x46;
    for frame in [tagged, echo, fragment, options, super::frames::tcp6(&[]), tcp4(&[])[..53].to_vec()] {
        assert_eq!(glance(&frame, u32::MAX, None), None);
    }
}

/// Draws a TCP or UDP frame over IPv4 with some random bytes, cut short or padded.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = proptest::collection::vec(any::<u8>(), 0..80);
    let change = prop_oneof![(12usize..60, any::<u8>()), (14usize..26, 0u8..80)];
    (any::<bool>(), payload, proptest::collection::vec(change, 0..3), -30isize..30).prop_map(
        |(tcp, payload, changes, more)| {
            let mut frame = if tcp { tcp4(&payload) } else { udp4(&payload) };
            for (at, value) in changes {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            frame.resize(frame.len().saturating_add_signed(more), 0);
            frame
        },
    )
}

/// Draws a sending card's checksum of a frame, right or wrong, or no checksum.
fn seal() -> impl Strategy<Value = Option<TrustedChecksum>> {
    let transport = prop_oneof![
        (0..1u8).prop_map(|_| TransportProtocol::Tcp),
        (0..1u8).prop_map(|_| TransportProtocol::Udp)
    ];
    proptest::option::of(
        (33usize..36, 34usize..120, transport, any::<u16>())
            .prop_map(|(start, end, transport, seed)| TrustedChecksum { start, end, transport, seed }),
    )
}

proptest! {
    #[test]
    fn quick_header_check_and_complete_parse_give_equal_results(frame in frame(), all in any::<bool>(), control in any::<u32>()) {
        agrees(&frame, if all { rxcsum::IPOFL | rxcsum::TUOFL } else { control }, None);
    }

    #[test]
    fn quick_and_complete_parse_verify_senders_checksums_alike(frame in frame(), seal in seal(), to_the_end in any::<bool>(), seed in 0u16..9) {
        let end = 14 + usize::from(be16(&frame, 16).unwrap_or(0));
        let seal = seal.map(|seal| if to_the_end { TrustedChecksum { start: 34, end, ..seal } } else { seal });
        agrees(&frame, rxcsum::TUOFL, seal);
        // The sum of the pseudo header, or a number beside it.
        let pseudo = (end as u16).wrapping_sub(34).wrapping_add(0x1409 + seed);
        let right = TrustedChecksum { start: 34, end, transport: TransportProtocol::Tcp, seed: pseudo.wrapping_sub(4) };
        agrees(&frame, rxcsum::TUOFL, Some(right));
    }
}
