//! Recorded lives of virtio guests with packets that their devices cut.

use super::super::conditions::LifeConditions;
use super::super::families::SimulatedFamily;
use super::super::life::SimulatedAction;
use super::check_life_with;

/// The administrator has set the address that the guest chooses.
#[test]
fn packet_of_a_promised_address_survives_a_hand_over() {
    use SimulatedAction::*;
    use SimulatedFamily::*;
    check_life_with(
        "segments::packet_of_a_promised_address_survives_a_hand_over",
        LifeConditions { program: None, maps_registers: false },
        true,
        vec![
            Virtio { packed: false, events: true, in_order: true, offloads: false, descriptors: 16 },
            Virtio { packed: true, events: true, in_order: true, offloads: true, descriptors: 64 },
            Virtio { packed: false, events: true, in_order: false, offloads: false, descriptors: 256 },
        ],
        &[
            (Attach { guest: 2 }, 1, 16552283479516543778),
            (Claim { guest: 1, misdeeds: 13 }, 3, 228150566053885206),
            (Upgrade { guest: 1, waits: 28, succeeds: false }, 5, 12458225943552630185),
            (Flood { from: 1, to: 2, rate: 40 }, 0, 8711260440694377243),
            (Attach { guest: 0 }, 5, 5463732446317670870),
            (Burst { slow: None, rounds: 43, death: None }, 2, 2863117273285622687),
            (SendTcp { from: 1, to: 5, packets: 3, payload: 1452, mss: 1448 }, 0, 826464173471243844),
            (Intrude { guest: 0, messages: 55 }, 4, 13768264903434033831),
            (HandOver { succeeds: true }, 4, 1765122492268047526),
            (Burst { slow: Some(2), rounds: 42, death: None }, 2, 5252656639553307583),
        ],
    );
}
