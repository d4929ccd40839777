//! What a server is to be: the paper's by default. Left out: putting it together.

use crate::machine::parts::card::{Limits, Outside};
use crate::machine::parts::wire::Traffic;
use crate::machine::topology::Topology;
use driver::moderation;
use guest::{Load, Spec};
use hypervisor::cost::CostTable;
use hypervisor::cpu::{Clocks, Config, Credit, Machine, Policy};
use hypervisor::domain::DomainKind;
use hypervisor::exit::EoiPath;
use hypervisor::msix::Handler;
use sim::{Instant, Span};
use split::dispatch;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use thiserror::Error;

/// What a machine is to be.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What things cost.
    pub table: CostTable,
    /// Where things run, and what the ports are connected to.
    pub topology: Topology,
    /// Ports.
    pub ports: u8,
    /// Guests, spread over the ports evenly.
    pub guests: u8,
    /// How guests reach the ports.
    pub network: Network,
    /// How a back end shares its work, and what its front ends spare it.
    pub netback: Netback,
    /// What guests are to the hypervisor; [`DomainKind::Native`] is one bare machine with a VF a guest.
    pub kind: DomainKind,
    /// Their kernel.
    pub spec: Spec,
    /// What clients send.
    pub traffic: Traffic,
    /// What those of the first port's do instead, and the programs of its guests.
    pub first: Option<(Traffic, Load)>,
    /// Who sends over the card, or over its bridge, to a guest, if anybody does.
    pub inside: Option<Inside>,
    /// What the functions of a card may send to each other, bits a second; `None` is without a limit.
    pub loopback: Option<NonZeroU64>,
    /// What VFs are held back by.
    pub limits: Limits,
    /// How often the VF driver lets the card interrupt.
    pub moderation: moderation::Policy,
    /// Who handles mask bits.
    pub msix: Handler,
    /// How an end of interrupt is handled.
    pub eoi: EoiPath,
    /// Who goes first where virtual CPUs share a thread.
    pub scheduling: Scheduling,
    /// Decides the phases of clocks, and which of several clients sends how much at a time.
    pub seed: u64,
}

/// Who goes first where virtual CPUs share a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// Whoever has waited longest, at the end of a step.
    RoundRobin,
    /// Xen's credit scheduler with equal weights: who wakes with credits, at once.
    Credit,
}

impl Scheduling {
    /// The processors of `config`, with this scheduler.
    pub(super) fn machine(self, config: Config) -> Machine {
        let cycles = |ms| config.clock.cycle_at(Instant::ZERO + Span::from_millis(ms));
        match self {
            Self::RoundRobin => Machine::new(config),
            Self::Credit => {
                let clocks = Clocks {
                    millisecond: cycles(1),
                    tick_ms: 10,
                    first_tick: cycles(10),
                    first_accounting: cycles(30),
                };
                Machine::with_scheduler(config, Policy::Credit(Credit::new(clocks)))
            }
        }
    }
}

/// How guests reach the ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Each has a VF.
    Direct,
    /// Each has the front end of a split driver.
    Split {
        /// Workers of the back end, one to a virtual CPU of the service domain.
        workers: u8,
    },
}

/// How a back end shares its work, and what its front ends spare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Netback {
    /// Which virtual CPUs hear events.
    pub dispatch: dispatch::Policy,
    /// Frames after which a guest hears of them at once; of fewer it hears a little later.
    pub tell_every: u32,
    /// Front ends merge segments.
    pub merge: bool,
}

impl Netback {
    /// Events spread over all virtual CPUs, each told at once; nothing is merged.
    pub const SPREAD: Self = Self { dispatch: dispatch::Policy::Spread, tell_every: 1, merge: false };
}

/// Why a machine cannot be put together.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The numbers make no sense.
    #[error("{guests} guests on {ports} ports: a port has 1 to {room}")]
    Guests {
        /// Guests.
        guests: u8,
        /// Ports.
        ports: u8,
        /// Guests that a port has room for.
        room: u8,
    },
    /// Nobody is there to send, or nobody to send to.
    #[error("traffic inside the server needs {0}")]
    Inside(&'static str),
    /// A bare machine has nobody to split a driver with, and a service domain so many virtual CPUs.
    #[error("{workers} back-end workers: a hypervisor's service domain has 1 to {cpus}")]
    Workers {
        /// Workers.
        workers: u8,
        /// Virtual CPUs of the service domain.
        cpus: u16,
    },
    /// The card and its drivers disagree: a defect of this program.
    #[error("the card does not come up: {0}")]
    Card(String),
}

/// Who sends what inside the server.
#[derive(Debug, Clone, Copy)]
pub struct Inside {
    /// Who, on every port.
    pub from: Origin,
    /// Datagrams or a stream.
    pub load: Load,
    /// Bytes of each of its system calls.
    pub message_bytes: u32,
    /// Bytes of the longest IP packet.
    pub mtu: u16,
    /// Interval of transmit interrupts. As with igbvf, the policy is receive's.
    pub transmit_interval_us: u32,
}

/// Who sends to the first guest of each port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The service domain.
    ServiceDomain,
    /// The last guest of the port.
    Guest,
}

impl Setup {
    /// Whether two guests have the same thread, so that the scheduler decides between them.
    pub(crate) fn shares_threads(&self) -> bool {
        let guests = 0..u16::from(self.guests);
        let home =
            |n| if self.kind == DomainKind::Native { self.topology.bare(n) } else { self.topology.guest(n) };
        let homes: BTreeSet<_> = guests.clone().map(|n| home(n).index()).collect();
        homes.len() < guests.len()
    }

    pub(super) fn outside(&self, port: u8) -> Outside {
        let traffic = self.first.filter(|_| port == 0).map_or(self.traffic, |(traffic, _)| traffic);
        let Self { loopback, limits, seed, .. } = *self;
        Outside { traffic, wire: self.topology.wire, loopback, limits, seed }
    }

    /// What a port's function runs in: a guest as asked for, or the service domain.
    pub(super) fn system_of(&self, port: u8, guest: bool) -> (DomainKind, Spec) {
        let spec = self.spec_of(port);
        if guest { (self.kind, spec) } else { (DomainKind::Pvm, Spec::xenlinux_2_6_18(spec.load)) }
    }

    /// The kernel of a port's guests.
    pub(super) fn spec_of(&self, port: u8) -> Spec {
        let load = self.first.filter(|_| port == 0).map_or(self.spec.load, |(_, load)| load);
        Spec { load, ..self.spec }
    }

    /// How many functions the service domain has for itself. It is interrupted through one of them only.
    pub(super) fn service_functions(&self) -> Result<usize, BuildError> {
        let sends = self.inside.is_some_and(|inside| inside.from == Origin::ServiceDomain);
        match (sends, self.ports) {
            (false, _) => Ok(0),
            (true, 1) if self.network == Network::Direct => Ok(1),
            (true, _) => Err(BuildError::Inside("one port, and VFs, if the service domain sends")),
        }
    }
}
