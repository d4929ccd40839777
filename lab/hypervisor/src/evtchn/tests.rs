//! Tests of event channels between two domains, including every short history of a port that moves between
//! vCPUs.

use super::{EventChannelBinding, EventChannelError, EventChannels, EventSendOutcome, PORTS};
use crate::domain::DomainId;
use proptest::prelude::*;
use std::vec::Vec;

/// Connects a back end with one vCPU to a front end with two vCPUs by event channels. Returns the channels, back end,
/// its port, front end, its port.
fn connected() -> (EventChannels, DomainId, u16, DomainId, u16) {
    let mut machine = EventChannels::new();
    let (back, front) = (DomainId::new(1), DomainId::new(2));
    machine.add_domain(back, 1);
    machine.add_domain(front, 2);
    let offered = machine.alloc_unbound(front, back).unwrap();
    let own = machine.bind_interdomain(back, front, offered).unwrap();
    (machine, back, own, front, offered)
}

/// Takes a vCPU's event upcall if one is due, and returns the events taken.
fn upcall(machine: &mut EventChannels, domain: DomainId, vcpu: u16) -> Vec<u16> {
    let ports = machine.domain(domain).unwrap();
    let mut taken = Vec::new();
    let mut due = ports.enter_upcall(vcpu);
    while due {
        taken.extend(core::iter::from_fn(|| ports.next(vcpu)));
        due = ports.leave_upcall(vcpu) && ports.enter_upcall(vcpu);
    }
    taken
}

#[test]
fn event_arrives_once_at_the_connected_event_channel_port() {
    let (mut machine, back, own, front, theirs) = connected();
    assert_eq!(machine.send(back, own), Ok(EventSendOutcome::Upcall(0)));
    assert_eq!(machine.send(back, own), Ok(EventSendOutcome::Coalesced));
    assert_eq!(upcall(&mut machine, front, 0), [theirs]);
    assert_eq!(upcall(&mut machine, front, 0), []);
    assert_eq!(
        machine.send(front, theirs),
        Ok(EventSendOutcome::Upcall(0)),
        "the peer's event needs an upcall"
    );
    assert_eq!(upcall(&mut machine, back, 0), [own]);
}

#[test]
fn events_of_two_ports_share_an_upcall() {
    let (mut machine, _, _, front, theirs) = connected();
    let timer = machine.bind(front, EventChannelBinding::Virq(0), 0).unwrap();
    assert_eq!(machine.raise(front, timer), Ok(EventSendOutcome::Upcall(0)));
    assert_eq!(machine.raise(front, theirs), Ok(EventSendOutcome::UpcallPending));
    assert_eq!(upcall(&mut machine, front, 0), [theirs, timer]);
}

#[test]
fn event_at_a_masked_port_stays_pending_until_unmasked() {
    let (mut machine, back, own, front, theirs) = connected();
    machine.domain(front).unwrap().mask(theirs);
    assert_eq!(machine.send(back, own), Ok(EventSendOutcome::Masked));
    assert_eq!(upcall(&mut machine, front, 0), []);
    let ports = machine.domain(front).unwrap();
    assert!(ports.is_pending(theirs));
    assert_eq!(ports.unmask(theirs), Some(EventSendOutcome::Upcall(0)));
    assert_eq!(upcall(&mut machine, front, 0), [theirs]);
    assert_eq!(machine.domain(front).unwrap().unmask(theirs), None);
}

#[test]
fn event_during_an_upcall_is_taken_before_the_upcall_ends() {
    let (mut machine, back, own, front, theirs) = connected();
    machine.send(back, own).unwrap();
    let ports = machine.domain(front).unwrap();
    assert!(ports.enter_upcall(0) && !ports.enter_upcall(0));
    assert_eq!((ports.next(0), ports.next(0)), (Some(theirs), None));
    assert_eq!(
        machine.send(back, own),
        Ok(EventSendOutcome::UpcallPending),
        "an event during an upcall requests no second upcall"
    );
    let ports = machine.domain(front).unwrap();
    assert!(ports.leave_upcall(0) && ports.enter_upcall(0));
    assert_eq!(ports.next(0), Some(theirs));
    assert!(!ports.leave_upcall(0));
}

#[test]
fn unmasking_upcalls_delivers_the_pending_upcall() {
    let (mut machine, back, own, front, _) = connected();
    assert!(!machine.domain(front).unwrap().set_upcall_mask(0, true));
    assert_eq!(machine.send(back, own), Ok(EventSendOutcome::UpcallPending));
    let ports = machine.domain(front).unwrap();
    assert!(!ports.upcall_due(0) && ports.set_upcall_mask(0, false));
}

#[test]
fn rebinding_an_event_port_delivers_its_stranded_event() {
    let (mut machine, back, own, front, theirs) = connected();
    machine.send(back, own).unwrap();
    machine.domain(front).unwrap().bind_vcpu(theirs, 1).unwrap();
    assert_eq!((upcall(&mut machine, front, 0), upcall(&mut machine, front, 1)), (std::vec![], std::vec![]));
    assert_eq!(machine.send(back, own), Ok(EventSendOutcome::Coalesced), "no vCPU will check the port");
    assert_eq!(machine.domain(front).unwrap().stranded_events(), 1);
    assert_eq!(machine.rebind(front, theirs, 1), Ok(Some(EventSendOutcome::Upcall(1))));
    assert_eq!(machine.domain(front).unwrap().stranded_events(), 0);
    assert_eq!(upcall(&mut machine, front, 1), [theirs]);
}

#[test]
fn event_delivery_does_not_allocate() {
    let (mut machine, back, own, front, theirs) = connected();
    let allocated = allocation_counter::measure(|| {
        machine.send(back, own).unwrap();
        let ports = machine.domain(front).unwrap();
        assert!(ports.enter_upcall(0));
        assert_eq!((ports.next(0), ports.next(0), ports.leave_upcall(0)), (Some(theirs), None, false));
    });
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn invalid_event_channel_arguments_are_rejected() {
    let (mut machine, back, own, front, theirs) = connected();
    assert_eq!(machine.send(DomainId::new(9), 1), Err(EventChannelError::Domain));
    assert_eq!(
        (machine.send(back, 0), machine.send(back, PORTS)),
        (Err(EventChannelError::Port), Err(EventChannelError::Port))
    );
    assert_eq!(
        machine.bind_interdomain(back, front, theirs),
        Err(EventChannelError::NotWaiting),
        "the remote port is bound already"
    );
    assert_eq!(
        machine.bind(front, EventChannelBinding::Interdomain(back, 1), 0),
        Err(EventChannelError::NotWaiting)
    );
    assert_eq!(machine.bind(front, EventChannelBinding::Ipi, 2), Err(EventChannelError::Vcpu));
    assert_eq!(machine.rebind(front, theirs, 2), Err(EventChannelError::Vcpu));
    let stranger = DomainId::new(3);
    machine.add_domain(stranger, 1);
    let offered = machine.alloc_unbound(front, back).unwrap();
    assert_eq!(machine.bind_interdomain(stranger, front, offered), Err(EventChannelError::NotWaiting));
    machine.close(back, own).unwrap();
    assert_eq!(machine.send(front, theirs), Err(EventChannelError::NoOtherEnd));
    assert_eq!(machine.close(back, own), Err(EventChannelError::Port));
}

#[test]
fn closed_event_channel_port_can_be_allocated_again() {
    let mut machine = EventChannels::new();
    let domain = DomainId::new(0);
    machine.add_domain(domain, 1);
    for expected in 1..PORTS {
        assert_eq!(machine.bind(domain, EventChannelBinding::Ipi, 0), Ok(expected));
    }
    assert_eq!(machine.bind(domain, EventChannelBinding::Ipi, 0), Err(EventChannelError::Full));
    machine.send(domain, 77).unwrap();
    machine.close(domain, 77).unwrap();
    assert_eq!(machine.bind(domain, EventChannelBinding::Pirq(4), 0), Ok(77));
    assert!(!machine.domain(domain).unwrap().is_pending(77), "closing the port dropped its pending event");
}

#[test]
fn event_channel_loses_no_event_in_any_six_operations() {
    const STEPS: u32 = 7;
    for history in 0..STEPS.pow(6) {
        let (mut machine, back, own, front, theirs) = connected();
        let mut owed = false;
        for step in 0..6 {
            match history / STEPS.pow(step) % STEPS {
                0 => {
                    machine.send(back, own).unwrap();
                    owed = true;
                }
                vcpu @ 1..=2 => drop(machine.rebind(front, theirs, vcpu as u16 - 1)),
                vcpu @ 3..=4 => owed &= upcall(&mut machine, front, vcpu as u16 - 3).is_empty(),
                5 => drop(machine.domain(front).unwrap().mask(theirs)),
                _ => drop(machine.domain(front).unwrap().unmask(theirs)),
            }
        }
        machine.domain(front).unwrap().unmask(theirs);
        let seen = [0, 1].iter().any(|&vcpu| !upcall(&mut machine, front, vcpu).is_empty());
        assert_eq!(seen, owed, "history {history}");
    }
}

proptest! {
    #[test]
    fn arbitrary_event_channel_calls_do_not_panic(steps in prop::collection::vec((0u8..12, any::<u16>(), 0u16..6), 0..200)) {
        let (mut machine, ..) = connected();
        for (what, wild, tame) in steps {
            let port = if wild % 2 == 0 { tame } else { wild };
            let domain = DomainId::new(wild % 4);
            let Ok(ports) = machine.domain(domain) else { continue };
            match what {
                0 => drop(ports.mask(port)),
                1 => drop(ports.unmask(port)),
                2 => drop(ports.set_upcall_mask(tame, wild % 5 == 0)),
                3 => drop(ports.enter_upcall(tame)),
                4 => drop(ports.next(tame)),
                5 => drop(ports.leave_upcall(tame)),
                6 => drop(machine.send(domain, port)),
                7 => drop(machine.close(domain, port)),
                8 => drop(machine.alloc_unbound(domain, DomainId::new(tame))),
                9 => drop(machine.bind_interdomain(domain, DomainId::new(tame), port)),
                10 => drop(machine.rebind(domain, port, tame)),
                _ => drop(machine.raise(domain, port)),
            }
        }
    }
}
