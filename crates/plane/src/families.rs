//! Joins the ports of two device families on one plane. For three families, nest [`JoinedDevices`]. The plane's owner
//! assigns ports to families.

use crate::frame::Frame;
use crate::ledger::{PortCounters, UncountedTraffic};
use crate::sink::{DeliveryError, DeliveryFlags, ForwardResult, FrameSink};
use crate::source::{FrameForwarder, FrameSource, TransmitQueueId};
use crate::uncut::UncutOutcome;
use crate::uplink::UnsegmentedPacketLayout;
use crate::{PortIndex, PortSet};
use units::WorkCost;

/// Devices of two families, joined as one [`FrameSource`] and one [`FrameSink`].
#[derive(Debug)]
pub struct JoinedDevices<'a, A, B> {
    /// Ports of the first device family. All other ports belong to the second family.
    pub ports: PortSet,
    /// Devices of the first family, which send and receive frames.
    pub first: &'a mut A,
    /// Devices of the second family, which send and receive frames.
    pub second: &'a mut B,
}

impl<A: FrameSink, B: FrameSink> FrameSink for JoinedDevices<'_, A, B> {
    type Findings = (A::Findings, B::Findings);

    const RECEIVES_UNCUT: bool = A::RECEIVES_UNCUT || B::RECEIVES_UNCUT;

    fn takes_uncut(&self, port: PortIndex, ipv4: bool) -> bool {
        if self.ports.has(port) {
            self.first.takes_uncut(port, ipv4)
        } else {
            self.second.takes_uncut(port, ipv4)
        }
    }

    fn deliver_uncut(
        &mut self,
        port: PortIndex,
        packet: &mut Frame<'_>,
        uncut: &UnsegmentedPacketLayout,
        about: DeliveryFlags,
    ) -> Result<(), DeliveryError> {
        if self.ports.has(port) {
            self.first.deliver_uncut(port, packet, uncut, about)
        } else {
            self.second.deliver_uncut(port, packet, uncut, about)
        }
    }

    #[inline]
    fn deliver(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        findings: &mut Self::Findings,
    ) -> Result<usize, DeliveryError> {
        if self.ports.has(port) {
            self.first.deliver(port, frame, about, &mut findings.0)
        } else {
            self.second.deliver(port, frame, about, &mut findings.1)
        }
    }
}

impl<A: FrameSource, B: FrameSource> FrameSource for JoinedDevices<'_, A, B> {
    fn may_send(&self, sender: TransmitQueueId) -> bool {
        if self.ports.has(sender.port) { self.first.may_send(sender) } else { self.second.may_send(sender) }
    }

    fn hand_over<L: FrameForwarder>(&mut self, sender: TransmitQueueId, budget: usize, lane: &mut L) -> bool {
        let Self { ports, first, second } = self;
        if ports.has(sender.port) {
            first.hand_over(
                sender,
                budget,
                &mut JoinedForwarder { lane, others: &mut **second, ports: *ports },
            )
        } else {
            second.hand_over(
                sender,
                budget,
                &mut JoinedForwarder { lane, others: &mut **first, ports: !*ports },
            )
        }
    }

    fn has_more(&self, sender: TransmitQueueId) -> bool {
        if self.ports.has(sender.port) { self.first.has_more(sender) } else { self.second.has_more(sender) }
    }
}

/// Forwarder for a queue of one family, whose frames may also go to the ports of the other family.
struct JoinedForwarder<'a, L, O> {
    lane: &'a mut L,
    others: &'a mut O,
    /// Ports of the device family whose transmit queue is being visited.
    ports: PortSet,
}

impl<L: FrameForwarder, O: FrameSink> FrameForwarder for JoinedForwarder<'_, L, O> {
    fn send<S: FrameSink>(&mut self, own: &mut S, frame: &mut Frame<'_>) -> ForwardResult {
        self.lane.send(&mut JoinedDevices { ports: self.ports, first: own, second: self.others }, frame)
    }

    fn takes_uncut(&self) -> bool {
        self.lane.takes_uncut()
    }

    fn send_uncut<S: FrameSink>(
        &mut self,
        own: &mut S,
        packet: &mut Frame<'_>,
        uncut: &UnsegmentedPacketLayout,
        shortest: usize,
        complete: impl FnOnce(&mut [u8]),
    ) -> Option<UncutOutcome> {
        let mut devices = JoinedDevices { ports: self.ports, first: own, second: self.others };
        self.lane.send_uncut(&mut devices, packet, uncut, shortest, complete)
    }

    fn is_due(&self) -> bool {
        self.lane.is_due()
    }

    fn has_credit(&self) -> bool {
        self.lane.has_credit()
    }

    fn charge(&mut self, cost: WorkCost) {
        self.lane.charge(cost);
    }

    fn tag(&self, asked: Option<u16>) -> Option<u16> {
        self.lane.tag(asked)
    }

    fn tag_types(&self) -> (u16, Option<u16>) {
        self.lane.tag_types()
    }

    fn counters(&mut self) -> &mut PortCounters {
        self.lane.counters()
    }

    fn settle(&mut self) -> UncountedTraffic {
        self.lane.settle()
    }
}
