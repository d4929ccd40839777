//! Announces a guest that has moved to this host: a RARP request with the guest's address as its source passes the plane, so that
//! switches beyond the uplink learn the guest's new place (vhost-user, `VHOST_USER_SEND_RARP`).

use crate::card::Nic;
use crate::limits::MAX_VFS;
use pcie::Bus;
use plane::frame::{Frame, HEADROOM};
use plane::{ForwardingPlane, PortIndex, UplinkWire};
use units::MacAddress;

/// Length of a RARP request with its padding, in bytes: the shortest Ethernet frame without its check sequence (IEEE 802.3).
const LENGTH: usize = 60;
/// Ethernet type of RARP, hardware type Ethernet, protocol type IPv4, lengths of both addresses, and the operation: a request for
/// the sender's own protocol address (RFC 903).
const REQUEST: [u8; 10] = [0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3];

impl Nic {
    /// Announces the address of a VF's guest at the next call of [`Nic::visit_ready`]. The switch checks the frame like one of the
    /// guest's own. A VF without an address has this one then, unless another VF has it or the plane refuses it.
    pub fn announce(&mut self, vf: u8, address: MacAddress) {
        if usize::from(vf) < self.devices.len() && !address.is_group() && address != MacAddress::ZERO {
            // A transport may ask again and again: one announcement of each VF is pending.
            self.cancel_announcement(vf);
            self.announcements.push((vf, address));
        }
    }

    /// Cancels the pending announcement of a VF.
    pub(crate) fn cancel_announcement(&mut self, vf: u8) {
        self.announcements.retain(|(of, _)| *of != vf);
    }

    /// Sends the pending announcements that are due. Returns true if some wait for the switch's tables, which the caller has to
    /// make first, or for a round in which their VF has credit. An announcement is due when the rate of its VF permits a frame, as
    /// [`Nic::due`] then says.
    #[cold]
    pub(crate) fn send_announcements<B: Bus, W: UplinkWire>(
        &mut self,
        plane: &mut ForwardingPlane<MAX_VFS>,
        bus: &mut B,
        wire: &mut W,
    ) -> bool {
        if self.has_changed() {
            return true;
        }
        let mut pending = core::mem::take(&mut self.announcements);
        let (mut untaught, mut waits_for_round) = (false, false);
        pending.retain(|(vf, address)| {
            let port = PortIndex::of_field((*vf).into());
            let due = plane.pacing.due(port);
            if due > plane.now {
                self.due = [self.due, Some(due)].into_iter().flatten().min();
                return true;
            }
            if !plane.shares.have_credit(port) {
                waits_for_round = true;
                return true;
            }
            let waits = self.learn_announced(*vf, *address, plane);
            untaught |= waits;
            if !waits && self.devices[usize::from(*vf)].rules.enabled {
                let mut bytes = request(*address);
                if let Some(mut frame) = Frame::new(&mut bytes) {
                    frame.tag = plane.tables().transmit_tag(port, None);
                    plane.send_own(port, &mut frame, &mut self.work(bus), wire);
                }
            }
            waits
        });
        self.announcements = pending;
        untaught | waits_for_round
    }

    /// Learns an announced address for a VF that has none. Returns true if the VF has learned it.
    fn learn_announced(&mut self, vf: u8, address: MacAddress, plane: &mut ForwardingPlane<MAX_VFS>) -> bool {
        let place = usize::from(vf);
        let is_taken = self.devices.iter().enumerate().any(|(n, device)| n != place && device.owns(address));
        let (port, device) = (PortIndex::of_field(vf.into()), &mut self.devices[place]);
        if device.address().is_some() || is_taken {
            return false;
        }
        let has_arrived = device.has_arrived && plane.grant_address(port, address);
        if !has_arrived && !plane.may_learn(port, address) {
            return false;
        }
        (device.learned, device.has_arrived) = (Some(address), false);
        self.changed.note_by(vf);
        true
    }
}

/// Returns a RARP request of an address, behind headroom.
fn request(address: MacAddress) -> [u8; HEADROOM + LENGTH] {
    let mut bytes = [0; HEADROOM + LENGTH];
    let parts: [&[u8]; 6] = [&MacAddress::BROADCAST.0, &address.0, &REQUEST, &address.0, &[0; 4], &address.0];
    let frame = &mut bytes[HEADROOM..];
    frame.iter_mut().zip(parts.concat()).for_each(|(byte, value)| *byte = value);
    bytes
}
