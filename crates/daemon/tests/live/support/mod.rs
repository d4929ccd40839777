//! What the tests share: a host in a temporary folder, and virtual machine monitors to attach to it.
//!
//! Left out: embedded guests. These peers are made to show every step, and to misbehave on request.

pub(crate) mod alone;
pub(crate) mod cloud_hypervisor;
pub(crate) mod guest;
pub(crate) mod http;
pub(crate) mod live;
pub(crate) mod machine;
pub(crate) mod qemu;
pub(crate) mod ram;
pub(crate) mod raw;
pub(crate) mod tap;

use std::time::{Duration, Instant};

/// How long anything may take before a test gives up: far longer than it ever does.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until the answer is yes.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
