//! Tests checksums that are inserted into the head of a plain frame while its rest is copied.

use super::frames::{pseudo, tcp4, udp4};
use crate::OffloadRequest;
use crate::insert::insert;
use crate::plain::{InsertedChecksums, PlainFrame, UnsummedFrame};
use alloc::vec::Vec;
use plane::frame::TransportProtocol;
use proptest::prelude::*;

const HEAD: usize = 64;

/// Inserts checksums into a frame as a burst of frames does. Returns the frame and the index of its properties in a
/// card's table, or `None` if the frame is not plain.
fn inserted(frame: &[u8], insertion: InsertedChecksums) -> Option<(Vec<u8>, usize)> {
    let (mut head, within) = ([0; HEAD], frame.len().min(HEAD));
    head[..within].copy_from_slice(&frame[..within]);
    let words = frame[within..].chunks(2);
    let rest = words.map(|word| u64::from(word[0]) | u64::from(*word.get(1).unwrap_or(&0)) << 8).sum();
    let mut glance = UnsummedFrame::default();
    let plain = glance.look(&head, frame.len() as u32) && glance.is_udp() == insertion.udp;
    plain.then(|| {
        glance.insert(&mut head, rest, insertion);
        ([&head[..within], &frame[within..]].concat(), glance.finish(rest).index())
    })
}

proptest! {
    #[test]
    fn bursts_and_single_frames_get_equal_inserted_checksums(
        udp: bool,
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        trailing in 0_usize..3,
        field in prop_oneof![Just(None), any::<u16>().prop_map(Some)],
        network: bool,
        wrong_header: bool,
        zeros: bool,
    ) {
        let mut frame = if udp { udp4(&payload) } else { tcp4(&payload) };
        let (protocol, place) = if udp { (17, 40) } else { (6, 50) };
        // The sum of zeros is 0, which UDP writes in another way.
        if zeros && udp {
            frame[34..38].fill(0);
            frame[42..].fill(0);
        }
        let seed = field.unwrap_or_else(|| pseudo(&frame, false, protocol, frame.len() - 34));
        frame[place..][..2].copy_from_slice(&seed.to_be_bytes());
        frame[24] ^= u8::from(wrong_header);
        frame.extend(core::iter::repeat_n(0x5a, trailing));
        let transport = if udp { TransportProtocol::Udp } else { TransportProtocol::Tcp };
        let request = OffloadRequest {
            mac_length: 14, ip_length: 20, ipv4: true, l4: Some(transport),
            l4_checksum: true, ip_checksum: network, ..OffloadRequest::default()
        };
        let insertion = request.plain().unwrap();
        prop_assert_eq!(insertion, InsertedChecksums { udp, network });
        let found = inserted(&frame, insertion);
        prop_assert!(found.is_some() || trailing > 0);
        if let Some(found) = found {
            let sealed = insert(&mut frame, &request).unwrap();
            let sent = frame.clone();
            frame.resize(frame.len().max(60), 0);
            let plain = PlainFrame::of(frame.first_chunk().unwrap(), frame.len()).unwrap();
            for sealed in [sealed, None] {
                prop_assert_eq!(&found, &(sent.clone(), plain.find(&frame, sealed).index()));
            }
        }
    }
}

#[test]
fn fast_checksum_insertion_takes_only_optionless_ipv4_packets() {
    let plain = OffloadRequest {
        mac_length: 14,
        ip_length: 20,
        ipv4: true,
        l4: Some(TransportProtocol::Udp),
        l4_checksum: true,
        ..OffloadRequest::default()
    };
    assert_eq!(plain.plain(), Some(InsertedChecksums { udp: true, network: false }));
    for other in [
        OffloadRequest { mac_length: 18, ..plain },
        OffloadRequest { ip_length: 24, ..plain },
        OffloadRequest { ipv4: false, ..plain },
        OffloadRequest { l4: Some(TransportProtocol::Sctp), ..plain },
        OffloadRequest { l4: None, ..plain },
        OffloadRequest { l4_checksum: false, ip_checksum: true, ..plain },
    ] {
        assert_eq!(other.plain(), None, "{other:?}");
    }
}
