//! The text of a configuration file, parsed and checked.
//!
//! Bytes above ASCII are keys and values, so that the fuzzer reaches the checks behind the parser. Checked: no panic, and
//! unique names of what was accepted; and a virtio port of an accepted file restores from any bytes, or refuses them.
#![cfg_attr(not(test), no_main)]

use daemon::config::HostConfig;
use softiov_fuzz::text;
use std::collections::BTreeSet;
use std::path::Path;

softiov_fuzz::target!(run);

const WORDS: [&str; 72] = [
    "[[port]]\n",
    "[[port.vf]]\n",
    "[[port.mirror]]\n",
    "[control]\n",
    "[http]\n",
    "[confine]\n",
    "[port.storm]\n",
    "[port.limits]\n",
    "[port.impair]\n",
    "name = ",
    "mac = ",
    "uplink = ",
    "record = ",
    "link = ",
    "link_local = ",
    "family = ",
    "wait = ",
    "cpus = ",
    "workers = ",
    "dispatcher = ",
    "gro = ",
    "rx_usecs = ",
    "pf = ",
    "socket = ",
    "socket_mode = ",
    "access = ",
    "vfs = ",
    "limits = ",
    "storm = ",
    "mirror = ",
    "vf = ",
    "index = ",
    "vlan = ",
    "qos = ",
    "proto = ",
    "max_tx_rate = ",
    "min_tx_rate = ",
    "spoofchk = ",
    "trust = ",
    "state = ",
    "vlans = ",
    "ips = ",
    "runtime_dir = ",
    "state_dir = ",
    "listen = ",
    "token_file = ",
    "client_memory = ",
    "quarantine = ",
    "\"avf\"\n",
    "\"virtio\"\n",
    "\"82576\"\n",
    "\"guest\"\n",
    "\"client\"\n",
    "\"mapped\"\n",
    "\"busy\"\n",
    "true\n",
    "false\n",
    "1\n",
    "8\n",
    "64\n",
    "4095\n",
    "\"a\"\n",
    "\"/run/x\"\n",
    "\"02:00:00:00:00:01\"\n",
    "{ tap = \"t0\" }\n",
    "{ wire = \"w\" }\n",
    "{ interface = \"e\" }\n",
    "{ mode = \"0660\" }\n",
    "[1, 2]\n",
    "\"1-5,7\"\n",
    "\"up\"\n",
    "\"10.0.0.1/24\"\n",
];

fn run(data: &[u8]) {
    let Ok(file) = HostConfig::parse(&text(data, &WORDS)) else { return };
    let Ok(config) = HostConfig::check(file, Path::new("/run/softiov")) else { return };
    let mut names = BTreeSet::new();
    for port in &config.ports {
        assert!(names.insert(port.name.clone()), "two ports have one name");
        for vf in &port.vfs {
            assert!(names.insert(vf.name.clone()), "two functions have one name");
            let _ = vf.settings();
        }
        let _ = port.settings();
    }
    let _ = config.control_socket();
}
