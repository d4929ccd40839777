//! A hostile vfio-user server that answers our client with any bytes in any pieces, with descriptors anywhere.
//!
//! The input is a list of moves: a request of the client, raw bytes, or a reply with a valid header to the oldest request, so
//! that the fuzzer reaches the code behind the header's checks. Checked: no panic, replies in the order of the requests,
//! data of the requested length at most, and no descriptor left at the end.
#![cfg_attr(not(test), no_main)]

use std::collections::VecDeque;
use std::rc::Rc;

use softiov_fuzz::FuzzerInput;
use vfio_user::client::{Client, ClientDmaWindow};
use vfio_user::outbox::MessageOutbox;

softiov_fuzz::target!(run);

type FakeDescriptor = Rc<()>;

/// Client with the requests that it has sent.
struct AnsweredClient {
    client: Client<FakeDescriptor>,
    out: MessageOutbox<FakeDescriptor>,
    /// Id and command number of each request without a reply.
    pending: VecDeque<(u16, u16)>,
    descriptor: FakeDescriptor,
}

impl AnsweredClient {
    /// Sends a request of the client.
    fn request(&mut self, kind: u8, detail: u8) {
        let (client, out, small) = (&mut self.client, &mut self.out, u32::from(detail));
        let window = ClientDmaWindow { iova: 0x1000, size: 0x1000, offset: 0, writable: detail & 1 != 0 };
        let request = match kind % 11 {
            0 => (client.version(out), 1),
            1 => (client.dma_map(out, window, None), 2),
            2 => (client.dma_unmap(out, 0, small.into()), 3),
            3 => (client.device_info(out), 4),
            4 => (client.region_info(out, small % 10, 32 + 16 * small), 5),
            5 => (client.irq_info(out, small % 6), 7),
            6 => (client.disable_irqs(out, small % 6), 8),
            7 | 8 => (client.read(out, small % 9, 0, small), 9),
            9 => (client.write(out, 0, 0, &[detail]), 10),
            _ => (client.reset(out), 13),
        };
        self.pending.push_back(request);
        let length = self.out.pending();
        self.out.sent(length);
    }

    /// Passes bytes of the server to the client. Returns false if the client ends the connection.
    fn push(&mut self, bytes: &[u8], fds: usize) -> bool {
        if self.client.push(bytes, std::iter::repeat_n(self.descriptor.clone(), fds)).is_err() {
            return false;
        }
        loop {
            match self.client.next_reply() {
                Ok(None) => return true,
                Ok(Some(reply)) => {
                    let request = self.pending.pop_front();
                    assert_eq!(
                        request,
                        Some((reply.id, reply.command.number())),
                        "a reply without a request"
                    );
                }
                Err(_) => return false,
            }
        }
    }
}

/// Makes the next move of client or server. Returns `None` at the end of the connection or of the input.
fn make_move(client: &mut AnsweredClient, input: &mut FuzzerInput<'_>) -> Option<()> {
    let [kind, detail, fds] = input.array()?;
    let fds = usize::from(fds % 20);
    let open = match kind % 4 {
        0 => {
            client.request(kind >> 2, detail);
            true
        }
        1 => client.push(input.bytes(detail.into()), fds),
        _ => {
            let body = input.bytes(usize::from(detail)).to_vec();
            let (id, command) = client.pending.front().copied().unwrap_or((0, u16::from(detail)));
            let flags: u32 = if kind & 0x20 != 0 { 0x21 } else { 1 };
            let mut message = [id.to_le_bytes(), command.to_le_bytes()].concat();
            message.extend((16 + body.len() as u32).to_le_bytes());
            message.extend(flags.to_le_bytes());
            message.extend(u32::from(kind >> 6).to_le_bytes());
            message.extend(body);
            let cut = usize::from(kind >> 4).min(message.len());
            client.push(&message[..cut], 0) && client.push(&message[cut..], fds)
        }
    };
    open.then_some(())
}

fn run(data: &[u8]) {
    let descriptor = FakeDescriptor::default();
    let mut client = AnsweredClient {
        client: Client::new(),
        out: MessageOutbox::new(),
        pending: VecDeque::new(),
        descriptor: descriptor.clone(),
    };
    let mut input = FuzzerInput(data);
    while make_move(&mut client, &mut input).is_some() {}
    assert!(client.client.pending() <= client.pending.len() + 1);
    drop(client);
    assert_eq!(Rc::strong_count(&descriptor), 1, "every descriptor is closed");
}
