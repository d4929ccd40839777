//! Live migration of a guest from one QEMU process to another on this machine.

use std::io;
use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::error::{GuestError, Result};
use super::monitor::{MigrationSummary, QemuMonitor};
use super::process::QemuProcess;
use super::{GuestBuilder, LinuxGuest};
use crate::assets::BootFiles;

/// Timeout of a migration.
const MIGRATION: Duration = Duration::from_secs(300);
/// Pause between two questions for the state of a migration.
const POLL: Duration = Duration::from_millis(10);
/// Highest rates of the copy in bytes per second: at first, and after [`ROUNDS`].
const RATES: [u64; 2] = [64 << 20, 1 << 30];
/// Longest downtime that QEMU aims at, in milliseconds: at first one that a busy guest cannot have, and after [`ROUNDS`] one that
/// every guest can have. Between both, devices write pages that are copied already.
const DOWNTIMES: [u64; 2] = [0, 200];
/// Time for further rounds over the guest's memory after the first.
const ROUNDS: Duration = Duration::from_secs(3);

impl LinuxGuest {
    /// Moves the running guest to another QEMU process, which `destination` describes: the same machine with other
    /// sockets. Scripts in the background continue, and this value stands for the guest there. The former QEMU is killed.
    ///
    /// # Errors
    ///
    /// The other QEMU does not start, or the migration fails; the guest then runs where it was.
    pub fn migrate(&self, destination: GuestBuilder, assets: &BootFiles) -> Result<MigrationSummary> {
        let mut destination = destination;
        (destination.machine.incoming, destination.machine.migratable) = (true, true);
        let (target, stream) = destination.start(self.accel, assets)?;
        let moved = copy(&self.process(), &target).and_then(|moved| {
            self.channel.continue_over(stream)?;
            Ok(moved)
        });
        let moved = moved.map_err(|error| GuestError::Migration {
            name: self.name.clone(),
            reason: error.to_string(),
            tail: format!("{}the other QEMU:\n{}", self.console_tail(), target.tail()),
        })?;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = target;
        Ok(moved)
    }
}

/// Copies the guest of one QEMU to another that waits for it, until the guest runs there.
fn copy(from: &QemuProcess, to: &QemuProcess) -> io::Result<MigrationSummary> {
    let (mut source, mut target) =
        (QemuMonitor::connect(&from.monitor_socket())?, QemuMonitor::connect(&to.monitor_socket())?);
    let channel = json!({ "uri": format!("unix:{}", to.monitor_socket().with_extension("state").display()) });
    target.execute("migrate-incoming", &channel)?;
    let limits = json!({ "max-bandwidth": RATES[0], "downtime-limit": DOWNTIMES[0] });
    source.execute("migrate-set-parameters", &limits)?;
    source.execute("migrate", &channel)?;
    let (deadline, mut end) = (Instant::now() + MIGRATION, None);
    loop {
        let state = source.execute("query-migrate", &json!({}))?;
        match state["status"].as_str() {
            Some("completed") => {
                wait_running(&mut target, deadline)?;
                return Ok(MigrationSummary::of(&state));
            }
            Some("failed" | "cancelled") => return Err(io::Error::other(state.to_string())),
            _ if Instant::now() > deadline => {
                return Err(io::Error::other(format!("it is not complete after {MIGRATION:?}: {state}")));
            }
            _ => thread::sleep(POLL),
        }
        if end.is_none() && state["ram"]["dirty-sync-count"].as_u64() > Some(1) {
            end = Some(Instant::now() + ROUNDS);
        }
        if end.is_some_and(|end| Instant::now() > end) {
            let limits = json!({ "max-bandwidth": RATES[1], "downtime-limit": DOWNTIMES[1] });
            source.execute("migrate-set-parameters", &limits)?;
        }
    }
}

/// Waits until a QEMU runs the guest that has moved to it.
fn wait_running(monitor: &mut QemuMonitor, deadline: Instant) -> io::Result<()> {
    while monitor.execute("query-status", &json!({}))?["running"] != true {
        if Instant::now() > deadline {
            return Err(io::Error::other("the guest does not run on the other QEMU"));
        }
        thread::sleep(POLL);
    }
    Ok(())
}
