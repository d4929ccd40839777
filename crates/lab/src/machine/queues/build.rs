//! Creates the machine: starts the drivers and finds a flow for each queue pair.

use super::{Core, Courier, Host, Load, Plan, Processor, Queues};
use crate::machine::chipset::{Assigned, Chipset};
use crate::machine::code::Code;
use crate::machine::controller::Controller;
use crate::machine::memory::{GUEST_MEMORY, Region};
use crate::machine::parts::avf::pair::{DoorbellCounters, Pair};
use crate::machine::parts::avf::{ADDRESS, Port};
use crate::machine::parts::bus::Path;
use crate::machine::parts::guest::{Hardware, RING};
use crate::machine::parts::wire::{Line, Traffic};
use crate::machine::topology::Wire;
use guest::packet::UDP_PAYLOAD;
use guest::{Kernel, Load as Program, SenderConfig, Spec};
use hypervisor::cost::Cost;
use hypervisor::cpu::{Config, LastLevelCache, Machine, ThreadId};
use hypervisor::domain::{DomainId, DomainKind};
use i82576::MacAddress;
use pcie::Rid;
use sim::{Generator, Instant};
use std::collections::VecDeque;

/// Wire of a current adaptive-VF card: 100 Gb/s. Clients are as fast.
pub(super) const WIRE: Wire = Wire { bits_per_second: 100_000_000_000, ..Wire::GIGABIT };
/// Window of a stream in segments: somewhat less than the buffers of a ring.
const WINDOW: u16 = 240;
/// Send buffer of a socket, in kernel buffers: 212,992 bytes at 2,304 per frame (Linux wmem_default), and the
/// MTU.
const SOCKET: u32 = 92;
const MTU: u16 = 1_500;
/// Interrupt interval of a vector in microseconds: 20,000 a second in bulk (Linux iavf, IAVF_ITR_20K), 0 for
/// requests.
const INTERVAL_US: u16 = 50;
/// Functions on the host's bus: PF and VF.
const PF: Assigned = Assigned { rid: Rid(0x100), region: Region::of(1) };
const VF: Assigned = Assigned { rid: Rid(0x110), region: Region::of(0) };
/// Queue pairs for which a guest's memory has room, at most.
pub(super) const MAX_PAIRS: u8 = 4;

impl Queues {
    /// Creates the machine with its queue pairs and guest.
    ///
    /// # Errors
    /// A message naming an invalid number of pairs, or the failure of a driver or the chipset.
    pub fn new(plan: &Plan) -> Result<Self, String> {
        if !(1..=MAX_PAIRS).contains(&plan.pairs) {
            return Err(format!("number of queue pairs {} is out of range (1-{MAX_PAIRS})", plan.pairs));
        }
        let config = Config::from_table(&plan.table, u16::from(plan.pairs) + 1, 1);
        let mut core = Core::new(plan.table.clone(), Machine::new(config));
        let service = core.processors.add_domain(DomainKind::Dom0, "service".into());
        let vcpu = core.processors.add_vcpu(service, ThreadId::new(0));
        let courier = Courier { vcpu, requests: VecDeque::new(), written: 0 };
        let domain = core.processors.add_domain(DomainKind::Hvm, "guest".into());
        let mut chipset = Chipset::new(2, 0, u16::from(plan.pairs) + 1);
        let pf = chipset.assign(PF, service, 0..GUEST_MEMORY, 0)?;
        let vf = chipset.assign(VF, domain, 0..GUEST_MEMORY, u16::from(plan.pairs) + 1)?;
        let paths = (Path::new(PF, pf, 0), Path::new(VF, vf, 0));
        let interval_us = if plan.load == Load::Requests { 0 } else { INTERVAL_US };
        let silent = Line::new(Traffic::Silent, WIRE, &[], chance(plan.seed));
        let (mut port, mut driver) =
            Port::new(paths, (plan.pairs.into(), interval_us), silent, &mut chipset)?;
        let clients = port.flows(&mut driver, plan.load == Load::Stream, &mut chipset)?;
        port.line = line(plan, &clients);
        let mut system = Host {
            chipset,
            port,
            port_event: None,
            driver,
            doorbell: plan.doorbell,
            doorbells: DoorbellCounters::default(),
            processors: Vec::new(),
            courier,
            cache: LastLevelCache::new(plan.table[Cost::LastLevelCache] * 1_024),
        };
        for (number, client) in (0..).zip(clients) {
            system.add_processor(plan, domain, (number, client), &mut core)?;
        }
        system.sync(Instant::ZERO, &mut core);
        Ok(Self { core, system })
    }
}

fn chance(seed: u64) -> Generator {
    Generator::named(seed, "clients")
}

/// Creates the wire, with a client for each processor.
fn line(plan: &Plan, clients: &[MacAddress]) -> Line {
    let (traffic, clients) = match plan.load {
        Load::Stream => (Traffic::Tcp { window: WINDOW }, clients),
        Load::Datagrams => (Traffic::Silent, &[][..]),
        Load::Requests => (Traffic::RequestResponse, &clients[..1]),
    };
    let clients = clients.iter().map(|client| (ADDRESS, 0, *client)).collect();
    Line::of_clients(traffic, WIRE, clients, chance(plan.seed))
}

impl Host {
    fn add_processor(
        &mut self,
        plan: &Plan,
        domain: DomainId,
        (number, client): (u8, MacAddress),
        core: &mut Core,
    ) -> Result<(), String> {
        let vcpu = core.processors.add_vcpu(domain, ThreadId::new(u16::from(number) + 1));
        let program = match plan.load {
            Load::Stream => Program::Tcp,
            Load::Datagrams => Program::Udp,
            Load::Requests => Program::RequestResponse,
        };
        let spec = Spec { stream_segments: WINDOW.into(), ..Spec::linux_2_6_28(program) };
        let code = Code::load(&mut self.chipset.memory, VF.region)
            .ok_or("the guest's memory has no room for a kernel")?;
        let channels = &mut self.chipset.channels;
        let controller = Controller::direct(DomainKind::Hvm, domain, (code, spec.tick), channels);
        let hardware = Hardware::bare(DomainKind::Hvm, (domain, vcpu), controller, RING.into());
        let mut kernel = Kernel::new(spec, Pair::new(number, ADDRESS));
        if plan.load == Load::Datagrams {
            let message_bytes = UDP_PAYLOAD as u32;
            let buffers = SOCKET;
            kernel.start_sending(SenderConfig {
                to: client,
                load: Program::Udp,
                message_bytes,
                mtu: MTU,
                buffers,
            });
            core.wake(vcpu, Instant::ZERO);
        }
        self.processors.push(Processor {
            kernel,
            hardware,
            timer: None,
            messages: VecDeque::new(),
            awaits: 0,
        });
        Ok(())
    }
}
