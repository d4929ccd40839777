//! Reports deliveries of frames to captures. `watch` has the form of a report.

use crate::PortIndex;
use crate::frame::Frame;
use crate::sink::{DeliveryError, DeliveryFlags, FrameSink};
use crate::switch::FrameOrigin;
use crate::uplink::UplinkWire;
use crate::watch::{FrameDirection, FrameDropReason, FrameObservation};

/// Ports of a device whose deliveries are reported to captures.
pub(crate) struct CapturedPorts<'a, S, W> {
    pub(crate) sinks: &'a mut S,
    pub(crate) wire: &'a mut W,
}

impl<S: FrameSink, W: UplinkWire> FrameSink for CapturedPorts<'_, S, W> {
    type Findings = S::Findings;

    fn deliver(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        findings: &mut Self::Findings,
    ) -> Result<usize, DeliveryError> {
        let told = self.sinks.deliver(port, frame, about, findings);
        // A frame that waits is in the port's receive packet buffer: not lost.
        let lost = told.err().filter(|missed| *missed != DeliveryError::Waits).map(FrameDropReason::Missed);
        self.wire.watch(
            FrameObservation { at: FrameOrigin::Port(port), way: FrameDirection::Out, lost },
            frame.tagged(),
        );
        told
    }
}
