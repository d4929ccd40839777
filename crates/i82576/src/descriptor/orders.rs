//! Tests the offload requests of a transmit data descriptor without parsing the descriptor, since the card tests only
//! two or three bits for each packet. [`AdvancedDataDescriptor`] is the parsed form.

use super::tx::{
    AdvancedDataDescriptor, DEXT, DTYP_DATA, DTYP_SHIFT, IDX_SHIFT, IXSM, TSE, TSTAMP, TXSM, VLE,
};
use super::{SIZE, dword, qword};
use pcie::low::{low_byte, low_dword};

/// Transmit data descriptor in its raw words. Testing a request takes one bit test, whereas [`AdvancedDataDescriptor`]
/// parses the whole descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawDataDescriptor {
    /// Address of the raw descriptor's buffer.
    address: u64,
    /// Command of the data descriptor in the low half, and its status in the high half.
    asked: u64,
}

impl RawDataDescriptor {
    /// Returns the raw words of a descriptor, or `None` if the descriptor is not a data descriptor.
    #[must_use]
    #[inline]
    pub fn of(raw: &[u8; SIZE]) -> Option<Self> {
        let command = dword(raw, 2);
        let data = command & DEXT != 0 && (command >> DTYP_SHIFT) & 0xf == DTYP_DATA;
        data.then(|| Self { address: qword(raw, 0), asked: qword(raw, 1) })
    }

    const fn has(self, command: u32, status: u32) -> bool {
        self.asked & (command as u64 | (status as u64) << 32) != 0
    }

    /// Returns true if the descriptor requests a VLAN tag ([`AdvancedDataDescriptor::insert_vlan`]).
    #[must_use]
    pub const fn insert_vlan(self) -> bool {
        self.has(VLE, 0)
    }

    /// Returns true if the descriptor requests segmentation ([`AdvancedDataDescriptor::segment`]).
    #[must_use]
    pub const fn segment(self) -> bool {
        self.has(TSE, 0)
    }

    /// Returns true if the descriptor requests a time stamp ([`AdvancedDataDescriptor::time_stamp`]).
    #[must_use]
    pub const fn time_stamp(self) -> bool {
        self.has(TSTAMP, 0)
    }

    /// Returns true if the descriptor requests the IPv4 checksum ([`AdvancedDataDescriptor::insert_ip_checksum`]).
    #[must_use]
    pub const fn insert_ip_checksum(self) -> bool {
        self.has(0, IXSM)
    }

    /// Returns true if the descriptor requests the transport checksum ([`AdvancedDataDescriptor::insert_l4_checksum`]).
    #[must_use]
    pub const fn insert_l4_checksum(self) -> bool {
        self.has(0, TXSM)
    }

    /// Returns true if the descriptor requests the checksum of the IPv4 header, of the transport, or both.
    #[must_use]
    pub const fn insert_checksum(self) -> bool {
        self.has(0, IXSM | TXSM)
    }

    /// Returns the index of the queue's context that the descriptor names ([`AdvancedDataDescriptor::context`]).
    #[must_use]
    pub const fn context(self) -> u8 {
        low_byte(low_dword(self.asked >> (32 + IDX_SHIFT))) & 7
    }
}

impl From<&AdvancedDataDescriptor> for RawDataDescriptor {
    fn from(data: &AdvancedDataDescriptor) -> Self {
        let raw = data.emit();
        Self { address: qword(&raw, 0), asked: qword(&raw, 1) }
    }
}

impl From<RawDataDescriptor> for AdvancedDataDescriptor {
    fn from(RawDataDescriptor { address, asked }: RawDataDescriptor) -> Self {
        Self::parse(&(u128::from(address) | u128::from(asked) << 64).to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::legacy;
    use super::super::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor};
    use super::RawDataDescriptor;

    #[test]
    fn raw_and_parsed_tx_descriptor_request_the_same_offloads() {
        for bits in 0u8..64 {
            let on = |bit: u8| bits & 1 << bit != 0;
            let data = AdvancedDataDescriptor {
                address: u64::MAX,
                length: 1500,
                end_of_packet: true,
                report_status: on(0),
                insert_vlan: on(0),
                segment: on(1),
                time_stamp: on(2),
                insert_ip_checksum: on(3),
                insert_l4_checksum: on(4),
                context: bits >> 3,
                check_context: on(5),
                payload_length: 0x3_ffff,
            };
            let orders = RawDataDescriptor::of(&data.emit()).unwrap();
            assert_eq!(
                (RawDataDescriptor::from(&data), AdvancedDataDescriptor::from(orders)),
                (orders, data),
                "nothing is lost"
            );
            assert_eq!((orders.insert_vlan(), orders.segment(), orders.time_stamp()), (on(0), on(1), on(2)));
            assert_eq!((orders.insert_ip_checksum(), orders.insert_l4_checksum()), (on(3), on(4)));
            assert_eq!((orders.insert_checksum(), orders.context()), (on(3) || on(4), bits >> 3));
        }
        assert_eq!(RawDataDescriptor::of(&AdvancedContextDescriptor::default().emit()), None);
        assert_eq!(RawDataDescriptor::of(&legacy::LegacyTxDescriptor::default().emit()), None);
    }
}
