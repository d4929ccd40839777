//! The mailbox of an 82576: a hostile VF sends any messages to the PF driver beside another VF.
//!
//! The first byte of the input selects the hostile VF's policy. The rest is a list of moves: a message with a known request
//! or any words, bits of the mailbox register, a reset, time. Checked: no panic, and the other VF is not reset, keeps its
//! address and is answered.
#![cfg_attr(not(test), no_main)]

use backplane::{Backplane, vf_mac};
use core::time::Duration;
use driver::Hal;
use driver::vf::{Vf, VfDriverConfig};
use i82576::VfIndex;
use i82576::bits::{ctrl, v2p};
use i82576::mailbox::{WORDS, id};
use i82576::register::vf::{CTRL, V2PMAILBOX, VMBMEM};
use policy::{PortVlan, VfPolicy};
use softiov_fuzz::FuzzerInput;

softiov_fuzz::target!(run);

const REQUESTS: [u32; 7] = [
    id::VF_RESET,
    id::SET_MAC_ADDR,
    id::SET_MULTICAST,
    id::SET_VLAN,
    id::SET_LPE,
    id::SET_PROMISC,
    id::PF_CONTROL,
];

/// Writes a message to the mailbox of VF 0, and sends it.
fn send(card: &mut Backplane, words: &[u32]) {
    let mut side = card.vf(0);
    side.write(V2PMAILBOX, v2p::VFU);
    for (at, word) in (VMBMEM..).step_by(4).zip(words) {
        side.write(at, *word);
    }
    side.write(V2PMAILBOX, v2p::REQ);
}

/// Makes the hostile VF's next move. Returns `None` at the end of the fuzzer's input.
fn make_move(card: &mut Backplane, input: &mut FuzzerInput<'_>) -> Option<()> {
    let [kind, detail] = input.array()?;
    match kind % 7 {
        0..3 => {
            let [info, length] = input.array()?;
            let first = REQUESTS[usize::from(detail) % REQUESTS.len()] | u32::from(info) << 16;
            let mut words = vec![first];
            let bytes = input.bytes(usize::from(length) % (4 * (WORDS - 1)));
            words.extend(bytes.chunks(4).map(|part| {
                let mut word = [0; 4];
                word[..part.len()].copy_from_slice(part);
                u32::from_le_bytes(word)
            }));
            send(card, &words);
        }
        3 => {
            let words = [u32::from_le_bytes(input.array()?), detail.into()];
            send(card, &words);
        }
        4 => card.vf(0).write(V2PMAILBOX, detail.into()),
        5 if detail & 1 == 0 => card.vf(0).write(CTRL, ctrl::RST),
        5 => _ = card.vf(0).read(V2PMAILBOX),
        _ => card.advance(Duration::from_micros(u64::from(detail) * 50)),
    }
    card.settle();
    Some(())
}

fn run(data: &[u8]) {
    let mut input = FuzzerInput(data);
    let [first] = input.array().unwrap_or_default();
    let mut card = Backplane::with_pf(2).expect("the PF starts");
    let start = |card: &mut Backplane, vf: u8| {
        let mut driver = Vf::probe(&mut card.vf(vf), &VfDriverConfig::default()).expect("the VF is answered");
        driver.start(&mut card.vf(vf)).expect("the VF starts");
        driver
    };
    let (_, mut other) = (start(&mut card, 0), start(&mut card, 1));
    let policy = VfPolicy {
        trust: first & 1 != 0,
        vlan: (first & 2 != 0).then_some(PortVlan { id: 7, qos: 0 }),
        mac: (first & 4 == 0).then(|| vf_mac(0)),
        ..VfPolicy::default()
    };
    let hostile = VfIndex::new(0).expect("VF 0 exists");
    let _ = card.with_pf_driver(|pf, hal| pf.set_policy(hal, hostile, policy));
    while make_move(&mut card, &mut input).is_some() {}
    card.advance(Duration::from_millis(20));
    let mut hal = card.vf(1);
    assert!(other.is_running());
    assert_eq!(other.mac(), vf_mac(1));
    other.set_vlan(&mut hal, 5, true).expect("the other VF is answered");
    assert!(matches!(other.check_link(&mut hal), driver::vf::VfLinkStatus::Up(_)), "the other VF has a link");
}
