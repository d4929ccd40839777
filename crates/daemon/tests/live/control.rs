//! The control socket: bad requests are told so, slow clients are cut off and delay nobody. Left out: what requests do.

use crate::support::live::Live;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// Less than the time that one client may take; a host that waited for clients would need a multiple of it.
const ONE_CLIENT: Duration = Duration::from_secs(4);

fn ask(live: &Live, text: &str) -> String {
    let mut stream = UnixStream::connect(live.control_socket()).unwrap();
    // The host may answer before it has read all of what makes no sense.
    let _ = stream.write_all(format!("{text}\n").as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn what_is_no_request_is_refused_by_name() {
    let live = Live::start();
    for text in
        ["", "{", "[]", "null", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"vf.explode\",\"params\":{}}"]
    {
        let answer = ask(&live, text);
        assert!(answer.contains("-32600") && answer.contains("not a request"), "{text}: {answer}");
    }
    let nested = "[".repeat(200_000);
    assert!(ask(&live, &nested).contains("-32600"), "deep nesting");
    let path = r#"{"jsonrpc":"2.0","id":7,"method":"vf.show","params":{"vf":"../../etc/passwd"}}"#;
    let answer = ask(&live, path);
    assert!(answer.contains("no VF is called") && answer.contains("pf0vf6"), "{answer}");
    assert_eq!(live.port().vfs.len(), 7);
}

#[test]
fn a_client_that_trickles_does_not_keep_the_others_waiting() {
    let live = Live::start();
    let mut slow = UnixStream::connect(live.control_socket()).unwrap();
    let trickle = thread::spawn(move || {
        let start = Instant::now();
        // A byte now and then, so that no single read takes long.
        while start.elapsed() < Duration::from_secs(15) && slow.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
        start.elapsed()
    });
    thread::sleep(Duration::from_millis(20));
    assert_eq!(live.port().vfs.len(), 7);
    assert!(trickle.join().unwrap() < Duration::from_secs(10), "it was cut off");
}

#[test]
fn the_host_ends_while_a_client_says_nothing() {
    let live = Live::start();
    let _silent = UnixStream::connect(live.control_socket()).unwrap();
    assert_eq!(live.stop(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn silent_clients_keep_nobody_waiting() {
    let live = Live::start();
    // More of them than the host serves at a time.
    let silent: Vec<UnixStream> =
        (0..100).map(|_| UnixStream::connect(live.control_socket()).unwrap()).collect();
    let asked = Instant::now();
    assert_eq!(live.port().vfs.len(), 7);
    assert!(asked.elapsed() < ONE_CLIENT, "answered after {:?}", asked.elapsed());
    drop(silent);
    assert_eq!(live.port().vfs.len(), 7);
}

#[test]
fn a_client_that_does_not_read_its_answer_keeps_nobody_waiting() {
    let live = Live::start();
    let lazy: Vec<UnixStream> = (0..8)
        .map(|_| {
            let mut stream = UnixStream::connect(live.control_socket()).unwrap();
            stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"port.list\"}\n").unwrap();
            stream
        })
        .collect();
    let asked = Instant::now();
    assert_eq!(live.port().vfs.len(), 7);
    assert!(asked.elapsed() < ONE_CLIENT, "answered after {:?}", asked.elapsed());
    for mut stream in lazy {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("pf0vf6"), "{answer}");
    }
}

#[test]
fn what_is_not_utf_8_is_refused_by_name() {
    let live = Live::start();
    for bytes in [&b"\xff\xfe\n"[..], b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"vf.show\xc3\x28\"}\n"] {
        let mut stream = UnixStream::connect(live.control_socket()).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("-32600") && answer.contains("not a request"), "{bytes:?}: {answer}");
    }
}

#[test]
fn a_request_may_come_in_pieces_or_without_its_end_of_line() {
    let live = Live::start();
    let request = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"port.list\"}";
    for with_end in [true, false] {
        let mut stream = UnixStream::connect(live.control_socket()).unwrap();
        for byte in request {
            stream.write_all(&[*byte]).unwrap();
        }
        if with_end {
            stream.write_all(b"\n").unwrap();
        } else {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("pf0vf6"), "{answer}");
    }
}
