//! What happened in a stretch of time: throughput, losses, interrupts, and who spent which cycles. The books must
//! close and no packet may be unaccounted for, or there is no measurement.

use super::invariant::Broken;
use super::world::World;
use hypervisor::account::{Category, ConservationError, Snapshot, Usage};
use hypervisor::domain::DomainKind;
use sim::Span;
use thiserror::Error;

/// A measurement that cannot be believed.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// Cycles.
    #[error(transparent)]
    Cycles(#[from] ConservationError),
    /// Packets.
    #[error("{sent} frames reached the cards, {found} are accounted for")]
    Packets {
        /// Delivered by the wires.
        sent: u64,
        /// Received, dropped or still in rings.
        found: u64,
    },
    /// Memory.
    #[error("{0} memory requests went outside the memory of their function")]
    Memory(u64),
    /// Interrupts.
    #[error("{0} interrupts were blocked that nobody forged")]
    Interrupts(u64),
    /// A rule of interrupt virtualization.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// What happened.
#[derive(Debug, Clone)]
pub struct Measured {
    usage: Usage,
    elapsed: Span,
    hertz: u64,
    own_dom0: u64,
    own_guests: u64,
    hypervisor: u64,
    overhead_guests: u64,
    after: Counts,
    before: Counts,
}

/// Sums over all guests.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    read_bytes: u64,
    read_packets: u64,
    offered: u64,
    interrupts: u64,
}

impl World {
    /// Runs `warm_up`, then `span`, and says what happened in the latter.
    ///
    /// # Errors
    /// [`MeasureError`]: a defect of the model.
    pub fn measure(&mut self, warm_up: Span, span: Span) -> Result<Measured, MeasureError> {
        let begin = self.queue.now() + warm_up;
        self.run(begin);
        let (before, counts) = (self.machine.snapshot(begin), self.counts());
        let end = begin + span;
        self.run(end);
        let after = self.machine.snapshot(end);
        self.check(&after)?;
        let usage = after.since(&before);
        usage.check()?;
        // On a bare machine nobody but its own kernel switches between programs.
        let native = self.vms.iter().filter(|vm| vm.hardware.kind == DomainKind::Native);
        let without_hypervisor: u64 = native.map(|vm| usage.hypervisor_for(vm.hardware.domain)).sum();
        let own = |kind: fn(DomainKind) -> bool| usage.own_of(self.machine.domains(), kind);
        Ok(Measured {
            own_dom0: own(|kind| kind == DomainKind::Dom0),
            own_guests: own(DomainKind::is_guest) + without_hypervisor,
            hypervisor: usage.hypervisor() - without_hypervisor,
            overhead_guests: self.vms.iter().map(|vm| usage.hypervisor_for(vm.hardware.domain)).sum(),
            elapsed: span,
            hertz: self.machine.config().clock.hertz(),
            after: self.counts(),
            before: counts,
            usage,
        })
    }

    fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for vm in &self.vms {
            let counters = vm.kernel.counters();
            sum.read_bytes += counters.read_bytes;
            sum.read_packets += counters.read_packets;
            sum.interrupts += counters.receive_interrupts;
        }
        sum.offered = self.ports.iter().map(|port| port.line.frames).sum();
        sum
    }

    /// No rule was broken, cycles are conserved, every frame of a wire is somewhere, no function left its memory.
    fn check(&self, after: &Snapshot) -> Result<(), MeasureError> {
        after.check()?;
        let broken = self.vms.iter().find_map(|vm| vm.hardware.broken).or(self.chipset.broken);
        if let Some(broken) = broken {
            return Err(broken.into());
        }
        let blocked = self.chipset.remapper.blocked();
        if blocked > 0 {
            return Err(MeasureError::Interrupts(blocked));
        }
        let faults = self.ports.iter().map(|port| port.functions.faults).sum::<u64>() + self.chipset.escaped;
        if faults > 0 {
            return Err(MeasureError::Memory(faults));
        }
        for port in &self.ports {
            let found: u64 = port
                .nic
                .counters()
                .iter()
                .map(|pool| pool.rx_packets + pool.rx_no_descriptors + pool.rx_disabled)
                .sum();
            if found != port.line.frames {
                return Err(MeasureError::Packets { sent: port.line.frames, found });
            }
        }
        Ok(())
    }
}

impl Measured {
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64()
    }

    fn percent(&self, cycles: u64) -> f64 {
        self.per_second(cycles) / self.hertz as f64 * 100.0
    }

    /// Payload that programs have read, Mb/s.
    #[must_use]
    pub fn throughput_mbps(&self) -> f64 {
        self.per_second(self.after.read_bytes - self.before.read_bytes) * 8.0 / 1e6
    }

    /// Frames that reached a card and no program, percent of the former.
    #[must_use]
    pub fn loss_pct(&self) -> f64 {
        let offered = self.after.offered - self.before.offered;
        let read = self.after.read_packets - self.before.read_packets;
        if offered == 0 { 0.0 } else { (1.0 - read as f64 / offered as f64).max(0.0) * 100.0 }
    }

    /// Receive interrupts, of all guests, a second.
    #[must_use]
    pub fn interrupts_per_s(&self) -> f64 {
        self.per_second(self.after.interrupts - self.before.interrupts)
    }

    /// The service domain's own cycles, percent of a thread.
    #[must_use]
    pub fn cpu_dom0_pct(&self) -> f64 {
        self.percent(self.own_dom0)
    }

    /// The hypervisor's cycles, for whomever, percent of a thread.
    #[must_use]
    pub fn cpu_xen_pct(&self) -> f64 {
        self.percent(self.hypervisor)
    }

    /// The guests' own cycles, percent of a thread.
    #[must_use]
    pub fn cpu_guest_pct(&self) -> f64 {
        self.percent(self.own_guests)
    }

    /// The hypervisor's cycles for guests, in millions a second: what virtualization costs them.
    #[must_use]
    pub fn guests_overhead_mcycles_per_s(&self) -> f64 {
        self.per_second(self.overhead_guests) / 1e6
    }

    /// Cycles spent on a category, in millions a second.
    #[must_use]
    pub fn mcycles_per_s(&self, category: Category) -> f64 {
        self.per_second(self.usage.category(category)) / 1e6
    }
}
