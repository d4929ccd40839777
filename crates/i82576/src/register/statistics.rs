//! Offsets of the port's statistics, which count traffic at the MAC and at its host side. [`super::vf_stats`] has a
//! VF's own, and `table` how each counts and clears.

offsets! {
    /// Missed packets.
    MPC = 0x4010;
    /// Length errors: too short and too long together.
    RLEC = 0x4040;
    /// Good packets received of 64 bytes, frame check sequence included; those of 65 to 127, 128 to 255, 256 to
    /// 511, 512 to 1023 and more follow.
    PRC64 = 0x405c;
    /// Good packets received.
    GPRC = 0x4074;
    /// Broadcast packets received.
    BPRC = 0x4078;
    /// Multicast packets received.
    MPRC = 0x407c;
    /// Good packets transmitted.
    GPTC = 0x4080;
    /// Good octets received, low half.
    GORCL = 0x4088;
    /// Good octets received, high half.
    GORCH = 0x408c;
    /// Good octets transmitted, low half.
    GOTCL = 0x4090;
    /// Good octets transmitted, high half.
    GOTCH = 0x4094;
    /// Received packets without a buffer.
    RNBC = 0x40a0;
    /// Received frames too short.
    RUC = 0x40a4;
    /// Received frames too long.
    ROC = 0x40ac;
    /// Octets received, low half.
    TORL = 0x40c0;
    /// Octets received, high half.
    TORH = 0x40c4;
    /// Octets transmitted, low half.
    TOTL = 0x40c8;
    /// Octets transmitted, high half.
    TOTH = 0x40cc;
    /// Packets received.
    TPR = 0x40d0;
    /// Packets transmitted.
    TPT = 0x40d4;
    /// Packets transmitted, by size as [`PRC64`].
    PTC64 = 0x40d8;
    /// Multicast packets transmitted.
    MPTC = 0x40f0;
    /// Broadcast packets transmitted.
    BPTC = 0x40f4;
    /// Segmentation contexts transmitted.
    TSCTC = 0x40f8;
    /// Flow control frames received with an unknown operation.
    FCRUC = 0x4058;
    /// Pause frames received that end a pause.
    XONRXC = 0x4048;
    /// Received pause frames that begin a pause.
    XOFFRXC = 0x4050;
    /// Interrupts: messages, and assertions of the pin.
    IAC = 0x4100;
    /// Received packets that reached the host.
    RPTHC = 0x4104;
    /// Good packets transmitted by the host.
    HGPTC = 0x4118;
    /// Number of times that free receive descriptors became few.
    ICRXDMTC = 0x4120;
    /// Good octets that reached the host, low half.
    HGORCL = 0x4128;
    /// Good octets that reached the host, high half.
    HGORCH = 0x412c;
    /// Good octets transmitted by the host, low half.
    HGOTCL = 0x4130;
    /// Good octets transmitted by the host, high half.
    HGOTCH = 0x4134;
    /// Frames shorter than their length field.
    LENERRS = 0x4138;
    /// Switch security violation packets.
    SSVPC = 0x41a0;
}
