//! Tests of fairness between VFs: one VF's work does not stop the others. The tests count frames and
//! requests, because times vary.

use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, VmWithPciFunction, Vmm};
use crate::support::qemu::{self, QemuClient};
use crate::support::raw::{RawVfioUserConnection, dma_map, dma_unmap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Number of calls of the flood function to complete before the measurement, in which two guests exchange frames.
const WARM: u64 = 10;

/// Exchanges 200 frames between the guests of VFs 5 and 6 while other guests repeat `flood` without a pause.
fn exchange_beside_floods(flooders: u8, flood: fn(&mut VmWithPciFunction<QemuClient>)) {
    let live = LiveHost::start();
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 5), VfGuest::under_qemu(&live, 6));
    let (stop, floods) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for vf in 0..flooders {
            let socket = live.socket(vf);
            let (stop, floods) = (&stop, &floods);
            scope.spawn(move || {
                let mut machine = qemu::boot(&socket);
                while !stop.load(Ordering::Relaxed) {
                    flood(&mut machine);
                    floods.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        eventually("the floods run", || floods.load(Ordering::Relaxed) > WARM);
        exchange(&mut b, &mut c, 200);
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!((live.show(5).rx.packets, live.show(6).rx.packets), (200, 200));
}

#[test]
fn doorbells_at_full_speed_do_not_stop_other_guests() {
    exchange_beside_floods(3, |machine| {
        (0..64u32).for_each(|tail| machine.vmm.store(BAR0, 0x3818, &tail.to_le_bytes()));
    });
}

#[test]
fn register_reads_at_full_speed_do_not_stop_other_guests() {
    exchange_beside_floods(3, |machine| {
        machine.vmm.load(BAR0, 0, &mut [0; 4096]);
    });
}

#[test]
fn dma_maps_at_full_speed_do_not_stop_other_guests() {
    exchange_beside_floods(3, |machine| {
        let fd = machine.ram.fd();
        machine.vmm.unmap(1 << 20, 15 << 20).unwrap();
        machine.vmm.map(1 << 20, 15 << 20, Some(fd)).unwrap();
    });
}

/// Number of DMA windows that a client maps, near the limit per client. The first page stays free.
const MANY: u64 = 60_000;
/// Number of map messages that the client with many DMA windows sends at a time.
const BATCH: usize = 300;

/// Runs a client with thousands of DMA windows that maps and unmaps another window again and again, in
/// batches, and counts the replies.
fn juggle_windows(socket: &Path, stop: &AtomicBool, handled: &AtomicU64) {
    let mut raw = RawVfioUserConnection::greet(socket);
    for first in (1..MANY).step_by(BATCH) {
        let maps = (first..first + BATCH as u64).flat_map(|window| dma_map(window * 0x2000, 0x1000));
        raw.send(&maps.collect::<Vec<u8>>());
        (0..BATCH).for_each(|_| assert_eq!(raw.reply().map(|(error, _)| error), Some(0)));
    }
    let batch = [dma_map(0, 0x1000), dma_unmap(0, 0x1000)].concat().repeat(BATCH);
    while !stop.load(Ordering::Relaxed) {
        raw.send(&batch);
        for _ in 0..2 * BATCH {
            assert_eq!(raw.reply().map(|(error, _)| error), Some(0));
            handled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn batched_dma_mappings_do_not_delay_frames_of_other_guests() {
    const ROUNDS: u32 = 20;
    let live = LiveHost::start();
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 5), VfGuest::under_qemu(&live, 6));
    let (stop, handled) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 3]);
    let total = || handled.iter().map(|handled| handled.load(Ordering::Relaxed)).sum::<u64>();
    thread::scope(|scope| {
        for (vf, handled) in (0..).zip(&handled) {
            let (socket, stop) = (live.socket(vf), &stop);
            scope.spawn(move || juggle_windows(&socket, stop, handled));
        }
        while handled.iter().any(|handled| handled.load(Ordering::Relaxed) == 0) {
            thread::yield_now();
        }
        let before = total();
        exchange(&mut b, &mut c, ROUNDS);
        let per_frame = (total() - before) / u64::from(2 * ROUNDS);
        stop.store(true, Ordering::Relaxed);
        assert!(per_frame < 400, "{per_frame} requests of others were handled for each frame");
    });
}
