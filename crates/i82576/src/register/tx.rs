//! Offsets within a transmit queue's block ([`super::tx_block`]).

offsets! {
    /// Transmit ring's base address, low half; 128-byte aligned.
    TDBAL = 0x00;
    /// Transmit ring's base address, high half.
    TDBAH = 0x04;
    /// Transmit ring's length in bytes, a multiple of 128.
    TDLEN = 0x08;
    /// Transmit ring's head: next descriptor that the card fetches.
    TDH = 0x10;
    /// TXCTL: direct cache access control of the transmit queue.
    TXCTL = 0x14;
    /// Transmit ring's tail: first descriptor that the driver owns.
    TDT = 0x18;
    /// Transmit descriptor control: enable bit and thresholds.
    TXDCTL = 0x28;
    /// Address to which the card writes the transmit ring's head, low half, with its enable bit.
    TDWBAL = 0x38;
    /// Address to which the card writes the transmit ring's head, high half.
    TDWBAH = 0x3c;
}
