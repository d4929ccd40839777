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
    /// Direct cache access control.
    TXCTL = 0x14;
    /// Tail: first descriptor that the driver owns.
    TDT = 0x18;
    /// Transmit ring's tail: first descriptor that the driver owns.
    TXDCTL = 0x28;
    /// Head write-back address, low half, with its enable bit.
    TDWBAL = 0x38;
    /// Head write-back address, high half.
    TDWBAH = 0x3c;
}
