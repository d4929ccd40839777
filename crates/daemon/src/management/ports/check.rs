//! Check of the watchdog that every port answers. It does not need the control thread, which may wait for a disk.

use super::RunningPorts;
use crate::disk_wait::DiskWait;
use crate::port::PortThreadCommand;

impl RunningPorts {
    /// Returns the mark of the control thread's waits for a disk.
    pub(crate) fn disk_wait(&self) -> &DiskWait {
        &self.disk
    }

    /// Waits until each port that serves has answered. The error names one that has not.
    pub(crate) fn check(&self) -> Result<(), String> {
        let serving = || {
            let ports = self.lock();
            ports.iter().filter(|port| port.serves()).map(|port| port.name.clone()).collect::<Vec<_>>()
        };
        for name in serving() {
            if let Err(failure) = self.ask(&name, PortThreadCommand::Status)
                && serving().contains(&name)
            {
                return Err(format!("port {name}: {}", failure.message));
            }
        }
        Ok(())
    }
}
