//! Tests lengths of frames with and without VLAN tags. At most 9,728 bytes leave or arrive, with tags and check
//! sequence, and a pool's own limits count in the same way. `transmit::rules` tests packets that are too long for any
//! frame.

use crate::common::{CardFixture, POOL, data, mac, packet, plain, tagged, tcp};
use i82576::PoolIndex;
use i82576::bits::{ctrl_ext, dtxctl, rctl, vmolr, vmvir};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::ids::{FCS, MAX_FRAME};
use i82576::register::{self as r, vf};

/// Length in bytes of the longest frame, without check sequence.
const LONGEST: usize = MAX_FRAME - FCS;
/// Differences of the tested frame lengths from a length limit, in bytes.
const AROUND: [isize; 5] = [-4, -1, 0, 1, 4];

/// Sources of a frame's VLAN tags: the frame's bytes, its transmit descriptor, the pool's default tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VlanTagOrigins {
    /// True if the frame's bytes have the outer VLAN tag, and CTRL_EXT.EXT_VLAN is set.
    outer: bool,
    /// True if the frame's bytes have the inner or only VLAN tag.
    bytes: bool,
    /// True if the packet's transmit descriptor requests the insertion of a VLAN tag.
    descriptor: bool,
    /// True if the pool's default tag (VMVIR) is inserted, which replaces other inner tags.
    port: bool,
}

const NONE: VlanTagOrigins = VlanTagOrigins { outer: false, bytes: false, descriptor: false, port: false };
const TAGS: [VlanTagOrigins; 10] = [
    NONE,
    VlanTagOrigins { bytes: true, ..NONE },
    VlanTagOrigins { descriptor: true, ..NONE },
    VlanTagOrigins { port: true, ..NONE },
    VlanTagOrigins { bytes: true, descriptor: true, ..NONE },
    VlanTagOrigins { bytes: true, port: true, ..NONE },
    VlanTagOrigins { descriptor: true, port: true, ..NONE },
    VlanTagOrigins { outer: true, bytes: true, ..NONE },
    VlanTagOrigins { outer: true, descriptor: true, ..NONE },
    VlanTagOrigins { outer: true, port: true, ..NONE },
];

impl VlanTagOrigins {
    /// Returns the number of bytes by which the card's VLAN tags lengthen the frame.
    fn added(self) -> usize {
        match self {
            Self { port: true, bytes, .. } => 4 * usize::from(!bytes),
            Self { descriptor, .. } => 4 * usize::from(descriptor),
        }
    }

    /// Returns a frame of `length` bytes with the tags that the guest writes itself.
    fn frame(self, to: u8, length: usize) -> Vec<u8> {
        let in_bytes = 4 * (usize::from(self.outer) + usize::from(self.bytes));
        let frame = plain(mac(to), mac(0), length - in_bytes - 14);
        let frame = if self.bytes { tagged(7, &frame) } else { frame };
        if self.outer { outer(&frame) } else { frame }
    }

    /// Returns a card whose VF 0 sends frames with the given tags, and whose VF 1 accepts any length.
    fn bench(self) -> CardFixture {
        let mut bench = CardFixture::new(3);
        (0..2).for_each(|vf| bench.vf(vf).start());
        if self.outer {
            use_outer_tags(&mut bench);
        }
        if self.port {
            bench.pf().write(r::vmvir(PoolIndex::FIRST), vmvir::DEFAULT | 42);
        }
        bench.pf().write(r::vmolr(PoolIndex::EVERY[1]), POOL | vmolr::RLPML_MASK);
        bench
    }
}

fn use_outer_tags(bench: &mut CardFixture) {
    bench.pf().write(r::VET, 0x88a8_8100);
    bench.pf().set(r::CTRL_EXT, ctrl_ext::EXT_VLAN);
}

/// Returns the frame with an outer VLAN tag.
fn outer(frame: &[u8]) -> Vec<u8> {
    let mut both = tagged(5, frame);
    both[12..14].copy_from_slice(&[0x88, 0xa8]);
    both
}

fn around(limit: usize) -> impl Iterator<Item = (usize, bool)> {
    AROUND.into_iter().map(move |more| (limit.saturating_add_signed(more), more <= 0))
}

/// Sends a frame from VF 0 with the descriptor's tag that `tags` requests, in one buffer or in two.
fn send(bench: &mut CardFixture, tags: VlanTagOrigins, frame: &[u8], pieces: bool) {
    let (address, length) = (bench.vf(0).place(frame), frame.len() as u16);
    let first = if pieces { data(address, 64) } else { packet(address, length) };
    let first =
        AdvancedDataDescriptor { insert_vlan: tags.descriptor, payload_length: length.into(), ..first };
    let rest = packet(address + 64, length.saturating_sub(64));
    let context = AdvancedContextDescriptor { vlan_tag: 9, ..AdvancedContextDescriptor::default() }.emit();
    let descriptors = [context, first.emit(), rest.emit()];
    let skipped = usize::from(!tags.descriptor);
    bench.vf(0).transmit(&descriptors[skipped..if pieces { 3 } else { 2 }]);
}

#[test]
fn vlan_tags_count_toward_maximum_frame_length_to_the_wire() {
    for tags in TAGS {
        for ((length, fits), pieces) in around(LONGEST).flat_map(|length| [(length, false), (length, true)]) {
            let mut bench = tags.bench();
            send(&mut bench, tags, &tags.frame(9, length - tags.added()), pieces);
            let left: Vec<usize> = bench.wire_got().iter().map(Vec::len).collect();
            assert_eq!(left, vec![length; usize::from(fits)], "{length} bytes, pieces {pieces}, {tags:?}");
            assert_eq!(bench.pf().read(r::GPTC), u32::from(fits));
        }
    }
}

#[test]
fn vlan_tags_count_toward_maximum_frame_length_between_vfs() {
    for tags in TAGS {
        for (length, fits) in around(LONGEST) {
            let mut bench = tags.bench();
            send(&mut bench, tags, &tags.frame(1, length - tags.added()), false);
            let got: Vec<usize> = bench.vf(1).received().iter().map(|got| got.bytes.len()).collect();
            assert_eq!(got, vec![length; usize::from(fits)], "{length} bytes, {tags:?}");
        }
    }
}

#[test]
fn frame_over_length_by_its_port_vlan_tag_blocks_no_queue() {
    for (tags, invalid) in
        [(VlanTagOrigins { port: true, ..NONE }, 0), (VlanTagOrigins { descriptor: true, ..NONE }, 1)]
    {
        let mut bench = tags.bench();
        bench.pf().write(r::DTXCTL, dtxctl::MDP_EN);
        send(&mut bench, tags, &tags.frame(9, LONGEST - 3), false);
        let counters = &bench.nic.counters()[0];
        assert_eq!((counters.tx_invalid, counters.tx_unclaimed), (invalid, 1 - invalid), "{tags:?}");
        send(&mut bench, NONE, &NONE.frame(9, 100), false);
        assert_eq!(bench.wire_got().len() as u64, 1 - invalid, "the queue is not blocked: {tags:?}");
    }
}

#[test]
fn inserted_vlan_tags_count_toward_maximum_segment_length() {
    let tags = [NONE, VlanTagOrigins { descriptor: true, ..NONE }, VlanTagOrigins { port: true, ..NONE }];
    for (tags, cuts) in tags.into_iter().flat_map(|tags| [(tags, false), (tags, true)]) {
        for (length, fits) in around(LONGEST) {
            let mut bench = tags.bench();
            bench.world.wire.cuts = cuts;
            let mss = length - tags.added() - 54;
            let bytes = tcp(mac(9), mac(0), &vec![7; mss + 100]);
            let address = bench.vf(0).place(&bytes);
            let context = AdvancedContextDescriptor {
                mac_length: 14,
                ip_length: 20,
                l4_length: 20,
                ipv4: true,
                l4: L4PacketType::Tcp,
                mss: mss as u16,
                vlan_tag: 9,
                ..AdvancedContextDescriptor::default()
            };
            let whole = packet(address, bytes.len() as u16);
            let sums = AdvancedDataDescriptor { insert_ip_checksum: true, insert_l4_checksum: true, ..whole };
            let whole = AdvancedDataDescriptor { segment: true, insert_vlan: tags.descriptor, ..sums };
            bench.vf(0).transmit(&[context.emit(), whole.emit()]);
            let left: Vec<usize> = bench.wire_got().iter().map(Vec::len).collect();
            let last = 54 + 100 + tags.added();
            let expected = match (fits, tags.port) {
                (true, _) => vec![length, last],
                // The guest's request is valid, so the segments that are not too long leave.
                (false, true) => vec![last],
                (false, false) => vec![],
            };
            assert_eq!(left, expected, "{length} bytes, uncut {cuts}, {tags:?}");
        }
    }
}

/// Tags of a frame that arrives: none, one, and two with CTRL_EXT.EXT_VLAN.
const ARRIVING: [VlanTagOrigins; 4] = [
    NONE,
    VlanTagOrigins { bytes: true, ..NONE },
    VlanTagOrigins { outer: true, ..NONE },
    VlanTagOrigins { outer: true, bytes: true, ..NONE },
];

/// Returns a card whose VF 0 receives frames with the given tags, with the inner one stripped or not.
fn receiver(tags: VlanTagOrigins, strips: bool, options: u32) -> CardFixture {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    if tags.outer {
        use_outer_tags(&mut bench);
    }
    let pool = options | if strips { vmolr::STRVLAN } else { 0 };
    bench.pf().write(r::vmolr(PoolIndex::FIRST), pool);
    bench
}

#[test]
fn vlan_tags_count_toward_maximum_frame_length_from_the_wire() {
    for (tags, strips) in ARRIVING.into_iter().flat_map(|tags| [(tags, false), (tags, true)]) {
        for (length, fits) in around(LONGEST) {
            let mut bench = receiver(tags, strips, POOL | vmolr::RLPML_MASK);
            bench.wire_sends(&tags.frame(0, length));
            let got: Vec<usize> = bench.vf(0).received().iter().map(|got| got.bytes.len()).collect();
            let stripped = 4 * usize::from(strips && tags.bytes);
            assert_eq!(got, vec![length - stripped; usize::from(fits)], "{length} bytes, {tags:?}");
            assert_eq!(bench.pf().read(r::ROC), u32::from(!fits), "{length} bytes, {tags:?}");
        }
    }
}

#[test]
fn vlan_tags_count_in_rlpml_and_not_in_the_1518_byte_limit() {
    for (tags, strips) in ARRIVING.into_iter().flat_map(|tags| [(tags, false), (tags, true)]) {
        // Without LPE: 1,518 bytes, and 4 more for each tag (82576 datasheet, RCTL.LPE).
        let added = 4 * (usize::from(tags.outer) + usize::from(tags.bytes));
        let short = POOL & !(vmolr::LPE | vmolr::RLPML_MASK);
        for (options, most) in [(short, 1518 + added), (short | vmolr::LPE | 1600, 1600)] {
            for (length, fits) in around(most - FCS) {
                let mut bench = receiver(tags, strips, options);
                bench.wire_sends(&tags.frame(0, length));
                let got = bench.vf(0).received().len();
                assert_eq!(got, usize::from(fits), "{length} of {most} bytes, {tags:?}, stripped {strips}");
                assert_eq!(bench.pf().read(r::ROC), u32::from(!fits));
            }
        }
    }
}

#[test]
fn stripping_a_vlan_tag_changes_no_port_counter() {
    // Octets and sizes are those on the wire: a frame of 64 bytes counts as 64 after its tag is stripped.
    for length in [60, 61, 123, 124, 251, 252, 1019, 1020] {
        let counted = [false, true].map(|strips| {
            let tags = VlanTagOrigins { bytes: true, ..NONE };
            let mut bench = receiver(tags, strips, POOL);
            bench.wire_sends(&tags.frame(0, length));
            let got = bench.vf(0).expect_frame().bytes.len();
            assert_eq!(got, length - if strips { 4 } else { 0 });
            let sizes = (0..6).map(|n| r::PRC64 + 4 * n);
            let all = [r::GPRC, r::GORCL, r::TPR, r::TORL, r::RPTHC, r::HGORCL];
            all.into_iter().chain(sizes).map(|at| bench.pf().read(at)).collect::<Vec<_>>()
        });
        assert_eq!(counted[0], counted[1], "{length} bytes");
        let class = [64, 127, 255, 511, 1023].iter().filter(|most| length + FCS > **most).count();
        assert_eq!((counted[0][1], counted[0][6 + class]), ((length + FCS) as u32, 1), "{length} bytes");
    }
}

#[test]
fn inserted_vlan_tag_counts_in_frame_size_but_not_as_padding() {
    for (length, wire) in [(20, 68), (60, 68), (119, 127), (120, 128), (1015, 1023), (1016, 1024)] {
        for tags in [VlanTagOrigins { descriptor: true, ..NONE }, VlanTagOrigins { port: true, ..NONE }] {
            let mut bench = tags.bench();
            send(&mut bench, tags, &tags.frame(9, length), false);
            assert_eq!(bench.wire_got()[0].len() + FCS, wire);
            let class = [64, 127, 255, 511, 1023].iter().filter(|most| wire > **most).count() as u32;
            assert_eq!(bench.pf().read(r::PTC64 + 4 * class), 1, "{length} bytes, {tags:?}");
            assert_eq!(bench.pf().read(r::GOTCL) as usize, wire);
            assert_eq!(bench.vf(0).read(vf::VFGOTC) as usize, wire);
        }
    }
}

#[test]
fn long_packets_to_a_pool_need_the_ports_long_packet_enable() {
    let mut bench = receiver(NONE, false, POOL);
    bench.pf().clear(r::RCTL, rctl::LPE);
    for (length, fits) in around(1514) {
        bench.wire_sends(&NONE.frame(0, length));
        assert_eq!(bench.vf(0).received().len(), usize::from(fits), "{length} bytes");
    }
}
