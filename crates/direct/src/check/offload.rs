//! Checks the card's offloads: checksums inserted and verified, long TCP segments cut. Our own sums verify the
//! results. SCTP, and tags together with offloads, are not checked.

use super::frames::{CheckedFrame, PATIENCE};
use super::packets::{KINDS, PacketKind, TcpSegment, complete, is_ours, is_right, packet, segment};
use super::{
    CardCheckContext, CardCheckError, CheckResult, CheckedVf, CheckedVfBus, differs, passes, unexpected,
};
use driver::vf::{ChecksumStatus, TxOffload};

const SUMS: TxOffload = TxOffload { ip_checksum: true, l4_checksum: true, tso: None, vlan: None };
const TCP_IPV4: PacketKind = PacketKind { ipv6: false, tcp: true };
/// Length of the payload before segmentation in bytes.
const LONG: usize = 20_000;
/// Length of the payload of each TCP segment in bytes.
const MSS: u16 = 1_448;

/// Lengths of payloads in bytes: odd ones and even ones, below and above the shortest frame.
const PAYLOADS: [usize; 4] = [1, 2, 101, 1_000];

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * 13) >> 2) as u8).collect()
}

fn next<B: CheckedVfBus>(
    station: &mut CheckedVf<B>,
    kind: PacketKind,
) -> Result<CheckedFrame, CardCheckError> {
    let arrived = station.next_where(PATIENCE, |bytes| is_ours(kind, bytes))?;
    arrived.ok_or_else(|| CardCheckError::Unexpected(format!("the packet did not arrive: {kind:?}")))
}

pub(super) fn checksum<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    for kind in KINDS {
        for length in PAYLOADS {
            let raw = packet(kind, b.vf.mac(), a.vf.mac(), &payload(length));
            a.send_bytes(&raw, &SUMS)?;
            let arrived = next(b, kind)?;
            if let Some(change) = first_change(&complete(kind, raw), &arrived.bytes) {
                return unexpected(format!(
                    "packet {kind:?} with {length} bytes of payload changed: {change}"
                ));
            }
            let (ip, l4) = (arrived.received.ip_checksum, arrived.received.l4_checksum);
            if l4 != ChecksumStatus::Good || (ip != ChecksumStatus::Good && !kind.ipv6) {
                return unexpected(format!(
                    "packet {kind:?} with {length} bytes of payload: IP checksum is {ip:?}, transport \
                     checksum {l4:?}"
                ));
            }
        }
    }
    passes(format!("{} packets arrived with right checksums", KINDS.len() * PAYLOADS.len()))
}

/// Returns a description of the first byte in which `found`, which may be padded, differs from `wanted`.
fn first_change(wanted: &[u8], found: &[u8]) -> Option<String> {
    let pairs = wanted.iter().zip(found.iter().map(Some).chain(std::iter::repeat(None)));
    let (at, (wanted, found)) = pairs.enumerate().find(|(_, (wanted, found))| Some(*wanted) != *found)?;
    Some(format!("byte {at} is {found:02x?} instead of {wanted:02x}"))
}

/// Checks that the card reports wrong checksums of frames between VFs, as of those from the wire.
pub(super) fn bad_checksum<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    for kind in KINDS {
        let mut frame = complete(kind, packet(kind, b.vf.mac(), a.vf.mac(), &payload(50)));
        frame[kind.headers()] ^= 0x40;
        a.send_bytes(&frame, &TxOffload::default())?;
        let verdict = next(b, kind)?.received.l4_checksum;
        match verdict {
            ChecksumStatus::Bad => {}
            ChecksumStatus::Unknown => {
                return differs(format!("the card does not verify the checksum of {kind:?}"));
            }
            ChecksumStatus::Good => {
                return unexpected(format!("the card reports the wrong checksum of {kind:?} as right"));
            }
        }
    }
    passes("")
}

pub(super) fn segmentation<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    let long = payload(LONG);
    let raw = packet(TCP_IPV4, b.vf.mac(), a.vf.mac(), &long);
    let first = segment(&raw);
    a.send_bytes(&raw, &TxOffload { tso: Some(MSS), ..TxOffload::default() })?;
    let count = LONG.div_ceil(MSS.into());
    let (mut at, mut early_or_lost_push) = (0, false);
    for index in 0..count {
        let arrived = next(b, TCP_IPV4)?;
        let piece = &long[at..long.len().min(at + usize::from(MSS))];
        let wanted = TcpSegment {
            length: (TCP_IPV4.headers() - 14 + piece.len()) as u16,
            identification: first.identification + index as u16,
            sequence: first.sequence + at as u32,
            push: index + 1 == count,
        };
        let found = segment(&arrived.bytes);
        early_or_lost_push |= found.push != wanted.push;
        if found != (TcpSegment { push: found.push, ..wanted }) {
            return unexpected(format!("segment {index} is {found:?} instead of {wanted:?}"));
        }
        let whole = TCP_IPV4.headers()..TCP_IPV4.headers() + piece.len();
        if arrived.bytes.get(whole) != Some(piece) || !is_right(TCP_IPV4, &arrived.bytes) {
            return unexpected(format!("segment {index} has changed bytes or a wrong checksum"));
        }
        at += piece.len();
    }
    if early_or_lost_push {
        return differs(format!("{count} segments arrived, but not only the last has the PSH flag"));
    }
    passes(format!("{count} segments arrived"))
}
