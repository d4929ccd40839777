//! Check of the watchdog that every port answers. It does not need the control thread, which may wait for a disk, and skips
//! failed ports that are not open again: the thread that opens them may wait for a disk, too.

use super::RunningPorts;
use crate::disk_wait::DiskWait;
#[cfg(test)]
use crate::file_calls::FileCalls;
use crate::file_calls::PendingFileCall;
use crate::port::PortThreadCommand;
use std::time::{Duration, Instant};

/// Time after which a failed port that is not open again is logged.
const SLOW_REOPENING: Duration = Duration::from_secs(10);

impl RunningPorts {
    /// Returns the mark of the control thread's waits for a disk.
    pub(crate) fn disk_wait(&self) -> &DiskWait {
        &self.disk
    }

    #[cfg(test)]
    pub(crate) fn file_calls(&self) -> &FileCalls {
        &self.common.files
    }

    /// Returns the file call in progress that began first, or `None` if there is none.
    pub(crate) fn oldest_file_call(&self) -> Option<PendingFileCall> {
        self.common.files.oldest()
    }

    /// Returns the failed port that has waited longest to be opened again, with the time of its failure, or `None` if there is none.
    pub(crate) fn reopening(&self) -> Option<(String, Instant)> {
        let ports = self.lock();
        let failed = ports.iter().filter_map(|port| Some((port.name.clone(), port.reopening.began()?)));
        failed.min_by_key(|(_, failure)| *failure)
    }

    /// Waits until each port that serves has answered. The error names one that has not.
    pub(crate) fn check(&self) -> Result<(), String> {
        let serving = || {
            let ports = self.lock();
            let open = ports.iter().filter(|port| port.serves() && port.reopening.began().is_none());
            open.map(|port| port.name.clone()).collect::<Vec<_>>()
        };
        for name in serving() {
            if let Err(failure) = self.ask(&name, PortThreadCommand::Status)
                && serving().contains(&name)
            {
                return Err(format!("port {name}: {}", failure.message));
            }
        }
        let slow = self.reopening().map(|(port, failure)| (port, failure.elapsed()));
        if let Some((port, time)) = slow.filter(|(_, time)| *time >= SLOW_REOPENING) {
            tracing::warn!(
                port,
                ?time,
                "a failed port is not open again, as a file or an interface does not answer; other guests are served"
            );
        }
        Ok(())
    }
}
