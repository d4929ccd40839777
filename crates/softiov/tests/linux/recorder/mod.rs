//! Records the messages that QEMU sends for stock drivers. With `SOFTIOV_RECORD_DRIVERS=FOLDER` each VMM connects to a socket
//! of the recorder, which passes bytes and descriptors on to the host. It writes the messages of each connection to
//! `FOLDER/FUNCTION-N.txt`, of which `cargo xtask fuzz --drivers FOLDER` makes inputs of fuzz targets.
//!
//! Virtio functions are not recorded: their messages are those of vhost-user.

mod conversation;

use anyhow::{Context, Result};
use conversation::RecordedConversation;
use host::socket::{ReceivedFds, SocketReceiveResult, SocketSendResult, StreamSocket};
use rustix::event::{PollFd, PollFlags, poll};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;

/// Environment variable with the folder of the recordings.
const VARIABLE: &str = "SOFTIOV_RECORD_DRIVERS";
/// Bytes that the recorder receives at once.
const CHUNK: usize = 1 << 16;

/// Sockets that record, and the folder of the recordings.
#[derive(Debug)]
pub(crate) struct DriverRecorder {
    folder: PathBuf,
    sockets: TempDir,
    /// Functions whose socket of the recorder exists.
    functions: RefCell<BTreeSet<String>>,
}

impl DriverRecorder {
    /// Creates the recorder, if the environment names a folder for its recordings.
    pub(crate) fn from_environment() -> Result<Option<Self>> {
        let Some(folder) = std::env::var_os(VARIABLE).map(PathBuf::from) else { return Ok(None) };
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {} ({VARIABLE})", folder.display()))?;
        Ok(Some(Self { folder, sockets: TempDir::new()?, functions: RefCell::default() }))
    }

    /// Returns the path of the socket by which clients of `function` are recorded. `socket` is the host's, and is returned if
    /// there can be no other.
    pub(crate) fn socket(&self, function: &str, socket: PathBuf) -> PathBuf {
        let path = self.sockets.path().join(function);
        if self.functions.borrow().contains(function) {
            return path;
        }
        match UnixListener::bind(&path) {
            Ok(listener) => {
                self.functions.borrow_mut().insert(function.to_owned());
                let file = self.folder.join(function);
                // The thread ends with the process.
                thread::spawn(move || record(&listener, &socket, &file));
                path
            }
            Err(error) => {
                println!("    {function} is not recorded: cannot bind {}: {error}", path.display());
                socket
            }
        }
    }
}

/// Records each connection to `listener` in a file whose name begins with `file`.
fn record(listener: &UnixListener, socket: &Path, file: &Path) {
    for (number, client) in (0..).zip(listener.incoming().map_while(Result::ok)) {
        let begin = || -> Result<()> {
            let client = Arc::new(StreamSocket::adopt(client.into())?);
            let host = Arc::new(StreamSocket::connect(socket)?);
            let mut conversation = RecordedConversation::create(&named(file, number))?;
            let (from, to) = (Arc::clone(&host), Arc::clone(&client));
            thread::spawn(move || relay(&from, &to, |_, _| Ok(())));
            thread::spawn(move || relay(&client, &host, |bytes, fds| conversation.receive(bytes, fds)));
            Ok(())
        };
        if let Err(error) = begin() {
            println!("    the client of {} is not recorded: {error:#}", file.display());
        }
    }
}

fn named(file: &Path, number: u32) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{name}-{number}.txt"))
}

/// Passes bytes and descriptors on until one of the peers closes the connection. `record` sees them first: the peer may change
/// a descriptor's memory as soon as it has an answer.
fn relay(
    from: &StreamSocket,
    to: &StreamSocket,
    mut record: impl FnMut(&[u8], &ReceivedFds) -> Result<()>,
) -> Result<()> {
    let (mut buffer, mut fds) = (vec![0; CHUNK], ReceivedFds::new());
    loop {
        match from.recv(&mut buffer, &mut fds)? {
            SocketReceiveResult::WouldBlock => wait(from, PollFlags::IN)?,
            SocketReceiveResult::Closed => return Ok(to.shut_down_writing()?),
            SocketReceiveResult::Bytes(length) => {
                record(&buffer[..length], &fds)?;
                send(to, &buffer[..length], &fds.iter().collect::<Vec<_>>())?;
                fds.clear();
            }
        }
    }
}

/// Sends all bytes, with the descriptors at the first of them.
fn send(to: &StreamSocket, mut bytes: &[u8], mut fds: &[BorrowedFd<'_>]) -> Result<()> {
    while !bytes.is_empty() {
        match to.send(bytes, fds)? {
            SocketSendResult::Bytes(sent) => (bytes, fds) = (&bytes[sent..], &[]),
            SocketSendResult::WouldBlock => wait(to, PollFlags::OUT)?,
            SocketSendResult::Closed => return Ok(()),
        }
    }
    Ok(())
}

fn wait(socket: &StreamSocket, readiness: PollFlags) -> Result<()> {
    poll(&mut [PollFd::new(socket, readiness)], None)?;
    Ok(())
}
