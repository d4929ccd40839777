//! Emulates a guest's interrupt line for a device that sends MSIs to the host. A message asserts the line and
//! the guest's end of interrupt de-asserts it. A message of any device of the line that arrived in between
//! asserts it again, since the guest may have checked that device before. A shared line is the OR of its
//! sources.

use sim::{EventQueue, RandomStream, VirtualDuration, VirtualInstant};

/// Interrupt line of a guest, with the devices that share it.
#[derive(Debug)]
pub struct IntxLine {
    sources: Vec<IntxSource>,
    /// The guest has taken an interrupt of the line, and has not ended the interrupt.
    in_service: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct IntxSource {
    asserts: bool,
    latched: bool,
}

impl IntxLine {
    /// Creates a de-asserted interrupt line, shared by `sources` devices.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        Self { sources: vec![IntxSource::default(); sources], in_service: false }
    }

    /// Handles an MSI of a device that shares the interrupt line. Returns `true` if the guest is interrupted
    /// now.
    pub fn message(&mut self, from: usize) -> bool {
        let Some(source) = self.sources.get_mut(from) else { return false };
        if self.in_service {
            source.latched = true;
        } else {
            source.asserts = true;
        }
        self.deliver()
    }

    /// Ends the interrupt that the guest serves. Returns `true` if the line interrupts the guest again at
    /// once.
    pub fn end_of_interrupt(&mut self) -> bool {
        self.in_service = false;
        for source in &mut self.sources {
            source.asserts = core::mem::take(&mut source.latched);
        }
        self.deliver()
    }

    /// Returns `true` if the interrupt line is asserted.
    #[must_use]
    pub fn is_asserted(&self) -> bool {
        self.sources.iter().any(|source| source.asserts)
    }

    fn deliver(&mut self) -> bool {
        self.is_asserted() && !core::mem::replace(&mut self.in_service, true)
    }
}

/// Parameters of a simulation of devices that share an interrupt line.
#[derive(Debug, Clone, Copy)]
pub struct IntxSetup {
    /// Messages per second of each device; at least 1.
    pub rate_hz: u32,
    /// Time from an interrupt to the guest's end of the interrupt.
    pub eoi_delay: VirtualDuration,
    /// Number of devices that share the line; at least 1.
    pub sharers: usize,
    /// Seed of the times of interrupt messages.
    pub seed: u64,
    /// Simulated time during which interrupt messages are sent.
    pub span: VirtualDuration,
}

/// Results of a simulation of devices that share an interrupt line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntxResults {
    /// Number of lost interrupt messages: messages after which no handler found the work that the device had
    /// reported.
    pub lost: u64,
    /// Number of interrupts that the guest took.
    pub injected: u64,
    /// Number of interrupts whose handlers found no work.
    pub spurious: u64,
    /// Number of interrupt messages that the devices sent.
    pub messages: u64,
}

#[derive(Debug, Clone, Copy)]
enum IntxEvent {
    Message(usize),
    Handler,
    End,
}

/// Time from an interrupt until its handlers check their devices.
const ENTRY: VirtualDuration = VirtualDuration::from_micros(1);

/// Simulates devices that send interrupt messages, and a guest whose handlers check every device of the line
/// and then end the interrupt.
#[must_use]
pub fn run(plan: &IntxSetup) -> IntxResults {
    let mut line = IntxLine::new(plan.sharers);
    let mut chance = RandomStream::named(plan.seed, "messages");
    let mut queue = EventQueue::new();
    let every = 1_000_000_000_000 / u64::from(plan.rate_hz.max(1));
    for device in 0..plan.sharers {
        queue.schedule(
            VirtualInstant::ZERO + VirtualDuration::from_picos(chance.below(every)),
            IntxEvent::Message(device),
        );
    }
    let end = VirtualInstant::ZERO + plan.span;
    let mut found = IntxResults { lost: 0, injected: 0, spurious: 0, messages: 0 };
    let mut work = 0;
    // A handler cannot end its interrupt before it has checked its devices.
    let delay = plan.eoi_delay.max(ENTRY);
    while let Some((now, event)) = queue.pop() {
        let interrupted = match event {
            IntxEvent::Message(device) => {
                let wait = VirtualDuration::from_picos(chance.within(every / 2..every / 2 * 3 + 1));
                if now + wait < end {
                    queue.schedule(now + wait, event);
                }
                found.messages += 1;
                work += 1;
                line.message(device)
            }
            IntxEvent::Handler => {
                found.spurious += u64::from(work == 0);
                work = 0;
                false
            }
            IntxEvent::End => line.end_of_interrupt(),
        };
        if interrupted {
            found.injected += 1;
            queue.schedule(now + ENTRY, IntxEvent::Handler);
            queue.schedule(now + delay, IntxEvent::End);
        }
    }
    found.lost = work;
    found
}

#[cfg(test)]
mod tests {
    use super::{IntxLine, IntxResults, IntxSetup, run};
    use sim::VirtualDuration;

    #[test]
    fn intx_messages_during_service_reassert_the_line_once() {
        let mut line = IntxLine::new(1);
        assert!(line.message(0) && !line.message(0) && !line.message(0));
        assert!(line.end_of_interrupt(), "latched messages are one interrupt");
        assert!(!line.end_of_interrupt() && !line.is_asserted());
    }

    #[test]
    fn shared_intx_line_is_the_or_of_its_sources() {
        let mut line = IntxLine::new(2);
        assert!(line.message(0) && !line.message(1) && !line.message(1));
        assert!(
            line.is_asserted() && line.end_of_interrupt(),
            "the second device's latched message interrupts"
        );
        assert!(!line.end_of_interrupt());
        assert!(!line.message(7), "a device that does not share the line");
    }

    /// Tries every order of two devices' messages and of a guest's steps, in which handlers check both
    /// devices and then end the interrupt.
    #[test]
    fn no_order_of_intx_messages_and_eois_loses_a_message() {
        for order in 0..3u32.pow(10) {
            let (mut line, mut in_service, mut looked, mut work) = (IntxLine::new(2), false, false, false);
            let mut step = |line: &mut IntxLine, in_service: &mut bool, work: &mut bool| {
                if !*in_service {
                    return;
                }
                looked = !looked;
                if looked {
                    *work = false;
                } else {
                    *in_service = line.end_of_interrupt();
                }
            };
            for at in 0..10 {
                match order / 3u32.pow(at) % 3 {
                    2 => step(&mut line, &mut in_service, &mut work),
                    device => {
                        work = true;
                        in_service |= line.message(device as usize);
                    }
                }
            }
            while in_service {
                step(&mut line, &mut in_service, &mut work);
            }
            assert!(!work, "{order}");
        }
    }

    #[test]
    fn no_intx_message_is_lost_at_any_rate_and_delay() {
        for rate_hz in [100, 10_000, 200_000] {
            for micros in [0, 1, 50, 5_000] {
                for sharers in [1, 4] {
                    let span = VirtualDuration::from_millis(200);
                    let eoi_delay = VirtualDuration::from_micros(micros);
                    let IntxResults { lost, injected, messages, spurious } =
                        run(&IntxSetup { rate_hz, eoi_delay, sharers, seed: 3, span });
                    assert_eq!(lost, 0, "{rate_hz} {micros} {sharers}");
                    assert!(injected > 0 && injected <= messages && spurious <= injected);
                }
            }
        }
    }
}
