//! Connection for tests whose kick eventfds cannot be moved to another poller, as if the kernel had no memory.

use super::*;

/// Connection of a client that fails when its kick eventfds move.
#[derive(Debug)]
pub(in crate::port::clients) struct FailingKicks(pub(in crate::port::clients) Box<dyn ClientConnection>);

impl ClientConnection for FailingKicks {
    fn move_kicks(&mut self, _: Option<&Arc<Poller>>, _: &Poller, _: usize) -> io::Result<bool> {
        Err(io::ErrorKind::OutOfMemory.into())
    }

    fn stream(&self) -> &StreamSocket {
        self.0.stream()
    }

    fn counters(&self) -> SessionCounters {
        self.0.counters()
    }

    fn visit(
        &mut self,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
        clock: &dyn TimeSource,
    ) -> VisitResult {
        self.0.visit(device, buffer, clock)
    }

    fn finish(&mut self, device: &mut VfioFunction<'_>, outcome: BlockingCallOutcome) {
        self.0.finish(device, outcome);
    }

    fn watch(&mut self, poller: &Poller, place: usize) -> io::Result<()> {
        self.0.watch(poller, place)
    }

    fn unwatch(&mut self, poller: &Poller) {
        self.0.unwatch(poller);
    }

    fn stall(&self, now: Time) -> Option<ClientStall> {
        self.0.stall(now)
    }

    fn deadline(&self) -> Option<Time> {
        self.0.deadline()
    }

    fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    fn finish_request(&mut self, device: &mut VfioFunction<'_>, buffer: &mut [u8]) -> bool {
        self.0.finish_request(device, buffer)
    }

    fn prepare_hand_over(
        &mut self,
        device: &mut VfioFunction<'_>,
        buffer: &mut [u8],
    ) -> Result<(), DisconnectReason> {
        self.0.prepare_hand_over(device, buffer)
    }

    fn resume(&mut self, own: &mut ClientResources) -> io::Result<()> {
        self.0.resume(own)
    }

    fn is_kept(&self) -> bool {
        self.0.is_kept()
    }

    fn outlives_reset(&self) -> bool {
        self.0.outlives_reset()
    }

    fn close(self: Box<Self>, device: &mut VfioFunction<'_>) -> StreamSocket {
        self.0.close(device)
    }
}
