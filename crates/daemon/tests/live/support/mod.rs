//! Common parts of the tests: a host in a temporary folder, and virtual machine monitors that attach to its
//! VFs.
//!
//! Unlike embedded guests, these peers show every step and misbehave on request.

pub(crate) mod alone;
pub(crate) mod avf_guest;
pub(crate) mod bar_mapping;
pub(crate) mod cloud_hypervisor;
pub(crate) mod guest;
pub(crate) mod http;
pub(crate) mod live;
pub(crate) mod machine;
pub(crate) mod numbers;
pub(crate) mod qemu;
pub(crate) mod ram;
pub(crate) mod raw;
pub(crate) mod tap;

use std::time::{Duration, Instant};

/// Longest wait before a test fails, far longer than any operation takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// Polls a condition until `holds` returns true. After [`PATIENCE`] fails with the message `what`.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
