//! VF of the 82576 or of an AVF as a guest's function: our VF driver on the vfio-user client.

use super::function::{AnnouncedEvents, GuestPlace, LONGEST, SimulatedFunction, WatchedLink};
use super::hostile::{HostileGuest, Misdeed, Misdeeds};
use super::thread::SimulatedThread;
use driver::any_vf::{AnyVfConfig, AnyVfLinkStatus};
use driver::vf::{TxOffload, VfInterruptCause};
use driver::{AnyVf, DmaHal, Hal};
use i82576::MacAddress;
use vfio_client::{VfioUserHal, VfioUserHalError};

/// Bytes of a guest's memory.
const MEMORY: u64 = 2 << 20;

/// VF with its driver.
#[derive(Debug)]
pub(super) struct SimulatedVf {
    hal: VfioUserHal<SimulatedThread>,
    vf: AnyVf,
}

impl SimulatedVf {
    /// Attaches to a VF, probes and starts it. Returns `None` if the host dies meanwhile in a way that the guest has to bear.
    pub(super) fn attach(place: &GuestPlace) -> Result<Option<Self>, String> {
        let socket = place.host.borrow().socket(place.index.into());
        let deaths = place.deaths();
        let mut hal = match VfioUserHal::attach_on(SimulatedThread(place.host.clone()), &socket, MEMORY) {
            Ok(hal) => hal,
            // A client is lost with a process that has accepted it and not yet given its socket to the keeper.
            Err(VfioUserHalError::Gone) if place.deaths() > deaths => return Ok(None),
            Err(error) => return Err(format!("cannot attach: {error}")),
        };
        let family = hal.family();
        let mut vf = match AnyVf::probe(&mut hal, family, &config(place.index)) {
            Ok(vf) => vf,
            // A host that was killed meanwhile has reset the card. The guest's driver tries again.
            Err(error) if error.is_pf_unavailable() => return Ok(None),
            Err(error) => return Err(format!("cannot probe: {error}")),
        };
        // An error is the work of a reset, which the watchdog repeats.
        let _ = vf.start(&mut hal);
        Ok(Some(Self { hal, vf }))
    }
}

fn config(index: u16) -> AnyVfConfig {
    let mut config = AnyVfConfig::default();
    config.i82576.seed = u64::from(index) + 1;
    (config.i82576.rx_descriptors, config.i82576.tx_descriptors) = (64, 64);
    (config.avf.descriptors, config.avf.pairs) = (64, 2);
    config
}

impl SimulatedFunction for SimulatedVf {
    fn mac(&self) -> MacAddress {
        self.vf.mac()
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        let Self { hal, vf } = self;
        if !vf.has_room(hal, 4) {
            return false;
        }
        let sent = vf.transmit(hal, frame, &TxOffload::default()).is_ok();
        vf.flush(hal);
        sent
    }

    fn take_interrupts(&mut self) -> AnnouncedEvents {
        let mut announced = AnnouncedEvents::default();
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

    fn receive(&mut self, _: bool) -> Result<Vec<Vec<u8>>, String> {
        let Self { hal, vf } = self;
        let mut frames = Vec::new();
        let mut buffer = [0; LONGEST + 4];
        while vf.receive_burst(hal, 16, |mut frame| {
            let length = frame.copy_to(&mut buffer);
            frames.push(length.map(|length| buffer[..length].to_vec()));
        }) > 0
        {}
        vf.receive_done(hal);
        let frames: Result<_, _> = frames.into_iter().collect();
        frames.map_err(|error| format!("a receive descriptor is wrong: {error}"))
    }

    fn watch(&mut self) -> Result<WatchedLink, String> {
        let Self { hal, vf } = self;
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

    fn misbehave(&mut self, random: &mut fastrand::Rng, guest: HostileGuest, misdeeds: usize) -> Misdeeds {
        let mut done = Misdeeds::default();
        let base = self.hal.memory().base();
        for _ in 0..misdeeds {
            done.all += 1;
            match Misdeed::draw(random, guest, (base, MEMORY)) {
                Misdeed::Register { offset, value } => self.hal.write(offset, value),
                Misdeed::Memory { offset, bytes } => self.hal.dma_write(base + offset, &bytes),
                Misdeed::Forge(frame) => done.forged += u64::from(self.send(&frame)),
                // A card that a hostile guest has broken may refuse.
                Misdeed::Reset => drop(self.hal.reset()),
            }
        }
        done
    }

    fn memory(&self) -> usize {
        MEMORY as usize
    }

    fn read_memory(&self, offset: usize, bytes: &mut [u8]) {
        self.hal.dma_read(self.hal.memory().base() + offset as u64, bytes);
    }
}
