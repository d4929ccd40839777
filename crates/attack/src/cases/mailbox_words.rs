//! Cases on words of the 82576's mailbox: options, counts and addresses that no driver sends.

use super::remedies::{ADDRESSES, MAILBOX, MESSAGES};
use crate::case::Attack::Guest;
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::I82576;
use crate::guest::GuestStart::{Known, Reset};
use crate::guest::GuestStep::{Check, Mail, MailNeighbour, Repeat, Settle, Write};
use crate::guest::PfAnswer::{Accepted, NotAwaited, Refused, Reply};
use i82576::bits::v2p;
use i82576::mailbox::{CTS, INFO_SHIFT, id, mac_filter, promisc};
use i82576::register::vf::{V2PMAILBOX, VMBMEM};

/// Row of a message and its answer.
macro_rules! mail {
    ($name:literal, $rule:literal, $remedy:expr, $words:expr, $answer:expr $(,)?) => {
        row($name, I82576, $rule, $remedy, Guest(Known, &[Mail($words, $answer)]))
    };
}

const ADD: u32 = id::SET_MAC_ADDR | mac_filter::ADD << INFO_SHIFT;
const CLEAR: u32 = id::SET_MAC_ADDR | mac_filter::CLEAR << INFO_SHIFT;

pub(super) const CASES: &[AttackCase] = &[
    mail!(
        "reset-message-with-an-option",
        "A reset message with an option is no reset message, and is refused",
        MESSAGES,
        &[id::VF_RESET | 1 << INFO_SHIFT],
        Refused
    ),
    mail!(
        "broadcast-as-address",
        "Broadcast is no VF's own address",
        ADDRESSES,
        &[id::SET_MAC_ADDR, u32::MAX, 0xffff],
        Refused
    ),
    mail!(
        "address-by-an-unknown-option",
        "An unknown option of an address is refused",
        MESSAGES,
        &[id::SET_MAC_ADDR | 7 << INFO_SHIFT, 0x0900_0002, 0x0909],
        Refused
    ),
    mail!(
        "group-address-as-filter",
        "A group address is no filter of a VF's own addresses",
        ADDRESSES,
        &[ADD, 0x0000_0001, 0x0909],
        Refused
    ),
    row(
        "address-of-a-neighbour-as-filter",
        I82576,
        "A VF cannot add the address of another VF as a filter",
        ADDRESSES,
        Guest(Known, &[MailNeighbour(ADD, Refused)]),
    ),
    mail!("zero-as-filter", "Zero is no filter of a VF's own addresses", ADDRESSES, &[ADD, 0, 0], Refused),
    mail!(
        "clear-with-an-address",
        "A request to clear filters ignores its address, and touches the VF's own filters alone",
        MESSAGES,
        &[CLEAR, 0x0000_0002, 0x0200],
        Accepted
    ),
    mail!(
        "multicast-list-of-31",
        "A list longer than the message counts as one for all groups, if policy allows it",
        MESSAGES,
        &[id::SET_MULTICAST | 31 << INFO_SHIFT, u32::MAX, u32::MAX, u32::MAX],
        Reply
    ),
    mail!(
        "multicast-list-of-none",
        "An empty list removes the VF's groups alone",
        MESSAGES,
        &[id::SET_MULTICAST],
        Accepted
    ),
    mail!(
        "multicast-hashes-of-16-bits",
        "A hash has 12 bits: the others never index a table",
        MESSAGES,
        &[id::SET_MULTICAST | 2 << INFO_SHIFT, 0xffff_ffff],
        Accepted
    ),
    mail!(
        "leave-vlan-zero",
        "A VF that leaves VLAN 0 receives untagged frames all the same, or is refused",
        MESSAGES,
        &[id::SET_VLAN, 0],
        Reply
    ),
    mail!(
        "leave-a-vlan-never-joined",
        "A VF that leaves a VLAN of others changes nothing of theirs",
        MESSAGES,
        &[id::SET_VLAN, 77],
        Reply
    ),
    mail!(
        "vlan-by-every-option-bit",
        "Every other value than zero joins, as for Linux igb",
        MESSAGES,
        &[id::SET_VLAN | 0xff << INFO_SHIFT, 9],
        Accepted
    ),
    mail!(
        "frame-length-of-zero",
        "A frame length of zero cuts off no other VF",
        MESSAGES,
        &[id::SET_LPE, 0],
        Reply
    ),
    mail!(
        "frame-length-beyond-the-card",
        "A frame length above the card's longest is refused",
        MESSAGES,
        &[id::SET_LPE, 0x2601],
        Refused
    ),
    mail!(
        "unicast-promiscuity",
        "The card gives no VF the unicast frames of others",
        MESSAGES,
        &[id::SET_PROMISC | promisc::UNICAST << INFO_SHIFT],
        Refused
    ),
    mail!(
        "promiscuity-of-every-bit-82576",
        "Unknown kinds of promiscuity are refused",
        MESSAGES,
        &[id::SET_PROMISC | 0xff << INFO_SHIFT],
        Refused
    ),
    mail!(
        "message-of-the-pf",
        "A message that only the PF sends is refused",
        MESSAGES,
        &[id::PF_CONTROL],
        Refused
    ),
    mail!("message-zero", "A message of zeros is refused", MESSAGES, &[0; 16], Refused),
    mail!(
        "message-that-is-clear-to-send",
        "A VF cannot declare itself clear to send",
        MAILBOX,
        &[0x7777 | CTS],
        Reply
    ),
    row(
        "bits-of-the-pf",
        I82576,
        "A VF cannot write the mailbox bits of the PF: its next request is answered",
        MAILBOX,
        Guest(Known, &[Write(V2PMAILBOX, u32::MAX), Write(V2PMAILBOX, 0), Mail(&[0x7777], Refused)]),
    ),
    row(
        "answer-that-was-not-taken",
        I82576,
        "A request over an answer that the guest has not taken gets its own answer",
        MAILBOX,
        Guest(
            Known,
            &[Mail(&[id::SET_VLAN | 1 << INFO_SHIFT, 5], NotAwaited), Settle, Mail(&[0x7777], Refused)],
        ),
    ),
    row(
        "words-beyond-the-mailbox",
        I82576,
        "Addresses behind the mailbox's 16 words are no memory",
        MAILBOX,
        Guest(
            Known,
            &[Write(VMBMEM + 64, 0xdead_beef), Check(VMBMEM + 64, u32::MAX, 0), Mail(&[0x7777], Refused)],
        ),
    ),
    row(
        "doorbells-without-a-message",
        I82576,
        "Doorbells of an empty mailbox are messages of zeros, and bounded",
        MAILBOX,
        Guest(Reset, &[Repeat(100, &[Write(V2PMAILBOX, v2p::REQ)]), Mail(&[id::VF_RESET], Accepted)]),
    ),
    row(
        "acknowledgements-without-an-answer",
        I82576,
        "Acknowledgements without an answer change nothing",
        MAILBOX,
        Guest(Known, &[Repeat(100, &[Write(V2PMAILBOX, v2p::ACK)]), Mail(&[0x7777], Refused)]),
    ),
    row(
        "twenty-reset-messages",
        I82576,
        "Each reset message gets its answer, and the VF keeps its address",
        MAILBOX,
        Guest(Known, &[Repeat(20, &[Mail(&[id::VF_RESET], Accepted)])]),
    ),
];
