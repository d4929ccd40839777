//! Cases on the control interface: HTTP requests that no client sends.

use super::remedies::{HTTP, HTTP_STREAM, ROUTE};
use crate::case::Attack::Control;
use crate::case::AttackCase;
use crate::case::row;
use crate::control::ControlStep::{End, EndSending, Reconnect, Repeat, Status, Text, Texts};
use crate::family::AttackedFamily::I82576;

pub(super) const CASES: &[AttackCase] = &[
    row(
        "no-http-at-all",
        I82576,
        "Bytes that are no HTTP end their own connection",
        HTTP,
        Control(&[Texts("\u{0}\u{1}\u{7f}", 2000), EndSending, End]),
    ),
    row(
        "header-without-an-end",
        I82576,
        "A header has a bounded length",
        HTTP,
        Control(&[Text("GET /v1/ports HTTP/1.1\r\nhost: x\r\nx: "), Texts("y", 4 << 20), EndSending, End]),
    ),
    row(
        "ten-thousand-header-fields",
        I82576,
        "The number of header fields is bounded",
        HTTP,
        Control(&[
            Text("GET /v1/ports HTTP/1.1\r\nhost: x\r\n"),
            Texts("a: b\r\n", 10_000),
            Text("\r\n"),
            Status(400, 499),
        ]),
    ),
    row(
        "body-that-claims-a-terabyte",
        I82576,
        "A claimed length of a body allocates no memory, and is refused",
        HTTP,
        Control(&[
            Text("PATCH /v1/vfs/pf0vf3 HTTP/1.1\r\nhost: softiov\r\ncontent-length: 1099511627776\r\n\r\n{"),
            Status(400, 499),
        ]),
    ),
    row(
        "path-that-leaves-its-folder",
        I82576,
        "A path names a route, and never a file",
        ROUTE,
        Control(&[
            Text("GET /v1/vfs/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1\r\nhost: softiov\r\n\r\n"),
            Status(400, 499),
        ]),
    ),
    row(
        "json-nested-deeply",
        I82576,
        "Nested JSON uses bounded stack",
        HTTP,
        Control(&[
            Text(
                "PATCH /v1/vfs/pf0vf3 HTTP/1.1\r\nhost: softiov\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n",
            ),
            Texts("[", 100_000),
            Status(400, 499),
        ]),
    ),
    row(
        "unknown-port",
        I82576,
        "A port that does not exist is refused with a status, and not looked up by index",
        ROUTE,
        Control(&[
            Text("GET /v1/ports/pf99999999999999999999 HTTP/1.1\r\nhost: softiov\r\n\r\n"),
            Status(404, 404),
        ]),
    ),
    row(
        "two-hundred-idle-connections",
        I82576,
        "Connections that ask nothing are bounded, and leave nothing behind",
        HTTP,
        Control(&[Repeat(200, &[Reconnect, Text("GET ")])]),
    ),
    row(
        "requests-in-a-row-without-reading",
        I82576,
        "Requests of a client that reads no answer are bounded",
        HTTP_STREAM,
        Control(&[Repeat(20, &[Text("GET /metrics HTTP/1.1\r\nhost: softiov\r\n\r\n")])]),
    ),
];
