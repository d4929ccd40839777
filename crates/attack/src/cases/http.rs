//! Cases on requests of the HTTP interface: methods, heads and bodies that no client sends. The host answers each with a status, or
//! ends the connection.

use super::remedies::{HTTP, HTTP_STREAM, ROUTE};
use crate::case::Attack::Control;
use crate::case::AttackCase;
use crate::case::row;
use crate::control::ControlStep::{self, ConnectAgain, End, EndSending, Repeat, Status, Text, Texts};
use crate::family::AttackedFamily::I82576;

/// Row of a request and the lowest and highest status of its answer.
macro_rules! status {
    ($name:literal, $rule:literal, $remedy:expr, $request:expr, $lowest:literal, $highest:literal $(,)?) => {
        row($name, I82576, $rule, $remedy, Control(&[Text($request), Status($lowest, $highest)]))
    };
}

/// Row of a change of a VF that is refused.
macro_rules! change {
    ($name:literal, $rule:literal, $length:literal, $body:literal $(,)?) => {
        status!(
            $name,
            $rule,
            ROUTE,
            concat!(
                "PATCH /v1/vfs/pf0vf3 HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ",
                $length,
                "\r\n\r\n",
                $body
            ),
            400,
            499
        )
    };
}

/// Row of bytes after which the host ends the connection.
const fn ended(name: &'static str, rule: &'static str, steps: &'static [ControlStep]) -> AttackCase {
    row(name, I82576, rule, HTTP, Control(steps))
}

pub(super) const CASES: &[AttackCase] = &[
    status!(
        "method-that-does-not-exist",
        "A method that a route lacks is refused",
        ROUTE,
        "BREW /v1/ports HTTP/1.1\r\nhost: x\r\n\r\n",
        400,
        499
    ),
    status!(
        "delete-of-a-port",
        "A port cannot be deleted by a request",
        ROUTE,
        "DELETE /v1/ports/pf0 HTTP/1.1\r\nhost: x\r\n\r\n",
        400,
        499
    ),
    status!(
        "route-that-does-not-exist",
        "A path without a route is not found",
        ROUTE,
        "GET /v1/etc/passwd HTTP/1.1\r\nhost: x\r\n\r\n",
        404,
        404
    ),
    status!(
        "path-with-a-zero-byte",
        "An escaped zero byte ends no name",
        ROUTE,
        "GET /v1/vfs/pf0vf3%00 HTTP/1.1\r\nhost: x\r\n\r\n",
        400,
        499
    ),
    status!(
        "path-that-is-not-utf8",
        "An escaped byte that is no UTF-8 is refused",
        ROUTE,
        "GET /v1/vfs/%ff%fe HTTP/1.1\r\nhost: x\r\n\r\n",
        400,
        499
    ),
    status!(
        "vf-minus-one",
        "A VF's number has no sign",
        ROUTE,
        "GET /v1/vfs/pf0vf-1 HTTP/1.1\r\nhost: x\r\n\r\n",
        400,
        499
    ),
    status!(
        "vf-256",
        "A VF's number is not cut to 8 bits",
        ROUTE,
        "GET /v1/vfs/pf0vf256 HTTP/1.1\r\nhost: x\r\n\r\n",
        400,
        499
    ),
    status!(
        "connect-to-another-host",
        "The host is no proxy, and tunnels to no other host",
        HTTP,
        "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n",
        400,
        499
    ),
    status!(
        "events-since-a-number-of-100-digits",
        "A number that does not fit is refused or begins at the first event",
        ROUTE,
        "GET /v1/events?since=9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999 HTTP/1.1\r\nhost: x\r\n\r\n",
        200,
        499
    ),
    change!("change-of-no-bytes", "A change without a body is refused", "0", ""),
    change!("change-that-is-a-number", "A change is an object", "4", "1234"),
    change!(
        "change-with-an-unknown-key",
        "A setting that does not exist is refused, and nothing is changed",
        "23",
        "{\"set\":{\"absent\":false}}"
    ),
    change!(
        "change-to-vlan-4096",
        "A VLAN that does not exist is refused",
        "21",
        "{\"set\":{\"vlan\":4096}}"
    ),
    change!(
        "change-to-a-negative-rate",
        "A rate has no sign: a negative one is refused",
        "26",
        "{\"set\":{\"max_tx_rate\":-1}}"
    ),
    change!(
        "change-to-a-rate-of-400-digits",
        "A number beyond 64 bits is refused",
        "32",
        "{\"set\":{\"max_tx_rate\":1e400}}   "
    ),
    change!(
        "change-to-a-group-address",
        "A group address is no VF's address",
        "37",
        "{\"set\":{\"mac\":\"01:00:5e:00:00:01\"}}   "
    ),
    change!(
        "change-to-a-neighbours-address",
        "An address of another VF is refused",
        "37",
        "{\"set\":{\"mac\":\"02:00:00:00:00:02\"}}   "
    ),
    change!("change-that-is-not-utf8", "A body that is no JSON is refused", "5", "{\"\\ud"),
    status!(
        "change-of-another-type",
        "A body of another type than JSON is refused",
        HTTP,
        "PATCH /v1/vfs/pf0vf3 HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}",
        400,
        499
    ),
    ended(
        "two-lengths",
        "A request with two lengths is refused: a proxy would take the other one",
        &[
            Text(
                "PATCH /v1/vfs/pf0vf3 HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
            ),
            EndSending,
            End,
        ],
    ),
    ended(
        "length-and-chunks",
        "A request with a length and chunks is refused or read as chunks",
        &[
            Text(
                "PATCH /v1/vfs/pf0vf3 HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            ),
            EndSending,
            End,
        ],
    ),
    ended(
        "chunk-of-sixteen-digits",
        "A chunk's claimed length allocates nothing",
        &[
            Text(
                "PATCH /v1/vfs/pf0vf3 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{",
            ),
            EndSending,
            End,
        ],
    ),
    ended(
        "body-that-ends-early",
        "A body shorter than its length is refused, and changes nothing",
        &[
            Text(
                "PATCH /v1/vfs/pf0vf3 HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{",
            ),
            EndSending,
            End,
        ],
    ),
    ended(
        "preface-of-http-2",
        "The preface of HTTP/2 is refused",
        &[Text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), EndSending, End],
    ),
    ended(
        "line-without-an-end",
        "A request line has a bounded length",
        &[Text("GET /"), Texts("a", 1 << 20), EndSending, End],
    ),
    ended(
        "hello-of-tls",
        "A greeting of TLS is refused",
        &[Texts("\u{16}\u{3}\u{1}\u{2}\u{0}", 100), EndSending, End],
    ),
    row(
        "sixty-four-connections-that-stay",
        I82576,
        "Idle connections up to the limit and beyond leave a place for a client that asks",
        HTTP,
        Control(&[Repeat(80, &[ConnectAgain])]),
    ),
    row(
        "forty-halves-of-a-request",
        I82576,
        "Clients that send half a request leave a place for a client that asks",
        HTTP,
        Control(&[Repeat(40, &[Text("GET /v1/ports HTTP/1.1\r\nho"), ConnectAgain])]),
    ),
    row(
        "event-streams-that-are-not-read",
        I82576,
        "Streams of events that are not read cost a bounded amount of memory",
        HTTP_STREAM,
        Control(&[Repeat(20, &[Text("GET /v1/events/stream HTTP/1.1\r\nhost: x\r\n\r\n"), ConnectAgain])]),
    ),
    row(
        "captures-that-are-not-read",
        I82576,
        "Captures that are not read lose frames, and delay no port",
        HTTP_STREAM,
        Control(&[Repeat(8, &[Text("GET /v1/ports/pf0/capture HTTP/1.1\r\nhost: x\r\n\r\n"), ConnectAgain])]),
    ),
];
