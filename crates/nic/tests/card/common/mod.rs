//! Fixture of the tests: a card, memory for each function, a clock that tests move, and a port set up by plain register
//! writes. No driver runs on it.

mod frames;
mod pages;
mod rings;
mod world;

pub(crate) use frames::{mac, plain, tagged, tcp, tcp6, udp};
pub(crate) use rings::{RING, RX_RING, TX_RING, buffer, data, head_address, packet};
pub(crate) use world::{BASE, CardSurroundings, MemoryRequest, SIZE, TestBus};

use core::num::NonZeroU64;
use core::time::Duration;
use i82576::PoolIndex;
use i82576::bits::{ctrl_ext, dtxswc, gpie, mrqc, rah, rctl, tctl, vmolr, vt_ctl};
use i82576::config::{MSIX, pf::SRIOV};
use i82576::register as r;
use i82576::{MacAddress, Time, VfIndex};
use nic::{Nic, PollBudget, PollResult};
use pages::MappedVfPages;
use pcie::capability::{msix, sriov};
use pcie::config::offset;
use pcie::pages::GuestRegisterPages;
use pcie::{ConfigAccess, Function};
use rings::RingPositions;

/// MAC address of the port.
pub(crate) const PORT: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 0xff]);
/// VMOLR options of a pool at the start of a test: untagged frames, broadcast, multicast hits, any length.
pub(crate) const POOL: u32 =
    vmolr::STRCRC | vmolr::AUPE | vmolr::BAM | vmolr::ROMPE | vmolr::LPE | i82576::ids::MAX_FRAME as u32;

/// A card with its surroundings, a clock that tests move, and the positions of software in its rings.
#[derive(Clone)]
pub(crate) struct CardFixture {
    pub(crate) nic: Nic,
    pub(crate) world: CardSurroundings,
    pub(crate) now: Time,
    pub(crate) budget: PollBudget,
    rings: [RingPositions; 9],
    /// VFs of the test's card whose BAR0 pages are mapped as memory.
    mapped: Vec<(u8, MappedVfPages)>,
}

/// Access of a test, as a function's software, to the function's registers, rings and memory.
pub(crate) struct TestPciFunction<'a> {
    bench: &'a mut CardFixture,
    function: Function,
}

/// Returns the VF index of the VF with number `n`.
pub(crate) fn index(n: u8) -> VfIndex {
    VfIndex::new(n).unwrap()
}

fn slot(function: Function) -> usize {
    match function {
        Function::Pf => 8,
        Function::Vf(n) => usize::from(n),
    }
}

impl CardFixture {
    /// Creates a card after power-on, without VFs, with the link up and bus mastering of the PF on.
    pub(crate) fn bare() -> Self {
        Self::powered(nic::NicConfig { mac: PORT, iov: true, loopback: None })
    }

    /// Creates a card like [`CardFixture::new`], with a limit of `loopback` bits per second between pools.
    pub(crate) fn with_loopback(vfs: u8, loopback: Option<NonZeroU64>) -> Self {
        let mut bench = Self::powered(nic::NicConfig { mac: PORT, iov: true, loopback });
        bench.config(Function::Pf, u16::from(MSIX) + msix::CONTROL, u32::from(msix::CONTROL_ENABLE));
        bench.enable_vfs(vfs);
        bench.set_up_port(vfs);
        bench
    }

    fn powered(config: nic::NicConfig) -> Self {
        let mut nic = Nic::new(config);
        let command = offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER;
        nic.config_write(Function::Pf, offset::COMMAND, 2, u32::from(command));
        nic.set_link(true);
        let rings = core::array::from_fn(|_| RingPositions::default());
        Self {
            nic,
            world: CardSurroundings::new(),
            now: Time::ZERO,
            budget: PollBudget::default(),
            rings,
            mapped: Vec::new(),
        }
    }

    /// Creates a card with `vfs` VFs that can send to each other and to the wire. Pool `vfs` is the PF's, which uses
    /// MSI-X.
    pub(crate) fn new(vfs: u8) -> Self {
        Self::with_loopback(vfs, None)
    }

    /// Enables SR-IOV with `vfs` VFs, and bus mastering of each.
    pub(crate) fn enable_vfs(&mut self, vfs: u8) {
        self.config(Function::Pf, SRIOV + sriov::NUM_VFS, u32::from(vfs));
        self.config(
            Function::Pf,
            SRIOV + sriov::CONTROL,
            u32::from(sriov::CONTROL_ENABLE | sriov::CONTROL_MEMORY),
        );
        for vf in 0..vfs {
            self.config(Function::Vf(vf), offset::COMMAND, u32::from(offset::COMMAND_BUS_MASTER));
        }
    }

    /// Sets the port up as a PF driver does: pools, addresses, loopback, receiver and transmitter, and PFRSTD for the VFs.
    pub(crate) fn set_up_port(&mut self, vfs: u8) {
        let mut pf = self.pf();
        pf.write(r::GPIE, gpie::MULTIPLE_MSIX | gpie::EIAME | gpie::PBA | gpie::NSICR);
        pf.write(r::MRQC, mrqc::VMDQ);
        pf.write(r::VT_CTL, vt_ctl::REPL_EN | u32::from(vfs & 7) << vt_ctl::DEF_PL_SHIFT);
        pf.write(r::DTXSWC, dtxswc::LOOPBACK_EN);
        for pool in PoolIndex::EVERY {
            pf.write(r::vmolr(pool), POOL);
        }
        for pool in 0..vfs {
            pf.set_address(23 - u32::from(pool), mac(pool), 1 << pool);
        }
        pf.set_address(0, PORT, if vfs < 8 { 1 << vfs } else { 0 });
        pf.write(r::VFRE, 0xff);
        pf.write(r::VFTE, 0xff);
        pf.write(r::RCTL, rctl::EN | rctl::LPE | rctl::BAM);
        pf.write(r::TCTL, tctl::EN | tctl::PSP);
        pf.write(r::CTRL_EXT, ctrl_ext::PFRSTD | ctrl_ext::DRV_LOAD);
    }

    /// Writes two bytes of a function's configuration space.
    pub(crate) fn config(&mut self, function: Function, offset: u16, value: u32) {
        self.nic.config_write(function, offset, 2, value);
    }

    pub(crate) fn pf(&mut self) -> TestPciFunction<'_> {
        TestPciFunction { bench: self, function: Function::Pf }
    }

    pub(crate) fn vf(&mut self, n: u8) -> TestPciFunction<'_> {
        TestPciFunction { bench: self, function: Function::Vf(n) }
    }

    /// Polls the test's card once.
    pub(crate) fn poll_once(&mut self) -> PollResult {
        self.read_doorbells();
        let CardSurroundings { bus, wire } = &mut self.world;
        let poll = self.nic.poll(self.now, self.budget, bus, wire);
        self.publish_registers();
        poll
    }

    /// Polls until the card has no more work at this time.
    pub(crate) fn poll(&mut self) -> PollResult {
        for _ in 0..1000 {
            let poll = self.poll_once();
            if !poll.more {
                return poll;
            }
        }
        panic!("the card reports more work after every poll");
    }

    /// Moves the test's clock forward without polling the card.
    pub(crate) fn wait_us(&mut self, us: u64) {
        self.now = self.now + Duration::from_micros(us);
    }

    /// Puts a frame on the wire to the card, and polls.
    pub(crate) fn wire_sends(&mut self, frame: &[u8]) {
        self.world.wire.incoming.push_back(frame.to_vec());
        self.poll();
    }

    /// Returns the frames that went to the wire since the last call.
    pub(crate) fn wire_got(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.world.wire.outgoing)
    }

    /// Returns the MSI-X messages since the last call.
    pub(crate) fn msix(&mut self) -> Vec<(Function, u16)> {
        core::mem::take(&mut self.world.bus.msix)
    }

    /// Asserts that exactly this MSI-X message was sent since the last call.
    #[track_caller]
    pub(crate) fn expect_msix(&mut self, function: Function, vector: u16) {
        assert_eq!(self.msix(), [(function, vector)]);
    }

    #[track_caller]
    pub(crate) fn expect_no_msix(&mut self) {
        assert_eq!(self.msix(), []);
    }

    /// Polls the card, and asserts that it makes no memory request and sends no message and no frame.
    #[track_caller]
    pub(crate) fn expect_nothing(&mut self) {
        self.world.bus.log.clear();
        self.msix();
        self.wire_got();
        self.poll();
        assert_eq!(self.world.bus.log, []);
        self.expect_no_msix();
        assert!(self.wire_got().is_empty());
    }
}

impl TestPciFunction<'_> {
    pub(crate) fn read(&mut self, offset: u32) -> u32 {
        match self.bench.page_of(self.function, offset) {
            Some(pages) => pages.load(offset),
            None => self.bench.access(|nic, now| nic.read(self.function, offset, now)),
        }
    }

    pub(crate) fn write(&mut self, offset: u32, value: u32) {
        match self.bench.page_of(self.function, offset) {
            Some(pages) => pages.store(offset, value),
            None => self.bench.access(|nic, now| nic.write(self.function, offset, value, now)),
        }
    }

    /// Sets bits of a register: reads the register, and writes it back with the bits set.
    pub(crate) fn set(&mut self, offset: u32, bits: u32) {
        let value = self.read(offset);
        self.write(offset, value | bits);
    }

    /// Clears bits of a register: reads the register, and writes it back with the bits clear.
    pub(crate) fn clear(&mut self, offset: u32, bits: u32) {
        let value = self.read(offset);
        self.write(offset, value & !bits);
    }

    /// Writes receive address `i` (RAL, RAH) with the pools that it selects.
    pub(crate) fn set_address(&mut self, i: u32, mac: MacAddress, pools: u32) {
        let (low, high) = mac.to_words();
        self.write(r::ral(i), low);
        self.write(r::rah(i), high | rah::AV | pools << rah::POOLSEL_SHIFT);
    }
}
