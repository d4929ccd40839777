//! Creates the modelled machine with queue pairs: starts the drivers and finds a flow for each queue pair.

use super::{
    GuestProcessor, MultiqueueCore, MultiqueueMachine, MultiqueueSetup, MultiqueueSimulation,
    MultiqueueTraffic, RegisterAccessProcess,
};
use crate::machine::chipset::{AssignedFunction, Chipset};
use crate::machine::code::GuestApicCode;
use crate::machine::controller::InterruptController;
use crate::machine::memory::{DomainMemoryRegion, GUEST_MEMORY};
use crate::machine::parts::avf::pair::{DoorbellCounters, VfQueuePair};
use crate::machine::parts::avf::{ADDRESS, AvfPort};
use crate::machine::parts::bus::FunctionMemory;
use crate::machine::parts::guest::GuestHardware;
use crate::machine::parts::traffic::ClientTraffic;
use crate::machine::parts::wire::ClientWire;
use crate::machine::topology::WireProperties;
use guest::packet::UDP_PAYLOAD;
use guest::{KernelConfig, KernelModel, ProgramWorkload as Program, SenderConfig};
use hypervisor::cost::CostConstant;
use hypervisor::cpu::{HardwareThreadId, HostMachine, LastLevelCache, ProcessorConfig};
use hypervisor::domain::{DomainId, DomainKind};
use i82576::MacAddress;
use pcie::Rid;
use sim::{RandomStream, VirtualInstant};
use std::collections::VecDeque;

/// Wire of a current adaptive-VF card, with its clients: 100 Gb/s.
pub(super) const WIRE: WireProperties =
    WireProperties { bits_per_second: 100_000_000_000, ..WireProperties::GIGABIT };
/// Receive window of a stream in segments: somewhat less than the buffers of a ring.
const WINDOW: u16 = 240;
/// Send buffer of a guest's socket, in kernel buffers: 212,992 bytes at 2,304 per frame (Linux wmem_default).
const SOCKET: u32 = 92;
/// Bytes of the longest IP packet that the guest sends.
const MTU: u16 = 1_500;
/// Interrupt interval of an MSI-X vector in microseconds: 20,000 a second in bulk (Linux iavf, IAVF_ITR_20K),
/// 0 for requests.
const INTERVAL_US: u16 = 50;
/// The card's PF: its routing id on the host's bus, and the memory that it may access.
const PF: AssignedFunction = AssignedFunction { rid: Rid(0x100), region: DomainMemoryRegion::of(1) };
/// The card's VF: its routing id on the host's bus, and the memory that it may access.
const VF: AssignedFunction = AssignedFunction { rid: Rid(0x110), region: DomainMemoryRegion::of(0) };
/// Packet buffers of the guest's driver, which occupy the last-level cache.
const BUFFERS: u32 = 1_024;
/// Maximum number of queue pairs for which a guest's memory has room.
pub(super) const MAX_PAIRS: u8 = 4;

impl MultiqueueSimulation {
    /// Creates the machine with its guest, whose drivers are started, and a client for each queue pair.
    ///
    /// # Errors
    /// A message naming an invalid number of pairs, or the failure of a driver or the chipset.
    pub fn new(plan: &MultiqueueSetup) -> Result<Self, String> {
        if !(1..=MAX_PAIRS).contains(&plan.pairs) {
            return Err(format!("number of queue pairs {} is out of range (1-{MAX_PAIRS})", plan.pairs));
        }
        let config = ProcessorConfig::from_table(&plan.table, u16::from(plan.pairs) + 1, 1);
        let mut core = MultiqueueCore::new(plan.table.clone(), HostMachine::new(config));
        let service = core.processors.add_domain(DomainKind::Dom0, "service".into());
        let vcpu = core.processors.add_vcpu(service, HardwareThreadId::new(0));
        let courier = RegisterAccessProcess { vcpu, requests: VecDeque::new(), written: 0 };
        let domain = core.processors.add_domain(DomainKind::Hvm, "guest".into());
        let mut chipset = Chipset::new(2, 0, u16::from(plan.pairs) + 1);
        let pf = chipset.assign(PF, service, 0..GUEST_MEMORY, 0)?;
        let vf = chipset.assign(VF, domain, 0..GUEST_MEMORY, u16::from(plan.pairs) + 1)?;
        let paths = (FunctionMemory::new(PF, pf, 0), FunctionMemory::new(VF, vf, 0));
        let interval_us = if plan.load == MultiqueueTraffic::Requests { 0 } else { INTERVAL_US };
        let silent = ClientWire::new(ClientTraffic::Silent, WIRE, &[], chance(plan.seed));
        let (mut port, mut driver) =
            AvfPort::new(paths, (plan.pairs.into(), interval_us), silent, &mut chipset)?;
        let clients = port.flows(&mut driver, plan.load == MultiqueueTraffic::Stream, &mut chipset)?;
        port.line = line(plan, &clients);
        let mut system = MultiqueueMachine {
            chipset,
            port,
            port_event: None,
            driver,
            doorbell: plan.doorbell,
            doorbells: DoorbellCounters::default(),
            processors: Vec::new(),
            courier,
            cache: LastLevelCache::new(plan.table[CostConstant::LastLevelCache] * 1_024),
        };
        for (number, client) in (0..).zip(clients) {
            system.add_processor(plan, domain, (number, client), &mut core)?;
        }
        system.sync(VirtualInstant::ZERO, &mut core);
        Ok(Self { core, system })
    }
}

fn chance(seed: u64) -> RandomStream {
    RandomStream::named(seed, "clients")
}

/// Creates the wire with the clients that the traffic needs, at most one for each processor of the guest.
fn line(plan: &MultiqueueSetup, clients: &[MacAddress]) -> ClientWire {
    let (traffic, clients) = match plan.load {
        MultiqueueTraffic::Stream => (ClientTraffic::Tcp { window: WINDOW }, clients),
        MultiqueueTraffic::Datagrams => (ClientTraffic::Silent, &[][..]),
        MultiqueueTraffic::Requests => (ClientTraffic::RequestResponse, &clients[..1]),
    };
    let clients = clients.iter().map(|client| (ADDRESS, 0, *client)).collect();
    ClientWire::of_clients(traffic, WIRE, clients, chance(plan.seed))
}

impl MultiqueueMachine {
    fn add_processor(
        &mut self,
        plan: &MultiqueueSetup,
        domain: DomainId,
        (number, client): (u8, MacAddress),
        core: &mut MultiqueueCore,
    ) -> Result<(), String> {
        let vcpu = core.processors.add_vcpu(domain, HardwareThreadId::new(u16::from(number) + 1));
        let program = match plan.load {
            MultiqueueTraffic::Stream => Program::Tcp,
            MultiqueueTraffic::Datagrams => Program::Udp,
            MultiqueueTraffic::Requests => Program::RequestResponse,
        };
        let spec = KernelConfig { stream_segments: WINDOW.into(), ..KernelConfig::linux_2_6_28(program) };
        let code = GuestApicCode::load(&mut self.chipset.memory, VF.region)
            .ok_or("the guest's memory has no room for a kernel")?;
        let channels = &mut self.chipset.channels;
        let controller = InterruptController::direct(DomainKind::Hvm, domain, (code, spec.tick), channels);
        let hardware = GuestHardware::bare(DomainKind::Hvm, (domain, vcpu), controller, BUFFERS);
        let mut kernel = KernelModel::new(spec, VfQueuePair::new(number, ADDRESS));
        if plan.load == MultiqueueTraffic::Datagrams {
            let message_bytes = UDP_PAYLOAD as u32;
            let buffers = SOCKET;
            kernel.start_sending(SenderConfig {
                to: client,
                load: Program::Udp,
                message_bytes,
                mtu: MTU,
                buffers,
            });
            core.wake(vcpu, VirtualInstant::ZERO);
        }
        self.processors.push(GuestProcessor {
            kernel,
            hardware,
            timer: None,
            messages: VecDeque::new(),
            awaits: 0,
        });
        Ok(())
    }
}
