//! Part of the running host in a hand-over: it settles, pauses its ports, and leaves them to the successor process.

use super::RunningHost;
use super::settle_delay::SettleDelay;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval at which a host that leaves looks whether its threads have ended.
const LEAVE_INTERVAL: Duration = Duration::from_millis(2);
/// Time after which the disk of a file call may hang.
const SLOW_CALL: Duration = Duration::from_secs(1);

impl RunningHost {
    /// Begins no more requests and accepts no more control clients, so that nothing delays [`RunningHost::leave`]. Guests are
    /// served meanwhile, so the caller may call again for as long as it likes. `since` is the time of its first call.
    ///
    /// # Errors
    /// [`SettleDelay`]. While a disk does not answer, requests are carried out.
    pub fn settle(&self, since: Instant) -> Result<(), SettleDelay> {
        if let Some(delay) = self.disk_delay(since) {
            self.server.hold(false);
            self.gate.open();
            return Err(delay);
        }
        self.server.hold(true);
        if !self.gate.shut() {
            return Err(SettleDelay::Request);
        }
        if has_ended(self.leftover.as_ref()) { Ok(()) } else { Err(SettleDelay::RemovedPorts) }
    }

    /// Returns the disk for which a thread waits that no order ends. A call that began after `since` shows that its thread's disk
    /// answers, unless the call is slow.
    fn disk_delay(&self, since: Instant) -> Option<SettleDelay> {
        let call = self.ports.oldest_file_call();
        let slow = call.filter(|call| call.began <= since || call.began.elapsed() >= SLOW_CALL);
        let failed =
            || self.ports.reopening().map(|(port, failure)| SettleDelay::FailedPort { port, failure });
        slow.map(SettleDelay::FileCall).or_else(failed)
    }

    /// Pauses every port for the successor process, and accepts no more clients of the control interface. The ports
    /// wait up to `time` for [`RunningHost::leave`], and resume if the call does not come. Returns false if a port
    /// cannot pause; then all resume at once.
    #[must_use]
    pub fn pause(&self, time: Duration) -> bool {
        self.server.hold(true);
        let paused = self.ports.pause(time);
        if !paused {
            self.resume();
        }
        paused
    }

    /// Resumes the ports and the control interface after [`RunningHost::settle`] or [`RunningHost::pause`].
    pub fn resume(&self) {
        self.server.hold(false);
        self.gate.open();
        self.ports.resume();
    }

    /// Ends the paused host without notifying guests or clients: a successor process serves them. Waits up to `time` for the
    /// host's threads. The caller then ends the process, and with it those that still wait for a disk, a client or the kernel.
    pub fn leave(mut self, time: Duration) {
        self.ends.store(true, Ordering::Release);
        self.leaving.store(true, Ordering::Release);
        self.ports.leave();
        self.server.stop();
        self.gate.open();
        self.ports.stop_reviving();
        let deadline = Instant::now() + time;
        while !self.threads_have_ended() {
            if Instant::now() >= deadline {
                tracing::warn!(
                    "a thread of this process waits for a disk, a client or the kernel, and ends with the process"
                );
                return self.abandon_threads();
            }
            std::thread::sleep(LEAVE_INTERVAL);
        }
        self.join();
    }

    /// Returns true if all threads of a host that leaves have ended.
    fn threads_have_ended(&self) -> bool {
        if !self.own_threads_have_ended() {
            return false;
        }
        // The control thread may have started one more port before it ended.
        self.ports.end_all();
        self.ports.have_ended() && self.ports.uplink_threads_have_ended()
    }

    /// Returns true if the threads have ended that serve no port.
    pub(super) fn own_threads_have_ended(&self) -> bool {
        let threads = [&self.reviver, &self.api, &self.control, &self.leftover];
        threads.into_iter().all(|thread| has_ended(thread.as_ref()))
    }

    /// Leaves the threads that have not ended to the end of the process.
    fn abandon_threads(&mut self) {
        for thread in [&mut self.reviver, &mut self.api, &mut self.control, &mut self.leftover] {
            drop(thread.take());
        }
        // A port whose commands have no sender would end in order.
        std::mem::forget(self.ports.clone());
    }
}

/// Returns true if there is no such thread, or it has ended.
fn has_ended(thread: Option<&JoinHandle<()>>) -> bool {
    thread.is_none_or(JoinHandle::is_finished)
}
