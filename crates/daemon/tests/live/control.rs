//! Tests of the control interface with hostile clients: invalid requests are refused with the reason, clients that are
//! too slow or send too much are disconnected, and other clients are not disturbed.

use crate::support::http::{self, HttpReply, send};
use crate::support::live::LiveHost;
use crate::support::{PATIENCE, eventually};
use proptest::prelude::{Strategy, any, prop, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// Number of simultaneous slow control clients. The host gives each of them 5 seconds. If it served them one after the
/// other, further clients would wait longer than [`PATIENCE`].
const SLOW: usize = 20;

/// Returns true if the host has closed a control connection; does not read from the connection.
fn has_hung_up(client: &UnixStream) -> bool {
    let mut fds = [PollFd::new(client, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).unwrap() > 0 && fds[0].revents().contains(PollFlags::HUP)
}

fn connect(live: &LiveHost) -> UnixStream {
    UnixStream::connect(live.control_socket()).unwrap()
}

/// Checks that an error reply of the control interface is well-formed problem JSON, and returns its status, kind and
/// detail.
fn problem(reply: &HttpReply) -> (u16, String, String) {
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{reply:?}");
    let problem = reply.json();
    assert_eq!(problem["status"], reply.status);
    let text = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    assert!(!text("title").is_empty() && !text("remedy").is_empty() && text("instance").starts_with('/'));
    (reply.status, text("type").replace("urn:softiov:problem:", ""), text("detail"))
}

/// Checks that the host answers a further control client in time while slow clients are connected.
fn others_are_served(live: &LiveHost) {
    let asked = Instant::now();
    assert_eq!(live.port().vfs.len(), 7);
    assert!(asked.elapsed() < PATIENCE, "answered after {:?}", asked.elapsed());
}

#[test]
fn invalid_control_request_is_refused_with_a_remedy() {
    let live = LiveHost::start();
    let at = |method: &str, path: &str, body: &str| {
        problem(&http::ask(&live.control_socket(), method, path, body))
    };
    let nested = format!("{{\"set\":{}", "[".repeat(200_000));
    for body in
        ["", "{", "[]", "null", "{\"set\":{\"vlan\":\"x\"}}", "{\"set\":{\"lan\":1}}", "{\"wet\":1}", &nested]
    {
        let (status, kind, detail) = at("PATCH", "/v1/vfs/pf0vf0", body);
        assert_eq!((status, kind.as_str()), (400, "malformed"), "{body:.40}: {detail}");
        assert!(detail.contains("line 1"), "{detail}");
    }
    let (status, kind, detail) = at("GET", "/v1/vfs/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "");
    assert!((status, kind.as_str()) == (404, "no-such-name") && detail.contains("pf0vf6"), "{detail}");
    let (status, kind, detail) = at("PATCH", "/v1/vfs/pf0vf0", "{\"set\":{\"vlan\":4096}}");
    assert!((status, kind.as_str()) == (409, "refused") && detail.contains("1 to 4095"), "{detail}");
    for (method, path, expected) in [
        ("GET", "/v1/vfs/%ff", (400, "malformed")),
        ("GET", "/v1/events?after=x", (400, "malformed")),
        ("GET", "/v1/events?since=1", (400, "malformed")),
        ("GET", "/v1/explode", (404, "no-such-path")),
        ("GET", "/v2/ports", (404, "no-such-path")),
        ("DELETE", "/v1/vfs/pf0vf0", (405, "wrong-method")),
    ] {
        let (status, kind, _) = at(method, path, "");
        assert_eq!((status, kind.as_str()), expected, "{method} {path}");
    }
    let allow = http::ask(&live.control_socket(), "PUT", "/v1/vfs/pf0vf0", "");
    assert_eq!(allow.header("allow"), Some("GET,HEAD,PATCH"));
    let form = "PATCH /v1/vfs/pf0vf0 HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    let (status, kind, _) = problem(&send(&live.control_socket(), form.as_bytes()));
    assert_eq!((status, kind.as_str()), (415, "not-json"));
    assert_eq!(live.show(0).settings.vlan, Some(0), "a refused request has changed something");
}

#[test]
fn control_request_other_than_http_is_refused() {
    let live = LiveHost::start();
    for bytes in [
        &b"\n\n\n{}\n"[..],
        b"\xff\xfe\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/3\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
    ] {
        let reply = send(&live.control_socket(), bytes);
        assert!((400..500).contains(&reply.status), "{bytes:?}: {reply:?}");
    }
    others_are_served(&live);
}

#[test]
fn lengths_of_http_heads_and_bodies_are_bounded() {
    let live = LiveHost::start();
    let head = format!("GET /v1/ports HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    assert_eq!(send(&live.control_socket(), head.as_bytes()).status, 431);
    let many = format!("GET /v1/ports HTTP/1.1\r\nhost: x\r\n{}\r\n", "x: y\r\n".repeat(1000));
    assert_eq!(send(&live.control_socket(), many.as_bytes()).status, 431);
    let told = "PATCH /v1/vfs/pf0vf0 HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    let body = format!("{told}content-length: 2000000\r\n\r\n{}", " ".repeat(2_000_000));
    assert_eq!(problem(&send(&live.control_socket(), body.as_bytes())).1, "too-long");
    // A chunked body does not announce its length.
    let piece = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let chunked = format!("{told}transfer-encoding: chunked\r\n\r\n{}", piece.repeat(40));
    assert_eq!(problem(&send(&live.control_socket(), chunked.as_bytes())).1, "too-long");
    others_are_served(&live);
}

#[test]
fn http_client_sending_slowly_is_cut_off_and_blocks_no_other() {
    let live = LiveHost::start();
    let body = "PATCH /v1/vfs/pf0vf0 HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 90000\r\n\r\n";
    // Half of them are slow in the head of the request, half in the body.
    let begins = ["GET /v1/ports HTTP/1.1\r\n", body].into_iter().cycle().take(SLOW);
    let slow = begins.map(|begin| {
        let mut slow = connect(&live);
        slow.write_all(begin.as_bytes()).unwrap();
        thread::spawn(move || {
            let start = Instant::now();
            // Single bytes in short intervals keep every single read fast.
            while start.elapsed() < PATIENCE && slow.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
            start.elapsed()
        })
    });
    let slow: Vec<_> = slow.collect();
    thread::sleep(Duration::from_millis(20));
    others_are_served(&live);
    for slow in slow {
        assert!(slow.join().unwrap() < PATIENCE, "the slow client was not disconnected");
    }
}

#[test]
fn host_ends_while_clients_are_silent_or_read_events() {
    let live = LiveHost::start();
    let _silent = connect(&live);
    let mut reader = connect(&live);
    reader.write_all(b"GET /v1/events/stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    assert!(reader.read(&mut [0; 100]).unwrap() > 0);
    assert_eq!(live.stop(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn thousand_control_connections_block_no_other_client() {
    let live = LiveHost::start();
    let mut silent = Vec::new();
    for number in 0..1000 {
        // The kernel lets a client wait if too many arrive at once.
        let mut client = connect(&live);
        if number % 2 == 0 {
            // The host may have disconnected it already.
            let _ = client.write_all(b"GET /v1/por");
        }
        silent.push(client);
    }
    others_are_served(&live);
    drop(silent);
    others_are_served(&live);
}

#[test]
fn control_clients_not_reading_replies_block_no_other_client() {
    let live = LiveHost::start();
    let one = b"GET /v1/ports HTTP/1.1\r\nhost: x\r\n\r\n";
    let lazy: Vec<UnixStream> = (0..SLOW)
        .map(|_| {
            let mut client = connect(&live);
            client.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            // Writes until the host reads no more.
            while client.write_all(&one.repeat(100)).is_ok() {}
            client
        })
        .collect();
    others_are_served(&live);
    for mut client in lazy {
        let mut answers = Vec::new();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        // The connection ends; the last answers may be missing.
        let _ = client.read_to_end(&mut answers);
        assert!(String::from_utf8_lossy(&answers).contains("pf0vf6"));
    }
}

#[test]
fn client_that_stops_reading_events_is_cut_off() {
    let live = LiveHost::start();
    for _ in 0..4000 {
        daemon::events::note(event());
    }
    let mut client = connect(&live);
    client.write_all(b"GET /v1/events/stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    eventually("the host has closed the connection", || has_hung_up(&client));
    // The client can still read what was sent before, but nothing more.
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    assert!(rest.len() < 4000 * 500, "{} bytes", rest.len());
    others_are_served(&live);
}

#[test]
fn event_stream_returns_earlier_and_new_events() {
    let live = LiveHost::start();
    let mut reader = connect(&live);
    reader.set_read_timeout(Some(PATIENCE)).unwrap();
    reader.write_all(b"GET /v1/events/stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    let mut wait_for = |wanted: &str| {
        while !text.contains(wanted) {
            let mut piece = [0; 4096];
            let count = reader.read(&mut piece).unwrap();
            assert!(count > 0, "{text}");
            text += &String::from_utf8_lossy(&piece[..count]);
        }
    };
    wait_for("text/event-stream");
    let unique = "something that happens in this test alone";
    daemon::events::note(daemon::events::HostEvent { event: unique.into(), ..event() });
    wait_for(unique);
    wait_for("event: event");
}

fn event() -> daemon::events::HostEvent {
    let (time, level) = ("2026-01-01T00:00:00Z".to_owned(), "info".to_owned());
    daemon::events::HostEvent {
        number: 0,
        time,
        level,
        about: None,
        event: "x".repeat(400),
        fields: serde_json::Map::new(),
    }
}

#[test]
fn http_client_half_closed_or_sending_bytes_singly_is_served() {
    let live = LiveHost::start();
    let request = b"GET /v1/ports HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    for closes in [true, false] {
        let mut client = connect(&live);
        for byte in request {
            client.write_all(&[*byte]).unwrap();
        }
        if closes {
            client.shutdown(Shutdown::Write).unwrap();
        }
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("pf0vf6"), "{answer}");
    }
}

#[test]
fn openapi_description_is_served_and_its_paths_exist() {
    let live = LiveHost::start();
    let description = http::ask(&live.control_socket(), "GET", "/v1/openapi.json", "").json();
    assert_eq!(description, daemon::control::openapi::description());
    for (path, methods) in description["paths"].as_object().unwrap() {
        // These responses have no end.
        if path.ends_with("/stream") || path.ends_with("/capture") {
            continue;
        }
        for method in methods.as_object().unwrap().keys().filter(|method| *method != "post") {
            let path = path.replace("{port}", "pf0").replace("{vf}", "pf0vf0");
            let body = if method == "patch" { "{\"set\":{}}" } else { "" };
            let reply = http::ask(&live.control_socket(), &method.to_uppercase(), &path, body);
            assert_eq!(reply.status, 200, "{method} {path}: {reply:?}");
        }
    }
}

#[test]
fn random_control_requests_do_not_disturb_the_host() {
    let live = LiveHost::start();
    let socket = live.control_socket();
    let word = prop_oneof![
        piece("GET"),
        piece("PATCH"),
        piece("POST"),
        piece(" "),
        piece("/v1/ports"),
        piece("/v1/vfs/pf0vf0"),
        piece("/v1/apply"),
        piece(" HTTP/1.1\r\n"),
        piece("host: x\r\n"),
        piece("content-length: 5\r\n"),
        piece("content-length: 99999999999\r\n"),
        piece("transfer-encoding: chunked\r\n"),
        piece("content-type: application/json\r\n"),
        piece("expect: 100-continue\r\n"),
        piece("\r\n"),
        piece("{\"set\":{\"vlan\":"),
        piece("{\"text\":\"\",\"dry_run\":true"),
        piece("}"),
        piece("0\r\n\r\n"),
    ];
    let any_piece = prop_oneof![word, prop::collection::vec(any::<u8>(), 0..20)];
    let request = prop::collection::vec(any_piece, 0..24).prop_map(|pieces| pieces.concat());
    let mut runner = TestRunner::new(Config { cases: 300, ..Config::default() });
    let outcome = runner.run(&request, |bytes| {
        let mut client = UnixStream::connect(&socket).unwrap();
        // The host may disconnect the client before it has sent everything.
        let _ = client.write_all(&bytes).and_then(|()| client.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        proptest::prop_assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."));
        proptest::prop_assert!(!answer.starts_with(b"HTTP/1.1 5"), "{:?}", String::from_utf8_lossy(&answer));
        Ok(())
    });
    outcome.unwrap();
    assert!(live.is_whole());
    others_are_served(&live);
}

/// Returns a strategy that always generates `text`, a piece of an HTTP request.
fn piece(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    proptest::prelude::Just(text.as_bytes().to_vec())
}
