//! Measurement of the frame rate between two ports on a wire, with their cards and guests' drivers, on one thread and
//! on two. Short slices of both alternate. A pair of slices counts only if every thread had its processor nearly all
//! the time. Else a thread waits for one that is not running, and the slice measures the scheduler. Sockets and other
//! processes are not measured.
//!
//! `SOFTIOV_MEASURE=1 cargo test --release -p daemon --lib -- --nocapture wired_ports` measures. Without the
//! variable the test runs a few slices to check that the measurement works.

use super::tests::{PolledWireEnd, pair};
use super::*;
use backplane::Backplane;
use driver::vf::{TxOffload, Vf, VfDriverConfig};
use host::cpus::CpuList;
use i82576::MacAddress;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const SLICE: Duration = Duration::from_millis(2);
/// Number of pairs of time slices, in a measurement and in a check.
const PAIRS: usize = 1500;
const FEW: usize = 20;
/// Share of a time slice for which a measured thread must have had its processor.
const SHARE: f64 = 0.9;
/// Number of frames that a guest sends before it receives.
const BURST: usize = 32;
/// Length in bytes of each frame that the measurement sends.
const LENGTH_OF_FRAME: usize = 512;

/// Card with a guest's VF driver, and the end of the wire that is the card's uplink.
struct WiredGuestPort {
    card: Backplane,
    vf: Vf,
    frame: Vec<u8>,
    end: PolledWireEnd,
}

impl WiredGuestPort {
    fn new(end: PolledWireEnd, own: u8, other: u8) -> Self {
        let mac = |n| MacAddress([0x02, 0, 0, 0, 1, n]);
        let mut card = Backplane::with_pf(1).unwrap();
        let mut vf = Vf::probe(&mut card.vf(0), &VfDriverConfig::default()).unwrap();
        vf.start(&mut card.vf(0)).unwrap();
        vf.set_mac(&mut card.vf(0), mac(own)).unwrap();
        vf.watchdog(&mut card.vf(0));
        let mut frame = [&mac(other).0[..], &mac(own).0, &[0x88, 0xb5]].concat();
        frame.resize(LENGTH_OF_FRAME, 0x5a);
        Self { card, vf, frame, end }
    }

    /// Sends a burst of frames as the guest, polls the card, and receives. Returns the number of received frames.
    fn round(&mut self) -> u64 {
        for _ in 0..BURST {
            if self.vf.transmit(&mut self.card.vf(0), &self.frame, &TxOffload::default()).is_err() {
                break;
            }
        }
        self.vf.flush(&mut self.card.vf(0));
        self.card.poll_on(&mut WireUplinkAdapter(&mut self.end.end));
        self.end.end.flush(Time::ZERO);
        let (mut buffer, mut count) = ([0; 2048], 0);
        while let Ok(Some(_)) = self.vf.receive(&mut self.card.vf(0), &mut buffer) {
            count += 1;
        }
        self.vf.receive_done(&mut self.card.vf(0));
        self.vf.clean(&mut self.card.vf(0));
        count
    }
}

struct WireUplinkAdapter<'a>(&'a mut WireUplink);

impl nic::UplinkWire for WireUplinkAdapter<'_> {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.0.transmit(frame)
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        self.0.receive(into)
    }
}

/// Runs the ports at one or both ends of a wire on one processor for a time slice. Returns the number of received
/// frames, and true if the thread had its processor nearly all the time.
fn run(halves: &mut [WiredGuestPort], cpu: u32, start: &Barrier) -> (u64, bool) {
    let _ = CpuList::from_iter([cpu]).pin();
    start.wait();
    let (begin, ran, mut count) = (Instant::now(), processor_time(), 0);
    while begin.elapsed() < SLICE {
        for _ in 0..4 {
            count += halves.iter_mut().map(WiredGuestPort::round).sum::<u64>();
        }
    }
    let ran = processor_time() - ran;
    (count, ran.as_secs_f64() > SHARE * begin.elapsed().as_secs_f64())
}

/// Returns the processor time that this thread has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the median of the values, and sorts them.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[test]
fn wired_ports_exchange_frames_on_one_and_two_cpus() {
    let cpus: Vec<u32> = CpuList::allowed().unwrap().iter().collect();
    let &[first, second, ..] = &cpus[..] else {
        return host::test_support::skipped(
            "wired_ports_exchange_frames_on_one_and_two_cpus",
            "there is only one processor",
        );
    };
    let pairs = if std::env::var_os("SOFTIOV_MEASURE").is_some() { PAIRS } else { FEW };
    let (a, b) = pair();
    let mut halves = [WiredGuestPort::new(a, 1, 2), WiredGuestPort::new(b, 2, 1)];
    let (mut one, mut two, mut ratios, mut arrived) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..pairs {
        let ((alone, had), (both, had_both)) =
            (on_one(&mut halves, first), on_two(&mut halves, [first, second]));
        arrived += alone;
        if had && had_both && alone > 0 {
            let rate = |count: u64| count as f64 / SLICE.as_secs_f64() / 1e6;
            one.push(rate(alone));
            two.push(rate(both));
            ratios.push(both as f64 / alone as f64);
        }
    }
    assert!(arrived > 0, "frames arrive");
    if let (Some(one), Some(two), Some(ratio)) = (median(&mut one), median(&mut two), median(&mut ratios)) {
        let (quarter, comparable) = (ratios.len() / 4, ratios.len());
        println!(
            "{LENGTH_OF_FRAME} bytes, both directions: one thread {one:.2}, two threads {two:.2} million frames a second; \
             ratio {ratio:.2}, middle half {:.2} to {:.2}; {comparable} of {pairs} pairs of slices comparable",
            ratios[quarter],
            ratios[comparable - 1 - quarter]
        );
    }
}

fn on_one(halves: &mut [WiredGuestPort], cpu: u32) -> (u64, bool) {
    std::thread::scope(|scope| scope.spawn(|| run(halves, cpu, &Barrier::new(1))).join().unwrap())
}

fn on_two([left, right]: &mut [WiredGuestPort; 2], cpus: [u32; 2]) -> (u64, bool) {
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(std::slice::from_mut(left), cpus[0], &start));
        let this = scope.spawn(|| run(std::slice::from_mut(right), cpus[1], &start));
        let ((a, had_a), (b, had_b)) = (other.join().unwrap(), this.join().unwrap());
        (a + b, had_a && had_b)
    })
}
