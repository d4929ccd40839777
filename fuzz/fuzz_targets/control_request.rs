//! The body of a control request on any route, as HTTP clients send it.
//!
//! The first byte selects the route. The rest is the body, whose bytes above ASCII are pieces of JSON. Checked: no panic, an
//! accepted request that is the same after it was sent again, and settings and files that are checked without a panic.
#![cfg_attr(not(test), no_main)]

use daemon::config::HostConfig;
use daemon::control::check_request;
use daemon::control::protocol::ControlRequest;
use softiov_fuzz::text;
use std::path::Path;
use units::MacAddress;

softiov_fuzz::target!(run);

const WORDS: [&str; 56] = [
    "{\"set\":{",
    "},\"default\":[",
    "],\"volatile\":true}",
    "}}",
    "\"vlan\":",
    "\"qos\":",
    "\"proto\":",
    "\"mac\":",
    "\"max_tx_rate\":",
    "\"min_tx_rate\":",
    "\"spoofchk\":",
    "\"trust\":",
    "\"state\":",
    "\"vlans\":",
    "\"ips\":",
    "\"vfs\":",
    "\"storm\":",
    "\"mirror\":",
    "\"limits\":",
    "\"link\":",
    "\"quarantine\":",
    "\"802.1ad\"",
    "\"02:00:00:00:00:01\"",
    "\"auto\"",
    "\"enable\"",
    "\"10.0.0.0/8\"",
    "\"1-5\"",
    "true",
    "false",
    "null",
    "1",
    "4095",
    "-1",
    "1e9",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\"text\":\"",
    "\"name\":\"a\",",
    "\"dry_run\":true,",
    "\"export\":{",
    "\"format\":1,",
    "\"settings\":{",
    "\"counters\":{",
    "\"broadcast\":",
    "\"multicast\":",
    "\"unit\":",
    "\"from\":",
    "\"to\":",
    "\"rules\":",
    "\"[[port]]\\n\"",
    "\"bytes\":",
    "\"frames\":",
    "\"a\":",
];

fn run(data: &[u8]) {
    let Some((route, body)) = data.split_first() else { return };
    let Ok(request) = check_request((*route).into(), "pf0vf1", 7, text(body, &WORDS).as_bytes()) else {
        return;
    };
    match request {
        ControlRequest::VfSet { change, .. } => _ = change.set.policy(MacAddress([2, 0, 0, 0, 0, 1])),
        ControlRequest::VfImport { import, .. } => {
            _ = import.export.settings.policy(MacAddress([2, 0, 0, 0, 0, 1]));
        }
        ControlRequest::PortSet { change, .. } => _ = change.set.policy(8),
        ControlRequest::Apply(apply) => {
            _ = HostConfig::parse(&apply.text).map(|file| HostConfig::check(file, Path::new("/run/softiov")));
        }
        _ => {}
    }
}
