//! Tests the control interface over TCP: its token, the commands it refuses, and its metrics in Prometheus.
//! `crates/daemon/tests/live` tests the control socket.

use crate::guide::GUIDE;
use crate::process::{PATIENCE, SOFTIOV, ServeProcess, finish, softiov};
use host::test_support::{free_address, skipped};
use rustix::process::{Signal, kill_process};
use std::collections::BTreeSet;
use std::fs::{Permissions, set_permissions, write};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};

pub(crate) const TOKEN: &str = "a-token-of-the-test-alone";
const DASHBOARD: &str = include_str!("../../../../docs/monitoring/grafana-dashboard.json");
const ALERTS: &str = include_str!("../../../../docs/monitoring/prometheus-alerts.yml");

/// Names of metrics without a sample when a host starts: the first sample appears with a refusal, or with the
/// first second of an offence.
const AT_FIRST: [&str; 2] = ["softiov_vf_mailbox_refused_total", "softiov_vf_offence_seconds_total"];

/// Starts a host with a default port that listens on TCP and demands a token. Returns the host and its
/// address.
pub(crate) fn tcp(folder: &TempDir) -> (ServeProcess, SocketAddr) {
    tcp_with(folder, "")
}

/// Starts a host that listens on TCP and demands a token, with ports from a configuration text. Returns the
/// host and its address.
pub(crate) fn tcp_with(folder: &TempDir, ports: &str) -> (ServeProcess, SocketAddr) {
    let token = folder.path().join("token");
    write(&token, format!("{TOKEN}\n")).unwrap();
    set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    let listen = free_address();
    let config = folder.path().join("softiov.toml");
    let http = format!("http = {{ listen = \"{listen}\", token_file = \"{}\" }}\n", token.display());
    write(&config, http + ports).unwrap();
    (ServeProcess::start(folder, &["--config", config.to_str().unwrap()]), listen)
}

/// Sends an HTTP request over TCP, and returns the response's status and whole text.
fn ask(listen: SocketAddr, line: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(listen).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: {listen}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, text)
}

fn with_token() -> String {
    format!("authorization: Bearer {TOKEN}\r\n")
}

#[test]
fn http_over_tcp_requires_the_token_and_refuses_commands() {
    let folder = tempdir().unwrap();
    let (serve, listen) = tcp(&folder);
    let (status, page) = ask(listen, "GET /", "", "");
    assert!(status == 200 && page.contains("<title>SoftIOV</title>") && page.contains("default-src 'none'"));
    for headers in
        ["", "authorization: Bearer a-token-of-the-test-alonf\r\n", "authorization: Basic eDp5\r\n"]
    {
        for line in
            ["GET /metrics", "GET /v1/ports", "GET /v1/events/stream", "GET /v1/nothing", "POST /v1/upgrade"]
        {
            let (status, text) = ask(listen, line, headers, "");
            assert!(
                status == 401 && text.to_lowercase().contains("www-authenticate: bearer"),
                "{line}: {text}"
            );
            assert!(!text.contains(TOKEN) && text.contains("urn:softiov:problem:unauthorized"), "{text}");
        }
    }
    assert_eq!(ask(listen, "GET /v1/ports", &with_token(), "").0, 200);
    let json = format!("{}content-type: application/json\r\n", with_token());
    let (status, text) = ask(listen, "PATCH /v1/vfs/pf0vf0", &json, "{\"set\":{\"vlan\":7}}");
    assert!(status == 200 && text.contains("\"vlan\":7"), "{text}");
    for line in
        ["POST /v1/upgrade", "POST /v1/apply", "POST /v1/ports/pf0/reset", "POST /v1/vfs/pf0vf0/disconnect"]
    {
        let (status, text) = ask(listen, line, &json, "{}");
        assert!(
            status == 403 && text.contains("local-only") && text.contains("control socket"),
            "{line}: {text}"
        );
    }
    assert!(!serve.log().contains(TOKEN));
}

#[test]
fn http_request_over_tcp_needs_a_host_header() {
    let folder = tempdir().unwrap();
    let (_serve, listen) = tcp(&folder);
    for (hosts, expected) in [("", "400"), ("host: a\r\nhost: b\r\n", "400"), ("host: a\r\n", "200")] {
        let mut stream = TcpStream::connect(listen).unwrap();
        let head = format!("GET /metrics HTTP/1.1\r\n{hosts}connection: close\r\n{}\r\n", with_token());
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text.split(' ').nth(1), Some(expected), "{hosts:?}: {text}");
    }
}

#[test]
fn tcp_clients_are_served_after_an_upgrade_and_a_crash() {
    let folder = tempdir().unwrap();
    let (serve, listen) = tcp(&folder);
    let config = folder.path().join("softiov.toml");
    let upgrade = softiov(serve.folder(), &["upgrade", "--config", config.to_str().unwrap()]);
    assert_eq!(upgrade.status, Some(0), "{}", upgrade.err);
    assert_eq!(ask(listen, "GET /metrics", &with_token(), "").0, 200);
    // The socket outlives the process: a client that connects meanwhile waits and is not refused.
    for host in serve.hosts() {
        kill_process(host, Signal::KILL).unwrap();
    }
    let asked = Instant::now();
    assert_eq!(ask(listen, "GET /metrics", &with_token(), "").0, 200, "after {:?}", asked.elapsed());
}

#[test]
fn public_http_address_is_refused_with_a_remedy() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    for (text, remedy) in [
        ("http = { listen = \"0.0.0.0:9582\", token_file = \"/etc/token\" }", "127.0.0.1"),
        ("http = { listen = \"127.0.0.1:9582\" }", "http.token_file"),
    ] {
        write(&file, text).unwrap();
        let mut serve = Command::new(SOFTIOV);
        serve.args(["serve", "--no-keeper", "--config"]).arg(&file);
        let said = finish(serve.arg("--runtime-dir").arg(folder.path().join("sockets")));
        assert!(said.status == Some(1) && said.err.contains(remedy), "{text}: {}", said.err);
    }
}

#[test]
fn host_without_its_http_token_file_serves_guests() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("softiov.toml");
    write(&file, "http = { listen = \"127.0.0.1:9582\", token_file = \"/nonexistent/token\" }\n").unwrap();
    let serve = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
    assert_eq!(softiov(serve.folder(), &["vf", "list"]).status, Some(0));
    let log = serve.log();
    assert!(log.contains("/nonexistent/token") && log.contains("create the file with"), "{log}");
}

/// Returns the names of softiov's metrics in a text, such as a dashboard or a response.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("softiov_") || word.starts_with("sriov_vf_")).collect()
}

/// Returns the labels of drop reasons (`reason="..."`) in a text.
fn reasons(text: &str) -> Vec<&str> {
    let label = |at: usize| text[at..].split_inclusive('"').take(2).map(str::len).sum::<usize>();
    text.match_indices("reason=\"").map(|(at, _)| &text[at..at + label(at)]).collect()
}

#[test]
fn metrics_have_every_name_of_dashboard_and_alerts() {
    let folder = tempdir().unwrap();
    let wired = "[[port]]\nuplink.wire = \"w\"\n";
    let (serve, listen) = tcp_with(&folder, &wired.repeat(2));
    let mut drive = Command::new(SOFTIOV);
    drive.arg("drive");
    for vf in ["pf0vf0", "pf0vf1"] {
        drive.arg("--socket").arg(serve.folder().join(vf).join("vf.sock"));
    }
    assert_eq!(finish(&mut drive).status, Some(0));
    let (_, text) = ask(listen, "GET /metrics", &with_token(), "");
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let scraped: BTreeSet<&str> = types.collect();
    assert!(scraped.len() > 15, "{text}");
    for (what, asked) in [("the dashboard", names(DASHBOARD)), ("the alerts", names(ALERTS))] {
        assert!(asked.len() > 5);
        for name in asked {
            assert!(scraped.contains(name) || AT_FIRST.contains(&name), "{what} asks for {name}");
        }
    }
    let reasons = reasons(ALERTS);
    assert!(reasons.len() >= 2, "{reasons:?}");
    for label in reasons {
        assert!(text.contains(label), "the alerts ask for {label}");
    }
    let panels: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    assert!(panels["panels"].as_array().is_some_and(|panels| panels.len() > 8));
    let accept = format!("{}accept: application/openmetrics-text;version=1.0.0\r\n", with_token());
    let (_, open) = ask(listen, "GET /metrics", &accept, "");
    assert!(open.contains("application/openmetrics-text; version=1.0.0") && open.contains("# EOF\n"));
    promtool(&folder, &text);
}

/// Checks the alert rules, and the metrics in a response, with Prometheus' own tool.
fn promtool(folder: &TempDir, response: &str) {
    let tool = match linux_guest::prometheus() {
        Ok(prometheus) => prometheus.tool,
        Err(error) => return skipped("metrics and alerts by promtool", &error.to_string()),
    };
    let rules = folder.path().join("alerts.yml");
    write(&rules, ALERTS).unwrap();
    let said = finish(Command::new(&tool).arg("check").arg("rules").arg(&rules));
    assert_eq!(said.status, Some(0), "{}{}", said.out, said.err);
    let metrics = folder.path().join("metrics");
    write(&metrics, response.split_once("\r\n\r\n").unwrap().1).unwrap();
    let metrics = std::fs::File::open(metrics).unwrap();
    let said = finish(Command::new(&tool).arg("check").arg("metrics").stdin(metrics));
    // promtool wants names to end in _total, which the established names of SR-IOV metrics do not.
    let own: Vec<&str> = said.err.lines().filter(|line| line.starts_with("softiov_")).collect();
    assert!(own.is_empty() && said.status != Some(1), "{}", said.err);
}

/// Prometheus server that is killed when this value is dropped.
struct PrometheusServer(Child);

impl Drop for PrometheusServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the guide's configuration for Prometheus, with another address and token.
fn configuration(listen: SocketAddr, folder: &TempDir) -> String {
    let (_, rest) = GUIDE.split_once("```yaml\nscrape_configs:").expect("the guide has a configuration");
    let (jobs, _) = rest.split_once("```").unwrap();
    let token = folder.path().join("token").display().to_string();
    let own = jobs.replace("/etc/softiov/token", &token).replace("127.0.0.1:9582", &listen.to_string());
    assert!(own.contains(&token) && own.contains("softiov-alerts.yml"), "{own}");
    format!("global: {{ scrape_interval: 1s }}\nscrape_configs:{own}")
}

#[test]
fn prometheus_scrapes_with_the_guides_configuration() {
    let server = match linux_guest::prometheus() {
        Ok(prometheus) => prometheus.server,
        Err(error) => return skipped("a Prometheus that scrapes", &error.to_string()),
    };
    let folder = tempdir().unwrap();
    let (_serve, listen) = tcp(&folder);
    let (config, data) = (folder.path().join("prometheus.yml"), folder.path().join("data"));
    write(&config, configuration(listen, &folder)).unwrap();
    write(folder.path().join("softiov-alerts.yml"), ALERTS).unwrap();
    let web = free_address();
    let mut command = Command::new(server);
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", data.display()));
    command.arg(format!("--web.listen-address={web}")).arg("--log.level=error");
    let _server = PrometheusServer(command.spawn().unwrap());
    // Counts the VFs of which Prometheus has received packets: all seven of the port.
    let query = "GET /api/v1/query?query=count(sriov_vf_rx_packets%7Bjob%3D%22softiov%22%7D)";
    let deadline = Instant::now() + PATIENCE;
    let mut reply = String::new();
    while !reply.contains("\"7\"]") {
        assert!(Instant::now() < deadline, "Prometheus has not scraped the host: {reply}");
        std::thread::sleep(Duration::from_millis(200));
        if TcpStream::connect(web).is_ok() {
            reply = ask(web, query, "", "").1;
        }
    }
    let (_, rules) = ask(web, "GET /api/v1/rules", "", "");
    let alerts: BTreeSet<&str> =
        ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(
        alerts.len() > 3 && alerts.iter().all(|alert| rules.contains(&format!("\"name\":\"{alert}\""))),
        "{rules}"
    );
}
