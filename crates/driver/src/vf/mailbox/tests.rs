//! Tests the VF's end of the mailbox against a PF with scripted replies.

use super::{MailboxError, PATIENT, PATIENT_POLLS, QUICK, QUICK_POLLS, VfMailbox};
use crate::hal::Hal;
use alloc::collections::VecDeque;
use core::time::Duration;
use i82576::Time;
use i82576::bits::v2p;
use i82576::mailbox::{ACK, CTS, ID_MASK, NACK, id};
use i82576::register::vf::{V2PMAILBOX, VMBMEM};

const ASKED: u32 = id::SET_VLAN;
const GRANTED: u32 = ASKED | ACK | CTS;

/// PF that answers the VF's messages with scripted replies, given by their first dwords.
#[derive(Default)]
struct ScriptedPf {
    answers: VecDeque<u32>,
    /// True if the PF ignores the VF's messages: it acknowledges none.
    deaf: bool,
    /// True if the PF keeps the mailbox buffer locked.
    held: bool,
    /// True if the VF is reset after its driver has read the reply's first dword.
    resets: bool,
    word: u32,
    status: u32,
    now: Time,
}

impl ScriptedPf {
    fn new(answers: impl IntoIterator<Item = u32>) -> Self {
        Self { answers: answers.into_iter().collect(), ..Self::default() }
    }

    fn say(&mut self) {
        if let Some(word) = self.answers.pop_front() {
            self.word = word;
            self.status |= v2p::PFSTS;
        }
    }

    fn ask(&mut self) -> Result<(), MailboxError> {
        VfMailbox::default().request(self, &[ASKED, 5])
    }
}

impl Hal for ScriptedPf {
    fn read(&mut self, offset: u32) -> u32 {
        match offset {
            V2PMAILBOX => {
                let value = self.status;
                self.status &= !v2p::READ_CLEARS;
                value
            }
            VMBMEM => {
                if self.resets {
                    self.status = v2p::RSTD;
                }
                self.word
            }
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        match offset {
            VMBMEM => self.word = value,
            V2PMAILBOX => {
                let taken = value & v2p::VFU != 0 && !self.held;
                self.status = self.status & !v2p::VFU | if taken { v2p::VFU } else { 0 };
                if value & v2p::REQ != 0 && !self.deaf {
                    self.status |= v2p::PFACK;
                    self.say();
                }
                if value & v2p::ACK != 0 && self.word & ID_MASK == id::PF_CONTROL {
                    self.say();
                }
            }
            _ => {}
        }
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }
}

#[test]
fn mailbox_ack_grants_a_vf_request_and_nack_refuses_it() {
    assert_eq!(ScriptedPf::new([GRANTED]).ask(), Ok(()));
    assert_eq!(ScriptedPf::new([ASKED | NACK | CTS]).ask(), Err(MailboxError::Refused(ASKED)));
}

#[test]
fn mailbox_refusal_without_a_message_id_is_recognized() {
    assert_eq!(ScriptedPf::new([NACK]).ask(), Err(MailboxError::Refused(ASKED)));
}

#[test]
fn reply_to_another_message_is_unexpected() {
    for reply in [id::SET_LPE | ACK | CTS, id::SET_LPE | NACK, NACK | CTS, ACK, CTS] {
        let unexpected = Err(MailboxError::Unexpected { sent: ASKED, reply });
        assert_eq!(ScriptedPf::new([reply]).ask(), unexpected, "{reply:#x}");
    }
}

#[test]
fn pf_notice_before_the_mailbox_reply_is_kept() {
    let (mut peer, mut mailbox) =
        (ScriptedPf::new([id::PF_CONTROL | CTS, GRANTED, GRANTED]), VfMailbox::default());
    assert_eq!(mailbox.request(&mut peer, &[ASKED]), Ok(()));
    assert_eq!([mailbox.take_notice(), mailbox.take_notice()], [true, false]);
    assert_eq!(mailbox.request(&mut peer, &[ASKED]), Ok(()));
    assert!(!mailbox.take_notice(), "no notice was sent");
}

#[test]
fn old_mailbox_contents_are_not_taken_as_a_reply() {
    for (deaf, error) in [(true, MailboxError::NotAcknowledged(ASKED)), (false, MailboxError::NoReply(ASKED))]
    {
        let mut peer =
            ScriptedPf { deaf, status: v2p::PFSTS | v2p::PFACK, word: GRANTED, ..ScriptedPf::default() };
        let mut mailbox = VfMailbox::default();
        assert_eq!(mailbox.reset_seen(&mut peer), Ok(false), "reading clears the remembered bits");
        assert_eq!(mailbox.request(&mut peer, &[ASKED]), Err(error));
    }
}

#[test]
fn lost_mailbox_reply_blocks_vf_messages_until_reset() {
    let (mut peer, mut mailbox) = (ScriptedPf { deaf: true, ..ScriptedPf::default() }, VfMailbox::default());
    assert_eq!(mailbox.request(&mut peer, &[ASKED]), Err(MailboxError::NotAcknowledged(ASKED)));
    assert_eq!(peer.now, Time::ZERO + QUICK * QUICK_POLLS + PATIENT * PATIENT_POLLS);
    peer = ScriptedPf::new([GRANTED]);
    assert_eq!((mailbox.request(&mut peer, &[ASKED]), mailbox.is_lost()), (Err(MailboxError::Lost), true));
    mailbox.forget();
    assert_eq!((mailbox.request(&mut peer, &[ASKED]), mailbox.is_lost()), (Ok(()), false));
}

/// A host that dies resets its VFs. The address in a reply to VF_RESET has two dwords.
#[test]
fn reset_amid_a_mailbox_reply_loses_the_reply() {
    let mut peer = ScriptedPf { resets: true, ..ScriptedPf::new([id::VF_RESET | ACK]) };
    let (mut mailbox, mut reply) = (VfMailbox::default(), [0; 3]);
    assert_eq!(mailbox.exchange(&mut peer, &[id::VF_RESET], &mut reply), Err(MailboxError::LockLost));
    assert!(mailbox.is_lost(), "no message is sent until the next reset");
}

#[test]
fn wait_for_a_locked_mailbox_is_bounded() {
    let mut peer = ScriptedPf { held: true, ..ScriptedPf::default() };
    assert_eq!(peer.ask(), Err(MailboxError::Locked));
    assert_eq!(peer.now, Time::ZERO + QUICK * QUICK_POLLS);
}
