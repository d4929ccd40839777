//! Ports whose frames are captured. Left out: what a capture sees (`watch`).

use crate::Port;
use crate::frame::Frame;
use crate::sink::{About, Missed, Sink};
use crate::switch::Origin;
use crate::uplink::Wire;
use crate::watch::{Loss, Seen, Way};

/// Ports whose frames are captured.
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
        // One that waits has come as far as the port's own receive buffer.
        let lost = told.err().filter(|missed| *missed != Missed::Waits).map(Loss::Missed);
        self.wire.watch(Seen { at: Origin::Port(port), way: Way::Out, lost }, frame.tagged());
        told
    }
}
