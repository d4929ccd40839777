//! A guest program reads a disk uncached, block by block. With an assigned disk the guest sends commands and
//! takes interrupts. Through the service domain: requests on a ring, each with up to eleven granted pages, an
//! event, a back end that maps the pages and commands the disk, and an event back. The program does not
//! process the data, and the service domain caches nothing.

use super::{DeviceAccessMode, ServiceAndGuestDomains, upcall};
use crate::machine::books::ConservationChecks;
use crate::machine::engine::{Actor, ModelDefect, Simulation};
use crate::machine::parts::disk::{Disk, DiskCommand, DiskProperties, MAX_SECTORS, SECTOR};
use hypervisor::account::{CycleCategory, CycleSink};
use hypervisor::cost::{CostConstant, CostTable};
use hypervisor::cpu::{VcpuStep, VcpuStepOutcome};
use hypervisor::domain::DomainId;
use hypervisor::grant::{GrantAccess, GrantHandle, GrantReference, GrantTables};
use sim::{EventKey, RandomStream, VirtualDuration, VirtualInstant};
use split::back::NotGranted;
use split::block::{
    BlockBackend, BlockBackendHal as BackHost, BlockFrontend, BlockFrontendHal, BlockRequestOutcome,
    BlockSubmitError, PER_PAGE, REQUESTS, SEGMENTS,
};
use split::ring::RingPage;

/// Parameters of the machine with a disk.
#[derive(Debug, Clone)]
pub struct DiskSetup {
    /// Cost table of the machine's processors.
    pub table: CostTable,
    /// Path from the guest to the disk; not [`DeviceAccessMode::Vmdq`].
    pub path: DeviceAccessMode,
    /// Rates of the disk, and its time for a command.
    pub disk: DiskProperties,
    /// Bytes that the program reads at a time; 4 to 1,024 KB, whole pages.
    pub block: u32,
    /// Seed of the program's start time.
    pub seed: u64,
}

/// Number of sectors of the disk: 64 GB.
const SECTORS: u64 = 1 << 27;
/// Entries of the guest's grant table, for the pages of all its requests.
const GRANTS: u32 = 512;

/// Event of the machine with a disk.
#[derive(Debug, Clone, Copy)]
pub enum DiskEvent {
    /// Event: the guest's program starts to read the disk.
    Begin,
    /// Event: the disk completes a command of its queue.
    Done,
}

type DiskCore = crate::machine::engine::SimulationCore<DiskEvent>;

/// Ring and grant tables that the disk's front end and back end share.
#[derive(Debug)]
struct DiskRingAndGrants {
    ring: RingPage,
    grants: GrantTables,
    service: DomainId,
    guest: DomainId,
    /// Number of guest pages that the disk's back end has mapped in the current step, for charging.
    mapped: u64,
    /// An event between front end and back end is due.
    notifies: bool,
}

impl BlockFrontendHal for DiskRingAndGrants {
    fn ring(&mut self) -> &mut RingPage {
        &mut self.ring
    }

    fn grant(&mut self, page: u32, write: bool) -> Option<u32> {
        let access = if write { GrantAccess::Write } else { GrantAccess::Read };
        let own = self.grants.domain(self.guest).ok()?;
        own.grant(self.service, page, access).ok().map(|GrantReference(at)| at)
    }

    fn end(&mut self, reference: u32) {
        // The grant can end: a back end unmaps before it responds.
        let _ = self.grants.domain(self.guest).and_then(|own| own.end_access(GrantReference(reference)));
    }

    fn notify(&mut self) {
        self.notifies = true;
    }
}

impl BackHost for DiskRingAndGrants {
    type Mapping = GrantHandle;

    fn ring(&mut self) -> &mut RingPage {
        &mut self.ring
    }

    fn map(&mut self, reference: u32, write: bool) -> Result<GrantHandle, NotGranted> {
        self.mapped += 1;
        let access = if write { GrantAccess::Write } else { GrantAccess::Read };
        self.grants.map(self.service, self.guest, GrantReference(reference), access).map_err(|_| NotGranted)
    }

    fn unmap(&mut self, mapping: GrantHandle) {
        // The back end unmaps each mapping once.
        let _ = self.grants.unmap(self.service, mapping);
    }

    fn notify(&mut self) {
        self.notifies = true;
    }
}

/// Modelled machine with a disk; handles the events of disk, back end and guest.
#[derive(Debug)]
pub struct DiskMachine {
    domains: ServiceAndGuestDomains,
    disk: Disk,
    event: Option<EventKey>,
    front: BlockFrontend,
    back: BlockBackend<GrantHandle>,
    shared: DiskRingAndGrants,
    /// Number of disk sectors in a block; the program reads block by block.
    block: u32,
    /// Number of sectors in the current block that the guest has not yet requested from the disk.
    unasked: u32,
    /// Number of sectors in the current block that the guest has not yet received from the disk.
    missing: u32,
    /// Next sector of the disk that the guest's program requests.
    sector: u64,
    /// Tag of the guest's next command to an assigned disk.
    tag: u8,
    /// Number of sectors of each request to the back end, by request id.
    asked: [u32; REQUESTS],
    /// A disk interrupt or an event is pending for the service domain.
    service_told: bool,
    /// A disk interrupt or an event is pending for the guest.
    guest_told: bool,
    /// Commands that the disk has completed and its driver has not processed, each with `true` for success.
    ended: Vec<(DiskCommand, bool)>,
    /// Number of disk commands that failed.
    failed: u64,
    /// Bytes that the guest's program has read from the disk.
    read: u64,
}

/// Machine with a disk that runs in virtual time.
pub type DiskSimulation = Simulation<DiskMachine>;

/// Throughput and processor use of a measured interval with a disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskResults {
    /// Data that the program read, Mb/s.
    pub throughput_mbps: f64,
    /// Use of both processors, in percent of one.
    pub cpu_total_pct: f64,
}

impl DiskSimulation {
    /// Creates the machine with an idle disk; the program starts at a random time.
    #[must_use]
    pub fn new(plan: &DiskSetup) -> Self {
        let (mut core, domains) = ServiceAndGuestDomains::build(&plan.table, plan.path);
        let block = plan.block / SECTOR as u32;
        let mut grants = GrantTables::new();
        grants.add_domain(domains.guest_id, block.div_ceil(PER_PAGE.into()), GRANTS);
        let shared = DiskRingAndGrants {
            ring: RingPage::default(),
            grants,
            service: domains.service_id,
            guest: domains.guest_id,
            mapped: 0,
            notifies: false,
        };
        let begin = RandomStream::named(plan.seed, "program begins").below(1_000_000);
        core.schedule(VirtualInstant::ZERO + VirtualDuration::from_nanos(begin), DiskEvent::Begin);
        let system = DiskMachine {
            domains,
            disk: Disk::new(plan.disk, SECTORS),
            event: None,
            front: BlockFrontend::default(),
            back: BlockBackend::new(SECTORS, false),
            shared,
            block,
            unasked: 0,
            missing: 0,
            sector: 0,
            tag: 0,
            asked: [0; REQUESTS],
            service_told: false,
            guest_told: false,
            ended: Vec::new(),
            failed: 0,
            read: 0,
        };
        Self { core, system }
    }

    /// Runs the machine for `warm_up`, then for `span`. Returns the results of `span`.
    ///
    /// # Errors
    /// [`ModelDefect`] of the model.
    pub fn measure(
        &mut self,
        warm_up: VirtualDuration,
        span: VirtualDuration,
    ) -> Result<DiskResults, ModelDefect> {
        let (before, usage) = self.observe((warm_up, span), |host: &DiskMachine| host.read)?;
        let bits = (self.system.read - before) as f64 * 8.0;
        Ok(DiskResults {
            throughput_mbps: bits / span.as_secs_f64() / 1e6,
            cpu_total_pct: usage.percent(usage.busy()),
        })
    }
}

impl DiskMachine {
    /// Submits a command to the disk at `now`, and schedules the disk's next completion.
    fn submit(&mut self, command: DiskCommand, now: VirtualInstant, core: &mut DiskCore) {
        self.disk.submit(command, now).expect("drivers submit valid commands");
        self.event = core.replace(self.event, self.disk.due(), DiskEvent::Done);
    }

    /// Executes a step of the guest: processes completed reads, then requests the rest of the program's
    /// block.
    fn execute_guest(&mut self, mut step: VcpuStep, core: &mut DiskCore) {
        if core::mem::take(&mut self.guest_told) {
            self.domains.guest_takes(&mut step, &core.table);
            step.charge(CycleCategory::Kernel, core.table[CostConstant::Softirq]);
            self.process_completions(&mut step, &core.table);
        }
        if self.missing == 0 {
            // The program is woken and reads the next block.
            step.charge(CycleCategory::Kernel, core.table[CostConstant::ContextSwitch]);
            step.charge(CycleCategory::User, core.table[CostConstant::TxSyscall]);
            (self.unasked, self.missing) = (self.block, self.block);
        }
        if self.domains.path == DeviceAccessMode::Direct {
            self.command(&mut step, core);
        } else {
            self.request(&mut step, &core.table);
        }
        let calls = core::mem::take(&mut self.shared.notifies);
        if calls {
            step.charge(CycleCategory::Hypercall, core.table[CostConstant::HypercallPv]);
            ServiceAndGuestDomains::send(core, self.domains.service, &mut step);
        }
        self.domains.guest_sleeps(&mut step, &core.table);
        let done = step.now();
        core.finish(step, VcpuStepOutcome::Block);
        if calls {
            self.service_told = true;
            core.wake(self.domains.service, done);
        }
    }

    /// Processes the completions of an assigned disk, or the responses of the back end.
    fn process_completions(&mut self, step: &mut VcpuStep, table: &CostTable) {
        let mut sectors = 0;
        if self.domains.path == DeviceAccessMode::Direct {
            for (command, good) in self.ended.drain(..) {
                sectors += command.sectors;
                self.failed += u64::from(!good);
            }
        } else {
            while let Some(done) = self.front.take(&mut self.shared) {
                sectors += self.asked[usize::from(done.id)];
                self.failed += u64::from(!done.succeeded);
                step.charge(CycleCategory::Driver, table[CostConstant::Frontend]);
            }
        }
        self.missing -= sectors;
        self.read += u64::from(sectors) * SECTOR;
    }

    /// Sends commands to an assigned disk for the unrequested part of the block that the program reads.
    fn command(&mut self, step: &mut VcpuStep, core: &mut DiskCore) {
        while self.unasked > 0 {
            let sectors = self.unasked.min(MAX_SECTORS);
            step.charge(CycleCategory::Kernel, core.table[CostConstant::BlockRequest]);
            step.charge(CycleCategory::Driver, core.table[CostConstant::MmioWrite]);
            let command = DiskCommand { tag: self.tag, write: false, sector: self.sector, sectors };
            self.tag = (self.tag + 1) % REQUESTS as u8;
            self.advance(sectors);
            self.submit(command, step.now(), core);
        }
    }

    /// Submits requests to the back end for the unrequested part of the program's block, until the ring is
    /// full.
    fn request(&mut self, step: &mut VcpuStep, table: &CostTable) {
        while self.unasked > 0 {
            let sectors = self.unasked.min(u32::from(SEGMENTS) * u32::from(PER_PAGE));
            let page = (self.block - self.unasked) / u32::from(PER_PAGE);
            match self.front.submit(false, self.sector, (page, sectors), &mut self.shared) {
                Ok(id) => self.asked[usize::from(id)] = sectors,
                Err(BlockSubmitError::Full | BlockSubmitError::Length) => break,
            }
            step.charge(CycleCategory::Kernel, table[CostConstant::BlockRequest]);
            step.charge(CycleCategory::Driver, table[CostConstant::Frontend]);
            self.advance(sectors);
        }
        self.front.flush(&mut self.shared);
    }

    /// Advances the program's position on the disk by `sectors`. At the end of the disk, starts over at
    /// sector 0.
    fn advance(&mut self, sectors: u32) {
        self.unasked -= sectors;
        self.sector += u64::from(sectors);
        if self.unasked == 0 && self.sector + u64::from(self.block) > SECTORS {
            self.sector = 0;
        }
    }

    /// Executes one simulated step of the service domain with the disk: answers completed requests of the
    /// guest, and passes new requests to the disk.
    fn execute_service(&mut self, mut step: VcpuStep, core: &mut DiskCore) {
        if core::mem::take(&mut self.service_told) {
            upcall(&mut step, &core.table);
            step.charge(CycleCategory::Kernel, core.table[CostConstant::Softirq]);
        }
        for (command, good) in std::mem::take(&mut self.ended) {
            self.back.complete(command.tag, good, &mut self.shared);
        }
        while let BlockRequestOutcome::Command(found) = self.back.take(&mut self.shared) {
            let pages = core::mem::take(&mut self.shared.mapped);
            step.charge(CycleCategory::Grant, pages * core.table[CostConstant::GrantMapUnmap]);
            step.charge(CycleCategory::Backend, core.table[CostConstant::BlockRequest]);
            step.charge(CycleCategory::Driver, core.table[CostConstant::MmioWrite]);
            let split::block::BlockCommand { tag, write, sector, sectors } = found;
            self.submit(DiskCommand { tag, write, sector, sectors }, step.now(), core);
        }
        let calls = core::mem::take(&mut self.shared.notifies);
        if calls {
            ServiceAndGuestDomains::send(core, self.domains.guest, &mut step);
        }
        step.charge(CycleCategory::Hypercall, core.table[CostConstant::HypercallPv]);
        let done = step.now();
        core.finish(step, VcpuStepOutcome::Block);
        if calls {
            self.guest_told = true;
            core.wake(self.domains.guest, done);
        }
    }

    /// Takes completed commands from the disk, and interrupts the domain that drives the disk.
    fn done(&mut self, now: VirtualInstant, core: &mut DiskCore) {
        // The pages are the driver's own, or mapped until the command completes.
        while let Some(end) = self.disk.finish(now, &mut |_| true) {
            self.ended.push(end);
        }
        let is_direct = self.domains.path == DeviceAccessMode::Direct;
        self.event = core.replace(None, self.disk.due(), DiskEvent::Done);
        let told = if is_direct { &mut self.guest_told } else { &mut self.service_told };
        *told = true;
        self.domains.interrupt(core, now);
    }
}

impl Actor for DiskMachine {
    type Event = DiskEvent;

    fn handle(&mut self, event: DiskEvent, now: VirtualInstant, core: &mut DiskCore) {
        match event {
            DiskEvent::Begin => core.wake(self.domains.guest, now),
            DiskEvent::Done => self.done(now, core),
        }
    }

    fn execute(&mut self, step: VcpuStep, core: &mut DiskCore) {
        if step.vcpu() == self.domains.service {
            self.execute_service(step, core);
        } else {
            self.execute_guest(step, core);
        }
    }

    fn check_books(&self, books: &mut ConservationChecks) {
        let DiskMachine { disk, back, .. } = self;
        let counters = back.counters();
        books.never("failed disk commands", self.failed + counters.refused);
        books.never(
            "sectors received without a request",
            u64::from(self.unasked.saturating_sub(self.missing)),
        );
        if self.domains.path != DeviceAccessMode::Direct {
            books.balance("requests of the disk", counters.taken, disk.taken);
            books.balance("requests answered", counters.done + self.ended.len() as u64, disk.done);
        }
    }
}
