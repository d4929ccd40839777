//! Measurement of the worst round-trip time between two guests while a third guest makes the host do costly work:
//! disconnects with much memory, punches holes in its memory, maps and unmaps it. Prints the median of several runs:
//!
//! ```sh
//! SOFTIOV_LATENCY_MIB=4096 cargo test --release -p daemon --test live latency -- --nocapture
//! ```
//!
//! There is no tight bound, because other tests run at the same time.

use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::qemu::QemuClient;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vfio_user::client::ClientDmaWindow;

/// Time after which QEMU gives up on a host that does not answer.
const GIVES_UP: Duration = Duration::from_secs(5);
/// Time for which the two measured guests exchange frames after the third guest's action.
const AFTER: Duration = Duration::from_millis(300);

/// Returns the size of the third guest's memory that the environment requests, MiB; `None` without a request.
fn requested_mib() -> Option<u64> {
    std::env::var("SOFTIOV_LATENCY_MIB").ok()?.parse().ok()
}

/// Returns the size of the third guest's memory, bytes: as the environment requests, or 128 MiB.
fn size() -> u64 {
    requested_mib().unwrap_or(128) << 20
}

/// Makes the kernel allocate all pages of the third guest's memory file.
fn fill(fd: &OwnedFd) {
    fallocate(fd, FallocateFlags::empty(), 0, size()).unwrap();
}

/// Creates the third guest's memory file, with all its pages allocated.
fn memory() -> OwnedFd {
    let fd = memfd_create("latency", MemfdFlags::CLOEXEC).unwrap();
    fill(&fd);
    fd
}

fn map(qemu: &mut QemuClient, fd: OwnedFd) {
    let window = ClientDmaWindow { iova: 0, size: size(), offset: 0, writable: true };
    qemu.done(|client, out| client.dma_map(out, window, Some(fd))).unwrap();
}

/// Action of the third guest during a latency measurement, on the guest's connection and its memory file.
type GuestMemoryAction = fn(QemuClient, OwnedFd);

/// Actions of the third guest during a latency measurement, by name. The first, a second of idleness, is the reference.
const DEEDS: [(&str, GuestMemoryAction); 4] = [
    ("quiet", |qemu, fd| {
        thread::sleep(Duration::from_secs(1));
        drop((qemu, fd));
    }),
    ("a guest ends", |mut qemu, fd| {
        map(&mut qemu, fd);
        drop(qemu);
        thread::sleep(Duration::from_secs(1));
    }),
    ("holes are punched", |mut qemu, fd| {
        map(&mut qemu, fd.try_clone().unwrap());
        for _ in 0..3 {
            fallocate(&fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, size()).unwrap();
            fill(&fd);
        }
    }),
    ("windows come and go", |mut qemu, fd| {
        for _ in 0..300 {
            map(&mut qemu, fd.try_clone().unwrap());
            qemu.unmap(0, size()).unwrap();
        }
    }),
];

/// Returns the longest time of a round trip between two guests while a third guest performs the action `deed`.
fn worst_round_trip(deed: GuestMemoryAction) -> Duration {
    let live = LiveHost::start();
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 1), VfGuest::under_qemu(&live, 2));
    exchange(&mut b, &mut c, 50);
    let qemu = QemuClient::greet(&live.socket(0));
    let fd = memory();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            deed(qemu, fd);
            over.store(true, Ordering::Release);
        });
        let (mut worst, mut end) = (Duration::ZERO, None);
        while end.is_none_or(|end| Instant::now() < end) {
            if end.is_none() && over.load(Ordering::Acquire) {
                end = Some(Instant::now() + AFTER);
            }
            let began = Instant::now();
            exchange(&mut b, &mut c, 1);
            worst = worst.max(began.elapsed());
        }
        worst
    })
}

#[test]
fn guest_that_maps_or_frees_memory_does_not_delay_two_others() {
    for (what, deed) in DEEDS {
        // One run is enough if it is fast. On a busy machine, guests or host may have had no processor for seconds.
        let (fewest, mut times) = (if requested_mib().is_some() { 3 } else { 1 }, Vec::new());
        while times.len() < fewest || times.len() < 5 && times[times.len() / 2] >= GIVES_UP {
            times.push(worst_round_trip(deed));
            times.sort();
        }
        let middle = times[times.len() / 2];
        println!("{what}, {} MiB: worst round trip {middle:?} ({times:?})", size() >> 20);
        assert!(middle < GIVES_UP, "{what}: {times:?}");
    }
}
