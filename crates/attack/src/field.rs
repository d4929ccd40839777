//! Bytes of messages, descriptors and frames as data: little-endian numbers, addresses, and parts of frames.

/// Part of a message, a descriptor or a frame.
#[derive(Debug, Clone, Copy)]
pub enum Field {
    /// Number of 8 bits.
    U8(u8),
    /// Little-endian number of 16 bits.
    U16(u16),
    /// Little-endian number of 32 bits.
    U32(u32),
    /// Little-endian number of 64 bits.
    U64(u64),
    /// Device address of the attacking guest's memory at an offset, 64 bits little-endian.
    At(u64),
    /// Literal bytes.
    Bytes(&'static [u8]),
    /// Repeated byte, with the number of repetitions.
    Fill(u8, usize),
    /// Fields, repeated a number of times.
    Repeat(usize, &'static [Field]),
    /// Ethernet address of the attacking guest.
    OwnMac,
    /// Ethernet address of a neighbour.
    NeighbourMac,
    /// Number that the PF gave to the attacking guest's VSI (Adaptive Virtual Functions only), 16 bits little-endian.
    Vsi,
}

/// Values of fields that are only known when a case runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldValues {
    /// Device address of the attacking guest's memory for rings and buffers.
    pub memory: u64,
    /// Ethernet address of the attacking guest.
    pub own_mac: [u8; 6],
    /// Ethernet address of a neighbour.
    pub neighbour_mac: [u8; 6],
    /// Number of the attacking guest's VSI.
    pub vsi: u16,
}

/// Returns the bytes of fields.
#[must_use]
pub fn encode(fields: &[Field], values: &FieldValues) -> Vec<u8> {
    let mut bytes = Vec::new();
    append(&mut bytes, fields, values);
    bytes
}

fn append(bytes: &mut Vec<u8>, fields: &[Field], values: &FieldValues) {
    for field in fields {
        match *field {
            Field::U8(value) => bytes.push(value),
            Field::U16(value) => bytes.extend(value.to_le_bytes()),
            Field::U32(value) => bytes.extend(value.to_le_bytes()),
            Field::U64(value) => bytes.extend(value.to_le_bytes()),
            Field::At(offset) => bytes.extend((values.memory + offset).to_le_bytes()),
            Field::Bytes(literal) => bytes.extend(literal),
            Field::Fill(byte, count) => bytes.resize(bytes.len() + count, byte),
            Field::Repeat(count, fields) => (0..count).for_each(|_| append(bytes, fields, values)),
            Field::OwnMac => bytes.extend(values.own_mac),
            Field::NeighbourMac => bytes.extend(values.neighbour_mac),
            Field::Vsi => bytes.extend(values.vsi.to_le_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, FieldValues, encode};

    #[test]
    fn fields_encode_in_order_with_the_values_of_the_case() {
        let values = FieldValues { memory: 0x1000, vsi: 7, ..FieldValues::default() };
        let fields = [Field::At(2), Field::Repeat(2, &[Field::U8(1), Field::Vsi]), Field::Bytes(b"x")];
        assert_eq!(encode(&fields, &values), [2, 0x10, 0, 0, 0, 0, 0, 0, 1, 7, 0, 1, 7, 0, b'x']);
    }
}
