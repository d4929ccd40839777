//! Guest of a simulation, with a function of any family. It acts by interrupts, as a sleeping guest does, and checks every frame
//! that it receives.

pub(super) mod pages;
mod stream;
mod watch;

use super::families::{SimulatedFamily, mac_of};
use super::frames::{self, FrameStamp, STREAM};
use super::function::{GuestPlace, LONGEST, ReceivedFrame, ResetCauses, SimulatedFunction};
use super::guarded::GuardedFrame;
use super::host::SimulatedHost;
use super::hostile::{self, FORGED, HostileGuest, Misdeeds};
use super::intruder::Intruder;
use super::numbers::ReceivedNumbers;
use super::uplink::STATION_VLANS;
use super::vf::SimulatedVf;
use super::virtio::SimulatedVirtio;
use crate::config::file::CardFamily;
use i82576::{MacAddress, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Wait of the host's turn between two messages of a hostile VMM.
const INTRUSION: Duration = Duration::from_micros(5);

/// Guest with one function, attached or not.
pub(super) struct SimulatedGuest {
    place: GuestPlace,
    families: Vec<SimulatedFamily>,
    function: Option<Box<dyn SimulatedFunction>>,
    /// Hostile VMM in the place of the guest.
    intruder: Option<Intruder>,
    life: u32,
    /// Number of frames sent to each guest.
    pub(super) sent: Vec<u64>,
    /// Numbers of the frames from each guest, and of the segments of its stream.
    numbers: BTreeMap<(u16, bool), ReceivedNumbers>,
    /// Number of bytes of the guest's stream to each guest and station.
    stream_ends: Vec<u32>,
    /// Number of segments that the guest has received.
    pub(super) segments: u64,
    /// Number of segments that the guest has sent, without the first one of each packet.
    pub(super) later_segments: u64,
    /// Number of frames received from each guest.
    pub(super) received: Vec<u64>,
    /// Number of the next frame of each station's stream, which the guest waits for.
    pub(super) streams: [u64; STATION_VLANS.len()],
    /// Number of received frames that hostile guests have sent in their own name.
    pub(super) hostile_frames: u64,
    /// Number of events by which frames of the guest may be lost: it came, went, was reset, or is hostile.
    pub(super) disturbances: u64,
    /// True if the guest is hostile until its VMM ends.
    is_hostile: bool,
    receiving: bool,
    link: bool,
    watchdog: Time,
    /// Events before the driver was known to run, of which each may reset its function.
    reset_causes: ResetCauses,
}

impl SimulatedGuest {
    pub(super) fn new(index: usize, families: &[SimulatedFamily], host: &Rc<RefCell<SimulatedHost>>) -> Self {
        Self {
            place: GuestPlace { index: index as u16, host: Rc::clone(host) },
            families: families.to_vec(),
            function: None,
            intruder: None,
            life: 0,
            sent: vec![0; families.len() + STATION_VLANS.len()],
            numbers: BTreeMap::new(),
            stream_ends: vec![0; families.len() + STATION_VLANS.len()],
            segments: 0,
            later_segments: 0,
            received: vec![0; families.len() + STATION_VLANS.len()],
            streams: [1; STATION_VLANS.len()],
            hostile_frames: 0,
            disturbances: 0,
            is_hostile: false,
            receiving: false,
            link: false,
            watchdog: Time::ZERO,
            reset_causes: ResetCauses::default(),
        }
    }

    pub(super) fn index(&self) -> usize {
        self.place.index.into()
    }

    pub(super) fn family(&self) -> CardFamily {
        self.families[self.index()].of_card()
    }

    pub(super) fn is_attached(&self) -> bool {
        self.function.is_some()
    }

    /// Returns the guest's address while it is attached.
    pub(super) fn mac(&self) -> Option<MacAddress> {
        self.function.as_ref().map(|function| function.mac())
    }

    pub(super) fn has_link(&self) -> bool {
        self.link
    }

    fn now(&self) -> Time {
        self.place.host.borrow().clock.time()
    }

    /// Boots the guest: attaches to the socket of its function, and starts the function.
    pub(super) fn attach(&mut self) -> Result<(), String> {
        self.disturbances += 1;
        self.reset_causes = self.place.reset_causes();
        // The port serves a former client to its end first.
        let is_behind = self.place.host.borrow().is_behind(self.index());
        let longest = self.place.host.borrow().longest_answer;
        let attached = self.attach_function();
        if is_behind {
            let mut host = self.place.host.borrow_mut();
            host.longest_start = host.longest_start.max(host.longest_answer);
            host.longest_answer = longest;
        }
        let Some(function) = attached.map_err(|wrong| self.fault(&wrong))? else { return Ok(()) };
        self.life += 1;
        self.link = false;
        self.receiving = false;
        self.function = Some(function);
        self.watchdog = self.now();
        Ok(())
    }

    /// Attaches to the guest's function. Returns `None` if the host dies meanwhile.
    fn attach_function(&self) -> Result<Option<Box<dyn SimulatedFunction>>, String> {
        match self.families[self.index()].virtio() {
            Some(rings) => {
                let policy = self.place.host.borrow().policies.of(self.index());
                let mac = mac_of(self.index(), policy.has_second_mac);
                SimulatedVirtio::attach(&self.place, mac, &rings).map(|device| device.map(boxed))
            }
            None => SimulatedVf::attach(&self.place).map(|vf| vf.map(boxed)),
        }
    }

    /// Ends the guest's VMM at once, as a kill does. The memory's last copy is the host's.
    pub(super) fn vanish(&mut self) {
        self.disturbances += 1;
        (self.function, self.intruder) = (None, None);
        self.is_hostile = false;
        self.link = false;
    }

    pub(super) fn is_hostile(&self) -> bool {
        self.is_hostile
    }

    /// Tries a number of misdeeds, if the guest is attached, and returns those that it has done. The guest is hostile from now on.
    pub(super) fn misbehave(&mut self, seed: u64, misdeeds: usize) -> Misdeeds {
        let index = self.place.index;
        let (changes, is_unchecked, has_free_mac, stations) = {
            let host = self.place.host.borrow();
            let stations = if host.uplink.is_some() { STATION_VLANS.len() as u16 } else { 0 };
            (
                host.policies.changes(),
                host.may_be_unchecked(index.into()),
                host.policies.of(index.into()).has_free_mac,
                stations,
            )
        };
        let guests = self.families.len() as u16;
        let family = self.family();
        let guest = HostileGuest { index, guests, stations, family, changes, is_unchecked, has_free_mac };
        let Some(function) = &mut self.function else { return Misdeeds::default() };
        self.disturbances += 1;
        self.is_hostile = true;
        self.place.host.borrow_mut().hostile_lives[usize::from(index)] = self.life;
        function.misbehave(&mut fastrand::Rng::with_seed(seed), guest, misdeeds)
    }

    /// Ends the guest's VMM, and puts a hostile one in its place, which sends messages. Returns the number of those that the host's
    /// socket took.
    pub(super) fn intrude(&mut self, seed: u64, messages: usize) -> Misdeeds {
        let random = &mut fastrand::Rng::with_seed(seed);
        self.admit_intruder(random);
        let (host, Some(intruder)) = (&self.place.host, &mut self.intruder) else {
            return Misdeeds::default();
        };
        let requests = intruder.send(random, messages, || host.borrow_mut().step(INTRUSION));
        Misdeeds { all: requests, requests, ..Misdeeds::default() }
    }

    /// Ends the guest's VMM, and puts a hostile one in its place, which begins a session.
    pub(super) fn begin_intrusion(&mut self, random: &mut fastrand::Rng) {
        self.admit_intruder(random);
        self.intruder.iter().for_each(Intruder::begin);
    }

    /// Ends the guest's VMM, and connects a hostile one, unless the host dies meanwhile.
    fn admit_intruder(&mut self, random: &mut fastrand::Rng) {
        self.vanish();
        self.intruder = Intruder::attach(&self.place, self.family(), random);
        self.is_hostile = self.intruder.is_some();
        self.place.host.borrow_mut().has_intruders |= self.is_hostile;
    }

    /// Has a hostile VMM share memory at the address of the guest's memory.
    pub(super) fn share_hostile_memory(&self) {
        self.intruder.iter().for_each(Intruder::share_memory);
    }

    /// Has the VMM map the guest's memory a second time, or end that, or pause a virtio guest. Returns false without an honest guest.
    pub(super) fn remap(&mut self) -> Result<bool, String> {
        let Some(function) = self.function.as_mut().filter(|_| !self.is_hostile) else { return Ok(false) };
        function.remap().map_err(|wrong| self.fault(&wrong))?;
        Ok(true)
    }

    /// Returns true if a VMM, hostile or not, is attached to the guest's function.
    pub(super) fn has_client(&self) -> bool {
        self.is_attached() || self.intruder.is_some()
    }

    /// Sends a frame to another guest. Returns false if the ring is full or the link is down.
    pub(super) fn send(&mut self, to: u16, address: MacAddress, length: usize) -> bool {
        let Some(function) = self.function.as_mut().filter(|_| self.link && !self.is_hostile) else {
            return false;
        };
        let number = self.sent[usize::from(to)] + 1;
        let changes = self.place.host.borrow().policies.changes();
        let stamp = FrameStamp { from: self.place.index, to, life: self.life, number, changes };
        let sent = function.send(&stamp.frame(address, function.mac(), length.min(LONGEST)));
        self.sent[usize::from(to)] += u64::from(sent);
        sent
    }

    /// Handles interrupts that have arrived, and the guest's timers.
    pub(super) fn act(&mut self) -> Result<(), String> {
        if self.is_hostile {
            return Ok(());
        }
        self.take_frames()?;
        if self.now() >= self.watchdog {
            self.watch()?;
        }
        self.check_connection().map(drop)
    }

    /// Receives the frames that interrupts have announced. Returns true if there were any.
    fn take_frames(&mut self) -> Result<bool, String> {
        let Some(function) = &mut self.function else { return Ok(false) };
        let announced = function.take_interrupts();
        self.receiving |= announced.frames;
        if announced.watchdog {
            self.watchdog = Time::ZERO;
        }
        if !self.receiving {
            return Ok(false);
        }
        self.receive(true)
    }

    /// Receives the frames that interrupts have announced while the host rests. Returns true if there were any. A frame
    /// that is left in a ring was not announced: its interrupt is lost. A front end that has to connect again looks at its rings
    /// then.
    pub(super) fn take_all_frames(&mut self) -> Result<bool, String> {
        if self.is_hostile {
            return Ok(false);
        }
        let announced = self.take_frames()?;
        let is_unannounced = !announced && self.check_connection()? && self.receive(false)?;
        // A reset drops the interrupt that a frame in the ring still has to wait for.
        if is_unannounced && !self.finds_reset()? {
            return Err(self.fault("a frame is in its ring, and no interrupt has announced it"));
        }
        Ok(announced)
    }

    /// Receives the frames of all rings. Returns true if there were any.
    fn receive(&mut self, announced: bool) -> Result<bool, String> {
        let Some(function) = &mut self.function else { return Ok(false) };
        let frames = function.receive(announced);
        self.receiving = false;
        let frames = frames.map_err(|wrong| self.fault(&wrong))?;
        for frame in &frames {
            self.check(frame)?;
        }
        Ok(!frames.is_empty())
    }

    /// Checks a received frame: for this guest, whole, once, in order.
    fn check(&mut self, frame: &ReceivedFrame) -> Result<(), String> {
        let Some(stamp) = self.read_stamp(frame)? else {
            self.hostile_frames += 1;
            return Ok(());
        };
        if stamp.to != self.place.index {
            return Err(self.fault(&format!("received {stamp:?}")));
        }
        let from = usize::from(stamp.from);
        if let Some(station) = from.checked_sub(self.families.len()) {
            return self.take_of_stream(station, stamp);
        }
        let is_segment = stamp.number & STREAM != 0;
        let numbers = self.numbers.entry((stamp.from, is_segment)).or_default();
        let added = numbers.add(stamp, false, self.place.deaths());
        added.map_err(|wrong| self.fault(&wrong))?;
        self.received[from] += 1;
        self.segments += u64::from(is_segment);
        Ok(())
    }

    /// Takes a frame of a station's stream. The frames arrive in the order in which they were on the wire, there each once.
    fn take_of_stream(&mut self, station: usize, stamp: FrameStamp) -> Result<(), String> {
        let position = self.numbers.entry((stamp.from, false)).or_default();
        if stamp.life <= position.life {
            return Err(self.fault(&format!("received {stamp:?} twice or late")));
        }
        position.life = stamp.life;
        self.received[usize::from(stamp.from)] += 1;
        self.streams[station] += u64::from(stamp.number == self.streams[station]);
        Ok(())
    }

    /// Reads the stamp of a received frame, and checks names and policies. Returns `None` for a frame that a hostile guest has sent
    /// in its own name: it sends what it likes, but not in a foreign VLAN.
    fn read_stamp(&self, frame: &ReceivedFrame) -> Result<Option<FrameStamp>, String> {
        let host = self.place.host.borrow();
        let (sender, is_second) = hostile::sender(&frame.bytes).unzip();
        if hostile::may_have_any_name(&frame.bytes, &host.hostile_lives, &host.policies) {
            return Ok(None);
        }
        let hostile_life = sender.map_or(0, |guest| host.hostile_lives[guest]);
        match FrameStamp::read(&frame.bytes, frame.checksum) {
            Ok(Some(stamp)) if stamp.life == FORGED => {
                let may = hostile::may_arrive(stamp, self.index(), &host.policies);
                if may { Ok(None) } else { Err(self.fault(&format!("received the forged {stamp:?}"))) }
            }
            Ok(Some(stamp)) if Some(stamp.from.into()) != sender => {
                Err(self.fault(&format!("received {stamp:?} of {sender:?}")))
            }
            Ok(Some(stamp)) if !host.policies.may_pass(stamp.from.into(), self.index(), stamp.changes) => {
                Err(self.fault(&format!("received {stamp:?} against the policy in force")))
            }
            Ok(Some(stamp))
                if !host.policies.has_had_name(stamp.from.into(), is_second == Some(true), stamp.changes) =>
            {
                Err(self.fault(&format!("received {stamp:?} with an address that its sender did not have")))
            }
            Ok(Some(stamp)) => Ok(Some(stamp).filter(|stamp| stamp.life > hostile_life)),
            Err(wrong) if hostile_life == 0 => Err(self.fault(&wrong)),
            Ok(None) if hostile_life == 0 => Err(self.fault("received a frame that no guest sends")),
            Err(_) | Ok(None) => Ok(None),
        }
    }

    /// Checks that the port has taken each packet that the guest's rings have.
    pub(super) fn check_sent(&mut self) -> Result<(), String> {
        let Some(function) = self.function.as_mut().filter(|_| self.link && !self.is_hostile) else {
            return Ok(());
        };
        match function.unsent() {
            0 => Ok(()),
            left => Err(self.fault(&format!("{left} descriptors of its transmit ring are not sent"))),
        }
    }

    /// Checks that the guest's memory has no byte of a frame for another guest.
    pub(super) fn check_memory(&self) -> Result<(), String> {
        let Some(function) = &self.function else { return Ok(()) };
        for stamp in frames::stamps(function.memory()) {
            let is_forged = stamp.life == FORGED && (self.is_hostile || self.may_have_broadcast(stamp));
            if ![stamp.to, stamp.from].contains(&self.place.index) && !is_forged {
                return Err(self.fault(&format!("its memory has {stamp:?}")));
            }
        }
        Ok(())
    }

    /// Returns true for a frame to all that policy permits the guest to receive.
    fn may_have_broadcast(&self, stamp: FrameStamp) -> bool {
        let is_to_all = GuardedFrame::of_number(stamp.number) == Some(GuardedFrame::Broadcast);
        is_to_all && hostile::may_arrive(stamp, self.index(), &self.place.host.borrow().policies)
    }

    fn fault(&self, what: &str) -> String {
        format!("guest {} in life {}: {what}", self.place.index, self.life)
    }
}

fn boxed<F: SimulatedFunction + 'static>(function: F) -> Box<dyn SimulatedFunction> {
    Box::new(function)
}
