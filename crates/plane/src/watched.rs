//! Reports deliveries to captures. `watch` has the form of a report.

use crate::Port;
use crate::frame::Frame;
use crate::sink::{About, Missed, Sink};
use crate::switch::Origin;
use crate::uplink::Wire;
use crate::watch::{Loss, Seen, Way};

/// Ports of a device whose deliveries are reported to captures.
pub(crate) struct Watched<'a, S, W> {
    pub(crate) sinks: &'a mut S,
    pub(crate) wire: &'a mut W,
}

impl<S: Sink, W: Wire> Sink for Watched<'_, S, W> {
    type Findings = S::Findings;

    fn deliver(
        &mut self,
        port: Port,
        frame: &mut Frame<'_>,
        about: About,
        findings: &mut Self::Findings,
    ) -> Result<usize, Missed> {
        let told = self.sinks.deliver(port, frame, about, findings);
        // A frame that waits is in the port's receive packet buffer: not lost.
        let lost = told.err().filter(|missed| *missed != Missed::Waits).map(Loss::Missed);
        self.wire.watch(Seen { at: Origin::Port(port), way: Way::Out, lost }, frame.tagged());
        told
    }
}
