//! A device with one counter on a UNIX socket. Its process can be killed at any instruction, and its client notices
//! nothing but a delay: `cargo run -p softiov-keeper --example counter -- serve /tmp/counter.sock`
//!
//! A client sends a request of one byte, which differs from its last one. The reply has eight bytes: the number of
//! this client's requests, and the request in the lowest byte. Without arguments the example is also the client, and
//! kills the server under its requests ([`demo`]).
//!
//! Two rules make each request count exactly once. A request is only peeked at, and removed after its reply. The file
//! of replies is the state: `sendfile` sends a reply and advances the file's position in one step, and the position
//! belongs to the open file, which the keeper holds.

mod demo;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, ExitCode};

use keeper::{
    FileDescriptorSender, InheritedFileDescriptors, KeeperConfig, KeeperConnection, KeptFileDescriptors,
    SeccompMode,
};
use rustix::fs::{MemfdFlags, memfd_create, sendfile, tell};
use rustix::io::{pread, pwrite};
use rustix::net::{RecvFlags, recv};

/// Length of a reply in bytes.
const REPLY: u64 = 8;

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [serve, socket] if serve == "serve" && InheritedFileDescriptors::exist() => {
            serve_clients(socket.as_ref())
        }
        [serve, _] if serve == "serve" => become_keeper(),
        _ => demo::run(),
    }
}

/// Becomes the keeper, which starts this program again with the same arguments, as often as it dies.
fn become_keeper() -> io::Result<ExitCode> {
    let program = std::env::current_exe()?;
    let mut host = || {
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1));
        command
    };
    keeper::keep(&KeeperConfig { service: "counter", seccomp: SeccompMode::On }, &mut host)
        .map(ExitCode::from)
}

/// Serves one client after another, beginning with the one that the previous process served.
fn serve_clients(socket: &Path) -> io::Result<ExitCode> {
    let InheritedFileDescriptors { mut shelf, from } =
        InheritedFileDescriptors::take().map_err(io::Error::other)?;
    let FileDescriptorSender::Keeper(keeper) = from else { return Err(io::ErrorKind::Unsupported.into()) };
    let bind = || {
        // A process that died before its listener was kept left this file.
        let _ = std::fs::remove_file(socket);
        Ok(UnixListener::bind(socket)?.into())
    };
    let listener = UnixListener::from(find_or_keep(&mut shelf, &keeper, "listener", bind)?);
    keeper.say("READY=1")?;
    loop {
        let create = || Ok(memfd_create("replies", MemfdFlags::CLOEXEC)?);
        let replies = find_or_keep(&mut shelf, &keeper, "replies", create)?;
        let client = find_or_keep(&mut shelf, &keeper, "client", || Ok(listener.accept()?.0.into()))?;
        if let Err(error) = reply_to_requests(&client, &replies) {
            eprintln!("counter: a client is disconnected: {error}");
        }
        // In this order: a successor that finds a client without replies sees that the client has ended.
        keeper.forget("replies")?;
        keeper.forget("client")?;
    }
}

/// Returns the descriptor that was kept under a name, or creates it and has the keeper hold a copy.
fn find_or_keep(
    shelf: &mut KeptFileDescriptors,
    keeper: &KeeperConnection,
    name: &str,
    create: impl FnOnce() -> io::Result<OwnedFd>,
) -> io::Result<OwnedFd> {
    if let Some(kept) = shelf.take(name) {
        return Ok(kept);
    }
    let created = create()?;
    keeper.keep(name, created.as_fd())?;
    Ok(created)
}

/// Replies to each request of a client until it disconnects. The process may die before and after each statement.
fn reply_to_requests(client: &OwnedFd, replies: &OwnedFd) -> io::Result<()> {
    let mut request = [0];
    while recv(client, &mut request, RecvFlags::PEEK)?.0 > 0 {
        let sent = tell(replies)?;
        let mut last = [0; REPLY as usize];
        if sent > 0 {
            pread(replies, &mut last, sent - REPLY)?;
        }
        // Otherwise the previous process died between its reply and the removal of the request.
        if sent == 0 || last[0] != request[0] {
            let reply = (sent / REPLY + 1) << 8 | u64::from(request[0]);
            pwrite(replies, &reply.to_le_bytes(), sent)?;
            sendfile(client, replies, None, REPLY as usize)?;
        }
        recv(client, &mut request, RecvFlags::empty())?;
    }
    Ok(())
}
