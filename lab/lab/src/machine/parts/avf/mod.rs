//! An adaptive-VF card (`avf_nic`) with its PF driver, one VF with several queue pairs, and its wire. As in
//! [`super::card`], frames reach the card only when their effect could be observed. There is one VF, and it
//! sends no PF request after the start.
//!
//! | module | contents |
//! |---|---|
//! | `boot` | driver start, without charges |
//! | `pair` | queue pair as a kernel's network device, and its doorbells |

mod boot;
pub(crate) mod pair;

use super::bus::FunctionMemory;
use super::card::card_time;
use super::wire::{ClientWire, client_address};
use crate::machine::books::ConservationChecks;
use crate::machine::chipset::Chipset;
use avf::bits::dyn_ctl;
use avf::control::CardControl;
use avf::ids::{MAX_PAIRS, MAX_VFS};
use avf::register as r;
use avf_nic::Nic;
use boot::{AvfBootHal, SingleFrameWire};
use driver::avf::pf::AvfPf;
use driver::avf::vf::{AvfDriver, AvfDriverConfig};
use guest::packet::{self, ReceivedPacket, TCP_HEADERS, UDP_HEADERS};
use i82576::{MacAddress, Time};
use pcie::msix::InterruptMessage;
use pcie::{Bus, DmaFault, Function, Iova, Rid};
use plane::pacing::TransmitPacing;
use plane::switch::{PortMirrorRules, StormState, SwitchTables};
use plane::uplink::UplinkMode;
use plane::{ForwardingPlane, PortCounters};
use policy::VfPolicy;
use sim::VirtualInstant;

/// Index of the only VF that has a driver.
pub(crate) const VF: u8 = 0;
/// MAC address of the modelled VF.
pub(crate) const ADDRESS: MacAddress = MacAddress([0x02, 0xbb, 0, 0, 0, 0]);
/// Speed of the modelled adaptive-VF card's link, Mb/s.
const LINK: u32 = 100_000;
/// Descriptors of each ring of a queue pair; four pairs fit a guest's memory.
const RING: u16 = 256;
/// Receive buffers that the driver returns per doorbell (Linux iavf, IAVF_RX_BUFFER_WRITE).
const BATCH: u16 = 32;
/// Frames that the card processes for a queue before it serves the next queue.
const BUDGET: usize = 64;
/// Number of client addresses that are tried in the search for one flow per queue pair.
const CANDIDATES: u8 = 255;

/// Memory of the card's PF and VF, and the interrupts that they sent.
#[derive(Debug)]
pub(crate) struct AvfFunctions {
    pf: FunctionMemory,
    vf: FunctionMemory,
    /// Interrupts of the adaptive-VF card that are not delivered yet: the sending function, and its interrupt message.
    pub(crate) sent: Vec<(Rid, InterruptMessage)>,
    /// Number of DMA requests that came from no existing PCI function, or that the IOMMU blocked.
    faults: u64,
}

/// Port with an adaptive-VF card, the card's PF driver, and the wire.
pub(crate) struct AvfPort {
    pub(crate) card: Nic,
    plane: Box<ForwardingPlane<MAX_VFS>>,
    pf: Option<AvfPf>,
    pub(crate) line: ClientWire,
    pub(crate) functions: AvfFunctions,
    pairs: u16,
    /// Number of frames sent by `flows` to find a client for each queue.
    probes: u64,
}

impl std::fmt::Debug for AvfPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port").field("pairs", &self.pairs).finish_non_exhaustive()
    }
}

/// Bus on which the card's functions access memory and send interrupts, during one call.
struct AvfBus<'a> {
    functions: &'a mut AvfFunctions,
    chipset: &'a mut Chipset,
}

impl AvfFunctions {
    fn path(&self, function: Function) -> Option<&FunctionMemory> {
        match function {
            Function::Pf => Some(&self.pf),
            Function::Vf(VF) => Some(&self.vf),
            Function::Vf(_) => None,
        }
    }

    pub(crate) fn own(&self) -> &FunctionMemory {
        &self.vf
    }
}

impl AvfBus<'_> {
    #[cold]
    fn fault(&mut self, function: Function, iova: Iova) -> DmaFault {
        self.functions.faults += 1;
        DmaFault { function, iova }
    }
}

impl Bus for AvfBus<'_> {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let assigned = self.functions.path(function).map(|path| path.assigned);
        let assigned = assigned.ok_or_else(|| self.fault(function, iova))?;
        self.chipset.dma_read(assigned, iova, into).map_err(|_| self.fault(function, iova))
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        let assigned = self.functions.path(function).map(|path| path.assigned);
        let assigned = assigned.ok_or_else(|| self.fault(function, iova))?;
        self.chipset.dma_write(assigned, iova, from).map_err(|_| self.fault(function, iova))
    }

    fn msix(&mut self, function: Function, vector: u16) {
        let AvfFunctions { sent, .. } = &*self.functions;
        debug_assert!(
            sent.len() < 1 << 16,
            "too many MSI-X messages are pending: deliver interrupts regularly"
        );
        if let Some(path) = self.functions.path(function)
            && let Some(message) = path.messages.get(usize::from(vector))
        {
            let one = (path.assigned.rid, *message);
            self.functions.sent.push(one);
        }
    }
}

impl AvfPort {
    /// Creates a port with a VF of `pairs` queue pairs and starts its drivers. An interrupt vector interrupts at most
    /// once per `interval_us`. Fails if a driver fails or fewer pairs are available.
    pub(crate) fn new(
        (pf, vf): (FunctionMemory, FunctionMemory),
        (pairs, interval_us): (u16, u16),
        line: ClientWire,
        chipset: &mut Chipset,
    ) -> Result<(Self, AvfDriver), String> {
        let counters = [PortCounters::default(); MAX_VFS];
        let mut plane = Box::new(ForwardingPlane::new(
            SwitchTables::closed(0),
            TransmitPacing::new(None),
            StormState::default(),
            counters,
        ));
        plane.uplink = UplinkMode { link: true, receives: true, ..UplinkMode::default() };
        let functions = AvfFunctions { pf, vf, sent: Vec::new(), faults: 0 };
        let card = Nic::new(1);
        let mut port = Self { card, plane, pf: None, line, functions, pairs, probes: 0 };
        port.card.set_bus_master(VF, true);
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let mut driver = AvfPf::probe(&mut port.view(Function::Pf, chipset), 1).map_err(|e| told(&e))?;
        let policy = VfPolicy { mac: Some(ADDRESS), ..VfPolicy::default() };
        driver.set_policy(&mut port.view(Function::Pf, chipset), VF, policy).map_err(|e| told(&e))?;
        if !driver.set_pairs(&mut port.view(Function::Pf, chipset), VF, pairs, MAX_PAIRS as u16) {
            return Err(format!("the PF driver refused to give the VF {pairs} queue pairs"));
        }
        driver.set_link(&mut port.view(Function::Pf, chipset), Some(LINK));
        port.pf = Some(driver);
        let wishes = AvfDriverConfig {
            pairs,
            descriptors: RING,
            batch: BATCH,
            interval_us,
            spread: true,
            ..AvfDriverConfig::default()
        };
        let mut hal = port.view(Function::Vf(VF), chipset);
        let mut driver = AvfDriver::probe_with(&mut hal, ADDRESS, wishes).map_err(|e| told(&e))?;
        driver.start(&mut hal).map_err(|e| told(&e))?;
        if driver.pairs() == pairs {
            Ok((port, driver))
        } else {
            Err(format!("the VF driver got {} of {pairs} queue pairs", driver.pairs()))
        }
    }

    fn view<'a>(&'a mut self, function: Function, chipset: &'a mut Chipset) -> AvfBootHal<'a> {
        AvfBootHal { port: self, chipset, function, now: Time::ZERO }
    }

    /// Returns a client for each queue pair, whose frames the card places in that queue. Sends frames to the card to
    /// find the clients.
    pub(crate) fn flows(
        &mut self,
        driver: &mut AvfDriver,
        is_stream: bool,
        chipset: &mut Chipset,
    ) -> Result<Vec<MacAddress>, String> {
        let mut found = vec![None; self.pairs.into()];
        for client in (0..CANDIDATES).map(client_address) {
            let queue = self
                .queue_of(client, driver, is_stream, chipset)
                .ok_or("the card lost a frame that probes the RSS hash")?;
            found[usize::from(queue)].get_or_insert(client);
            if let Some(all) = found.iter().copied().collect() {
                self.functions.sent.clear();
                return Ok(all);
            }
        }
        Err(format!("a queue pair gets no flow of {CANDIDATES} tried clients from the RSS hash"))
    }

    /// Sends the card a frame of a client, and returns the queue that the card placed the frame in.
    fn queue_of(
        &mut self,
        client: MacAddress,
        driver: &mut AvfDriver,
        is_stream: bool,
        chipset: &mut Chipset,
    ) -> Option<u8> {
        let mut frame = [0; TCP_HEADERS];
        let (length, packet) = if is_stream {
            (TCP_HEADERS, ReceivedPacket::Tcp { sequence: 0, acknowledgement: 0, window: 0, payload: 0 })
        } else {
            (UDP_HEADERS, ReceivedPacket::Udp(0))
        };
        packet::fill(&mut frame[..length], client, ADDRESS, packet);
        let mut bus = AvfBus { functions: &mut self.functions, chipset };
        let mut wire = SingleFrameWire(Some(&frame[..length]));
        self.card.arrive(&mut self.plane, 1, &mut bus, &mut wire);
        self.probes += 1;
        let (pairs, mut into) = (self.pairs as u8, [0; 128]);
        let mut hal = self.view(Function::Vf(VF), chipset);
        (0..pairs).find(|queue| driver.receive(&mut hal, *queue, &mut into).is_some())
    }

    /// Makes the card and the PF driver process pending messages, while the VF driver starts.
    fn round(&mut self, now: Time, chipset: &mut Chipset) {
        self.card.poll(now, &mut AvfBus { functions: &mut self.functions, chipset });
        if let Some(mut pf) = self.pf.take() {
            pf.visit(&mut self.view(Function::Pf, chipset));
            self.pf = Some(pf);
        }
        self.card.apply_policy(&mut self.plane, &PortMirrorRules::NONE);
        self.card.poll(now, &mut AvfBus { functions: &mut self.functions, chipset });
    }

    /// Advances the card's port to `now`. Returns the time by which `sync` has to be called again. The interrupts sent
    /// are in `functions` afterwards.
    pub(crate) fn sync(&mut self, now: VirtualInstant, chipset: &mut Chipset) -> Option<VirtualInstant> {
        self.line.advance(now);
        let Self { card, plane, line, functions, .. } = self;
        let mut bus = AvfBus { functions, chipset };
        plane.now = card_time(now);
        while card.arrive(plane, BUDGET, &mut bus, line) {}
        while card.visit_ready(plane, BUDGET, &mut bus, line) {}
        let deadline = card.poll(card_time(now), &mut bus).deadline;
        let deadline = deadline.map(|at| VirtualInstant::from_nanos(at.as_nanos()));
        let listens = (1..=self.pairs as u8).any(|n| card.read(VF, r::dyn_ctl(n)) & dyn_ctl::INTENA != 0);
        let arrival = self.line.next_arrival().filter(|_| listens);
        [arrival, deadline].into_iter().flatten().min()
    }

    /// Checks that all frames are accounted for, and that no function accessed memory of another domain.
    pub(crate) fn check_books(&self, books: &mut ConservationChecks) {
        // A real card's statistics are registers whose reading may change the card, so a copy is read.
        let statistics = self.card.clone().statistics(VF);
        let received = statistics.rx_unicast + statistics.rx_discards;
        books.balance("frames of a wire", self.line.frames + self.probes, received);
        books.balance("frames that a card has sent", self.line.taken, statistics.tx_unicast);
        books.never("memory requests outside the memory of their function", self.functions.faults);
    }
}
