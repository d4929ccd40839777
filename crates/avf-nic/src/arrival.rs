//! Frames from the uplink on their way to the plane. Left out: who gets one, and how it gets into a ring (`receive`).

use crate::card::Card;
use crate::forward::Work;
use crate::staging::Staging;
use avf::ids::{LONGEST, MAX_VFS, SHORTEST};
use pcie::Bus;
use plane::frame::{Frame, HEADER, HEADROOM};
use plane::uplink::Uplink;
use plane::{Origin, Plane, Wire};

/// A wire is given this much more room, by which a frame that is too long shows.
const BEYOND: usize = 64;
/// The type of MAC control frames, such as pause: they end at the MAC (IEEE 802.3, 31.3).
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];

impl Card {
    /// Takes up to `budget` frames from the uplink and hands them to the plane; `false` if there are no more.
    pub fn arrive<B: Bus, W: Wire>(
        &mut self,
        plane: &mut Plane<MAX_VFS>,
        budget: usize,
        staging: &mut Staging,
        bus: &mut B,
        wire: &mut W,
    ) -> bool {
        staging.set_length(HEADROOM + LONGEST + BEYOND);
        let more = (0..budget).all(|_| self.arrive_one(plane, staging, bus, wire));
        self.give_back(bus);
        more
    }

    /// Takes one frame; whether there was one. A port that has no link knows of no frame.
    fn arrive_one<B: Bus, W: Wire>(
        &mut self,
        plane: &mut Plane<MAX_VFS>,
        staging: &mut [u8],
        bus: &mut B,
        wire: &mut W,
    ) -> bool {
        let Some(length) = wire.receive(&mut staging[HEADROOM..]) else { return false };
        let Uplink { link, receives, .. } = plane.uplink;
        if !link || !receives || !(HEADER..=LONGEST).contains(&length) {
            return true;
        }
        // An uplink that is no Ethernet brings frames that are too short for one.
        let end = length.max(SHORTEST);
        staging[HEADROOM + length..HEADROOM + end].fill(0);
        if staging[HEADROOM + HEADER - 2..HEADROOM + HEADER] == MAC_CONTROL {
            return true;
        }
        plane.tally.arrived(end);
        if let Some(mut frame) = Frame::new(&mut staging[..HEADROOM + end]) {
            frame.set_seal(wire.sealed());
            frame.take_tag();
            let mut work = Work { card: self, bus, staging: &mut Staging::default() };
            plane.forward(Origin::Uplink, &mut frame, &mut work, wire);
        }
        true
    }
}
