//! Tests of the kernel configurations of the paper's two kernels.

use super::spec::{Load, Spec, Tick};

#[test]
fn only_linux_2_6_18_masks_vectors_and_ticks_when_idle() {
    let (old, new) = (Spec::linux_2_6_18(Load::Udp), Spec::linux_2_6_28(Load::Udp));
    assert!(old.masks && matches!(old.tick, Tick::Periodic(_)));
    assert!(!new.masks && matches!(new.tick, Tick::Tickless(_)));
    assert_eq!((old.socket_packets, old.budget), (64, 64));
}
