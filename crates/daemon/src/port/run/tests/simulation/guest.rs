//! Guest of a simulation: our VF driver on a VF of either family. It acts by interrupts, as a sleeping guest does, and
//! checks every frame that it receives.

use super::frames::{self, FrameStamp};
use super::host::SimulatedHost;
use super::thread::SimulatedThread;
use driver::any_vf::{AnyVfConfig, AnyVfLinkStatus};
use driver::vf::{TxOffload, VfInterruptCause};
use driver::{AnyVf, DmaHal};
use i82576::{MacAddress, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use vfio_client::{VfioUserHal, VfioUserHalError};

/// Bytes of a guest's memory.
const MEMORY: u64 = 2 << 20;
/// Time after which a guest runs its driver's watchdog.
const WATCHDOG: Duration = Duration::from_secs(2);
/// Time after which a guest looks again at a link that is down.
const LINK_DOWN: Duration = Duration::from_millis(20);
/// Longest frame of a guest in bytes.
const LONGEST: usize = 1514;

type Hal = VfioUserHal<SimulatedThread>;

/// Guest with one VF, attached or not.
pub(super) struct SimulatedGuest {
    index: u16,
    host: Rc<RefCell<SimulatedHost>>,
    machine: Option<(Hal, AnyVf)>,
    life: u32,
    /// Number of frames sent to each guest.
    pub(super) sent: Vec<u64>,
    /// Number of the last frame from each guest, with the sender's life.
    last: BTreeMap<u16, (u32, u64)>,
    /// Number of frames received from each guest.
    pub(super) received: Vec<u64>,
    /// Number of events by which frames of the guest may be lost: it came, went, or was reset.
    pub(super) disturbances: u64,
    receiving: bool,
    link: bool,
    watchdog: Time,
}

impl SimulatedGuest {
    pub(super) fn new(index: usize, guests: usize, host: &Rc<RefCell<SimulatedHost>>) -> Self {
        Self {
            index: index as u16,
            host: Rc::clone(host),
            machine: None,
            life: 0,
            sent: vec![0; guests],
            last: BTreeMap::new(),
            received: vec![0; guests],
            disturbances: 0,
            receiving: false,
            link: false,
            watchdog: Time::ZERO,
        }
    }

    pub(super) fn index(&self) -> usize {
        self.index.into()
    }

    pub(super) fn is_attached(&self) -> bool {
        self.machine.is_some()
    }

    pub(super) fn mac(&self) -> Option<MacAddress> {
        self.machine.as_ref().map(|(_, vf)| vf.mac())
    }

    pub(super) fn has_link(&self) -> bool {
        self.link
    }

    fn now(&self) -> Time {
        self.host.borrow().clock.time()
    }

    /// Boots the guest: attaches to the VF's socket, probes and starts the VF.
    pub(super) fn attach(&mut self) -> Result<(), String> {
        self.disturbances += 1;
        let socket = self.host.borrow().socket(self.index.into());
        let thread = SimulatedThread(Rc::clone(&self.host));
        let deaths = self.host.borrow().deaths;
        let mut hal = match VfioUserHal::attach_on(thread, &socket, MEMORY) {
            Ok(hal) => hal,
            // A client is lost with a process that has accepted it and not yet given its socket to the keeper.
            Err(VfioUserHalError::Gone) if self.host.borrow().deaths > deaths => return Ok(()),
            Err(error) => return Err(self.fault(&format!("cannot attach: {error}"))),
        };
        let family = hal.family();
        let vf = AnyVf::probe(&mut hal, family, &self.config());
        let mut vf = match vf {
            Ok(vf) => vf,
            // A host that was killed meanwhile has reset the card. The guest's driver tries again.
            Err(error) if error.is_pf_unavailable() => return Ok(()),
            Err(error) => return Err(self.fault(&format!("cannot probe: {error}"))),
        };
        self.life += 1;
        self.link = false;
        self.receiving = false;
        // An error is the work of a reset, which the watchdog repeats.
        let _ = vf.start(&mut hal);
        self.machine = Some((hal, vf));
        self.watchdog = self.now();
        Ok(())
    }

    fn config(&self) -> AnyVfConfig {
        let mut config = AnyVfConfig::default();
        config.i82576.seed = u64::from(self.index) + 1;
        (config.i82576.rx_descriptors, config.i82576.tx_descriptors) = (64, 64);
        (config.avf.descriptors, config.avf.pairs) = (64, 2);
        config
    }

    /// Ends the guest's VMM at once, as a kill does. The memory's last copy is the host's.
    pub(super) fn vanish(&mut self) {
        self.disturbances += 1;
        self.machine = None;
        self.link = false;
    }

    /// Sends a frame to another guest. Returns false if the ring is full or the link is down.
    pub(super) fn send(&mut self, to: u16, address: MacAddress, length: usize) -> bool {
        let Some((hal, vf)) = self.machine.as_mut().filter(|_| self.link) else { return false };
        if !vf.has_room(hal, 4) {
            return false;
        }
        let number = self.sent[usize::from(to)] + 1;
        let stamp = FrameStamp { from: self.index, to, life: self.life, number };
        let frame = stamp.frame(address, vf.mac(), length.min(LONGEST));
        let sent = vf.transmit(hal, &frame, &TxOffload::default()).is_ok();
        vf.flush(hal);
        self.sent[usize::from(to)] += u64::from(sent);
        sent
    }

    /// Handles interrupts that have arrived, and the guest's timers.
    pub(super) fn act(&mut self) -> Result<(), String> {
        self.take_frames()?;
        if self.now() >= self.watchdog {
            self.watch();
        }
        self.check_connection()
    }

    /// Receives the frames that interrupts have announced. Returns true if there were any.
    fn take_frames(&mut self) -> Result<bool, String> {
        self.take_interrupts();
        if !self.receiving {
            return Ok(false);
        }
        self.receive()
    }

    /// Receives the frames that interrupts have announced while the host rests. Returns true if there were any. A frame
    /// that is left in a ring was not announced: its interrupt is lost.
    pub(super) fn take_all_frames(&mut self) -> Result<bool, String> {
        let announced = self.take_frames()?;
        if !announced && self.receive()? {
            return Err(self.fault("a frame is in its ring, and no interrupt has announced it"));
        }
        Ok(announced)
    }

    fn take_interrupts(&mut self) {
        let Some((hal, vf)) = &mut self.machine else { return };
        for vector in 0.. {
            let Some(eventfd) = hal.interrupt(vector) else { break };
            if eventfd.drain() == 0 {
                continue;
            }
            match vf.handle_interrupt(hal, vector as u16) {
                VfInterruptCause::Received => self.receiving = true,
                VfInterruptCause::Mailbox => self.watchdog = Time::ZERO,
                VfInterruptCause::Transmitted(_) | VfInterruptCause::Unknown => {}
            }
        }
    }

    /// Receives the frames of all rings. Returns true if there were any.
    fn receive(&mut self) -> Result<bool, String> {
        let Some((hal, vf)) = &mut self.machine else { return Ok(false) };
        let mut frames = Vec::new();
        let mut buffer = [0; LONGEST + 4];
        while vf.receive_burst(hal, 16, |mut frame| {
            let length = frame.copy_to(&mut buffer);
            frames.push(length.map(|length| buffer[..length].to_vec()));
        }) > 0
        {}
        vf.receive_done(hal);
        self.receiving = false;
        let any = !frames.is_empty();
        for frame in frames {
            let frame =
                frame.map_err(|error| self.fault(&format!("a receive descriptor is wrong: {error}")))?;
            self.check(&frame)?;
        }
        Ok(any)
    }

    /// Checks a received frame: for this guest, whole, once, in order.
    fn check(&mut self, frame: &[u8]) -> Result<(), String> {
        let stamp = FrameStamp::read(frame).map_err(|wrong| self.fault(&wrong))?;
        let Some(stamp) = stamp else { return Ok(()) };
        if stamp.to != self.index {
            return Err(self.fault(&format!("received {stamp:?}")));
        }
        let place = (stamp.life, stamp.number);
        if self.last.get(&stamp.from).is_some_and(|last| *last >= place) {
            return Err(self.fault(&format!("received {stamp:?} twice or late, after {:?}", self.last)));
        }
        self.last.insert(stamp.from, place);
        self.received[usize::from(stamp.from)] += 1;
        Ok(())
    }

    /// Runs the driver's watchdog, which finds out that the VF was reset, and restarts it then.
    pub(super) fn watch(&mut self) {
        let Some((hal, vf)) = &mut self.machine else { return };
        let mut link = vf.watchdog(hal);
        if link == AnyVfLinkStatus::ResetNeeded {
            self.disturbances += 1;
            if vf.restart(hal).is_ok() {
                self.receiving = false;
                link = vf.check_link(hal);
            }
        }
        self.link = link == AnyVfLinkStatus::Up;
        self.watchdog = self.now() + if self.link { WATCHDOG } else { LINK_DOWN };
    }

    fn check_connection(&self) -> Result<(), String> {
        match self.machine.as_ref().and_then(|(hal, _)| hal.broken()) {
            Some(error) => Err(self.fault(&format!("the host ended the connection: {error}"))),
            None => Ok(()),
        }
    }

    /// Checks that the guest's memory has no byte of a frame for another guest.
    pub(super) fn check_memory(&self) -> Result<(), String> {
        let Some((hal, _)) = &self.machine else { return Ok(()) };
        let mut memory = vec![0; MEMORY as usize];
        hal.dma_read(hal.memory().base(), &mut memory);
        for at in frames::magics(&memory) {
            let stamp = FrameStamp::of_payload(&memory[at..]);
            let own = stamp.is_none_or(|stamp| stamp.to == self.index || stamp.from == self.index);
            if !own {
                return Err(self.fault(&format!("its memory has {stamp:?}")));
            }
        }
        Ok(())
    }

    fn fault(&self, what: &str) -> String {
        format!("guest {} in life {}: {what}", self.index, self.life)
    }
}
