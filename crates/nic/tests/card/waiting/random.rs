//! Tests that under random actions each frame for a queue is delivered once, counted as lost, or waits. Frames are
//! delivered in the order in which they were sent.

use super::{bench, frame, number, waiting};
use crate::common::CardFixture;
use i82576::bits::{ctrl, dctl, srrctl};
use i82576::register::{self as r, rx, vf};
use nic::{Nic, PollBudget};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

/// Number of the card's VFs.
const VFS: u8 = 3;
/// Maximum number of descriptors that software can post in a ring of eight.
const MOST: u32 = 7;

#[derive(Debug, Clone)]
enum WaitingFrameAction {
    /// Puts frames of a length for a VF on the wire to the card: the VF, the number of frames, and their length.
    Arrive(u8, usize, usize),
    /// Sends frames from a VF to the next VF: the sending VF, and the number of frames.
    Send(u8, usize),
    Post(u8, u32),
    /// The PF writes QDE: the queues that drop frames without descriptors, a bit each.
    Drops(u16),
    /// The PF writes RXPBS: the size of the packet buffer in KB.
    Size(u32),
    /// Writes SRRCTL of a VF with the size of its receive buffers: the VF, and the size in KB.
    Buffers(u8, u32),
    Poll(usize),
    /// A VF sets up its rings again.
    Restart(u8),
    Reset(u8),
    SetAside,
}

fn act() -> impl Strategy<Value = WaitingFrameAction> {
    let vf = || 0..VFS;
    let length = prop_oneof![Just(60usize), 60..1_500usize, 1_500..9_000usize];
    prop_oneof![
        6 => (vf(), 1..60usize, length).prop_map(|(vf, count, length)| WaitingFrameAction::Arrive(vf, count, length)),
        3 => (vf(), 1..20usize).prop_map(|(vf, count)| WaitingFrameAction::Send(vf, count)),
        6 => (vf(), 1..=MOST).prop_map(|(vf, count)| WaitingFrameAction::Post(vf, count)),
        1 => any::<u16>().prop_map(WaitingFrameAction::Drops),
        1 => (0..80u32).prop_map(WaitingFrameAction::Size),
        1 => (vf(), 1..4u32).prop_map(|(vf, kilobytes)| WaitingFrameAction::Buffers(vf, kilobytes)),
        6 => (1..40usize).prop_map(WaitingFrameAction::Poll),
        1 => vf().prop_map(WaitingFrameAction::Restart),
        1 => vf().prop_map(WaitingFrameAction::Reset),
        1 => Just(WaitingFrameAction::SetAside),
    ]
}

/// The card, and a record of all frames that were sent and received.
struct WaitingScenario {
    bench: CardFixture,
    /// Number in the payload of the next sent frame, which identifies it.
    next: usize,
    /// Number of the VF that receives each frame on the wire.
    on_wire: Vec<u8>,
    /// Number of frames that the card has taken from the wire, by destination VF.
    taken: [u64; VFS as usize],
    /// Number of frames that each VF has found in its ring.
    found: [u64; VFS as usize],
    /// Number of the last frame that each VF found, from the wire and from another VF.
    last: [[Option<usize>; 2]; VFS as usize],
}

impl WaitingScenario {
    fn new() -> Self {
        let (taken, found, last) = Default::default();
        Self { bench: bench(8), next: 0, on_wire: Vec::new(), taken, found, last }
    }

    fn make(&mut self, to: u8, length: usize, local: bool) -> Vec<u8> {
        self.next += 1;
        let mut bytes = frame(to, self.next, length);
        bytes[16] = local.into();
        bytes
    }

    fn perform(&mut self, act: &WaitingFrameAction) {
        match *act {
            WaitingFrameAction::Arrive(to, count, length) => {
                for _ in 0..count {
                    let bytes = self.make(to, length, false);
                    self.bench.world.wire.incoming.push_back(bytes);
                    self.on_wire.push(to);
                }
            }
            WaitingFrameAction::Send(from, count) => {
                for _ in 0..count {
                    let bytes = self.make((from + 1) % VFS, 200, true);
                    let address = self.bench.vf(from).place(&bytes);
                    self.bench.vf(from).put(crate::common::packet(address, 200).emit());
                }
                self.bench.vf(from).ring();
                self.poll(100);
            }
            WaitingFrameAction::Post(to, count) => {
                let rings = *self.bench.vf(to).rings();
                let posted = (rings.rx_tail + 8 - rings.rx_next) % 8;
                self.bench.vf(to).post(count.min(MOST - posted));
            }
            WaitingFrameAction::Drops(queues) => self.bench.pf().write(r::QDE, queues.into()),
            WaitingFrameAction::Size(kilobytes) => self.bench.pf().write(r::RXPBS, kilobytes),
            WaitingFrameAction::Buffers(to, kilobytes) => {
                let control = kilobytes.min(2) | srrctl::ONE_BUFFER << srrctl::DESCTYPE_SHIFT;
                self.bench.vf(to).write(vf::RX_BLOCK + rx::SRRCTL, control);
            }
            WaitingFrameAction::Poll(frames) => self.poll(frames),
            WaitingFrameAction::Restart(to) => self.start(to),
            WaitingFrameAction::Reset(to) => {
                self.bench.vf(to).write(vf::CTRL, ctrl::RST);
                self.bench.pf().write(r::VFRE, 0xff);
                self.bench.pf().write(r::VFTE, 0xff);
                self.start(to);
            }
            WaitingFrameAction::SetAside => {
                let bytes = postcard::to_allocvec(&self.bench.nic.save()).unwrap();
                self.bench.nic = Nic::restore(postcard::from_bytes(&bytes).unwrap()).unwrap();
            }
        }
    }

    /// Restarts a VF's rings.
    fn start(&mut self, n: u8) {
        self.bench.vf(n).write(vf::RX_BLOCK + rx::RXDCTL, 0);
        self.bench.vf(n).write(vf::TX_BLOCK + rx::RXDCTL, 0);
        self.bench.vf(n).start_sized(8, 64);
        super::wait(&mut self.bench, n);
        assert_eq!(self.bench.vf(n).read(vf::RX_BLOCK + rx::RXDCTL) & dctl::ENABLE, dctl::ENABLE);
    }

    fn poll(&mut self, frames: usize) {
        self.bench.budget = PollBudget { frames };
        self.bench.poll_once();
        let taken = self.on_wire.len() - self.bench.world.wire.incoming.len();
        self.on_wire.drain(..taken).for_each(|to| self.taken[usize::from(to)] += 1);
        (0..VFS).for_each(|n| self.read_ring(n));
    }

    /// Reads the frames in a VF's ring, and asserts that no frame comes twice, out of order or to another VF.
    fn read_ring(&mut self, n: u8) {
        for received in self.bench.vf(n).received() {
            let (bytes, place) = (received.bytes, usize::from(n));
            assert_eq!(bytes[..6], crate::common::mac(n).0);
            let last = &mut self.last[place][usize::from(bytes[16])];
            assert!(*last < Some(number(&bytes)), "VF {n}: {} after {last:?}", number(&bytes));
            *last = Some(number(&bytes));
            self.found[place] += 1;
        }
    }

    fn check(&self) {
        let counters = self.bench.nic.counters();
        let mut waits = 0;
        for place in 0..usize::from(VFS) {
            let (of, before) = (&counters[place], &counters[(place + 2) % 3]);
            assert_eq!(of.rx_packets, self.found[place], "the counter equals the frames in the guest's ring");
            let lost = of.rx_no_descriptors + of.rx_disabled + of.dma_faults;
            let (frames, bytes) = waiting(&self.bench, place as u8);
            waits += bytes;
            let sent = self.taken[place] + before.tx_packets;
            assert_eq!(sent, of.rx_packets + lost + frames as u64, "VF {place}");
        }
        assert!(waits <= 64 << 10, "waiting frames fit the buffer");
    }
}

proptest! {
    #![proptest_config(Config { cases: 300, ..Config::default() })]

    #[test]
    fn each_frame_is_delivered_in_order_or_counted_or_waits(
        acts in proptest::collection::vec(act(), 1..80),
    ) {
        let mut story = WaitingScenario::new();
        for act in &acts {
            story.perform(act);
            story.check();
        }
        // With descriptors every VF gets the frames that wait for it.
        for _ in 0..400 {
            if (0..VFS).all(|n| waiting(&story.bench, n).0 == 0) && story.on_wire.is_empty() {
                break;
            }
            (0..VFS).for_each(|n| story.perform(&WaitingFrameAction::Post(n, MOST)));
            story.poll(100);
        }
        story.check();
        assert_eq!((0..VFS).map(|n| waiting(&story.bench, n).0).sum::<usize>(), 0);
    }
}
