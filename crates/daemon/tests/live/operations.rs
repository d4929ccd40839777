//! Measurement of the cost of a guest's writes to configuration space and MSI-X table, and of its resets, relative to
//! register writes. Time slices of the compared operations alternate. Prints the median of the slices' ratios:
//!
//! ```sh
//! SOFTIOV_OPERATION_ROUNDS=50 cargo test --release -p daemon --test live operations -- --nocapture
//! ```
//!
//! There is no bound, because other tests run at the same time.

use crate::support::guest::VfGuest;
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, CONFIG};
use crate::support::qemu::QemuClient;
use std::time::{Duration, Instant};

/// Number of the BAR with the MSI-X table.
const TABLE: u32 = 3;
const COMMAND: u64 = 4;

/// Number of register writes of one time slice, 64 in each `REGION_WRITE_MULTI`.
const SLICE: usize = 2048;

/// Returns the time that one slice of equal writes takes, up to the reply to a read after them.
fn slice(guest: &mut VfGuest<QemuClient>, region: u32, offset: u64, data: &[u8]) -> Duration {
    let begun = Instant::now();
    for _ in 0..SLICE / 64 {
        guest.machine.vmm.store_many(&[(region, offset, data); 64]);
    }
    guest.machine.config_word(COMMAND);
    begun.elapsed()
}

#[test]
fn cost_of_configuration_writes_and_vf_resets_is_measured() {
    let rounds =
        std::env::var("SOFTIOV_OPERATION_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let live = LiveHost::start();
    let mut guest = VfGuest::under_qemu(&live, 0);
    let command = guest.machine.config_word(COMMAND).to_le_bytes();
    let control = guest.machine.capability(0x10) + 8;
    let reset = (guest.machine.config_word(control) | 1 << 15).to_le_bytes();
    let operations: [(&str, u32, u64, &[u8]); 3] = [
        ("a configuration write", CONFIG, COMMAND, &command),
        ("an MSI-X table write", TABLE, 0, &[0; 4]),
        ("a function-level reset", CONFIG, control, &reset),
    ];
    for (name, region, offset, data) in operations {
        let mut ratios: Vec<f64> = (0..rounds)
            .map(|_| {
                let register = slice(&mut guest, BAR0, 0x3818, &[0; 4]);
                slice(&mut guest, region, offset, data).as_secs_f64() / register.as_secs_f64()
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        println!("{name}: {:.1} times a register write", ratios[ratios.len() / 2]);
    }
    assert!(live.is_whole());
}
