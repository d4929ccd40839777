//! Results of a measured interval of a server: throughput, losses, interrupts and cycles. If the accounts do
//! not balance or a packet is missing, the measurement fails.

use super::{ServerMachine, ServerSimulation};
use crate::machine::books::ConservationChecks;
use crate::machine::engine::ModelDefect;
use crate::machine::parts::guest::GuestKernel;
use crate::machine::parts::split::ServiceDomainNetwork;
use hypervisor::account::{CycleCategory, CycleUsage};
use hypervisor::cpu::HardwareThreadId;
use hypervisor::domain::DomainKind;
use nic::PoolCounters;
use sim::{VirtualDuration, VirtualInstant};

/// Results of a measured interval of the server.
#[derive(Debug, Clone)]
pub struct ServerResults {
    usage: CycleUsage,
    elapsed: VirtualDuration,
    hertz: u64,
    own_dom0: u64,
    /// Cycles of the hypervisor on behalf of the service domain, mostly in hypercalls.
    hypervisor_dom0: u64,
    own_guests: u64,
    hypervisor: u64,
    overhead_guests: u64,
    /// Threads of the service domain's virtual CPUs.
    service: Vec<HardwareThreadId>,
    /// Round-trip times of the responses in the interval, shortest first.
    round_trips: Vec<VirtualDuration>,
    lost_events: u64,
    after: ServerCounters,
    before: ServerCounters,
}

/// Counters of all guests, ports and the back end of a server at one instant.
#[derive(Debug, Clone, Default)]
struct ServerCounters {
    read_bytes: u64,
    read_packets: u64,
    offered: u64,
    interrupts: u64,
    written_bytes: u64,
    reordered: u64,
    /// Number of moves of interfaces, workers and cards in the back end.
    moves: u64,
    /// Number of responses that the clients of each port received.
    answered: Vec<usize>,
}

impl ServerSimulation {
    /// Runs the server for `warm_up`, then for `span`. Returns the results of `span`.
    ///
    /// # Errors
    /// [`ModelDefect`] of the model.
    pub fn measure(
        &mut self,
        warm_up: VirtualDuration,
        span: VirtualDuration,
    ) -> Result<ServerResults, ModelDefect> {
        let begin = self.core.now() + warm_up;
        let (before, usage) = self.observe((warm_up, span), |system: &ServerMachine| system.counts(begin))?;
        let (processors, vms) = (&self.core.processors, &self.system.vms);
        // On a bare machine only its own kernel switches between programs.
        let native = vms.iter().filter(|vm| vm.hardware.kind == DomainKind::Native);
        let without_hypervisor: u64 = native.map(|vm| usage.hypervisor_for(vm.hardware.domain)).sum();
        let own = |kind: fn(DomainKind) -> bool| usage.own_of(processors.domains(), kind);
        Ok(ServerResults {
            service: self.system.service.iter().map(|cpu| processors.home(cpu.vcpu)).collect(),
            round_trips: self.system.round_trips(&before),
            lost_events: self.system.chipset.channels.stranded_events() as u64,
            hypervisor_dom0: self
                .system
                .service
                .first()
                .map_or(0, |cpu| usage.hypervisor_for(processors.domain_of(cpu.vcpu))),
            own_dom0: own(|kind| kind == DomainKind::Dom0),
            own_guests: own(DomainKind::is_guest) + without_hypervisor,
            hypervisor: usage.hypervisor() - without_hypervisor,
            overhead_guests: vms.iter().map(|vm| usage.hypervisor_for(vm.hardware.domain)).sum(),
            elapsed: span,
            hertz: processors.config().clock.hertz(),
            after: self.system.counts(self.core.now()),
            before,
            usage,
        })
    }
}

impl ServerMachine {
    fn counts(&self, now: VirtualInstant) -> ServerCounters {
        let mut sum = ServerCounters::default();
        for vm in &self.vms {
            let counters = vm.counters();
            sum.read_bytes += counters.read_bytes;
            sum.read_packets += counters.read_packets;
            sum.interrupts += counters.receive_interrupts;
            sum.written_bytes += counters.written_bytes;
            sum.reordered += counters.reordered;
            sum.offered += counters.written_messages;
        }
        for port in &self.ports {
            sum.offered += port.arrived(now);
            sum.answered.push(port.line.round_trips.len());
        }
        sum.moves = self.split.as_ref().map_or(0, ServiceDomainNetwork::moves);
        sum
    }

    /// Returns the round-trip times completed since the counters `since` were read, shortest first.
    fn round_trips(&self, since: &ServerCounters) -> Vec<VirtualDuration> {
        let lines = self.ports.iter().map(|port| &port.line.round_trips).zip(&since.answered);
        let mut all: Vec<VirtualDuration> = lines.flat_map(|(all, known)| &all[*known..]).copied().collect();
        all.sort_unstable();
        all
    }

    /// Checks that no invariant was violated, that all frames are accounted for, and that no function
    /// accessed memory of another domain.
    pub(super) fn balance(&self, books: &mut ConservationChecks) {
        let broken = self.vms.iter().find_map(|vm| vm.hardware.broken).or(self.chipset.broken);
        if let Some(broken) = broken {
            books.never(&broken.to_string(), 1);
        }
        books.never("interrupts blocked without a forged message", self.chipset.remapper.blocked());
        let faults = self.ports.iter().map(|port| port.functions.faults).sum::<u64>() + self.chipset.escaped;
        books.never("memory requests outside the memory of their function", faults);
        (0..self.ports.len()).for_each(|port| self.balance_port(port, books));
        let fronts = self.vms.iter().filter_map(|vm| match &vm.system {
            GuestKernel::Split(kernel) => Some(*kernel.device().counters()),
            GuestKernel::Direct { .. } => None,
        });
        let fronts: Vec<_> = fronts.collect();
        if let Some(split) = &self.split {
            split.balance(&fronts, books);
        }
    }

    /// Checks that frames from the wire and between functions were received or dropped, and that frames sent
    /// by kernels have left or are pending.
    fn balance_port(&self, at: usize, books: &mut ConservationChecks) {
        let port = &self.ports[at];
        let pools = port.nic.counters().iter().fold(PoolCounters::default(), |sum, pool| sum + *pool);
        let (sent, taken) = (pools.tx_packets, port.line.taken + pools.tx_unclaimed);
        books.never("frames on a wire without a sender", taken.saturating_sub(sent));
        let inside = sent.saturating_sub(taken);
        let found = pools.rx_packets + pools.rx_no_descriptors + pools.rx_disabled + pools.rx_storm;
        books.balance("frames for functions of a card", port.line.frames + inside, found);
        if self.split.is_some() {
            // The sender is the service domain, which the split driver's own checks cover.
            return;
        }
        let sent = pools.tx_packets + pools.tx_invalid + pools.tx_blocked;
        let (mut given, mut waiting) = (0, 0);
        for vm in self.vms.iter().filter(|vm| vm.port == at) {
            let GuestKernel::Direct { kernel, .. } = &vm.system else { continue };
            let counters = kernel.counters();
            given += counters.sent_frames + counters.acknowledgements + counters.responses;
            waiting += kernel.device().tx_pending() as u64;
        }
        books.never("frames sent by a card without a kernel's request", sent.saturating_sub(given));
        // A 2 KB buffer is part of at most two segments.
        let lost = given.saturating_sub(sent).saturating_sub(2 * waiting);
        books.never("frames that a card got and lost", lost);
    }
}

impl ServerResults {
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64()
    }

    fn percent(&self, cycles: u64) -> f64 {
        self.per_second(cycles) / self.hertz as f64 * 100.0
    }

    /// Returns the payload that the guests' programs read, Mb/s.
    #[must_use]
    pub fn throughput_mbps(&self) -> f64 {
        self.per_second(self.after.read_bytes - self.before.read_bytes) * 8.0 / 1e6
    }

    /// Returns the payload that the programs wrote, Mb/s.
    #[must_use]
    pub fn written_mbps(&self) -> f64 {
        self.per_second(self.after.written_bytes - self.before.written_bytes) * 8.0 / 1e6
    }

    /// Returns the loss in percent: the share of frames from the wires and of programs' messages that no
    /// program has read.
    #[must_use]
    pub fn loss_pct(&self) -> f64 {
        let offered = self.after.offered - self.before.offered;
        let read = self.after.read_packets - self.before.read_packets;
        if offered == 0 { 0.0 } else { (1.0 - read as f64 / offered as f64).max(0.0) * 100.0 }
    }

    /// Returns the number of responses to requests that clients received per second.
    #[must_use]
    pub fn transactions_per_s(&self) -> f64 {
        self.per_second(self.round_trips.len() as u64)
    }

    /// Returns the mean time from a request's first bit on the wire to its response's last, us.
    #[must_use]
    pub fn round_trip_us(&self) -> f64 {
        let waited: u64 = self.round_trips.iter().map(|trip| trip.picos()).sum();
        let answered = self.round_trips.len();
        if answered == 0 { 0.0 } else { waited as f64 / answered as f64 / 1e6 }
    }

    /// Returns a percentile of the round-trip times, us; 0 if there were none.
    #[must_use]
    pub fn round_trip_quantile_us(&self, percent: usize) -> f64 {
        let at = (self.round_trips.len() * percent).div_ceil(100).saturating_sub(1);
        self.round_trips.get(at).map_or(0.0, |trip| trip.picos() as f64 / 1e6)
    }

    /// Returns the number of reordered datagrams since the start of the run.
    #[must_use]
    pub fn reordered(&self) -> u64 {
        self.after.reordered
    }

    /// Returns the number of pending event-channel events that no virtual CPU will take.
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        self.lost_events
    }

    /// Returns the number of moves per second of interfaces, workers and cards.
    #[must_use]
    pub fn moves_per_s(&self) -> f64 {
        self.per_second(self.after.moves - self.before.moves)
    }

    /// Returns the first virtual CPU's share of the work of all virtual CPUs of the service domain, in
    /// percent.
    #[must_use]
    pub fn first_cpu_share_pct(&self) -> f64 {
        let busy = |thread: &HardwareThreadId| {
            self.usage.elapsed().saturating_sub(self.usage.ledger().idle(thread.index()))
        };
        let all: u64 = self.service.iter().map(busy).sum();
        let first = self.service.first().map_or(0, busy);
        if all == 0 { 0.0 } else { first as f64 / all as f64 * 100.0 }
    }

    /// Returns the cycles of all processors, divided by the number of frames from wires and messages of
    /// programs.
    #[must_use]
    pub fn cycles_per_frame(&self) -> f64 {
        let offered = self.after.offered - self.before.offered;
        if offered == 0 { 0.0 } else { self.usage.busy() as f64 / offered as f64 }
    }

    /// Returns the number of receive interrupts per second of all guests.
    #[must_use]
    pub fn interrupts_per_s(&self) -> f64 {
        self.per_second(self.after.interrupts - self.before.interrupts)
    }

    /// Returns the service domain's own cycles, in percent of one hardware thread.
    #[must_use]
    pub fn cpu_dom0_pct(&self) -> f64 {
        self.percent(self.own_dom0)
    }

    /// Returns the service domain's cycles as the hypervisor accounts for them, including its hypercalls and
    /// events, in percent of one hardware thread.
    #[must_use]
    pub fn cpu_dom0_attributed_pct(&self) -> f64 {
        self.percent(self.own_dom0 + self.hypervisor_dom0)
    }

    /// Returns the hypervisor's cycles for all domains, in percent of one hardware thread.
    #[must_use]
    pub fn cpu_xen_pct(&self) -> f64 {
        self.percent(self.hypervisor)
    }

    /// Returns the hypervisor's cycles without those that it accounts to the service domain, in percent of one hardware
    /// thread.
    #[must_use]
    pub fn cpu_xen_attributed_pct(&self) -> f64 {
        self.percent(self.hypervisor - self.hypervisor_dom0)
    }

    /// Returns the guests' own cycles, in percent of one hardware thread.
    #[must_use]
    pub fn cpu_guest_pct(&self) -> f64 {
        self.percent(self.own_guests)
    }

    /// Returns the cycles of all domains and the hypervisor, in percent of one hardware thread.
    #[must_use]
    pub fn cpu_total_pct(&self) -> f64 {
        self.cpu_dom0_pct() + self.cpu_xen_pct() + self.cpu_guest_pct()
    }

    /// Returns the hypervisor's cycles for guests, in millions a second: the guests' cost of virtualization.
    #[must_use]
    pub fn guests_overhead_mcycles_per_s(&self) -> f64 {
        self.per_second(self.overhead_guests) / 1e6
    }

    /// Returns the cycles charged to a category, in millions per second.
    #[must_use]
    pub fn mcycles_per_s(&self, category: CycleCategory) -> f64 {
        self.per_second(self.usage.category(category)) / 1e6
    }
}
