//! Parameters of a modelled server; by default those of the paper's server.

use crate::machine::parts::card::{PortTrafficSetup, TrafficLimits};
use crate::machine::parts::traffic::ClientTraffic;
use crate::machine::topology::ServerTopology;
use driver::moderation;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::cost::CostTable;
use hypervisor::cpu::{
    CreditScheduler, CreditSchedulerClocks, HostMachine, ProcessorConfig, SelectedScheduler,
};
use hypervisor::domain::DomainKind;
use hypervisor::exit::EoiPath;
use hypervisor::msix::MsixTablePolicy;
use sim::{VirtualDuration, VirtualInstant};
use split::dispatch;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use thiserror::Error;

/// Parameters of a server with guests.
#[derive(Debug, Clone)]
pub struct ServerSetup {
    /// Cost table of the server's processor.
    pub table: CostTable,
    /// Placement of virtual CPUs on hardware threads, and the wires of the ports.
    pub topology: ServerTopology,
    /// Number of ports of the server.
    pub ports: u8,
    /// Number of guests, distributed evenly over the ports.
    pub guests: u8,
    /// Path of the guests' frames: VFs or split drivers.
    pub network: NetworkAccessMode,
    /// Work distribution of the back end, and merging of segments in front ends.
    pub netback: NetbackOptions,
    /// Kind of the guests; [`DomainKind::Native`] is one bare machine with a VF per guest.
    pub kind: DomainKind,
    /// Kernel and program of the guests.
    pub spec: KernelConfig,
    /// Traffic that the clients send.
    pub traffic: ClientTraffic,
    /// Traffic of the first port's clients and load of its guests, if different from the other ports'.
    pub first: Option<(ClientTraffic, ProgramWorkload)>,
    /// Traffic between domains of the server, or `None` if domains exchange no frames.
    pub inside: Option<InterDomainTraffic>,
    /// Bandwidth between the functions of a card, bits per second; `None` is unlimited.
    pub loopback: Option<NonZeroU64>,
    /// Traffic limits that the administrator sets for VFs.
    pub limits: TrafficLimits,
    /// Interrupt moderation of the VF driver.
    pub moderation: moderation::ModerationPolicy,
    /// Handler of a guest's writes of MSI-X mask bits: the hypervisor or the device model.
    pub msix: MsixTablePolicy,
    /// Path by which the hypervisor handles a guest's end of interrupt.
    pub eoi: EoiPath,
    /// Scheduler of the guests' virtual CPUs that share a thread.
    pub scheduling: VcpuScheduling,
    /// Seed of clock phases and of the clients' bursts.
    pub seed: u64,
}

/// Scheduler of virtual CPUs that share a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VcpuScheduling {
    /// Round robin, which switches at the end of a step.
    RoundRobin,
    /// Xen's credit scheduler with equal weights; a virtual CPU that wakes with credits preempts the running
    /// one.
    Credit,
}

impl VcpuScheduling {
    /// Creates processors with this configuration and scheduler.
    pub(super) fn machine(self, config: ProcessorConfig) -> HostMachine {
        let cycles = |ms| config.clock.cycle_at(VirtualInstant::ZERO + VirtualDuration::from_millis(ms));
        match self {
            Self::RoundRobin => HostMachine::new(config),
            Self::Credit => {
                let clocks = CreditSchedulerClocks {
                    millisecond: cycles(1),
                    tick_ms: 10,
                    first_tick: cycles(10),
                    first_accounting: cycles(30),
                };
                HostMachine::with_scheduler(config, SelectedScheduler::Credit(CreditScheduler::new(clocks)))
            }
        }
    }
}

/// Path of the guests' frames to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkAccessMode {
    /// Each guest has a VF.
    Direct,
    /// Each guest has the front end of a split driver.
    Split {
        /// Workers of the back end, each on its own virtual CPU of the service domain.
        workers: u8,
    },
}

/// Work distribution of the back end, and merging in front ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetbackOptions {
    /// Distribution of events over virtual CPUs.
    pub dispatch: dispatch::DispatchPolicy,
    /// Number of frames after which a guest is notified at once. With fewer frames the event to the guest is
    /// delayed.
    pub notify_every: u32,
    /// Front ends merge the segments of a TCP stream.
    pub merge: bool,
}

impl NetbackOptions {
    /// Work distribution in which events go to all virtual CPUs and are sent at once, without merging.
    pub const SPREAD: Self =
        Self { dispatch: dispatch::DispatchPolicy::Spread, notify_every: 1, merge: false };
}

/// Error of creating a modelled server.
#[derive(Debug, Error)]
pub enum ServerBuildError {
    /// The number of guests does not match the number of ports.
    #[error("cannot place {guests} guests on {ports} ports: each port takes 1 to {room} guests")]
    Guests {
        /// Number of guests of the server.
        guests: u8,
        /// Number of ports of the server.
        ports: u8,
        /// Maximum number of guests per port of the server.
        room: u8,
    },
    /// The domain that is to send or receive the traffic inside the server is missing.
    #[error("traffic inside the server needs {0}")]
    Inside(&'static str),
    /// The number of workers is zero or exceeds the service domain's virtual CPUs; a bare machine has none.
    #[error(
        "number of back-end workers {workers} is out of range: a service domain has 1 to {cpus}, a bare \
         machine none"
    )]
    Workers {
        /// Requested number of back-end workers.
        workers: u8,
        /// Number of virtual CPUs of the service domain.
        cpus: u16,
    },
    /// The modelled card or its driver failed to start: a defect of this program.
    #[error("the modelled card failed to start: {0}")]
    Card(String),
}

/// Traffic between domains inside the server.
#[derive(Debug, Clone, Copy)]
pub struct InterDomainTraffic {
    /// Domain that sends on every port of the server.
    pub from: InterDomainSender,
    /// Kind of traffic that the domain sends: datagrams or a stream.
    pub load: ProgramWorkload,
    /// Bytes that the sender writes per system call.
    pub message_bytes: u32,
    /// Bytes of the longest IP packet that the sender sends.
    pub mtu: u16,
    /// Interval of the sending domain's transmit interrupts, us. As with igbvf, the moderation policy applies
    /// to receive only.
    pub transmit_interval_us: u32,
}

/// Domain that sends to the first guest of each port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterDomainSender {
    /// The service domain sends to the first guest of each port.
    ServiceDomain,
    /// The last guest of each port sends to the port's first guest.
    Guest,
}

impl ServerSetup {
    /// Returns `true` if two guests share a hardware thread, so that the scheduler has a choice.
    pub(crate) fn shares_threads(&self) -> bool {
        let guests = 0..u16::from(self.guests);
        let home =
            |n| if self.kind == DomainKind::Native { self.topology.bare(n) } else { self.topology.guest(n) };
        let homes: BTreeSet<_> = guests.clone().map(|n| home(n).index()).collect();
        homes.len() < guests.len()
    }

    pub(super) fn outside(&self, port: u8) -> PortTrafficSetup {
        let traffic = self.first.filter(|_| port == 0).map_or(self.traffic, |(traffic, _)| traffic);
        let Self { loopback, limits, seed, .. } = *self;
        PortTrafficSetup { traffic, wire: self.topology.wire, loopback, limits, seed }
    }

    /// Returns the kind and kernel of the domain that owns a port's function: the configured guest, or the
    /// service domain.
    pub(super) fn system_of(&self, port: u8, guest: bool) -> (DomainKind, KernelConfig) {
        let spec = self.spec_of(port);
        if guest { (self.kind, spec) } else { (DomainKind::Pvm, KernelConfig::xenlinux_2_6_18(spec.load)) }
    }

    /// Returns the kernel configuration of a port's guests.
    pub(super) fn spec_of(&self, port: u8) -> KernelConfig {
        let load = self.first.filter(|_| port == 0).map_or(self.spec.load, |(_, load)| load);
        KernelConfig { load, ..self.spec }
    }

    /// Returns the number of VFs through which the service domain sends: 1 if the service domain is the
    /// sender of the internal traffic, else 0. The service domain takes interrupts of only one VF.
    pub(super) fn service_functions(&self) -> Result<usize, ServerBuildError> {
        let sends = self.inside.is_some_and(|inside| inside.from == InterDomainSender::ServiceDomain);
        match (sends, self.ports) {
            (false, _) => Ok(0),
            (true, 1) if self.network == NetworkAccessMode::Direct => Ok(1),
            (true, _) => Err(ServerBuildError::Inside("one port, and VFs, if the service domain sends")),
        }
    }
}
