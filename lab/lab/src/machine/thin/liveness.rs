//! Waiting time of VF requests for a PF driver without interrupts: the next VM exit or the preemption timer
//! ends the wait, whichever comes first. The time of processing a request is neglected.

use super::{SLOTS, inbox};
use crate::machine::parts::thin::admin::{AdminQueueFirmware, VfMessage};
use crate::machine::parts::thin::monitor::PfInboxThread;
use avf::admin::SIZE;
use sim::{EventQueue, RandomStream, VirtualDuration, VirtualInstant};
use std::collections::VecDeque;

/// Parameters of a simulation of VM exits and VF requests.
#[derive(Debug, Clone, Copy)]
pub struct VfRequestDelaySetup {
    /// VM exits of the guest per second; 0 if it never exits.
    pub exits_per_s: u32,
    /// Interval of the preemption timer; `None` if the timer is off.
    pub preempt: Option<VirtualDuration>,
    /// Number of requests that VFs send together, each request from a different VF.
    pub burst: u32,
    /// Seed of the times of exits and requests.
    pub seed: u64,
    /// Virtual time that the simulation lasts.
    pub span: VirtualDuration,
}

/// Results of a simulation: delays and losses of VF requests.
#[derive(Debug, Clone, PartialEq)]
pub struct VfRequestDelayResults {
    /// Times from each VF request to its answer, shortest first.
    pub delays: Vec<VirtualDuration>,
    /// Number of VF requests not answered: refused by a full queue, or waiting at the end.
    pub lost: u64,
    /// Number of polls of the PF driver's inbox by the monitor thread.
    pub visits: u64,
}

#[derive(Debug, Clone, Copy)]
enum VfRequestDelayEvent {
    Exit,
    Preempt,
    Burst,
}

/// Mean interval between bursts of VF requests.
const BETWEEN: VirtualDuration = VirtualDuration::from_millis(50);

/// Simulates VF requests to a PF driver that a monitor thread runs at VM exits of the guest.
#[must_use]
pub fn run(plan: &VfRequestDelaySetup) -> VfRequestDelayResults {
    let mut ring = vec![0; usize::from(SLOTS) * SIZE];
    let mut monitor = PfInboxThread::new(inbox(&mut ring));
    let mut card = AdminQueueFirmware::new(SLOTS);
    let [mut exits, mut bursts] = ["exits", "bursts"].map(|name| RandomStream::named(plan.seed, name));
    let mut queue = EventQueue::new();
    let end = VirtualInstant::ZERO + plan.span;
    queue.schedule(
        VirtualInstant::ZERO + VirtualDuration::from_picos(bursts.below(BETWEEN.picos())),
        VfRequestDelayEvent::Burst,
    );
    let every = 1_000_000_000_000_u64.checked_div(plan.exits_per_s.into());
    let next_exit = |now: VirtualInstant, exits: &mut RandomStream| {
        every.map(|every| now + VirtualDuration::from_picos(exits.within(every / 2..every / 2 * 3 + 1)))
    };
    if let Some(at) = next_exit(VirtualInstant::ZERO, &mut exits) {
        queue.schedule(at, VfRequestDelayEvent::Exit);
    }
    let mut preemption =
        plan.preempt.map(|after| queue.schedule(VirtualInstant::ZERO + after, VfRequestDelayEvent::Preempt));
    let mut waiting: VecDeque<VirtualInstant> = VecDeque::new();
    let mut found = VfRequestDelayResults { delays: Vec::new(), lost: 0, visits: 0 };
    while let Some((now, event)) = queue.pop_before(end) {
        match event {
            VfRequestDelayEvent::Burst => {
                for vf in 0..plan.burst {
                    let message = VfMessage { vf: (vf % 128) as u16, operation: 1, length: 8 };
                    if card.send(message, &mut ring) {
                        waiting.push_back(now);
                    }
                }
                let wait = bursts.within(BETWEEN.picos() / 2..BETWEEN.picos() / 2 * 3);
                queue.schedule(now + VirtualDuration::from_picos(wait), VfRequestDelayEvent::Burst);
                continue;
            }
            VfRequestDelayEvent::Exit => {
                if let Some(at) = next_exit(now, &mut exits) {
                    queue.schedule(at, VfRequestDelayEvent::Exit);
                }
            }
            VfRequestDelayEvent::Preempt => preemption = None,
        }
        found.visits += 1;
        let served = monitor.visit(&mut ring, &mut card, &mut 0).served.len();
        found.delays.extend(waiting.drain(..served).map(|asked| now.since(asked)));
        // The timer restarts at every exit.
        let due = plan.preempt.map(|after| now + after);
        preemption = queue.replace(preemption, due, VfRequestDelayEvent::Preempt);
    }
    found.delays.sort();
    found.lost = card.refused + waiting.len() as u64;
    found
}

#[cfg(test)]
mod tests {
    use super::{VfRequestDelayResults, VfRequestDelaySetup, run};
    use sim::VirtualDuration;

    fn simulate(exits_per_s: u32, preempt_ms: u64, burst: u32) -> VfRequestDelayResults {
        let preempt = (preempt_ms > 0).then(|| VirtualDuration::from_millis(preempt_ms));
        run(&VfRequestDelaySetup {
            exits_per_s,
            preempt,
            burst,
            seed: 1,
            span: VirtualDuration::from_secs(2),
        })
    }

    #[test]
    fn guest_without_vm_exits_delays_requests_unless_preempted() {
        let starved = simulate(0, 0, 1);
        assert_eq!((starved.delays.len(), starved.visits), (0, 0));
        assert!(starved.lost > 20);
        let bound = simulate(0, 1, 1);
        assert!(
            bound.delays.last().is_some_and(|last| *last <= VirtualDuration::from_millis(1)),
            "{bound:?}"
        );
        assert!(bound.lost <= 1);
    }

    #[test]
    fn preemption_timer_bounds_the_delay_of_monitor_requests() {
        let longest = |found: &VfRequestDelayResults| *found.delays.last().unwrap();
        let (open, bound) = (simulate(20, 0, 1), simulate(20, 10, 1));
        assert!(
            longest(&open) > VirtualDuration::from_millis(20)
                && longest(&bound) <= VirtualDuration::from_millis(10)
        );
        assert!(longest(&simulate(10_000, 10, 1)) < VirtualDuration::from_micros(160));
    }

    #[test]
    fn monitor_requests_beyond_the_queue_size_are_refused() {
        let (one, many) = (simulate(1_000, 0, 8), simulate(1_000, 0, 31));
        assert_eq!(one.lost, 0);
        assert!(many.delays.last() > one.delays.last());
        assert!(simulate(1_000, 0, 40).lost > 100);
    }
}
