//! Transmit ring of an 82576 guest that floods the port with packets that its driver would not send. The card returns no descriptor,
//! since none requests a report, so the ring is filled once.

use crate::support::guest::VfGuest;
use crate::support::qemu::QemuClient;
use driver::{DmaHal, Hal};
use i82576::MacAddress;
use i82576::bits::dctl;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register::{tx, vf};

/// Number of descriptors in the ring.
const DESCRIPTORS: u32 = 512;
/// Bytes of a packet's memory.
const PACKET: usize = 0x1_0000;

/// Flooding guest, and its own transmit ring once it has one.
pub(crate) struct FloodingGuest {
    pub(crate) guest: VfGuest<QemuClient>,
    has_ring: bool,
}

impl FloodingGuest {
    pub(crate) fn new(guest: VfGuest<QemuClient>) -> Self {
        Self { guest, has_ring: false }
    }

    /// Sends copies of the packet that `packet_of` writes to guest memory at an address, and returns as descriptors. The ring has the
    /// packet of the first call.
    pub(crate) fn send_raw(
        &mut self,
        packet_of: impl FnOnce(&mut VfGuest<QemuClient>, u64) -> Vec<[u8; 16]>,
    ) {
        if !self.has_ring {
            self.take_ring(packet_of);
        }
        let head = self.guest.machine.read(vf::TX_BLOCK + tx::TDH);
        // A tail within a packet is the end of no packet: the next call completes it.
        self.guest.machine.write(vf::TX_BLOCK + tx::TDT, (head + DESCRIPTORS - 1) % DESCRIPTORS);
    }

    /// Replaces the driver's transmit ring.
    fn take_ring(&mut self, packet_of: impl FnOnce(&mut VfGuest<QemuClient>, u64) -> Vec<[u8; 16]>) {
        let memory = self.guest.machine.dma_alloc(0x4000 + PACKET, 0x1000).unwrap().iova;
        let packet = packet_of(&mut self.guest, memory + 0x4000);
        let ring: Vec<u8> = packet.iter().cycle().take(DESCRIPTORS as usize).flatten().copied().collect();
        self.guest.machine.dma_write(memory, &ring);
        for (register, value) in [
            (tx::TXDCTL, 0),
            (tx::TDBAL, memory as u32),
            (tx::TDBAH, (memory >> 32) as u32),
            (tx::TDLEN, 16 * DESCRIPTORS),
            (tx::TDH, 0),
            (tx::TXDCTL, dctl::ENABLE),
        ] {
            self.guest.machine.write(vf::TX_BLOCK + register, value);
        }
        self.has_ring = true;
    }
}

/// Returns a data descriptor for the end of a packet.
fn last(address: u64, length: u16, payload: u32) -> AdvancedDataDescriptor {
    AdvancedDataDescriptor {
        address,
        length,
        end_of_packet: true,
        payload_length: payload,
        ..AdvancedDataDescriptor::default()
    }
}

/// Writes the Ethernet header of a packet, and the first byte of an IPv4 header at `ip`, to an address.
fn write_head(guest: &mut VfGuest<QemuClient>, address: u64, to: MacAddress, ip: u64) {
    let own = guest.vf.mac();
    guest.machine.dma_write(address, &[&to.0[..], &own.0, &[8, 0]].concat());
    guest.machine.dma_write(address + ip, &[0x45]);
}

/// Returns a packet of 60,000 bytes with headers of 893 bytes, the longest that a context descriptor can state, which the card cuts
/// into segments of 128 bytes.
pub(crate) fn with_long_headers(
    guest: &mut VfGuest<QemuClient>,
    address: u64,
    to: MacAddress,
) -> Vec<[u8; 16]> {
    write_head(guest, address, to, 127);
    let lengths =
        AdvancedContextDescriptor { mac_length: 127, ip_length: 511, l4_length: 255, ..Default::default() };
    let context = AdvancedContextDescriptor { ipv4: true, l4: L4PacketType::Tcp, mss: 128, ..lengths };
    let head = AdvancedDataDescriptor { segment: true, end_of_packet: false, ..last(address, 893, 60_000) };
    vec![context.emit(), head.emit(), last(address + 893, 60_000, 0).emit()]
}

/// Returns an SCTP packet of 9,714 bytes, whose checksum the card computes.
pub(crate) fn sctp(guest: &mut VfGuest<QemuClient>, address: u64, to: MacAddress) -> Vec<[u8; 16]> {
    write_head(guest, address, to, 14);
    guest.machine.dma_write(address + 16, &9_700_u16.to_be_bytes());
    guest.machine.dma_write(address + 23, &[132]);
    let context = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        ipv4: true,
        l4: L4PacketType::Sctp,
        ..AdvancedContextDescriptor::default()
    };
    let summed = AdvancedDataDescriptor { insert_l4_checksum: true, ..last(address, 9_714, 9_714) };
    vec![context.emit(), summed.emit()]
}

/// Returns a context descriptor alone.
pub(crate) fn context() -> Vec<[u8; 16]> {
    vec![AdvancedContextDescriptor { mac_length: 14, ip_length: 20, ..Default::default() }.emit()]
}
