//! Tests that consuming removes exactly the peeked bytes from a socket.

use super::super::{ReceivedFds, SocketReceiveResult, StreamSocket};
use rustix::fd::AsFd;

#[test]
fn peek_offset_of_a_socket_counts_consumed_bytes() {
    let (a, b) = StreamSocket::pair().unwrap();
    assert!(b.peek_offset().is_err(), "the socket counts from the first peek_from on");
    b.peek_from(0).unwrap();
    // Equal bytes, so that only the kernel's offset distinguishes them.
    for _ in 0..60 {
        a.send(&[0; 3], &[]).unwrap();
    }
    let mut buffer = [0; 256];
    assert_eq!(b.peek(&mut buffer, &mut ReceivedFds::new()).unwrap(), SocketReceiveResult::Bytes(180));
    let copy = StreamSocket::adopt(b.as_fd().try_clone_to_owned().unwrap()).unwrap();
    for (taken, left) in [(1, 179), (3, 176), (50, 126), (126, 0)] {
        assert_eq!(b.consume(&mut buffer[..taken]).unwrap(), taken);
        assert_eq!(copy.peek_offset().unwrap(), left, "another process sees the same");
    }
}

#[test]
fn peeked_socket_bytes_stay_until_consumed() {
    let (a, b) = StreamSocket::pair().unwrap();
    b.peek_from(0).unwrap();
    let peek = |expected: &[u8], descriptors| {
        let (mut buffer, mut fds) = ([0; 64], ReceivedFds::new());
        assert_eq!(b.peek(&mut buffer, &mut fds).unwrap(), SocketReceiveResult::Bytes(expected.len()));
        assert_eq!((&buffer[..expected.len()], fds.len()), (expected, descriptors));
    };
    a.send(b"one", &[]).unwrap();
    a.send(b"two", &[a.as_fd()]).unwrap();
    a.send(b"three", &[]).unwrap();
    peek(b"onetwo", 1);
    peek(b"three", 0);
    assert_eq!(b.peek(&mut [0; 8], &mut ReceivedFds::new()).unwrap(), SocketReceiveResult::WouldBlock);
    // A successor without notes peeks at everything again.
    b.peek_from(0).unwrap();
    peek(b"onetwo", 1);
    assert_eq!(b.consume(&mut [0; 6]).unwrap(), 6);
    a.send(b"four", &[]).unwrap();
    peek(b"threefour", 0);
    assert_eq!(b.consume(&mut [0; 9]).unwrap(), 9);
    assert!(!b.has_unread());
}

/// Peeks until nothing is left. Returns the bytes and number of file descriptors of each peek.
fn peek_all(stream: &StreamSocket, buffer: &mut [u8]) -> Vec<(Vec<u8>, usize)> {
    let mut all = Vec::new();
    loop {
        let mut fds = ReceivedFds::new();
        match stream.peek(buffer, &mut fds).unwrap() {
            SocketReceiveResult::Bytes(count) => all.push((buffer[..count].to_vec(), fds.len())),
            _ => return all,
        }
    }
}

#[test]
fn descriptors_sent_amid_socket_bytes_are_received_once() {
    for before in 0..80 {
        let (a, b) = StreamSocket::pair().unwrap();
        b.peek_from(0).unwrap();
        if before > 0 {
            a.send(&vec![1; before], &[]).unwrap();
        }
        a.send(&[2; 8], &[a.as_fd()]).unwrap();
        a.send(&[3; 8], &[]).unwrap();
        let all = peek_all(&b, &mut [0; 64]);
        let with: Vec<_> =
            all.iter().filter(|(_, fds)| *fds > 0).map(|(bytes, fds)| (bytes.last(), *fds)).collect();
        assert_eq!(with, [(Some(&2), 1)], "behind {before} bytes");
        let bytes: Vec<u8> = all.into_iter().flat_map(|(bytes, _)| bytes).collect();
        assert_eq!(bytes, [&vec![1; before][..], &[2; 8], &[3; 8]].concat());
    }
}

#[test]
fn urgent_socket_bytes_are_read_in_order() {
    use rustix::net::{SendFlags, send};
    let (a, b) = StreamSocket::pair().unwrap();
    b.peek_from(0).unwrap();
    let said: Vec<u8> = (0..100).collect();
    for (round, part) in said.chunks(7).enumerate() {
        let flags = if round % 3 == 1 { SendFlags::empty() } else { SendFlags::OOB };
        match send(&a, part, flags) {
            // A kernel without CONFIG_AF_UNIX_OOB refuses such bytes.
            Err(rustix::io::Errno::OPNOTSUPP) => return,
            sent => assert_eq!(sent, Ok(part.len())),
        }
    }
    let seen: Vec<u8> = peek_all(&b, &mut [0; 64]).into_iter().flat_map(|(bytes, _)| bytes).collect();
    assert_eq!(seen, said);
    let (mut taken, mut buffer) = (Vec::new(), [0; 9]);
    while taken.len() < said.len() {
        let room = buffer.len().min(said.len() - taken.len());
        let count = b.consume(&mut buffer[..room]).unwrap();
        taken.extend_from_slice(&buffer[..count]);
        assert_eq!(b.peek_offset().unwrap(), said.len() - taken.len());
    }
    assert_eq!(taken, said);
    assert!(!b.has_unread());
}
