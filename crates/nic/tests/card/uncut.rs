//! Tests packets that leave unsegmented to an uplink that segments them itself. Frames on the wire and counters are the
//! same as if the card had segmented them.

use crate::common::{CardFixture, data, index, mac, packet, tagged, tcp, tcp6};
use crate::pacing::{limit, rate};
use i82576::MacAddress;
use i82576::bits::{dtxswc, vmrctl, vmvir};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register::{self as r, vf};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

/// A packet of VF 0 that requests segmentation, and the host's policy for it.
#[derive(Debug, Clone)]
struct SegmentationCase {
    to: MacAddress,
    six: bool,
    payload: usize,
    mss: u16,
    /// VLAN tags of the packet: true for a tag by its descriptor, in its bytes, and by the port VLAN.
    tags: [bool; 3],
    /// Offset in the packet's headers of a byte to corrupt, and the bits that are flipped there.
    turned: Option<(usize, u8)>,
    /// Checksums that the packet requests: true for that of IP, and for that of the transport.
    sums: [bool; 2],
    /// Policy of the host for the packet: true for a mirror, for a transmit rate, and for a spoofed source address.
    policy: [bool; 3],
    /// Bytes by which the context's length of the transport header exceeds the true length.
    header: u8,
}

impl SegmentationCase {
    const PLAIN: Self = Self {
        to: mac(9),
        six: false,
        payload: 10_000,
        mss: 1448,
        tags: [false; 3],
        turned: None,
        sums: [true; 2],
        policy: [false; 3],
        header: 0,
    };

    /// Returns the packet as Linux prepares it: without IP length and checksum, with the pseudo header's sum without length.
    fn packet(&self) -> Vec<u8> {
        let from = if self.policy[2] { mac(5) } else { mac(0) };
        let payload: Vec<u8> = (0..self.payload).map(|n| n as u8).collect();
        let mut packet = if self.six { tcp6(self.to, from, &payload) } else { tcp(self.to, from, &payload) };
        let (addresses, l4) = if self.six { (22..54, 54) } else { (26..34, 34) };
        let words = packet[addresses].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum = words.sum::<u32>() + 6;
        let seed = ((sum & 0xffff) + (sum >> 16)) as u16;
        packet[l4 + 16..l4 + 18].copy_from_slice(&seed.to_be_bytes());
        let zero = if self.six { 18..20 } else { 16..18 };
        packet[zero].fill(0);
        if let Some((at, bits)) = self.turned {
            packet[at % (l4 + 20)] ^= bits;
        }
        if self.tags[1] { tagged(7, &packet) } else { packet }
    }

    /// Returns a card that has sent the packet to a wire that segments packets, or to one that does not.
    fn run(&self, cuts: bool) -> CardFixture {
        let mut bench = CardFixture::new(3);
        (0..3).for_each(|vf| bench.vf(vf).start());
        bench.world.wire.cuts = cuts;
        let [mirror, limited, spoofed] = self.policy;
        if mirror {
            bench.pf().write(r::vmrctl(0), vmrctl::DPME | 2 << vmrctl::POOL_SHIFT);
        }
        if limited {
            limit(&mut bench, 0, rate(100));
        }
        if spoofed {
            bench.pf().write(r::DTXSWC, dtxswc::LOOPBACK_EN | 0xff << dtxswc::MAC_SPOOF_SHIFT);
        }
        if self.tags[2] {
            bench.pf().write(r::vmvir(i82576::PoolIndex::FIRST), vmvir::DEFAULT | 42);
        }
        let packet_bytes = self.packet();
        let context = AdvancedContextDescriptor {
            mac_length: if self.tags[1] { 18 } else { 14 },
            ip_length: if self.six { 40 } else { 20 },
            l4_length: 20 + self.header,
            ipv4: !self.six,
            l4: L4PacketType::Tcp,
            mss: self.mss,
            vlan_tag: 0x2003,
            ..AdvancedContextDescriptor::default()
        };
        let address = bench.vf(0).place(&packet_bytes);
        let first = AdvancedDataDescriptor {
            segment: true,
            insert_vlan: self.tags[0],
            insert_ip_checksum: self.sums[0],
            insert_l4_checksum: self.sums[1],
            payload_length: self.payload as u32,
            ..data(address, 54)
        };
        let rest = packet(address + 54, (packet_bytes.len() - 54) as u16);
        bench.vf(0).transmit(&[context.emit(), first.emit(), rest.emit()]);
        while let Some(deadline) = bench.poll().deadline {
            bench.now = deadline;
        }
        bench
    }
}

/// Returns the frames on the wire, the counters of port, VF 0 and pools, and the number of frames that VFs 1 and 2
/// received.
fn seen(bench: &mut CardFixture) -> (Vec<Vec<u8>>, Vec<u32>, String, usize) {
    let frames = bench.wire_got();
    let ports = [r::GPTC, r::GOTCL, r::TPT, r::TOTL, r::MPTC, r::BPTC, r::TSCTC, r::SSVPC, r::GPRC];
    let sizes = (0..6).map(|n| r::PTC64 + 4 * n);
    let mut counted: Vec<u32> = ports.into_iter().chain(sizes).map(|at| bench.pf().read(at)).collect();
    counted.extend([vf::VFGPTC, vf::VFGOTC, vf::VFGPTLBC].map(|at| bench.vf(0).read(at)));
    let received = (1..3).map(|vf| bench.vf(vf).received().len()).sum();
    (frames, counted, format!("{:?}", bench.nic.counters()), received)
}

#[test]
fn packet_sent_only_to_the_uplink_is_not_segmented_by_the_card() {
    for case in [
        SegmentationCase::PLAIN,
        SegmentationCase { six: true, ..SegmentationCase::PLAIN },
        SegmentationCase { tags: [true, false, false], ..SegmentationCase::PLAIN },
        SegmentationCase { tags: [false, false, true], six: true, ..SegmentationCase::PLAIN },
        SegmentationCase { payload: 60_000, mss: 8900, ..SegmentationCase::PLAIN },
        SegmentationCase { to: MacAddress([1, 0, 0x5e, 0, 0, 1]), ..SegmentationCase::PLAIN },
    ] {
        let mut bench = case.run(true);
        assert_eq!(bench.world.wire.uncut, 1, "{case:?}");
        assert!(seen(&mut bench) == seen(&mut case.run(false)), "{case:?}");
    }
}

#[test]
fn card_segments_packets_that_the_uplink_cannot_segment() {
    for case in [
        SegmentationCase { to: mac(1), ..SegmentationCase::PLAIN },
        SegmentationCase { to: MacAddress::BROADCAST, ..SegmentationCase::PLAIN },
        SegmentationCase { policy: [true, false, false], ..SegmentationCase::PLAIN },
        SegmentationCase { policy: [false, true, false], ..SegmentationCase::PLAIN },
        SegmentationCase { policy: [false, false, true], ..SegmentationCase::PLAIN },
        SegmentationCase { tags: [false, true, false], ..SegmentationCase::PLAIN },
        SegmentationCase { sums: [true, false], ..SegmentationCase::PLAIN },
        SegmentationCase { sums: [false, true], ..SegmentationCase::PLAIN },
        SegmentationCase { header: 4, ..SegmentationCase::PLAIN },
        SegmentationCase { mss: 10_000, ..SegmentationCase::PLAIN },
        // TCP's CWR, another protocol, a fragment, a wrong sum of the pseudo header.
        SegmentationCase { turned: Some((47, 0x80)), ..SegmentationCase::PLAIN },
        SegmentationCase { turned: Some((23, 0x17)), ..SegmentationCase::PLAIN },
        SegmentationCase { turned: Some((20, 0x20)), ..SegmentationCase::PLAIN },
        SegmentationCase { turned: Some((51, 0x01)), ..SegmentationCase::PLAIN },
    ] {
        let mut bench = case.run(true);
        assert_eq!(bench.world.wire.uncut, 0, "{case:?}");
        assert!(seen(&mut bench) == seen(&mut case.run(false)), "{case:?}");
    }
}

/// Returns the context and the first data descriptor of a packet with segments of `mss` bytes.
fn orders(mss: u16, length: u32) -> (AdvancedContextDescriptor, AdvancedDataDescriptor) {
    let context = AdvancedContextDescriptor {
        mac_length: 14,
        ip_length: 20,
        l4_length: 20,
        ipv4: true,
        l4: L4PacketType::Tcp,
        mss,
        ..AdvancedContextDescriptor::default()
    };
    let first = AdvancedDataDescriptor {
        segment: true,
        insert_ip_checksum: true,
        insert_l4_checksum: true,
        payload_length: length,
        ..data(0, 54)
    };
    (context, first)
}

#[test]
fn packet_dropped_by_the_uplink_counts_no_sent_segment() {
    let mut bench = SegmentationCase::PLAIN.run(false);
    let segments = bench.wire_got().len() as u64;
    let mut down = CardFixture::new(3);
    down.vf(0).start();
    down.nic.set_link(false);
    down.world.wire.cuts = true;
    let address = down.vf(0).place(&SegmentationCase::PLAIN.packet());
    let (context, first) = orders(1448, 10_000);
    let first = AdvancedDataDescriptor { address, ..first };
    down.vf(0).transmit(&[context.emit(), first.emit(), packet(address + 54, 10_000).emit()]);
    assert_eq!(down.nic.counters()[index(0).index()].tx_unclaimed, segments);
    assert_eq!(down.pf().read(r::GPTC), 0);
}

#[test]
fn unsegmented_packet_uses_poll_budget_for_all_its_segments() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    bench.world.wire.cuts = true;
    bench.budget.frames = 256;
    let case = SegmentationCase { payload: 2_000, mss: 1, ..SegmentationCase::PLAIN };
    let address = bench.vf(0).place(&case.packet());
    let (context, first) = orders(case.mss, 2_000);
    let first = AdvancedDataDescriptor { address, ..first }.emit();
    let rest = packet(address + 54, 2_000).emit();
    for descriptor in [context.emit(), first, rest, first, rest, first, rest] {
        bench.vf(0).put(descriptor);
    }
    bench.vf(0).ring();
    for sent in 1..=3 {
        bench.poll_once();
        assert_eq!(bench.world.wire.uncut, sent, "2,000 segments are more than a visit's budget");
    }
}

#[test]
fn segmented_packet_shorter_than_its_headers_is_dropped() {
    for length in 1..14 {
        let mut bench = CardFixture::new(3);
        bench.vf(0).start();
        bench.world.wire.cuts = true;
        let address = bench.vf(0).place(&[0; 64]);
        let (context, first) = orders(1448, 0);
        let whole = AdvancedDataDescriptor { end_of_packet: true, ..first };
        let whole = AdvancedDataDescriptor { address, length, ..whole };
        bench.vf(0).transmit(&[context.emit(), whole.emit()]);
        assert!(bench.wire_got().is_empty(), "{length} bytes");
    }
}

fn case() -> impl Strategy<Value = SegmentationCase> {
    let to = prop_oneof![4 => Just(mac(9)), 1 => Just(mac(1)), 1 => Just(MacAddress::BROADCAST)];
    let turned = proptest::option::weighted(0.3, (0usize..80, any::<u8>()));
    let few = || proptest::bool::weighted(0.2);
    let tags = [few(), few(), few()];
    let policy = [few(), proptest::bool::weighted(0.05), few()];
    let sums = [proptest::bool::weighted(0.9), proptest::bool::weighted(0.9)];
    let mss = prop_oneof![0u16..3, 40u16..2000, 8000u16..12_000];
    let header = prop_oneof![9 => Just(0u8), 1 => 0u8..40];
    (to, any::<bool>(), 60usize..20_000, mss, tags, turned, sums, policy, header).prop_map(
        |(to, six, payload, mss, tags, turned, sums, policy, header)| SegmentationCase {
            to,
            six,
            payload,
            mss,
            tags,
            turned,
            sums,
            policy,
            header,
        },
    )
}

/// Asserts that a packet leaves the same frames and counters, whether the card or the uplink segments it.
fn assert_cut_alike(case: &SegmentationCase) {
    let (whole, cut) = (seen(&mut case.run(true)), seen(&mut case.run(false)));
    assert!(whole.0 == cut.0, "frames of {case:?}");
    assert_eq!((whole.1, whole.2, whole.3), (cut.1, cut.2, cut.3), "{case:?}");
}

#[test]
fn vlan_tag_counts_toward_maximum_segment_length_to_the_uplink() {
    // The longest segment has 54 bytes of headers (74 with IPv6), and 9,724 is the longest frame without check sequence.
    for (six, longest) in [(false, 9_670), (true, 9_650)] {
        for tags in [[false; 3], [true, false, false], [false, true, false], [false, false, true]] {
            for mss in [longest - 4, longest - 3, longest, longest + 1, longest + 4] {
                let payload = usize::from(mss) + 4;
                assert_cut_alike(&SegmentationCase { payload, mss, tags, six, ..SegmentationCase::PLAIN });
            }
        }
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 200, ..Default::default() })]
    #[test]
    fn segmentation_by_card_or_uplink_gives_equal_counters(case in case()) {
        assert_cut_alike(&case);
    }
}
