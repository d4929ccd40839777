//! Counters of a DPDK program over its telemetry socket: a text message, and an answer in JSON. Only a port's received
//! frames are read.

use anyhow::{Context, Result};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Length of the longest answer of DPDK's telemetry in bytes.
const LONGEST: usize = 16 * 1024;

/// Connection to the telemetry socket of a DPDK program.
#[derive(Debug)]
pub(super) struct DpdkTelemetry(OwnedFd);

/// Returns the folder in which a program with a file prefix keeps its files (DPDK's `eal_create_runtime_dir`).
pub(super) fn folder(prefix: &str) -> PathBuf {
    let base = if rustix::process::getuid().is_root() {
        "/var/run".into()
    } else {
        std::env::var_os("XDG_RUNTIME_DIR").map_or("/tmp".into(), PathBuf::from)
    };
    base.join("dpdk").join(prefix)
}

impl DpdkTelemetry {
    pub(super) fn connect(folder: &Path) -> Result<Self> {
        let address = SocketAddrUnix::new(folder.join("dpdk_telemetry.v2"))?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &address)?;
        let telemetry = Self(socket);
        // The program introduces itself first.
        telemetry.receive()?;
        Ok(telemetry)
    }

    /// Returns the number of frames that a port has received; `None` before the port exists.
    pub(super) fn received(&self, port: usize) -> Result<Option<u64>> {
        send(&self.0, format!("/ethdev/stats,{port}").as_bytes(), SendFlags::NOSIGNAL)?;
        let answer = self.receive()?;
        Ok(answer["/ethdev/stats"]["ipackets"].as_u64())
    }

    fn receive(&self) -> Result<Value> {
        let mut answer = vec![0; LONGEST];
        let (count, _) = recv(&self.0, &mut answer[..], RecvFlags::empty())?;
        serde_json::from_slice(&answer[..count]).context("the reply of DPDK's telemetry is not JSON")
    }
}
