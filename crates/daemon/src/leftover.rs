//! File descriptors of ports without a thread that the configuration lacks: journals, sockets, interfaces and clients, and
//! volatile changes. The previous host process had these ports, or they were given up and then removed. A port that is added
//! later must not find them, and its former clients would wait for replies without end.

use crate::config::HostConfig;
use crate::confine::ThreadSandboxes;
use crate::port::disconnect_orphans;
use crate::vault::FileDescriptorStore;
use crate::volatile;
use host::confine::SandboxError;
use host::socket::{SocketListener, StreamSocket};
use host::worker::BlockingWorker;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

/// Releases kept file descriptors of ports that the configuration lacks, and starts a thread that disconnects the ports' clients.
/// Returns `None` if nothing is left. Call it once this process has taken over: a predecessor that resumes serves the ports.
///
/// # Errors
/// The kernel refuses another thread.
pub(crate) fn release(
    config: &HostConfig,
    vault: &FileDescriptorStore,
    threads: &ThreadSandboxes,
) -> Result<Option<JoinHandle<()>>, SandboxError> {
    let ports: Vec<&str> = config.ports.iter().map(|port| port.name.as_str()).collect();
    let left = vault.forget_other_ports(&ports);
    if left.is_empty() {
        return Ok(None);
    }
    // Their volatile changes are saved in one memory with those of other ports.
    volatile::note(config, vault);
    tracing::warn!(
        descriptors = left.len(),
        "the configuration lacks ports of the previous host process; their clients are disconnected"
    );
    let closer = BlockingWorker::start_confined("leftover-close", &threads.helper)?;
    threads.control.spawn("leftover", move || disconnect(left, &closer)).map(Some)
}

/// Starts a thread that releases the kept file descriptors of the removed port `port`, which no thread serves, and disconnects
/// the port's clients. It holds `life` until then.
///
/// # Errors
/// The kernel refuses another thread.
pub(crate) fn release_port(
    port: &str,
    vault: &FileDescriptorStore,
    threads: &ThreadSandboxes,
    life: impl Send + 'static,
) -> Result<JoinHandle<()>, SandboxError> {
    let closer = BlockingWorker::start_confined("leftover-close", &threads.helper)?;
    let (prefix, vault) = (format!("{port}."), vault.clone());
    threads.control.spawn("leftover", move || {
        disconnect(vault.forget_others(&prefix, |_| false), &closer);
        drop(life);
    })
}

fn disconnect(left: Vec<OwnedFd>, closer: &BlockingWorker) {
    left.iter().for_each(remove_socket_file);
    // Descriptors of guest memory are dropped here, which may take seconds.
    let clients = left.into_iter().filter_map(|fd| StreamSocket::adopt(fd).ok()).collect();
    disconnect_orphans(clients, closer);
}

/// Removes the socket file of a listening socket. `fd` may be of any kind.
fn remove_socket_file(fd: &OwnedFd) {
    let copy = || fd.try_clone().ok();
    let address = copy().and_then(|fd| UnixListener::from(fd).local_addr().ok());
    if let Some(path) = address.as_ref().and_then(|address| address.as_pathname())
        && let Some(mut listener) = copy().and_then(|fd| SocketListener::adopt(fd, path))
    {
        // The drop removes the file.
        listener.own();
    }
}

#[cfg(test)]
mod tests {
    use crate::RunningHost;
    use crate::config::HostConfig;
    use crate::vault::FileDescriptorStore;
    use host::shared::SharedMemory;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// QEMU ends on ECONNRESET, which a client reads if its socket is closed with unread bytes.
    #[test]
    fn clients_of_a_port_that_is_gone_read_the_end_of_stream() {
        let folder = tempfile::tempdir().unwrap();
        let config = HostConfig::check(HostConfig::parse("[[port]]").unwrap(), folder.path()).unwrap();
        let (vault, (kept, mut client)) = (FileDescriptorStore::default(), UnixStream::pair().unwrap());
        let journal = SharedMemory::new(4096).unwrap();
        vault.keep("pf1.#7", kept.as_fd()).unwrap();
        vault.keep("pf1.journal", journal.as_fd()).unwrap();
        drop(kept);
        client.write_all(b"a request without a reader").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let host = RunningHost::inherit(config, &vault).unwrap();
        assert!(vault.copy("pf1.#7").is_none() && vault.copy("pf1.journal").is_none());
        assert!(vault.copy("pf0.journal").is_some() && vault.copy("control").is_some());
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        host.stop();
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "the end of the host resets the connection");
    }
}
