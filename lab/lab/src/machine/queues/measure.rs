//! Results of a measured interval of the queue-pair machine. The engine checks conservation.

use super::{MultiqueueMachine, MultiqueueSimulation, MultiqueueTraffic};
use crate::machine::engine::ModelDefect;
use guest::packet::UDP_PAYLOAD;
use hypervisor::domain::DomainKind;
use sim::VirtualDuration;

/// Throughput, doorbells, latency and processor use of a measured interval of the queue-pair machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MultiqueueResults {
    /// Payload that the guest's programs read or sent, Gb/s.
    pub throughput_gbps: f64,
    /// Number of doorbells per 1,000 frames received or sent.
    pub doorbells: f64,
    /// Number of doorbells that cause a VM exit, per 1,000 frames.
    pub exits: f64,
    /// Mean time from a request's first bit on the wire to its response's last, us; 0 without requests.
    pub round_trip_us: f64,
    /// The service domain's cycles, in percent of one hardware thread.
    pub service_pct: f64,
    /// The hypervisor's cycles, in percent of one hardware thread.
    pub hypervisor_pct: f64,
    /// The guest's cycles, in percent of one hardware thread.
    pub guest_pct: f64,
}

/// Counters of the queue-pair machine at one instant, summed over all processors.
#[derive(Debug, Clone, Copy, Default)]
struct MultiqueueCounters {
    bytes: u64,
    frames: u64,
    stores: u64,
    exits: u64,
    answered: usize,
}

impl MultiqueueSimulation {
    /// Runs the machine for `warm_up`, then for `span`. Returns the results of `span`.
    ///
    /// # Errors
    /// [`ModelDefect`] of the model.
    pub fn measure(
        &mut self,
        load: MultiqueueTraffic,
        warm_up: VirtualDuration,
        span: VirtualDuration,
    ) -> Result<MultiqueueResults, ModelDefect> {
        let counts = |host: &MultiqueueMachine| host.counts(load);
        let (before, usage) = self.observe((warm_up, span), counts)?;
        let after = counts(&self.system);
        let domains = self.core.processors.domains();
        let own = |kind: DomainKind| usage.percent(usage.own_of(domains, |found| found == kind));
        let frames = ((after.frames - before.frames) as f64 / 1_000.0).max(f64::MIN_POSITIVE);
        let (stores, exits) = (after.stores - before.stores, after.exits - before.exits);
        let trips = &self.system.port.line.round_trips[before.answered..];
        let waited: f64 = trips.iter().map(|trip| trip.as_secs_f64() * 1e6).sum();
        Ok(MultiqueueResults {
            throughput_gbps: (after.bytes - before.bytes) as f64 * 8.0 / span.as_secs_f64() / 1e9,
            doorbells: (stores + exits) as f64 / frames,
            exits: exits as f64 / frames,
            round_trip_us: if trips.is_empty() { 0.0 } else { waited / trips.len() as f64 },
            service_pct: own(DomainKind::Dom0),
            hypervisor_pct: usage.percent(usage.hypervisor()),
            guest_pct: own(DomainKind::Hvm),
        })
    }
}

impl MultiqueueMachine {
    fn counts(&self, load: MultiqueueTraffic) -> MultiqueueCounters {
        let line = &self.port.line;
        let read: u64 = self.processors.iter().map(|it| it.kernel.counters().read_bytes).sum();
        MultiqueueCounters {
            bytes: if load == MultiqueueTraffic::Datagrams { line.taken * UDP_PAYLOAD as u64 } else { read },
            frames: line.frames + line.taken,
            stores: self.doorbells.stores,
            exits: self.doorbells.exits,
            answered: line.round_trips.len(),
        }
    }
}
