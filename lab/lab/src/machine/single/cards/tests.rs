//! Tests of the single-processor machine's cards: their books, the turn of contexts, and events to receivers.

use super::super::{CardDriver, PayloadDirection, SingleCpuSetup, SingleCpuSimulation};
use super::{CdnaPort, ModelFrame, OutgoingFrame};
use crate::machine::books::ConservationChecks;
use crate::machine::engine::Simulation;
use crate::machine::parts::cdna::RING;
use hypervisor::account::CycleCategory;
use hypervisor::cost::{CostTable, MachineModel};
use sim::{VirtualDuration, VirtualInstant};

const NOW: VirtualInstant = VirtualInstant::ZERO;

fn machine(drive: CardDriver, direction: PayloadDirection, guests: u8) -> SingleCpuSimulation {
    let table = CostTable::of(MachineModel::Opteron);
    SingleCpuSimulation::new(&SingleCpuSetup::willmann(table, drive, direction, guests))
}

/// Checks that each frame of a card is counted once: received or dropped, and sent or on its way.
#[test]
fn frame_that_a_card_does_not_count_fails_the_books() {
    let mut engine = machine(CardDriver::Cdna, PayloadDirection::Receive, 1);
    engine.run(NOW + VirtualDuration::from_millis(5));
    let port = &mut engine.system.ports[0];
    let mut fails = |change: fn(&mut CdnaPort)| {
        change(port);
        let mut books = ConservationChecks::default();
        port.check_books(&mut books);
        books.close().is_err()
    };
    assert!(!fails(|_| ()));
    assert!(fails(|port| port.received -= 1));
    assert!(!fails(|port| port.dropped += 1), "a dropped frame has arrived");
    assert!(fails(|port| port.taken += 1));
    assert!(!fails(|port| port.sent += 1), "a sent frame was taken");
    assert!(fails(|port| port.card.stray_writes += 1));
}

#[test]
fn frame_without_a_free_buffer_is_dropped() {
    let mut engine = machine(CardDriver::Cdna, PayloadDirection::Receive, 1);
    let Simulation { core, system } = &mut engine;
    for _ in 0..2 * RING {
        system.receive(0, 0, ModelFrame::Data(1), NOW, core);
    }
    let (port, stream) = (&system.ports[0], &system.guests[0].streams[0]);
    assert_eq!(port.received + port.dropped, 2 * u64::from(RING));
    assert!(port.dropped >= u64::from(RING), "{} of {RING} buffers took a frame", port.received);
    assert_eq!(port.received, stream.inbox.len() as u64);
}

#[test]
fn contexts_of_a_card_send_in_turn() {
    let mut engine = machine(CardDriver::Cdna, PayloadDirection::Transmit, 3);
    engine.run(NOW + VirtualDuration::from_millis(40));
    let payload = |guest: usize| engine.system.guests[guest].payload as f64;
    for guest in 1..3 {
        let ratio = payload(guest) / payload(0);
        assert!((0.9..1.1).contains(&ratio), "guest {guest}: {ratio}");
    }
}

#[test]
fn driver_domain_learns_of_each_sent_frame() {
    for (drive, learns) in [(CardDriver::Xen, true), (CardDriver::Cdna, false)] {
        let mut engine = machine(drive, PayloadDirection::Transmit, 1);
        let Simulation { core, system } = &mut engine;
        system.ports[0].sending = Some(OutgoingFrame { guest: 0, frame: ModelFrame::Data(1), packet: None });
        system.left(0, NOW, core);
        assert_eq!(system.driver.done.contains(&0), learns, "{drive:?}");
    }
}

/// Checks the cost of two interrupts of a card before their receiver runs: the hypervisor handles both, and sends one event.
/// A bare machine has no hypervisor.
#[test]
fn card_sends_one_event_until_its_receiver_runs() {
    for drive in [CardDriver::Xen, CardDriver::Cdna, CardDriver::Native] {
        let mut engine = machine(drive, PayloadDirection::Transmit, 1);
        let mut interrupt = || {
            let Simulation { core, system } = &mut engine;
            system.raise(0, 0, NOW, core);
            system.interrupt(0, NOW, core);
            let receiver = if drive == CardDriver::Xen { system.driver.vcpu } else { system.guests[0].vcpu };
            let domain = core.processors.domain_of(receiver);
            let snapshot = core.processors.snapshot(NOW);
            [CycleCategory::ExternalInterrupt, CycleCategory::EventChannel]
                .map(|category| snapshot.ledger().spent(domain, category))
        };
        let ([handled, sent], both) = (interrupt(), interrupt());
        assert_eq!(both, [2 * handled, sent], "{drive:?}");
        let is_native = drive == CardDriver::Native;
        assert_eq!((handled == 0, sent == 0), (is_native, is_native), "{drive:?}");
    }
}
