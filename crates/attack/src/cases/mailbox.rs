//! Cases on the 82576's mailbox: messages that no driver sends.

use super::remedies::{ADDRESSES, CONDUCT, MAILBOX, MESSAGES};
use crate::case::Attack::Guest;
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::I82576;
use crate::guest::GuestStart::{Known, Reset};
use crate::guest::GuestStep::{Mail, MailNeighbour, Repeat, Write};
use crate::guest::PfAnswer::{Accepted, NotAwaited, Refused, Reply};
use i82576::bits::v2p;
use i82576::mailbox::{INFO_SHIFT, id};
use i82576::register::vf::{V2PMAILBOX, VMBMEM};

pub(super) const CASES: &[AttackCase] = &[
    row(
        "message-before-the-reset-message",
        I82576,
        "A VF that has not reset itself is granted nothing, and its reset message is answered",
        MAILBOX,
        Guest(
            Reset,
            &[Mail(&[id::SET_VLAN | 1 << INFO_SHIFT, 5], NotAwaited), Mail(&[id::VF_RESET], Accepted)],
        ),
    ),
    row(
        "unknown-message",
        I82576,
        "An unknown message is refused",
        MESSAGES,
        Guest(Known, &[Mail(&[0x7777], Refused)]),
    ),
    row(
        "message-marked-as-an-answer",
        I82576,
        "A message with the bits of an answer is none of the VF's requests: the next one is answered",
        MAILBOX,
        Guest(Known, &[Mail(&[0xffff_ffff; 16], NotAwaited), Mail(&[0x7777], Refused)]),
    ),
    row(
        "vlan-beyond-4095",
        I82576,
        "A VLAN id has 12 bits: as for Linux igb the others are ignored, and never index a table",
        MESSAGES,
        Guest(Known, &[Mail(&[id::SET_VLAN | 1 << INFO_SHIFT, 0xffff_f001], Accepted)]),
    ),
    row(
        "multicast-address-as-own-address",
        I82576,
        "A VF's own address is no multicast address",
        MESSAGES,
        Guest(Known, &[Mail(&[id::SET_MAC_ADDR, 0x0000_0001, 0x0000], Refused)]),
    ),
    row(
        "zero-as-own-address",
        I82576,
        "A VF's own address is not zero",
        MESSAGES,
        Guest(Known, &[Mail(&[id::SET_MAC_ADDR, 0, 0], Refused)]),
    ),
    row(
        "neighbours-address-as-own-address",
        I82576,
        "A VF cannot take the address of another VF",
        ADDRESSES,
        Guest(Known, &[MailNeighbour(id::SET_MAC_ADDR, Refused)]),
    ),
    row(
        "multicast-count-beyond-the-mailbox",
        I82576,
        "A count of multicast hashes beyond the message's words reads no further",
        MESSAGES,
        Guest(Known, &[Mail(&[id::SET_MULTICAST | 0xff << INFO_SHIFT, u32::MAX, u32::MAX], Reply)]),
    ),
    row(
        "frames-of-four-gib",
        I82576,
        "A largest frame beyond the card's is refused",
        MESSAGES,
        Guest(Known, &[Mail(&[id::SET_LPE, u32::MAX], Refused)]),
    ),
    row(
        "mailbox-written-without-its-lock",
        I82576,
        "Without the lock the mailbox's memory belongs to the PF: a doorbell sends what is there",
        MAILBOX,
        Guest(Known, &[Repeat(50, &[Write(VMBMEM, 0xdead_beef), Write(V2PMAILBOX, v2p::REQ | v2p::ACK)])]),
    ),
    row(
        "lock-that-is-never-released",
        I82576,
        "A lock that a guest keeps delays that guest's answers only",
        MAILBOX,
        Guest(Known, &[Write(V2PMAILBOX, v2p::VFU)]),
    ),
    row(
        "requests-at-full-speed",
        I82576,
        "Requests beyond the conduct limit are throttled, and the VF recovers",
        CONDUCT,
        Guest(Known, &[Repeat(300, &[Mail(&[id::SET_VLAN | 1 << INFO_SHIFT, 5], NotAwaited)])]),
    ),
];
