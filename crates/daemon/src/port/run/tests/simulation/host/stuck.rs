//! Worker thread of a simulated host that is stuck: a job of it takes as long as the simulation chooses.

use super::SimulatedHost;

/// Worker that runs no job, as if one took long.
#[derive(Debug, Clone, Copy)]
pub(super) struct StuckWorker {
    /// Place among the workers.
    place: usize,
    /// Number of steps in which a driver waits, until the worker runs its jobs; `None` for no limit.
    waits: Option<usize>,
}

impl SimulatedHost {
    /// Has the worker of a VF's function run no job, until [`Self::free_worker`] or the end of the process.
    pub(in super::super) fn stick_worker(&mut self, vf: usize) {
        let port = &self.settings.ports[0].name;
        let place = self.workers.place_of(&format!("mem {vf} {port}"));
        let place = place.unwrap_or_else(|| panic!("VF {vf} has no worker of this name"));
        self.stuck = Some(StuckWorker { place, waits: None });
    }

    /// Lets the stuck worker run its jobs.
    pub(in super::super) fn free_worker(&mut self) {
        self.stuck = None;
    }

    /// Lets the stuck worker run its jobs after this number of steps in which a driver waits.
    pub(in super::super) fn free_worker_after(&mut self, waits: usize) {
        self.stuck = self.stuck.map(|stuck| StuckWorker { waits: Some(waits), ..stuck });
    }

    /// Counts a step in which a driver waits.
    pub(super) fn count_wait_for_worker(&mut self) {
        self.stuck = match self.stuck {
            Some(StuckWorker { waits: Some(0), .. }) => None,
            Some(StuckWorker { place, waits: Some(waits) }) => {
                Some(StuckWorker { place, waits: Some(waits - 1) })
            }
            other => other,
        };
    }

    /// Returns the number of unfinished jobs of the stuck worker, or `None` if none is stuck.
    pub(in super::super) fn stuck_jobs(&self) -> Option<usize> {
        self.stuck.map(|stuck| self.workers.backlog_of(stuck.place))
    }

    /// Returns the places of workers that have a job to run.
    pub(super) fn runnable_workers(&self) -> Vec<usize> {
        let mut busy = self.workers.busy();
        busy.retain(|place| self.stuck.is_none_or(|stuck| stuck.place != *place));
        busy
    }

    /// Ends the workers with their process.
    pub(super) fn end_workers(&mut self) {
        self.workers.kill();
        self.stuck = None;
    }
}
