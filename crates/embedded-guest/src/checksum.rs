//! Divides checksum work between card and guest: the card computes and verifies the checksums of TCP and UDP over IPv4,
//! and this module all other checksums.
//!
//! The stack neither computes nor verifies the checksums of IPv4, TCP and UDP. It still handles those of ICMP. IPv6
//! is not supported.

use driver::vf::{ChecksumStatus, TxOffload, VfReceivedFrame};
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpAddress, IpProtocol, Ipv4Packet, TcpPacket, UdpPacket,
};

/// Returns the checksums that the card must complete in an outgoing frame, and fills in the other checksums.
pub(crate) fn choose_offload(frame: &mut [u8]) -> TxOffload {
    let Ok(mut ethernet) = EthernetFrame::new_checked(frame) else { return TxOffload::default() };
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return TxOffload::default();
    }
    let Ok(mut packet) = Ipv4Packet::new_checked(ethernet.payload_mut()) else { return TxOffload::default() };
    let transport = matches!(packet.next_header(), IpProtocol::Tcp | IpProtocol::Udp);
    if transport && is_whole(&packet) {
        return TxOffload { ip_checksum: true, l4_checksum: true, ..TxOffload::default() };
    }
    packet.fill_checksum();
    TxOffload::default()
}

/// Returns true if no checksum of a received frame is wrong. Computes the checksums that the card did not verify.
pub(crate) fn is_intact(frame: &[u8], received: &VfReceivedFrame) -> bool {
    match (received.ip_checksum, received.l4_checksum) {
        (ChecksumStatus::Bad, _) | (_, ChecksumStatus::Bad) => false,
        (ChecksumStatus::Good, ChecksumStatus::Good) => true,
        (ip, l4) => verify(frame, ip == ChecksumStatus::Unknown, l4 == ChecksumStatus::Unknown),
    }
}

/// Verifies the IPv4 checksum (`ip`) and the TCP or UDP checksum (`l4`) of a frame, if requested. An incomplete IPv4
/// packet passes, since the stack refuses it.
fn verify(frame: &[u8], ip: bool, l4: bool) -> bool {
    let Ok(ethernet) = EthernetFrame::new_checked(frame) else { return true };
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return true;
    }
    let Ok(packet) = Ipv4Packet::new_checked(ethernet.payload()) else { return true };
    (!ip || packet.verify_checksum()) && (!l4 || transport_is_intact(&packet))
}

fn transport_is_intact(packet: &Ipv4Packet<&[u8]>) -> bool {
    if !is_whole(packet) {
        return true;
    }
    let (from, to) = (IpAddress::Ipv4(packet.src_addr()), IpAddress::Ipv4(packet.dst_addr()));
    match packet.next_header() {
        IpProtocol::Tcp => {
            TcpPacket::new_checked(packet.payload()).is_ok_and(|tcp| tcp.verify_checksum(&from, &to))
        }
        IpProtocol::Udp => {
            UdpPacket::new_checked(packet.payload()).is_ok_and(|udp| udp.verify_checksum(&from, &to))
        }
        _ => true,
    }
}

/// Returns true if an IPv4 packet is no fragment.
fn is_whole<T: AsRef<[u8]>>(packet: &Ipv4Packet<T>) -> bool {
    !packet.more_frags() && packet.frag_offset() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an Ethernet frame with an IPv4 packet of 28 bytes, whose checksums are zero.
    fn frame(protocol: u8) -> [u8; 42] {
        let mut frame = [0; 42];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[17] = 28;
        frame[23] = protocol;
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[39] = 8;
        frame
    }

    #[test]
    fn card_completes_checksums_of_udp_but_not_of_icmp() {
        let mut udp = frame(17);
        let offload = choose_offload(&mut udp);
        assert!(offload.ip_checksum && offload.l4_checksum);
        assert_eq!(udp, frame(17), "unchanged");

        let mut icmp = frame(1);
        assert_eq!(choose_offload(&mut icmp), TxOffload::default());
        assert!(Ipv4Packet::new_unchecked(&icmp[14..]).verify_checksum());
    }

    #[test]
    fn checksum_of_a_udp_fragment_is_computed_by_the_guest() {
        let mut fragment = frame(17);
        fragment[20] = 0x20;
        assert_eq!(choose_offload(&mut fragment), TxOffload::default());
    }

    #[test]
    fn guest_verifies_checksums_that_the_card_did_not_verify() {
        let verdict = |ip_checksum, l4_checksum| VfReceivedFrame {
            ip_checksum,
            l4_checksum,
            ..VfReceivedFrame::default()
        };
        let mut udp = frame(17);
        assert!(is_intact(&udp, &verdict(ChecksumStatus::Good, ChecksumStatus::Good)));
        assert!(!is_intact(&udp, &verdict(ChecksumStatus::Good, ChecksumStatus::Bad)));
        assert!(
            !is_intact(&udp, &verdict(ChecksumStatus::Unknown, ChecksumStatus::Good)),
            "no IPv4 checksum"
        );
        Ipv4Packet::new_unchecked(&mut udp[14..]).fill_checksum();
        assert!(
            is_intact(&udp, &verdict(ChecksumStatus::Unknown, ChecksumStatus::Unknown)),
            "a UDP datagram may have no checksum"
        );
        udp[40] = 1;
        assert!(
            !is_intact(&udp, &verdict(ChecksumStatus::Good, ChecksumStatus::Unknown)),
            "a wrong UDP checksum"
        );
    }

    #[test]
    fn checksums_of_frames_other_than_ipv4_count_as_intact() {
        assert!(is_intact(&[0xff; 60], &VfReceivedFrame::default()));
        assert!(is_intact(&[], &VfReceivedFrame::default()));
    }
}
