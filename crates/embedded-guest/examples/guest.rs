//! Runs an embedded guest on a VF of a running host: it answers pings and receives test flows, or sends flows itself.
//! Tests run it in containers.
//!
//! `guest SOCKET IP` answers until it is killed. `guest SOCKET IP PEER` pings PEER until it answers, and then sends it one
//! flow of a mebibyte after the other, until it is killed. It prints each step, and exits with status 1 as soon as a flow
//! is broken or a byte is wrong. SOCKET may be a folder with one VF's folder, as a container has it.

use embedded_guest::{EmbeddedGuest, EmbeddedGuestConfig, EmbeddedGuestError, TestFlowError};
use std::convert::Infallible;
use std::error::Error;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Timeout of the link.
const LINK: Duration = Duration::from_secs(60);
/// Bytes of one flow.
const FLOW: u64 = 1 << 20;

fn main() -> Result<Infallible, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (socket, ip, peer) = match arguments.as_slice() {
        [socket, ip] => (socket, ip, None),
        [socket, ip, peer] => (socket, ip, Some(peer.parse()?)),
        _ => return Err("usage: guest SOCKET IP [PEER]".into()),
    };
    let socket = find_socket(Path::new(socket))?;
    let config = EmbeddedGuestConfig { socket, name: "guest".to_owned(), ip: ip.parse()? };
    let guest = EmbeddedGuest::start(config)?;
    if !guest.wait_link(LINK) {
        return Err("the VF's link stays down".into());
    }
    println!("{ip} is up");
    match peer {
        Some(peer) => send_flows(&guest, peer),
        None => loop {
            thread::park();
        },
    }
}

/// Returns the socket itself, or that of the VF whose folder is in a folder.
fn find_socket(path: &Path) -> Result<PathBuf, Box<dyn Error>> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let vf = path.read_dir()?.next().ok_or("the folder has no VF")??;
    Ok(vf.path().join("vf.sock"))
}

/// Waits until a station answers pings, then sends flows to it. Returns the error of the first broken flow.
fn send_flows(guest: &EmbeddedGuest, peer: Ipv4Addr) -> Result<Infallible, Box<dyn Error>> {
    let mut pings = 1;
    while guest.ping(peer, 1)?.received() == 0 {
        println!("{peer} is silent after ping {pings}");
        pings += 1;
    }
    println!("{peer} answers");
    let mut number = 1_u64;
    loop {
        match guest.send_tcp(peer, FLOW) {
            Ok(flow) if flow.is_intact() => {
                println!("flow {number} is intact");
                number += 1;
            }
            Ok(flow) => return Err(format!("flow {number} is broken: {flow:?}").into()),
            // No byte was on its way.
            Err(EmbeddedGuestError::Flow(TestFlowError::NoConnection)) => {
                println!("{peer} does not accept flow {number} in time");
            }
            Err(error) => return Err(error.into()),
        }
    }
}
