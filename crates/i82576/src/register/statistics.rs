//! Offsets of the port's statistics, which count traffic at the MAC and at its host side. [`super::vf_stats`] has a
//! VF's own, and `table` how each counts and clears.

offsets! {
    /// MPC: number of received packets that the port lost because the packet buffer had no room.
    MPC = 0x4010;
    /// RLEC: number of received frames of wrong length, too short and too long together.
    RLEC = 0x4040;
    /// PRC64: number of good packets of 64 bytes received, frame check sequence included. The counters of longer
    /// packets follow: 65 to 127, 128 to 255, 256 to 511, 512 to 1023, and from 1024 bytes.
    PRC64 = 0x405c;
    /// GPRC: number of good packets received.
    GPRC = 0x4074;
    /// BPRC: number of broadcast packets received.
    BPRC = 0x4078;
    /// MPRC: number of multicast packets received.
    MPRC = 0x407c;
    /// GPTC: number of good packets transmitted.
    GPTC = 0x4080;
    /// GORCL: number of good octets received, low half.
    GORCL = 0x4088;
    /// GORCH: number of good octets received, high half.
    GORCH = 0x408c;
    /// GOTCL: number of good octets transmitted, low half.
    GOTCL = 0x4090;
    /// GOTCH: number of good octets transmitted, high half.
    GOTCH = 0x4094;
    /// RNBC: number of received packets that found no buffer.
    RNBC = 0x40a0;
    /// RUC: number of received frames that were too short.
    RUC = 0x40a4;
    /// ROC: number of received frames that were too long.
    ROC = 0x40ac;
    /// TORL: number of octets received, low half.
    TORL = 0x40c0;
    /// TORH: number of octets received, high half.
    TORH = 0x40c4;
    /// TOTL: number of octets transmitted, low half.
    TOTL = 0x40c8;
    /// TOTH: number of octets transmitted, high half.
    TOTH = 0x40cc;
    /// TPR: number of packets received.
    TPR = 0x40d0;
    /// TPT: number of packets transmitted.
    TPT = 0x40d4;
    /// PTC64: number of packets transmitted, by size as [`PRC64`].
    PTC64 = 0x40d8;
    /// MPTC: number of multicast packets transmitted.
    MPTC = 0x40f0;
    /// BPTC: number of broadcast packets transmitted.
    BPTC = 0x40f4;
    /// TSCTC: number of segmentation contexts transmitted.
    TSCTC = 0x40f8;
    /// FCRUC: number of flow control frames received with an unknown operation.
    FCRUC = 0x4058;
    /// XONRXC: number of received pause frames that end a pause.
    XONRXC = 0x4048;
    /// XOFFRXC: number of received pause frames that begin a pause.
    XOFFRXC = 0x4050;
    /// IAC: number of interrupts: messages sent, and assertions of the INTx pin.
    IAC = 0x4100;
    /// RPTHC: number of received packets that reached the host.
    RPTHC = 0x4104;
    /// HGPTC: number of good packets transmitted by the host.
    HGPTC = 0x4118;
    /// ICRXDMTC: number of times that a receive queue's free descriptors fell to the threshold in SRRCTL.RDMTS.
    ICRXDMTC = 0x4120;
    /// HGORCL: number of good octets that reached the host, low half.
    HGORCL = 0x4128;
    /// HGORCH: number of good octets that reached the host, high half.
    HGORCH = 0x412c;
    /// HGOTCL: number of good octets transmitted by the host, low half.
    HGOTCL = 0x4130;
    /// HGOTCH: number of good octets transmitted by the host, high half.
    HGOTCH = 0x4134;
    /// LENERRS: number of frames shorter than their length field.
    LENERRS = 0x4138;
    /// SSVPC: number of packets that violated the switch's security (anti-spoofing).
    SSVPC = 0x41a0;
}
