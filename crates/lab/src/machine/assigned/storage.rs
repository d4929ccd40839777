//! A guest program reads a disk uncached, block by block. With an assigned disk the guest sends commands and
//! takes interrupts. Through the service domain: requests on a ring, each with up to eleven granted pages, an
//! event, a back end that maps the pages and commands the disk, and an event back. The program does not
//! process the data, and the service domain caches nothing.

use super::{Domains, Path, upcall};
use crate::machine::books::Books;
use crate::machine::engine::{Actor, Defect, Engine};
use crate::machine::parts::disk::{Command, Disk, MAX_SECTORS, SECTOR};
use hypervisor::account::{Category, Charge};
use hypervisor::cost::{Cost, CostTable};
use hypervisor::cpu::{AfterStep, Step};
use hypervisor::domain::DomainId;
use hypervisor::grant::{Access, Grants, Handle, Reference};
use sim::{EventKey, Generator, Instant, Span};
use split::back::NotGranted;
use split::block::{
    Back, Front, Hal, Host as BackHost, PER_PAGE, REQUESTS, RequestOutcome, SEGMENTS, SubmitError,
};
use split::ring::Page;

/// Parameters of the disk model.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Cost table of the machine's processors.
    pub table: CostTable,
    /// Path from the guest to the disk; not [`Path::Vmdq`].
    pub path: Path,
    /// Bytes that the program reads at a time; 4 to 1,024 KB, whole pages.
    pub block: u32,
    /// Seed of the program's start time.
    pub seed: u64,
}

/// Number of sectors of the disk: 64 GB.
const SECTORS: u64 = 1 << 27;
/// Entries of the guest's grant table: pages of all requests.
const GRANTS: u32 = 512;

/// Event of the machine with a disk.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// Event: the program starts to read the disk.
    Begin,
    /// The disk completes a command of its queue.
    Done,
}

type Core = crate::machine::engine::Core<Event>;

/// State between front end and back end, with the requests of the current step.
#[derive(Debug)]
struct SharedState {
    ring: Page,
    grants: Grants,
    service: DomainId,
    guest: DomainId,
    /// Pages mapped in this step, and whether the peer must be sent an event.
    mapped: u64,
    notifies: bool,
}

impl Hal for SharedState {
    fn ring(&mut self) -> &mut Page {
        &mut self.ring
    }

    fn grant(&mut self, page: u32, write: bool) -> Option<u32> {
        let access = if write { Access::Write } else { Access::Read };
        let own = self.grants.domain(self.guest).ok()?;
        own.grant(self.service, page, access).ok().map(|Reference(at)| at)
    }

    fn end(&mut self, reference: u32) {
        // The grant can end: a back end unmaps before it responds.
        let _ = self.grants.domain(self.guest).and_then(|own| own.end_access(Reference(reference)));
    }

    fn notify(&mut self) {
        self.notifies = true;
    }
}

impl BackHost for SharedState {
    type Mapping = Handle;

    fn ring(&mut self) -> &mut Page {
        &mut self.ring
    }

    fn map(&mut self, reference: u32, write: bool) -> Result<Handle, NotGranted> {
        self.mapped += 1;
        let access = if write { Access::Write } else { Access::Read };
        self.grants.map(self.service, self.guest, Reference(reference), access).map_err(|_| NotGranted)
    }

    fn unmap(&mut self, mapping: Handle) {
        // The back end unmaps each mapping once.
        let _ = self.grants.unmap(self.service, mapping);
    }

    fn notify(&mut self) {
        self.notifies = true;
    }
}

/// Parts of the machine, which handle its events.
#[derive(Debug)]
pub struct Host {
    domains: Domains,
    disk: Disk,
    event: Option<EventKey>,
    front: Front,
    back: Back<Handle>,
    shared: SharedState,
    /// Sectors of a block, those not yet requested and not yet received, and the next sector.
    block: u32,
    unasked: u32,
    missing: u32,
    sector: u64,
    /// Tag of the guest's next command, and sectors of requests by id.
    tag: u8,
    asked: [u32; REQUESTS],
    /// A disk interrupt or an event is pending for the service domain, and for the guest.
    service_told: bool,
    guest_told: bool,
    /// Commands that the disk completed and that are not yet processed.
    ended: Vec<(Command, bool)>,
    /// Number of disk commands that failed.
    failed: u64,
    /// Bytes that the program has read.
    read: u64,
}

/// Machine with a disk that runs in virtual time.
pub type Storage = Engine<Host>;

/// Results of a measured interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Results {
    /// Data that the program read, Mb/s.
    pub throughput_mbps: f64,
    /// Use of both processors, in percent of one.
    pub cpu_total_pct: f64,
}

impl Storage {
    /// Creates the machine.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let (mut core, domains) = Domains::build(&plan.table, plan.path);
        let block = plan.block / SECTOR as u32;
        let mut grants = Grants::new();
        grants.add_domain(domains.guest_id, block.div_ceil(PER_PAGE.into()), GRANTS);
        let shared = SharedState {
            ring: Page::default(),
            grants,
            service: domains.service_id,
            guest: domains.guest_id,
            mapped: 0,
            notifies: false,
        };
        let begin = Generator::named(plan.seed, "program begins").below(1_000_000);
        core.schedule(Instant::ZERO + Span::from_nanos(begin), Event::Begin);
        let system = Host {
            domains,
            disk: Disk::new(SECTORS),
            event: None,
            front: Front::default(),
            back: Back::new(SECTORS, false),
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

    /// Runs for `warm_up`, then for `span`. Returns the results of `span`.
    ///
    /// # Errors
    /// [`Defect`] of the model.
    pub fn measure(&mut self, warm_up: Span, span: Span) -> Result<Results, Defect> {
        let (before, usage) = self.observe((warm_up, span), |host: &Host| host.read)?;
        let bits = (self.system.read - before) as f64 * 8.0;
        Ok(Results {
            throughput_mbps: bits / span.as_secs_f64() / 1e6,
            cpu_total_pct: usage.percent(usage.busy()),
        })
    }
}

impl Host {
    /// Sends the disk a command at `now`.
    fn submit(&mut self, command: Command, now: Instant, core: &mut Core) {
        self.disk.submit(command, now).expect("drivers submit valid commands");
        self.event = core.replace(self.event, self.disk.due(), Event::Done);
    }

    /// Executes the guest: completions first, then the program's next requests.
    fn execute_guest(&mut self, mut step: Step, core: &mut Core) {
        if core::mem::take(&mut self.guest_told) {
            self.domains.guest_takes(&mut step, &core.table);
            step.charge(Category::Kernel, core.table[Cost::Softirq]);
            self.process_completions(&mut step, &core.table);
        }
        if self.missing == 0 {
            // The program is woken and reads the next block.
            step.charge(Category::Kernel, core.table[Cost::ContextSwitch]);
            step.charge(Category::User, core.table[Cost::TxSyscall]);
            (self.unasked, self.missing) = (self.block, self.block);
        }
        if self.domains.path == Path::Direct {
            self.command(&mut step, core);
        } else {
            self.request(&mut step, &core.table);
        }
        let calls = core::mem::take(&mut self.shared.notifies);
        if calls {
            step.charge(Category::Hypercall, core.table[Cost::HypercallPv]);
            Domains::send(core, self.domains.service, &mut step);
        }
        self.domains.guest_sleeps(&mut step, &core.table);
        let done = step.now();
        core.finish(step, AfterStep::Block);
        if calls {
            self.service_told = true;
            core.wake(self.domains.service, done);
        }
    }

    /// Processes completions of the disk or responses of the back end.
    fn process_completions(&mut self, step: &mut Step, table: &CostTable) {
        let mut sectors = 0;
        if self.domains.path == Path::Direct {
            for (command, good) in self.ended.drain(..) {
                sectors += command.sectors;
                self.failed += u64::from(!good);
            }
        } else {
            while let Some(done) = self.front.take(&mut self.shared) {
                sectors += self.asked[usize::from(done.id)];
                self.failed += u64::from(!done.succeeded);
                step.charge(Category::Driver, table[Cost::Frontend]);
            }
        }
        self.missing -= sectors;
        self.read += u64::from(sectors) * SECTOR;
    }

    /// Sends the guest's disk the commands for the rest of the block.
    fn command(&mut self, step: &mut Step, core: &mut Core) {
        while self.unasked > 0 {
            let sectors = self.unasked.min(MAX_SECTORS);
            step.charge(Category::Kernel, core.table[Cost::BlockRequest]);
            step.charge(Category::Driver, core.table[Cost::MmioWrite]);
            let command = Command { tag: self.tag, write: false, sector: self.sector, sectors };
            self.tag = (self.tag + 1) % REQUESTS as u8;
            self.advance(sectors);
            self.submit(command, step.now(), core);
        }
    }

    /// Submits requests for the rest of the block through the front end, until the ring is full.
    fn request(&mut self, step: &mut Step, table: &CostTable) {
        while self.unasked > 0 {
            let sectors = self.unasked.min(u32::from(SEGMENTS) * u32::from(PER_PAGE));
            let page = (self.block - self.unasked) / u32::from(PER_PAGE);
            match self.front.submit(false, self.sector, (page, sectors), &mut self.shared) {
                Ok(id) => self.asked[usize::from(id)] = sectors,
                Err(SubmitError::Full | SubmitError::Length) => break,
            }
            step.charge(Category::Kernel, table[Cost::BlockRequest]);
            step.charge(Category::Driver, table[Cost::Frontend]);
            self.advance(sectors);
        }
        self.front.flush(&mut self.shared);
    }

    /// Advances the program's position by requested sectors. At the end of the disk, starts over at sector 0.
    fn advance(&mut self, sectors: u32) {
        self.unasked -= sectors;
        self.sector += u64::from(sectors);
        if self.unasked == 0 && self.sector + u64::from(self.block) > SECTORS {
            self.sector = 0;
        }
    }

    /// Executes the service domain: completions to the guest, and requests to the disk.
    fn execute_service(&mut self, mut step: Step, core: &mut Core) {
        if core::mem::take(&mut self.service_told) {
            upcall(&mut step, &core.table);
            step.charge(Category::Kernel, core.table[Cost::Softirq]);
        }
        for (command, good) in std::mem::take(&mut self.ended) {
            self.back.complete(command.tag, good, &mut self.shared);
        }
        while let RequestOutcome::Command(found) = self.back.take(&mut self.shared) {
            let pages = core::mem::take(&mut self.shared.mapped);
            step.charge(Category::Grant, pages * core.table[Cost::GrantMapUnmap]);
            step.charge(Category::Backend, core.table[Cost::BlockRequest]);
            step.charge(Category::Driver, core.table[Cost::MmioWrite]);
            let split::block::Command { tag, write, sector, sectors } = found;
            self.submit(Command { tag, write, sector, sectors }, step.now(), core);
        }
        let calls = core::mem::take(&mut self.shared.notifies);
        if calls {
            Domains::send(core, self.domains.guest, &mut step);
        }
        step.charge(Category::Hypercall, core.table[Cost::HypercallPv]);
        let done = step.now();
        core.finish(step, AfterStep::Block);
        if calls {
            self.guest_told = true;
            core.wake(self.domains.guest, done);
        }
    }

    /// Interrupts the disk's driver for completed commands.
    fn done(&mut self, now: Instant, core: &mut Core) {
        // The pages are the driver's own, or mapped until the command completes.
        while let Some(end) = self.disk.finish(now, &mut |_| true) {
            self.ended.push(end);
        }
        let is_direct = self.domains.path == Path::Direct;
        self.event = core.replace(None, self.disk.due(), Event::Done);
        let told = if is_direct { &mut self.guest_told } else { &mut self.service_told };
        *told = true;
        self.domains.interrupt(core, now);
    }
}

impl Actor for Host {
    type Event = Event;

    fn handle(&mut self, event: Event, now: Instant, core: &mut Core) {
        match event {
            Event::Begin => core.wake(self.domains.guest, now),
            Event::Done => self.done(now, core),
        }
    }

    fn execute(&mut self, step: Step, core: &mut Core) {
        if step.vcpu() == self.domains.service {
            self.execute_service(step, core);
        } else {
            self.execute_guest(step, core);
        }
    }

    fn check_books(&self, books: &mut Books) {
        let Host { disk, back, .. } = self;
        let counters = back.counters();
        books.never("failed disk commands", self.failed + counters.refused);
        books.never(
            "sectors received without a request",
            u64::from(self.unasked.saturating_sub(self.missing)),
        );
        if self.domains.path != Path::Direct {
            books.balance("requests of the disk", counters.taken, disk.taken);
            books.balance("requests answered", counters.done + self.ended.len() as u64, disk.done);
        }
    }
}
