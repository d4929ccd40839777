//! Parts of the targets of an 82576.

use crate::input::FuzzerInput;
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};

/// Takes the next transmit descriptor: data, a context, or any bytes. The data are in one of the 256-byte slots that begin at the
/// guest address `packets`. Returns `None` at the end of the input.
pub fn transmit_descriptor(input: &mut FuzzerInput<'_>, packets: u64) -> Option<[u8; 16]> {
    let [kind, a, b, c, d, e] = input.array()?;
    Some(match kind % 4 {
        0 | 1 => AdvancedDataDescriptor {
            address: packets + (u64::from(a) << 8),
            length: u16::from_le_bytes([b, c]),
            payload_length: u32::from(u16::from_le_bytes([d, e])),
            end_of_packet: kind & 4 != 0,
            report_status: kind & 8 != 0,
            segment: kind & 16 != 0,
            insert_vlan: kind & 32 != 0,
            insert_ip_checksum: kind & 64 != 0,
            insert_l4_checksum: kind & 128 != 0,
            context: a & 1,
            ..AdvancedDataDescriptor::default()
        }
        .emit(),
        2 => AdvancedContextDescriptor {
            mac_length: a,
            ip_length: u16::from(b),
            l4_length: c,
            mss: u16::from_le_bytes([d, e]),
            vlan_tag: 5,
            ipv4: kind & 4 != 0,
            l4: [L4PacketType::Tcp, L4PacketType::Udp, L4PacketType::Sctp, L4PacketType::Reserved]
                [usize::from(kind >> 3 & 3)],
            index: kind >> 5 & 1,
        }
        .emit(),
        _ => input.array()?,
    })
}
