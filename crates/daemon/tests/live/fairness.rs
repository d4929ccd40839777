//! One VF's work does not keep the others from theirs. Counted, not timed.

use crate::support::guest::{Guest, exchange};
use crate::support::live::Live;
use crate::support::machine::{BAR0, Machine, Vmm};
use crate::support::qemu::{self, Qemu};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Runs `exchange` on two VFs while others do `flood` as fast as they can; how often they did.
fn beside(flooders: u8, flood: fn(&mut Machine<Qemu>)) -> u64 {
    let live = Live::start();
    let (mut b, mut c) = (Guest::under_qemu(&live, 5), Guest::under_qemu(&live, 6));
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
        exchange(&mut b, &mut c, 200);
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!((live.show(5).rx.packets, live.show(6).rx.packets), (200, 200));
    floods.into_inner()
}

#[test]
fn doorbells_at_full_speed() {
    let floods = beside(3, |machine| {
        (0..64u32).for_each(|tail| machine.vmm.store(BAR0, 0x3818, &tail.to_le_bytes()));
    });
    assert!(floods > 10, "{floods}");
}

#[test]
fn loads_at_full_speed() {
    let floods = beside(3, |machine| {
        machine.vmm.load(BAR0, 0, &mut [0; 4096]);
    });
    assert!(floods > 10, "{floods}");
}

#[test]
fn windows_at_full_speed() {
    let floods = beside(3, |machine| {
        let fd = machine.ram.fd();
        machine.vmm.unmap(1 << 20, 15 << 20).unwrap();
        machine.vmm.map(1 << 20, 15 << 20, Some(fd)).unwrap();
    });
    assert!(floods > 10, "{floods}");
}
