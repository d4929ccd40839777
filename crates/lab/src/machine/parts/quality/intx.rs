//! A guest's interrupt line whose device sends messages to the host: a message asserts the line, the guest's end of
//! interrupt de-asserts it, and a message that came meanwhile, of whichever device of the line, asserts it again: the
//! guest may have looked at that device before. A shared line is the OR of its sources. Left out: what delivery costs.

use sim::{EventQueue, Generator, Instant, Span};

/// A line and its sources.
#[derive(Debug)]
pub struct Line {
    sources: Vec<Source>,
    /// The guest has an interrupt that it has not ended.
    in_service: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Source {
    asserts: bool,
    latched: bool,
}

impl Line {
    /// A line that so many devices share.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        Self { sources: vec![Source::default(); sources], in_service: false }
    }

    /// A device has sent a message. Whether the guest is interrupted now.
    pub fn message(&mut self, from: usize) -> bool {
        let Some(source) = self.sources.get_mut(from) else { return false };
        if self.in_service {
            source.latched = true;
        } else {
            source.asserts = true;
        }
        self.deliver()
    }

    /// The guest ends its interrupt. Whether it is interrupted again at once.
    pub fn end_of_interrupt(&mut self) -> bool {
        self.in_service = false;
        for source in &mut self.sources {
            source.asserts = core::mem::take(&mut source.latched);
        }
        self.deliver()
    }

    /// Whether the line is asserted.
    #[must_use]
    pub fn is_asserted(&self) -> bool {
        self.sources.iter().any(|source| source.asserts)
    }

    fn deliver(&mut self) -> bool {
        self.is_asserted() && !core::mem::replace(&mut self.in_service, true)
    }
}

/// What is varied.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Messages of each device, a second; at least 1.
    pub rate_hz: u32,
    /// From an interrupt to its end.
    pub eoi_delay: Span,
    /// Devices that share the line; at least 1.
    pub sharers: usize,
    /// Decides when messages come.
    pub seed: u64,
    /// How long messages come.
    pub span: Span,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Messages whose work no handler has found.
    pub lost: u64,
    /// Interrupts that the guest took.
    pub injected: u64,
    /// Of these, those whose handlers found no work.
    pub spurious: u64,
    /// Messages.
    pub messages: u64,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Message(usize),
    Handler,
    End,
}

/// From an interrupt to the moment when its handlers look at their devices.
const ENTRY: Span = Span::from_micros(1);

/// Devices send, the guest's handlers look at every device of the line and end the interrupt later.
#[must_use]
pub fn run(plan: &Plan) -> Found {
    let mut line = Line::new(plan.sharers);
    let mut chance = Generator::named(plan.seed, "messages");
    let mut queue = EventQueue::new();
    let every = 1_000_000_000_000 / u64::from(plan.rate_hz.max(1));
    for device in 0..plan.sharers {
        queue.schedule(Instant::ZERO + Span::from_picos(chance.below(every)), Event::Message(device));
    }
    let end = Instant::ZERO + plan.span;
    let mut found = Found { lost: 0, injected: 0, spurious: 0, messages: 0 };
    let mut work = 0;
    // A handler that takes longer than its end of interrupt ends it when it has looked.
    let delay = plan.eoi_delay.max(ENTRY);
    while let Some((now, event)) = queue.pop() {
        let interrupted = match event {
            Event::Message(device) => {
                let wait = Span::from_picos(chance.within(every / 2..every / 2 * 3 + 1));
                if now + wait < end {
                    queue.schedule(now + wait, event);
                }
                found.messages += 1;
                work += 1;
                line.message(device)
            }
            Event::Handler => {
                found.spurious += u64::from(work == 0);
                work = 0;
                false
            }
            Event::End => line.end_of_interrupt(),
        };
        if interrupted {
            found.injected += 1;
            queue.schedule(now + ENTRY, Event::Handler);
            queue.schedule(now + delay, Event::End);
        }
    }
    found.lost = work;
    found
}

#[cfg(test)]
mod tests {
    use super::{Found, Line, Plan, run};
    use sim::Span;

    #[test]
    fn a_message_while_the_line_is_asserted_asserts_it_again_after_the_end() {
        let mut line = Line::new(1);
        assert!(line.message(0) && !line.message(0) && !line.message(0));
        assert!(line.end_of_interrupt(), "the latched ones are one");
        assert!(!line.end_of_interrupt() && !line.is_asserted());
    }

    #[test]
    fn a_shared_line_is_asserted_as_long_as_any_source_is() {
        let mut line = Line::new(2);
        assert!(line.message(0) && !line.message(1) && !line.message(1));
        assert!(line.is_asserted() && line.end_of_interrupt(), "the second device's latched message");
        assert!(!line.end_of_interrupt());
        assert!(!line.message(7), "no such device");
    }

    /// Every order of messages of two devices and of a guest's steps: its handlers look at both, then it ends.
    #[test]
    fn no_order_of_messages_looks_and_ends_loses_one() {
        for order in 0..3u32.pow(10) {
            let (mut line, mut in_service, mut looked, mut work) = (Line::new(2), false, false, false);
            let mut step = |line: &mut Line, in_service: &mut bool, work: &mut bool| {
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
    fn nothing_is_lost_at_any_rate_and_delay() {
        for rate_hz in [100, 10_000, 200_000] {
            for micros in [0, 1, 50, 5_000] {
                for sharers in [1, 4] {
                    let span = Span::from_millis(200);
                    let eoi_delay = Span::from_micros(micros);
                    let Found { lost, injected, messages, spurious } =
                        run(&Plan { rate_hz, eoi_delay, sharers, seed: 3, span });
                    assert_eq!(lost, 0, "{rate_hz} {micros} {sharers}");
                    assert!(injected > 0 && injected <= messages && spurious <= injected);
                }
            }
        }
    }
}
