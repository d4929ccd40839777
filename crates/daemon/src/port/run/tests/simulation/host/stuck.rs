//! Worker thread of a simulated host that is stuck: a job of it takes as long as the simulation chooses.

use super::SimulatedHost;

impl SimulatedHost {
    /// Has the worker of a VF's function run no job, until [`Self::free_worker`] or the end of the process.
    pub(in super::super) fn stick_worker(&mut self, vf: usize) {
        let port = &self.settings.ports[0].name;
        self.stuck = self.workers.place_of(&format!("mem {vf} {port}"));
        assert!(self.stuck.is_some(), "VF {vf} has no worker of this name");
    }

    /// Lets the stuck worker run its jobs.
    pub(in super::super) fn free_worker(&mut self) {
        self.stuck = None;
    }

    /// Returns the number of unfinished jobs of the stuck worker, or `None` if none is stuck.
    pub(in super::super) fn stuck_jobs(&self) -> Option<usize> {
        self.stuck.map(|place| self.workers.backlog_of(place))
    }

    /// Returns the places of workers that have a job to run.
    pub(super) fn runnable_workers(&self) -> Vec<usize> {
        let mut busy = self.workers.busy();
        busy.retain(|place| Some(*place) != self.stuck);
        busy
    }

    /// Ends the workers with their process.
    pub(super) fn end_workers(&mut self) {
        self.workers.kill();
        self.stuck = None;
    }
}
