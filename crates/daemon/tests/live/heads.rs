//! Tests of the HTTP heads of requests to the control interface: `Host`, request targets, and `Accept` for the metrics.
//! `control` tests bodies.

use crate::support::http::{HttpReply, send};
use crate::support::live::LiveHost;

fn ask(live: &LiveHost, line: &str, headers: &str) -> HttpReply {
    send(&live.control_socket(), format!("{line}\r\n{headers}connection: close\r\n\r\n").as_bytes())
}

#[test]
fn http_1_1_request_needs_exactly_one_valid_host_header() {
    let live = LiveHost::start();
    for path in ["/v1/ports", "/metrics", "/", "/v1/nothing"] {
        let status =
            |version: &str, hosts: &str| ask(&live, &format!("GET {path} HTTP/{version}"), hosts).status;
        let served = if path.ends_with("nothing") { 404 } else { 200 };
        for hosts in ["host: localhost\r\n", "Host: 127.0.0.1:9582\r\n", "host: [::1]:80\r\n", "host:\r\n"] {
            assert_eq!(status("1.1", hosts), served, "{path} {hosts:?}");
        }
        for hosts in ["", "host: a\r\nhost: a\r\n", "host: a b\r\n", "host: me@a\r\n", "host: a/b\r\n"] {
            assert_eq!(status("1.1", hosts), 400, "{path} {hosts:?}");
        }
        assert_eq!(status("1.0", ""), served, "{path}: HTTP/1.0 needs no Host");
        assert_eq!(status("1.0", "host: a\r\nhost: b\r\n"), 400, "{path}");
    }
    let reply = ask(&live, "GET /v1/ports HTTP/1.1", "");
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    assert!(reply.json()["detail"].as_str().unwrap().contains("no Host header"), "{reply:?}");
}

#[test]
fn http_request_with_absolute_target_needs_a_host_header() {
    let live = LiveHost::start();
    let line = "GET http://elsewhere.example/v1/ports HTTP/1.1";
    assert_eq!(ask(&live, line, "host: another.example\r\n").status, 200);
    assert_eq!(ask(&live, line, "").status, 400);
}

#[test]
fn metrics_have_the_format_of_the_accept_header() {
    let live = LiveHost::start();
    for (accept, form) in [
        ("accept: application/openmetrics-text;q=0, text/plain\r\n", "text/plain; version=0.0.4"),
        ("accept: text/plain\r\naccept: application/openmetrics-text;q=0.5\r\n", "text/plain; version=0.0.4"),
        (
            "accept: text/plain;q=0.5\r\naccept: application/openmetrics-text\r\n",
            "application/openmetrics-text",
        ),
        ("", "text/plain; version=0.0.4"),
    ] {
        let reply = ask(&live, "GET /metrics HTTP/1.1", &format!("host: x\r\n{accept}"));
        let kind = reply.header("content-type").unwrap_or_default();
        assert!(kind.starts_with(form), "{accept:?}: {kind}");
        assert_eq!(reply.body.ends_with("# EOF\n"), form.starts_with("application"), "{accept:?}");
        assert_eq!(reply.header("vary"), Some("accept"));
    }
}
