//! Balanced dispatcher: decides which worker serves a VF. While traffic is low one worker serves all VFs, whose frames
//! then stay in one cache and need one wake-up. Above the upper threshold the VFs are spread, and below the lower one they
//! fold back (multi-core netback, section "balanced event dispatcher").
//!
//! The authors publish no thresholds. Two with a distance, each exceeded for some windows, keep VFs from moving to and fro.

use crate::config::file::DispatcherMode;
use pcie::MAX_VFS;
use std::time::Duration;

/// Length of a window, in which load is measured.
pub(super) const WINDOW: Duration = Duration::from_millis(10);
/// Time after which a port whose VFs are always spread looks at its workers.
const LOOK: Duration = Duration::from_secs(1);
/// Share of a window, in permille, that the only worker in use must be busy for the VFs to be spread.
const SPREAD_ABOVE: u32 = 750;
/// Share of a window, in permille, below which the work of all workers together is left to one.
const FOLD_BELOW: u32 = 450;
/// Difference in permille between the busiest and the idlest worker, from which a VF moves.
const UNEVEN_FROM: u32 = 300;
/// Number of consecutive windows after which VFs are spread, fold back, or one moves.
const SPREAD_AFTER: u8 = 2;
const FOLD_AFTER: u8 = 20;
const MOVE_AFTER: u8 = 10;

/// Worker of each VF.
pub(super) type VfHomes = [u8; MAX_VFS];

/// Load of a port's workers and VFs in one window.
#[derive(Debug, Clone)]
pub(super) struct LoadWindow {
    /// Share of the window for which each worker was busy, in permille.
    pub(super) busy: Vec<u32>,
    /// Number of frames that each VF has sent and received, and of those that were refused.
    pub(super) frames: [u64; MAX_VFS],
    /// True for VFs that any worker may serve. Worker 0 serves the others.
    pub(super) movable: [bool; MAX_VFS],
}

/// Dispatcher of a port: its decision in force, and the consecutive windows that contradict it.
#[derive(Debug)]
pub(super) struct BalancedDispatcher {
    mode: DispatcherMode,
    workers: usize,
    homes: VfHomes,
    crowded: u8,
    calm: u8,
    uneven: u8,
}

impl BalancedDispatcher {
    /// Creates a dispatcher for a number of workers. Worker 0 serves all VFs.
    pub(super) fn new(mode: DispatcherMode, workers: usize) -> Self {
        Self { mode, workers, homes: [0; MAX_VFS], crowded: 0, calm: 0, uneven: 0 }
    }

    /// Returns the time from one decision to the next, while several workers serve VFs.
    pub(super) fn period(&self) -> Duration {
        if self.mode == DispatcherMode::Balanced { WINDOW } else { LOOK }
    }

    /// Returns true if a worker other than the first serves VFs.
    pub(super) fn is_spread(&self) -> bool {
        self.homes.iter().any(|home| *home != 0)
    }

    /// Returns the worker of each VF, after a window with this load. `alone` is true while something, such as a capture,
    /// needs all frames on one thread.
    pub(super) fn decide(&mut self, window: &LoadWindow, alone: bool) -> VfHomes {
        self.fold_all_but(&window.movable);
        match self.mode {
            _ if alone => self.fold(),
            DispatcherMode::Off => self.fold(),
            DispatcherMode::Spread => self.spread_all(window),
            DispatcherMode::Balanced => self.balance(window),
        }
        self.homes
    }

    /// Returns the VFs that may not move to worker 0, and returns the worker of each VF.
    pub(super) fn fold_all_but(&mut self, movable: &[bool; MAX_VFS]) -> VfHomes {
        for (home, movable) in self.homes.iter_mut().zip(movable) {
            *home = if *movable { *home } else { 0 };
        }
        self.homes
    }

    fn fold(&mut self) {
        self.homes = [0; MAX_VFS];
        (self.crowded, self.calm, self.uneven) = (0, 0, 0);
    }

    /// Assigns the VFs to the workers by turns, whatever their load is.
    fn spread_all(&mut self, window: &LoadWindow) {
        let movable = window.movable.iter().enumerate().filter(|(_, movable)| **movable);
        for (turn, (vf, _)) in movable.enumerate() {
            self.homes[vf] = (turn % self.workers) as u8;
        }
    }

    fn balance(&mut self, window: &LoadWindow) {
        let busy = |worker: usize| window.busy.get(worker).copied().unwrap_or(0);
        let all: u32 = window.busy.iter().sum();
        let spread = self.is_spread();
        count(&mut self.crowded, !spread && busy(0) >= SPREAD_ABOVE);
        count(&mut self.calm, spread && all <= FOLD_BELOW);
        let (least, most) = (window.busy.iter().min(), window.busy.iter().max());
        let difference = most.unwrap_or(&0) - least.unwrap_or(&0);
        count(&mut self.uneven, spread && difference >= UNEVEN_FROM);
        if self.crowded >= SPREAD_AFTER {
            self.crowded = 0;
            self.spread_by_load(window);
        } else if self.calm >= FOLD_AFTER {
            self.fold();
        } else if self.uneven >= MOVE_AFTER {
            self.uneven = 0;
            self.move_one(window);
        }
    }

    /// Assigns the VFs in descending order of load, each to the worker with the least load so far.
    fn spread_by_load(&mut self, window: &LoadWindow) {
        let mut order: Vec<usize> = (0..MAX_VFS).filter(|vf| window.movable[*vf]).collect();
        // A stable sort: equal loads keep the order of the VFs, so that equal windows give equal decisions.
        order.sort_by_key(|vf| std::cmp::Reverse(window.frames[*vf]));
        let mut loads = vec![0_u64; self.workers];
        for (vf, frames) in window.frames.iter().enumerate().filter(|(vf, _)| !window.movable[*vf]) {
            self.homes[vf] = 0;
            loads[0] += frames;
        }
        for vf in order {
            let worker = (0..self.workers).min_by_key(|worker| loads[*worker]).unwrap_or(0);
            self.homes[vf] = worker as u8;
            loads[worker] += window.frames[vf];
        }
    }

    /// Moves a VF to the idlest worker, from the busiest one that has a VF which makes both more equal. The busiest worker may
    /// have none: its work may be messages, or a single VF.
    fn move_one(&mut self, window: &LoadWindow) {
        let busy = |worker: &usize| window.busy.get(*worker).copied().unwrap_or(0);
        let Some(to) = (0..self.workers).min_by_key(busy) else { return };
        let mut sources: Vec<usize> =
            (0..self.workers).filter(|from| busy(from) - busy(&to) >= UNEVEN_FROM).collect();
        sources.sort_by_key(|from| std::cmp::Reverse(busy(from)));
        if let Some(vf) = sources.into_iter().find_map(|from| self.equalizing_vf(from, to, window)) {
            self.homes[vf] = to as u8;
        }
    }

    /// Returns the VF whose move from one worker to another makes the two most equal, if one makes them more equal.
    fn equalizing_vf(&self, from: usize, to: usize, window: &LoadWindow) -> Option<usize> {
        let busy = |worker: usize| u64::from(window.busy.get(worker).copied().unwrap_or(0));
        let own = |vf: &usize| usize::from(self.homes[*vf]) == from;
        let load: u64 = (0..MAX_VFS).filter(own).map(|vf| window.frames[vf]).sum();
        if load == 0 {
            return None;
        }
        // The work of a VF is its share of its worker's frames.
        let work = |vf: usize| busy(from) * window.frames[vf] / load;
        let gap = busy(from) - busy(to);
        let candidates = (0..MAX_VFS).filter(|vf| own(vf) && window.movable[*vf] && window.frames[*vf] > 0);
        candidates.filter(|vf| work(*vf) < gap).min_by_key(|vf| (2 * work(*vf)).abs_diff(gap))
    }
}

/// Counts consecutive windows in which something holds.
fn count(windows: &mut u8, holds: bool) {
    *windows = if holds { windows.saturating_add(1) } else { 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a window in which the workers were busy for some permille, and the first VFs moved some frames.
    fn window(busy: &[u32], frames: &[u64]) -> LoadWindow {
        let mut window = LoadWindow { busy: busy.to_vec(), frames: [0; MAX_VFS], movable: [false; MAX_VFS] };
        window.frames[..frames.len()].copy_from_slice(frames);
        window.movable[..frames.len()].fill(true);
        window
    }

    /// Has a dispatcher decide on equal windows. Returns the workers of the first VFs after the last one.
    fn decide(dispatcher: &mut BalancedDispatcher, window: &LoadWindow, times: u8) -> Vec<u8> {
        let homes = (0..times).map(|_| dispatcher.decide(window, false)).last().unwrap();
        homes[..4].to_vec()
    }

    fn balanced(workers: usize) -> BalancedDispatcher {
        BalancedDispatcher::new(DispatcherMode::Balanced, workers)
    }

    #[test]
    fn one_worker_serves_all_vfs_while_traffic_is_low() {
        let mut dispatcher = balanced(4);
        assert_eq!(decide(&mut dispatcher, &window(&[740, 0, 0, 0], &[9, 9, 9, 9]), 100), [0, 0, 0, 0]);
    }

    #[test]
    fn vfs_are_spread_by_their_load_above_the_upper_threshold() {
        let mut dispatcher = balanced(2);
        let busy = window(&[900, 0], &[100, 60, 50, 10]);
        assert_eq!(decide(&mut dispatcher, &busy, SPREAD_AFTER - 1), [0, 0, 0, 0]);
        assert_eq!(decide(&mut dispatcher, &busy, 1), [0, 1, 1, 0], "100 + 10 against 60 + 50");
    }

    #[test]
    fn vfs_fold_back_below_the_lower_threshold_only() {
        let mut dispatcher = balanced(2);
        decide(&mut dispatcher, &window(&[900, 0], &[10, 10, 10, 10]), SPREAD_AFTER);
        let between = window(&[300, 300], &[10, 10, 10, 10]);
        assert_eq!(
            decide(&mut dispatcher, &between, 100),
            [0, 1, 0, 1],
            "between the thresholds nothing moves"
        );
        let low = window(&[200, 200], &[10, 10, 10, 10]);
        assert_eq!(decide(&mut dispatcher, &low, FOLD_AFTER - 1), [0, 1, 0, 1]);
        assert_eq!(decide(&mut dispatcher, &low, 1), [0, 0, 0, 0]);
    }

    #[test]
    fn one_vf_moves_from_a_busy_to_an_idle_worker() {
        let mut dispatcher = balanced(2);
        decide(&mut dispatcher, &window(&[900, 0], &[10, 10, 10, 10]), SPREAD_AFTER);
        let uneven = window(&[900, 300], &[70, 30, 20, 30]);
        assert_eq!(
            decide(&mut dispatcher, &uneven, MOVE_AFTER),
            [0, 1, 1, 1],
            "20 of 90 frames are nearest to half the gap"
        );
    }

    #[test]
    fn vf_that_alone_makes_its_worker_busy_does_not_move_to_and_fro() {
        let mut dispatcher = balanced(2);
        decide(&mut dispatcher, &window(&[900, 0], &[10, 10, 0, 0]), SPREAD_AFTER);
        let lone = window(&[900, 100], &[90, 10, 0, 0]);
        assert_eq!(decide(&mut dispatcher, &lone, 50), [0, 1, 0, 0]);
    }

    #[test]
    fn worker_that_no_vf_can_leave_does_not_keep_others_from_moving() {
        // The first worker's only VF, or messages alone, make it the busiest.
        for first in [1_000, 0] {
            let mut dispatcher = balanced(3);
            let busy = window(&[900, 0, 0], &[90, 40, 35, 60]);
            assert_eq!(decide(&mut dispatcher, &busy, SPREAD_AFTER), [0, 2, 2, 1]);
            let uneven = window(&[1_000, 100, 900], &[first, 40, 60, 10]);
            assert_eq!(decide(&mut dispatcher, &uneven, MOVE_AFTER), [0, 1, 2, 1], "{first}");
        }
    }

    #[test]
    fn capture_folds_all_vfs_to_one_worker() {
        let mut dispatcher = BalancedDispatcher::new(DispatcherMode::Spread, 2);
        let idle = window(&[0, 0], &[0, 0, 0, 0]);
        assert_eq!(decide(&mut dispatcher, &idle, 1), [0, 1, 0, 1]);
        assert!(dispatcher.is_spread());
        assert_eq!(dispatcher.decide(&idle, true), [0; MAX_VFS]);
    }

    #[test]
    fn vf_that_may_not_move_stays_with_the_first_worker() {
        let mut dispatcher = BalancedDispatcher::new(DispatcherMode::Spread, 2);
        let mut idle = window(&[0, 0], &[0, 0, 0, 0]);
        idle.movable[1] = false;
        assert_eq!(decide(&mut dispatcher, &idle, 1), [0, 0, 1, 0]);
    }
}
