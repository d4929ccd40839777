//! Tests of the kernel configurations of Linux 2.6.18 and Linux 2.6.28.

use super::spec::{KernelConfig, ProgramWorkload, TickMode};

#[test]
fn only_linux_2_6_18_masks_msix_vectors_and_ticks_when_idle() {
    let (old, new) =
        (KernelConfig::linux_2_6_18(ProgramWorkload::Udp), KernelConfig::linux_2_6_28(ProgramWorkload::Udp));
    assert!(old.masks && matches!(old.tick, TickMode::Periodic(_)));
    assert!(!new.masks && matches!(new.tick, TickMode::Tickless(_)));
    assert_eq!((old.socket_packets, old.budget), (64, 64));
}
