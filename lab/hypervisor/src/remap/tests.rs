//! Tests of interrupt messages that guests program, and of devices that send their own and others' messages.

use super::message::{GuestInterrupt, RemappableInterruptMessage};
use super::{
    InterruptBlockReason, InterruptRemapError, InterruptRemapper, PhysicalVectorSpace, VectorOwner,
    VectorsExhausted,
};
use crate::domain::DomainId;
use pcie::Rid;
use pcie::msix::InterruptMessage;
use proptest::prelude::*;
use std::collections::HashMap;
use std::vec::Vec;

fn owner(domain: u16, rid: u16, entry: u16) -> VectorOwner {
    VectorOwner { domain: DomainId::new(domain), rid: Rid(rid), entry }
}

/// Returns the interrupt message for `vector` at CPU 2, as Linux programs it.
fn programmed(vector: u8) -> InterruptMessage {
    InterruptMessage { address: 0xfee0_2000, data: 0x4000 | u32::from(vector) }
}

#[test]
fn remapped_interrupt_message_gives_the_guests_vector() {
    let mut remapper = InterruptRemapper::new(PhysicalVectorSpace::shared());
    let sent = remapper.program(owner(7, 0x110, 0), programmed(0x41)).unwrap();
    let interrupt = remapper.deliver(Rid(0x110), sent).unwrap();
    assert_eq!(interrupt.owner, owner(7, 0x110, 0));
    assert_eq!(interrupt.guest, GuestInterrupt { vector: 0x41, destination: 2, logical: false });
    assert_eq!(remapper.vectors().owner(interrupt.vector), Some(owner(7, 0x110, 0)));
}

#[test]
fn equal_vectors_of_two_domains_have_distinct_host_vectors() {
    let mut remapper = InterruptRemapper::new(PhysicalVectorSpace::shared());
    let sent = [(1, 0x110), (2, 0x112)].map(|(domain, rid)| {
        let message = remapper.program(owner(domain, rid, 0), programmed(0x41)).unwrap();
        remapper.deliver(Rid(rid), message).unwrap()
    });
    assert_ne!(sent[0].vector, sent[1].vector);
    assert_eq!(sent.map(|interrupt| interrupt.owner.domain.index()), [1, 2]);
}

#[test]
fn reprogrammed_msix_vector_keeps_its_remapping_entry() {
    let mut remapper = InterruptRemapper::new(PhysicalVectorSpace::shared());
    let first = remapper.program(owner(1, 0x110, 0), programmed(0x41)).unwrap();
    let free = remapper.vectors().free_vectors();
    assert_eq!(remapper.program(owner(1, 0x110, 0), programmed(0x99)), Ok(first));
    assert_eq!(remapper.deliver(Rid(0x110), first).unwrap().guest.vector, 0x99);
    assert_eq!(remapper.vectors().free_vectors(), free);
    assert_eq!(remapper.program(owner(2, 0x110, 0), programmed(0x41)), Err(InterruptRemapError::Owner));
}

#[test]
fn device_interrupt_with_foreign_or_forged_message_is_blocked() {
    let mut remapper = InterruptRemapper::new(PhysicalVectorSpace::shared());
    let sent = remapper.program(owner(1, 0x110, 0), programmed(0x41)).unwrap();
    assert_eq!(remapper.deliver(Rid(0x112), sent), Err(InterruptBlockReason::Source));
    assert_eq!(remapper.deliver(Rid(0x110), programmed(0x80)), Err(InterruptBlockReason::Compatibility));
    assert_eq!(
        remapper.deliver(Rid(0x110), RemappableInterruptMessage { handle: 9 }.message()),
        Err(InterruptBlockReason::NoEntry)
    );
    assert_eq!(
        remapper.deliver(Rid(0x110), InterruptMessage { address: 0x1000, data: 0 }),
        Err(InterruptBlockReason::Compatibility)
    );
    assert_eq!(remapper.blocked(), 4);
}

#[test]
fn interrupt_message_without_a_legal_vector_is_rejected() {
    // SDM 10.11.2: delivery modes SMI, NMI, INIT, ExtINT; vectors below 16; addresses elsewhere.
    let mut remapper = InterruptRemapper::new(PhysicalVectorSpace::shared());
    let odd = [(0xfee0_0000, 0x0200), (0xfee0_0000, 0x0441), (0xfee0_0000, 0x0f), (0xfed0_0000, 0x41)];
    for (address, data) in odd.into_iter().chain([(0x1_fee0_0000, 0x41), (0xfee0_0010, 0x41)]) {
        assert_eq!(
            remapper.program(owner(1, 0x110, 0), InterruptMessage { address, data }),
            Err(InterruptRemapError::Message)
        );
    }
    assert_eq!(remapper.vectors().free_vectors(), 191);
}

#[test]
fn exhausted_host_vector_space_rejects_further_vectors() {
    let mut remapper = InterruptRemapper::new(PhysicalVectorSpace::shared());
    for n in 0..191 {
        remapper.program(owner(n, n, 0), programmed(0x41)).unwrap();
    }
    assert_eq!(
        remapper.program(owner(999, 999, 0), programmed(0x41)),
        Err(InterruptRemapError::Exhausted(VectorsExhausted))
    );
    remapper.release(Rid(5));
    assert!(remapper.program(owner(999, 999, 0), programmed(0x41)).is_ok());
    let mut per_cpu = InterruptRemapper::new(PhysicalVectorSpace::per_cpu(2));
    assert!((0..382).all(|n| per_cpu.program(owner(n, n, 0), programmed(0x41)).is_ok()));
}

#[test]
fn released_pci_function_cannot_interrupt_a_guest() {
    let mut remapper = InterruptRemapper::new(PhysicalVectorSpace::shared());
    let sent = remapper.program(owner(1, 0x110, 0), programmed(0x41)).unwrap();
    let vector = remapper.deliver(Rid(0x110), sent).unwrap().vector;
    remapper.release(Rid(0x110));
    assert_eq!(remapper.deliver(Rid(0x110), sent), Err(InterruptBlockReason::NoEntry));
    assert_eq!(remapper.vectors().owner(vector), None);
}

#[test]
fn interrupt_remapping_handle_is_parsed_from_its_message() {
    for handle in 0..=u16::MAX {
        assert_eq!(
            RemappableInterruptMessage::from_message(RemappableInterruptMessage { handle }.message()),
            Some(RemappableInterruptMessage { handle })
        );
    }
}

proptest! {
    #[test]
    fn host_interrupt_vector_never_belongs_to_two_domains(
        cpus in 1u16..4,
        steps in prop::collection::vec((0u16..20, 0u16..3, prop::bool::weighted(0.1)), 0..300),
    ) {
        let mut remapper = InterruptRemapper::new(PhysicalVectorSpace::per_cpu(cpus));
        let mut sent: HashMap<(u16, u16), InterruptMessage> = HashMap::new();
        for (function, entry, release) in steps {
            if release {
                remapper.release(Rid(function));
                sent.retain(|&(of, _), _| of != function);
            } else if let Ok(message) = remapper.program(owner(function, function, entry), programmed(0x41)) {
                sent.insert((function, entry), message);
            }
            let arrivals = sent.iter().map(|(&(rid, _), &message)| remapper.deliver(Rid(rid), message).unwrap());
            let mut vectors: Vec<_> = arrivals.map(|i| i.vector).collect();
            vectors.sort_unstable();
            vectors.dedup();
            prop_assert_eq!(vectors.len(), sent.len());
        }
    }
}
