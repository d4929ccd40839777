//! Tests packets whose segments go straight to one receiver's buffers: each byte is copied once, whatever the receiver
//! posts.

use super::bench;
use crate::common::{BASE, CardFixture, RX_RING, data, mac, tcp, udp};
use i82576::bits::rxcsum;
use i82576::descriptor::rx::PostedRxDescriptor;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register as r;
use pcie::Function::Vf;

/// Number of payload bytes in the tested packet.
const PAYLOAD: usize = 8_000;
/// Number of payload bytes in a segment of the tested packet.
const MSS: u16 = 500;

/// Returns a card whose VF 1 has a running receive ring with posted descriptors.
fn pair() -> CardFixture {
    let mut bench = bench();
    bench.pf().write(r::RXCSUM, rxcsum::PCSD);
    bench.vf(1).start();
    bench.vf(1).post(40);
    bench
}

/// Sends a TCP or UDP packet from VF 0 to VF 1 in segments. Returns the number of bytes that the card wrote to VF 1's
/// memory.
fn send(bench: &mut CardFixture, l4: L4PacketType) -> usize {
    let (frame, l4_length) = match l4 {
        L4PacketType::Udp => (udp(mac(1), mac(0), &[7; PAYLOAD]), 8),
        _ => (tcp(mac(1), mac(0), &[7; PAYLOAD]), 20),
    };
    let address = bench.vf(0).place(&frame);
    let lengths = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length,
        ..AdvancedContextDescriptor::default()
    };
    let context = AdvancedContextDescriptor { ipv4: true, l4, mss: MSS, ..lengths };
    let asked = AdvancedDataDescriptor {
        insert_l4_checksum: true,
        insert_ip_checksum: true,
        segment: true,
        ..AdvancedDataDescriptor::default()
    };
    let whole = data(address, frame.len() as u16);
    let packet = AdvancedDataDescriptor {
        address: whole.address,
        length: whole.length,
        end_of_packet: true,
        payload_length: PAYLOAD as u32,
        ..asked
    };
    bench.world.bus.log.clear();
    bench.vf(0).transmit(&[context.emit(), packet.emit()]);
    let writes =
        bench.world.bus.log.iter().filter(|access| access.write && !access.fault && access.function == Vf(1));
    writes.map(|access| access.length).sum()
}

#[test]
fn segments_of_a_packet_are_copied_once_to_the_receiver() {
    for (l4, headers) in [(L4PacketType::Tcp, 54), (L4PacketType::Udp, 42)] {
        let mut bench = pair();
        let bytes = send(&mut bench, l4);
        let received = bench.vf(1).received();
        assert_eq!(received.len(), PAYLOAD.div_ceil(MSS.into()), "{l4:?}");
        let frames: usize = received.iter().map(|frame| frame.bytes.len()).sum();
        assert_eq!(frames, PAYLOAD + received.len() * headers, "{l4:?}");
        // Beside the frames, the card writes descriptors.
        assert!(bytes <= frames + received.len() * 16 + 64, "{l4:?}: {bytes} bytes for {frames}");
    }
}

#[test]
fn segmentation_stops_early_if_the_receivers_buffers_fault() {
    let mut bench = pair();
    // Each buffer begins 10 bytes before the VF's memory, so that payloads fit and headers do not.
    for i in 0..40_u64 {
        bench.vf(1).poke(RX_RING + 16 * i, &PostedRxDescriptor { packet: BASE - 10, header: 0 }.emit());
    }
    let bytes = send(&mut bench, L4PacketType::Tcp);
    assert!(bytes < 2 * PAYLOAD, "{bytes} bytes were written");
}
