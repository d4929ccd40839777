//! Uplink of a simulated port: the other end of a wire, with a station in each VLAN. Frames of the port must leave in order, once,
//! under their sender's name and VLAN. Frames of stations are lost, repeated and reordered before the port gets them, and a station
//! sends again what a guest has not received, until the guest has the whole stream.

use super::families::{guest_of, mac_of};
use super::frames::{self, FrameStamp, STREAM};
use super::function::ReceivedChecksum;
use super::guarded::GuardedFrame;
use super::hostile::{FORGED, SPOOFED, TAGGED, may_have_any_name};
use super::numbers::ReceivedNumbers;
use super::policies::PolicyModel;
use crate::config::PortConfig;
use crate::config::file::CardFamily;
use crate::port::WireRegistry;
use crate::port::engine::uplink::FarWireEnd;
use i82576::MacAddress;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Name of the wire.
pub(super) const WIRE: &str = "far";
/// VLANs of the stations; 0 for none. They have the numbers after the guests'.
pub(super) const STATION_VLANS: [u16; 3] = [0, 7, 8];
/// Bytes of a station's announcement.
const ANNOUNCEMENT: usize = 100;

/// Stations at the other end of a port's uplink.
#[derive(Debug)]
pub(super) struct SimulatedUplink {
    /// Far end of the wire; `None` while it is unplugged.
    end: Option<FarWireEnd>,
    /// Number of times that the far end was unplugged.
    pub(super) unplugged: u64,
    /// Families of the guests' functions.
    families: Vec<CardFamily>,
    /// Number of frames that the stations have put on the wire. It is their order.
    position: u32,
    /// Number of frames that each station has sent to each guest.
    pub(super) sent: Vec<Vec<u64>>,
    /// Numbers of the frames that have left, by sender and receiver, and of the segments of streams.
    numbers: BTreeMap<(u16, u16, bool), ReceivedNumbers>,
    /// Number of frames that have left, by sender and receiver, without repeated ones.
    pub(super) departed: Vec<Vec<u64>>,
    /// Number of frames of virtio guests that have left again after a death of the host.
    pub(super) repeated: u64,
    /// Frames of stations in the wire that the port may not have taken, oldest first.
    in_wire: VecDeque<FrameInWire>,
    /// Rule that a frame has broken.
    fault: Option<String>,
}

/// Frame of a station in a wire.
#[derive(Debug)]
struct FrameInWire {
    station: usize,
    /// Guest that the frame is for, or a station.
    to: usize,
    /// Bytes that the frame takes in the wire's ring.
    bytes: usize,
}

/// Policies and hostile guests, by which the uplink judges a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct UplinkRules<'a> {
    pub(super) policies: &'a PolicyModel,
    pub(super) hostile_lives: &'a [u32],
    pub(super) deaths: u64,
}

impl SimulatedUplink {
    pub(super) fn new(wires: &WireRegistry, port: &PortConfig) -> Self {
        let families: Vec<_> = port.vfs.iter().map(|vf| vf.family).collect();
        let guests = families.len();
        let all = guests + STATION_VLANS.len();
        Self {
            end: Some(FarWireEnd::new(WIRE, wires)),
            unplugged: 0,
            families,
            position: 0,
            sent: vec![vec![0; guests]; STATION_VLANS.len()],
            numbers: BTreeMap::new(),
            departed: vec![vec![0; all]; guests],
            repeated: 0,
            in_wire: VecDeque::new(),
            fault: None,
        }
    }

    /// Connects to the wire of a new process. The frames that the old process has not taken end with its wire, and no counter
    /// names them: they do not count as sent.
    pub(super) fn reconnect(&mut self, wires: &WireRegistry) {
        self.forget_taken();
        for frame in self.in_wire.drain(..) {
            if let Some(sent) = self.sent[frame.station].get_mut(frame.to) {
                *sent -= 1;
            }
        }
        self.plug_in(wires);
    }

    pub(super) fn is_plugged(&self) -> bool {
        self.end.is_some()
    }

    /// Unplugs the far end of a wire on which no frame is.
    pub(super) fn unplug(&mut self) {
        self.forget_taken();
        assert!(self.in_wire.is_empty(), "the port rests, and has not taken frames of its uplink");
        self.end = None;
        self.unplugged += 1;
    }

    /// Plugs in the far end of the wire.
    pub(super) fn plug_in(&mut self, wires: &WireRegistry) {
        self.end = Some(FarWireEnd::new(WIRE, wires));
    }

    /// Forgets the frames that the port has taken out of the wire.
    fn forget_taken(&mut self) {
        let Some(end) = &self.end else { return };
        let untaken = end.untaken();
        let mut bytes: usize = self.in_wire.iter().map(|frame| frame.bytes).sum();
        while bytes > untaken {
            bytes -= self.in_wire.pop_front().map_or(bytes, |frame| frame.bytes);
        }
    }

    /// Returns the addresses of the stations.
    pub(super) fn stations(&self) -> BTreeSet<MacAddress> {
        (0..STATION_VLANS.len()).map(|station| mac_of(self.families.len() + station, false)).collect()
    }

    /// Has each station send a frame to another one, so that the port knows the stations.
    pub(super) fn announce(&mut self, policies: &PolicyModel) {
        for station in 0..STATION_VLANS.len() {
            let to = self.families.len() + (station + 1) % STATION_VLANS.len();
            let is_put = self.put(station, to, mac_of(to, false), (0, ANNOUNCEMENT), policies);
            assert!(is_put, "the port does not know station {station}, and would grant its address");
        }
    }

    /// Puts a frame of a station on the wire. Returns false if the wire is full.
    fn put(
        &mut self,
        station: usize,
        to: usize,
        address: MacAddress,
        (number, length): (u64, usize),
        policies: &PolicyModel,
    ) -> bool {
        self.position += 1;
        let from = self.families.len() + station;
        let (life, changes) = (self.position, policies.changes());
        let stamp = FrameStamp { from: from as u16, to: to as u16, life, number, changes };
        let mut frame = stamp.frame(address, mac_of(from, false), length);
        let vlan = STATION_VLANS[station];
        if vlan != 0 {
            frame.splice(12..12, [frames::TAG, vlan.to_be_bytes()].concat());
        }
        self.forget_taken();
        let Some(end) = &mut self.end else { return false };
        let before = end.untaken();
        let sent = end.send(&frame);
        if sent {
            self.in_wire.push_back(FrameInWire { station, to, bytes: end.untaken() - before });
        }
        if let Some(count) = self.sent[station].get_mut(to) {
            *count += u64::from(sent);
        }
        sent
    }

    /// Sends the frames of a station's stream to a guest from number `next` on: some are lost, repeated or late. Returns false if
    /// the port may lose one.
    pub(super) fn deliver(
        &mut self,
        (station, guest): (usize, usize),
        address: MacAddress,
        (next, frames, length): (u64, usize, usize),
        (policies, random): (&PolicyModel, &mut fastrand::Rng),
    ) -> bool {
        let mut numbers: Vec<u64> = (next..next + frames as u64).collect();
        numbers.retain(|_| random.u32(0..6) > 0);
        let count = numbers.len();
        for at in 0..count {
            match random.u32(0..6) {
                0 => numbers.push(numbers[at]),
                1 => numbers.swap(at, (at + 1) % count),
                _ => {}
            }
        }
        let mut all = true;
        for number in numbers {
            all &= self.put(station, guest, address, (number, length), policies);
        }
        all
    }

    /// Takes the frames that have left the port, and checks them.
    pub(super) fn take_frames(&mut self, rules: UplinkRules<'_>) {
        while let Some(frame) = self.end.as_mut().and_then(FarWireEnd::receive) {
            if let Err(wrong) = self.check(frame, rules) {
                self.fault = self.fault.take().or(Some(format!("the uplink has got {wrong}")));
            }
        }
    }

    /// Returns the first broken rule.
    pub(super) fn fault(&mut self) -> Result<(), String> {
        self.fault.take().map_or(Ok(()), Err)
    }

    /// Checks a frame that has left: in its sender's name and VLAN, once, in order.
    fn check(&mut self, mut frame: Vec<u8>, rules: UplinkRules<'_>) -> Result<(), String> {
        let UplinkRules { policies, hostile_lives, deaths } = rules;
        let mut vlan = 0;
        if frame[12..14] == frames::TAG {
            vlan = u16::from_be_bytes([frame[14], frame[15]]) & 0xfff;
            frame.drain(12..16);
        }
        let source = guest_of(MacAddress(frame[6..12].try_into().expect("a frame has a source")));
        if may_have_any_name(&frame, hostile_lives, policies) {
            return Ok(());
        }
        let hostile_life = source.map_or(0, |(guest, _)| hostile_lives[guest]);
        let stamp = match FrameStamp::read(&frame, ReceivedChecksum::Unknown) {
            Ok(Some(stamp)) => stamp,
            Ok(None) | Err(_) if hostile_life > 0 => return Ok(()),
            Ok(None) => return Err("a frame that no guest sends".to_owned()),
            Err(wrong) => return Err(wrong),
        };
        if stamp.life == FORGED {
            if let Some(kind) = GuardedFrame::of_number(stamp.number) {
                let may = policies.may_leave_guarded(kind, stamp.from.into(), vlan, stamp.changes);
                return if may { Ok(()) } else { Err(format!("the forged {stamp:?} in VLAN {vlan}")) };
            }
            let sender = if stamp.number == TAGGED {
                stamp.from.into()
            } else {
                (stamp.number / SPOOFED) as usize - 1
            };
            let is_tagged = stamp.number == TAGGED && policies.has_had_vlan(sender, vlan, stamp.changes);
            return match is_tagged || policies.was_unchecked(sender, stamp.changes) {
                true => Ok(()),
                false => Err(format!("the forged {stamp:?} in VLAN {vlan}")),
            };
        }
        let from = usize::from(stamp.from);
        let is_named = source.is_some_and(|(guest, is_second)| {
            guest == from && policies.has_had_name(from, is_second, stamp.changes)
        });
        if !is_named || !policies.may_leave((from, stamp.to.into()), vlan, stamp.changes) {
            return Err(format!("{stamp:?} of {source:?} in VLAN {vlan}"));
        }
        if stamp.life > hostile_life {
            let may_repeat = self.families[from] == CardFamily::Virtio;
            let numbers = self.numbers.entry((stamp.from, stamp.to, stamp.number & STREAM != 0)).or_default();
            let is_new = numbers.add(stamp, may_repeat, deaths)?;
            self.departed[from][usize::from(stamp.to)] += u64::from(is_new);
            self.repeated += u64::from(!is_new);
        }
        Ok(())
    }
}
