//! A hostile vhost-user back end that answers our front end with any bytes in any pieces, with descriptors anywhere.
//!
//! The input is a list of moves: a request of the front end, raw bytes, or a reply with a valid header to the oldest request.
//! Checked: no panic, no reply without a request, and no descriptor left at the end.
#![cfg_attr(not(test), no_main)]

use std::collections::VecDeque;
use std::rc::Rc;

use softiov_fuzz::FuzzerInput;
use vhost_user::frontend::{BackendReply, Frontend};
use vhost_user::message::{FrontendRequest, RequestCode};
use vhost_user::outbox::OutgoingMessages;

softiov_fuzz::target!(run);

type FakeDescriptor = Rc<()>;

/// Front end with the requests that it has sent and that have a reply.
struct AnsweredFrontEnd {
    front_end: Frontend<FakeDescriptor>,
    out: OutgoingMessages<FakeDescriptor>,
    pending: VecDeque<u32>,
    descriptor: FakeDescriptor,
}

impl AnsweredFrontEnd {
    /// Sends a request whose body is in the input, if the body is valid for it.
    fn request(&mut self, code: u8, acknowledged: bool, body: &[u8]) {
        let code = RequestCode::ALL[usize::from(code) % RequestCode::ALL.len()];
        let Ok(request) = FrontendRequest::parse(code, body) else { return };
        if acknowledged {
            self.front_end.send_acknowledged(&mut self.out, &request, Vec::new());
        } else {
            self.front_end.send(&mut self.out, &request, Vec::new());
        }
        if acknowledged || code.has_reply() {
            self.pending.push_back(code.number());
        }
        let length = self.out.pending();
        self.out.sent(length);
    }

    /// Passes bytes of the back end to the front end, as `recvmsg` calls do. Returns false if the front end ends the
    /// connection.
    fn push(&mut self, mut bytes: &[u8], fds: usize) -> bool {
        let mut fds = vec![self.descriptor.clone(); fds];
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(self.front_end.room().min(bytes.len()));
            if self.front_end.push(piece, &mut fds).is_err() {
                return false;
            }
            loop {
                match self.front_end.next_reply() {
                    Ok(None) => break,
                    Ok(Some(reply)) => {
                        assert!(self.pending.pop_front().is_some(), "a reply without a request");
                        if let BackendReply::Refused(number) = reply {
                            assert_ne!(number, 0);
                        }
                    }
                    Err(_) => return false,
                }
            }
            bytes = rest;
        }
        true
    }
}

/// Makes the next move of either side. Returns `None` at the end of the connection or of the input.
fn make_move(front_end: &mut AnsweredFrontEnd, input: &mut FuzzerInput<'_>) -> Option<()> {
    let [kind, detail, length] = input.array()?;
    let fds = usize::from(kind >> 2 & 3);
    let open = match kind % 4 {
        0 => {
            front_end.request(detail, kind & 0x80 != 0, input.bytes(usize::from(length)));
            true
        }
        1 => front_end.push(input.bytes(length.into()), fds),
        _ => {
            let body = input.bytes(usize::from(length)).to_vec();
            let code = front_end.pending.front().copied().unwrap_or(detail.into());
            let header = [code, if kind & 0x40 == 0 { 5 } else { detail.into() }, body.len() as u32];
            let mut message: Vec<u8> = header.into_iter().flat_map(u32::to_le_bytes).collect();
            message.extend(body);
            let cut = usize::from(kind >> 4).min(message.len());
            front_end.push(&message[..cut], 0) && front_end.push(&message[cut..], fds)
        }
    };
    open.then_some(())
}

fn run(data: &[u8]) {
    let descriptor = FakeDescriptor::default();
    let mut front_end = AnsweredFrontEnd {
        front_end: Frontend::new(),
        out: OutgoingMessages::new(),
        pending: VecDeque::new(),
        descriptor: descriptor.clone(),
    };
    let mut input = FuzzerInput(data);
    while make_move(&mut front_end, &mut input).is_some() {}
    assert!(front_end.front_end.pending() <= front_end.pending.len() + 1);
    drop(front_end);
    assert_eq!(Rc::strong_count(&descriptor), 1, "every descriptor is closed");
}
