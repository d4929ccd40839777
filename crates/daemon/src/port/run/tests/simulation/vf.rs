//! VF of the 82576 or of an AVF as a guest's function: our VF driver on the vfio-user client.

use super::function::{
    AnnouncedEvents, GuestPlace, LONGEST, ReceivedChecksum, ReceivedFrame, SimulatedFunction, WatchedLink,
};
use super::guest::pages::ComparedPages;
use super::hostile::{DESCRIPTOR, HostileGuest, Misdeed, Misdeeds, TRUNCATED};
use super::thread::SimulatedThread;
use super::truncation::TruncatedFile;
use avf::admin::{self, AdminQueueDescriptor, flag};
use avf::bits::aqlen;
use avf::register as r;
use driver::any_vf::{AnyVfConfig, AnyVfLinkStatus};
use driver::vf::{ChecksumStatus, TxOffload, VfInterruptCause, VfReceivedFrame};
use driver::{AnyVf, DmaHal, Hal};
use host::shared::SharedMemory;
use i82576::MacAddress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vfio_client::{VfioUserHal, VfioUserHalError};

/// Bytes of a guest's memory.
const MEMORY: u64 = 2 << 20;

/// Second device address of a guest's memory.
const SECOND: u64 = 1 << 40;

/// Register that a client reads to learn whether it is connected (82576: VTSTATUS). Its value does not matter.
const LINK_REGISTER: u32 = 0x8;

/// Descriptors of the longest TCP packet, and of its offloads.
const PACKET_DESCRIPTORS: usize = 32;

/// VF with its driver.
#[derive(Debug)]
pub(super) struct SimulatedVf {
    hal: VfioUserHal<SimulatedThread>,
    vf: AnyVf,
    /// True if the memory is mapped at the second address too.
    is_mapped_twice: bool,
    truncated: TruncatedFile,
}

impl SimulatedVf {
    /// Attaches to a VF, probes and starts it. Returns `None` if something happens meanwhile that the guest has to
    /// bear, such as a death of the host.
    pub(super) fn attach(place: &GuestPlace) -> Result<Option<Self>, String> {
        let socket = place.host.borrow().socket(place.index.into());
        let (deaths, causes) = (place.deaths(), place.reset_causes());
        let mut hal = match VfioUserHal::attach_on(SimulatedThread(place.host.clone()), &socket, MEMORY) {
            Ok(hal) => hal,
            // A client is lost with a process that has accepted it and not yet given its socket to the keeper.
            Err(VfioUserHalError::Gone) if place.deaths() > deaths => return Ok(None),
            Err(error) => return Err(format!("cannot attach: {error}")),
        };
        let family = hal.family();
        let mut vf = match AnyVf::probe(&mut hal, family, &config(place.index)) {
            Ok(vf) => vf,
            // The guest's driver tries again.
            Err(error) if error.is_pf_unavailable() && place.may_go_unanswered(causes) => return Ok(None),
            Err(error) => return Err(format!("cannot probe: {error}")),
        };
        // An error is the work of a reset, which the watchdog repeats.
        let _ = vf.start(&mut hal);
        Ok(Some(Self { hal, vf, is_mapped_twice: false, truncated: TruncatedFile::default() }))
    }
}

/// Work of a hostile guest past its driver.
impl SimulatedVf {
    fn write_all(&mut self, writes: &[(u32, u32)]) {
        writes.iter().for_each(|(offset, value)| self.hal.write(*offset, *value));
    }

    /// Truncates a file of memory that the device may access. The host may have ended the connection.
    fn truncate(&mut self, left: u64) -> bool {
        self.truncated.truncate(left, |file, size| self.hal.map_file(file, TRUNCATED.0, size).is_ok())
    }

    /// Puts a virtchnl message into the mailbox ring of an AVF. Returns false if the ring is off, or outside of the memory.
    fn send_message(&mut self, operation: u32, body: &[u8]) -> bool {
        let (base, hal) = (self.hal.memory().base(), &mut self.hal);
        let ring = u64::from(hal.read(r::VF_ATQBAH)) << 32 | u64::from(hal.read(r::VF_ATQBAL));
        let (size, tail) = (hal.read(r::VF_ATQLEN) & aqlen::LENGTH, hal.read(r::VF_ATQT));
        let at = ring.wrapping_add(u64::from(tail) * admin::SIZE as u64);
        let is_inside = (base..base + MEMORY - admin::SIZE as u64).contains(&at);
        if size == 0 || !is_inside {
            return false;
        }
        let address = base + MEMORY - admin::MAX_BODY as u64;
        hal.dma_write(address, body);
        let descriptor = AdminQueueDescriptor {
            flags: flag::BUF | flag::RD | if body.len() > admin::LARGE { flag::LB } else { 0 },
            opcode: admin::opcode::SEND_TO_PF,
            length: body.len() as u16,
            cookie_high: operation,
            address,
            ..AdminQueueDescriptor::default()
        };
        hal.dma_write(at, &descriptor.emit());
        hal.write(r::VF_ATQT, (tail + 1) % size);
        true
    }
}

fn config(index: u16) -> AnyVfConfig {
    let mut config = AnyVfConfig::default();
    config.i82576.seed = u64::from(index) + 1;
    (config.i82576.rx_descriptors, config.i82576.tx_descriptors) = (64, 64);
    (config.avf.descriptors, config.avf.pairs) = (64, 2);
    config
}

/// Returns what the card has found about a frame's checksums.
fn found(received: &VfReceivedFrame) -> ReceivedChecksum {
    match (received.ip_checksum, received.l4_checksum) {
        _ if received.has_bad_checksum() => ReceivedChecksum::Wrong,
        (ChecksumStatus::Good, ChecksumStatus::Good) => ReceivedChecksum::Right,
        _ => ReceivedChecksum::Unknown,
    }
}

impl SimulatedFunction for SimulatedVf {
    fn mac(&self) -> MacAddress {
        self.vf.mac()
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        let Self { hal, vf, .. } = self;
        if !vf.has_room(hal, 4) {
            return false;
        }
        let sent = vf.transmit(hal, frame, &TxOffload::default()).is_ok();
        vf.flush(hal);
        sent
    }

    fn send_tcp(&mut self, packet: &[u8], mss: Option<u16>) -> bool {
        let Self { hal, vf, .. } = self;
        // The driver reclaims the descriptors of sent packets when few are free.
        vf.has_room(hal, PACKET_DESCRIPTORS);
        let offload = TxOffload { ip_checksum: true, l4_checksum: true, tso: mss, vlan: None };
        let sent = vf.transmit(hal, packet, &offload).is_ok();
        vf.flush(hal);
        sent
    }

    fn remap(&mut self) -> Result<(), String> {
        let remapped = if self.is_mapped_twice { self.hal.unmap(SECOND) } else { self.hal.map_again(SECOND) };
        self.is_mapped_twice = !self.is_mapped_twice;
        remapped.map_err(|error| format!("cannot map memory: {error}"))
    }

    fn compare_pages(&mut self) -> ComparedPages {
        ComparedPages::of(&mut self.hal)
    }

    fn take_interrupts(&mut self) -> AnnouncedEvents {
        let mut announced = AnnouncedEvents::default();
        let eventfds = (0..).map_while(|vector| self.hal.interrupt(vector));
        let mut eventfds: Vec<_> = eventfds.map(|eventfd| PollFd::new(eventfd, PollFlags::IN)).collect();
        if poll(&mut eventfds, Some(&Timespec::default())).expect("the kernel can poll") == 0 {
            return announced;
        }
        for vector in 0.. {
            let Some(eventfd) = self.hal.interrupt(vector) else { break };
            if eventfd.drain() == 0 {
                continue;
            }
            match self.vf.handle_interrupt(&mut self.hal, vector as u16) {
                VfInterruptCause::Received => announced.frames = true,
                VfInterruptCause::Mailbox => announced.watchdog = true,
                VfInterruptCause::Transmitted(_) | VfInterruptCause::Unknown => {}
            }
        }
        announced
    }

    fn receive(&mut self, _: bool) -> Result<Vec<ReceivedFrame>, String> {
        let Self { hal, vf, .. } = self;
        let mut frames = Vec::new();
        let mut buffer = [0; LONGEST + 4];
        while vf.receive_burst(hal, 16, |mut frame| {
            let checksum = found(&frame.received());
            let length = frame.copy_to(&mut buffer);
            frames.push(length.map(|length| ReceivedFrame { bytes: buffer[..length].to_vec(), checksum }));
        }) > 0
        {}
        vf.receive_done(hal);
        let frames: Result<_, _> = frames.into_iter().collect();
        frames.map_err(|error| format!("a receive descriptor is wrong: {error}"))
    }

    fn watch(&mut self) -> Result<WatchedLink, String> {
        let Self { hal, vf, .. } = self;
        let mut link = vf.watchdog(hal);
        let mut was_reset = false;
        if link == AnyVfLinkStatus::ResetNeeded {
            was_reset = true;
            if vf.restart(hal).is_ok() {
                link = vf.check_link(hal);
            }
        }
        Ok(WatchedLink { is_up: link == AnyVfLinkStatus::Up, was_reset })
    }

    fn check_connection(&mut self) -> Result<bool, String> {
        match self.hal.broken() {
            Some(error) => Err(format!("the host ended the connection: {error}")),
            None => Ok(true),
        }
    }

    fn is_disconnected(&mut self) -> bool {
        // A client learns of the end of its connection by the next message. A driver that does not run sends none, and a mapped
        // register needs none.
        self.hal.read_by_message(LINK_REGISTER);
        self.hal.broken().is_some()
    }

    fn misbehave(&mut self, random: &mut fastrand::Rng, guest: HostileGuest, misdeeds: usize) -> Misdeeds {
        let mut done = Misdeeds::default();
        let base = self.hal.memory().base();
        for misdeed in Misdeed::draw_all(random, guest, (base, MEMORY), misdeeds) {
            done.all += 1;
            match misdeed {
                Misdeed::Registers(writes) => self.write_all(&writes),
                Misdeed::Mailbox(writes) => {
                    self.write_all(&writes);
                    done.requests += 1;
                }
                Misdeed::Virtchnl { operation, body } => {
                    done.requests += u64::from(self.send_message(operation, &body));
                }
                Misdeed::Replay { from, to, address } => {
                    let mut descriptor = [0; DESCRIPTOR];
                    self.hal.dma_read(base + from, &mut descriptor);
                    descriptor[..8].copy_from_slice(&address.to_le_bytes());
                    self.hal.dma_write(base + to, &descriptor);
                }
                Misdeed::Memory { offset, bytes } => self.hal.dma_write(base + offset, &bytes),
                Misdeed::Forge(frame) => done.forged += u64::from(self.send(&frame)),
                Misdeed::Truncate { left } => done.truncations += u64::from(self.truncate(left)),
                Misdeed::Unmap { again: true } => drop(self.hal.map_again(base)),
                Misdeed::Unmap { again: false } => done.unmappings += u64::from(self.hal.unmap(base).is_ok()),
                // A card that a hostile guest has broken may refuse.
                Misdeed::Reset => drop(self.hal.reset()),
            }
        }
        done
    }

    fn memory(&self) -> &SharedMemory {
        self.hal.memory().shared()
    }
}
