//! Has clients of a listening socket wait in connect(2), until the socket admits them again.
//!
//! A socket that refuses connections, or closes them, makes some clients try again without a pause. One whose queue is full
//! does not: connect(2) waits. So a shut door is a queue for one connection, which holds a connection of this process.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, listen};

use super::StreamSocket;

/// Maximum number of clients that wait to be accepted: one is served at a time, and the next one may wait.
pub(super) const BACKLOG: i32 = 8;
/// Maximum number of steps of one attempt to shut a door: clients taken out of the queue, and connections tried. Hostile
/// clients could fill the queue as fast as it is emptied.
const STEPS: usize = 128;

/// Listening socket as a door for clients, which is shut or open. Copies of the listening socket share its state.
#[derive(Debug)]
pub struct ListenerDoor {
    listener: OwnedFd,
    path: PathBuf,
    /// Connection that fills the queue of a shut door.
    filler: Option<StreamSocket>,
}

impl ListenerDoor {
    pub(super) fn new(listener: OwnedFd, path: PathBuf) -> Self {
        Self { listener, path, filler: None }
    }

    /// Tries to shut the door in a bounded number of steps: clients that connect from then on wait in connect(2), or get
    /// `WouldBlock`. Adds the clients that were in the queue to `clients`, also if the attempt fails. The door may be shut
    /// again after a failure.
    ///
    /// # Errors
    /// `TimedOut` if clients fill the queue as fast as it is emptied. The kernel's error if the socket's file is gone, or the
    /// process is out of descriptors. The door is open for one client then.
    pub fn shut(&mut self, clients: &mut Vec<StreamSocket>) -> io::Result<()> {
        listen(&self.listener, 0)?;
        for _ in 0..STEPS {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(fd) => clients.push(StreamSocket::accepted(fd)),
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(Errno::AGAIN) => match StreamSocket::connect(&self.path) {
                    Ok(filler) => {
                        self.filler = Some(filler);
                        return Ok(());
                    }
                    // Another client was faster.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "clients connect as fast as they are refused"))
    }

    /// Opens the door: clients that wait are admitted to the queue. The connection that has filled the queue comes first, and
    /// is hung up.
    ///
    /// # Errors
    /// None for a listening socket.
    pub fn open(mut self) -> io::Result<()> {
        drop(self.filler.take());
        Ok(listen(&self.listener, BACKLOG)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{SocketFilePermissions, SocketListener};
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    /// Shuts a door. Returns the number of clients that were in the queue.
    fn shut(door: &mut ListenerDoor) -> usize {
        let mut clients = Vec::new();
        door.shut(&mut clients).unwrap();
        clients.len()
    }

    #[test]
    fn clients_wait_in_connect_until_the_door_opens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vf.sock");
        let mut listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
        let early = StreamSocket::connect(&path).unwrap();
        let mut door = listener.door().unwrap();
        assert_eq!(shut(&mut door), 1, "the client in the queue is returned");
        assert!(early.is_hung_up(), "the returned client was dropped");
        let refused = StreamSocket::connect(&path).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
        let waiting = {
            let path = path.clone();
            thread::spawn(move || UnixStream::connect(path).unwrap())
        };
        thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        door.open().unwrap();
        let _client = waiting.join().unwrap();
        assert!(listener.accept().unwrap().unwrap().is_hung_up(), "the filler comes first");
        assert!(!listener.accept().unwrap().unwrap().is_hung_up());
    }

    #[test]
    fn door_stays_shut_after_the_death_of_the_process_that_shut_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vf.sock");
        let listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
        let mut door = listener.door().unwrap();
        shut(&mut door);
        drop(door);
        assert_eq!(StreamSocket::connect(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
        let mut door = listener.door().unwrap();
        assert_eq!(shut(&mut door), 1, "the former filler");
        assert_eq!(StreamSocket::connect(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
        door.open().unwrap();
        StreamSocket::connect(&path).unwrap();
    }
    #[test]
    fn attempt_that_fails_returns_the_clients_and_can_be_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("vf.sock"), folder.path().join("moved"));
        let listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
        let _early = StreamSocket::connect(&path).unwrap();
        std::fs::rename(&path, &moved).unwrap();
        let (mut door, mut clients) = (listener.door().unwrap(), Vec::new());
        assert_eq!(door.shut(&mut clients).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(clients.len(), 1, "the client in the queue is not lost");
        std::fs::rename(&moved, &path).unwrap();
        let _between = StreamSocket::connect(&path).unwrap();
        door.shut(&mut clients).unwrap();
        assert_eq!(clients.len(), 2);
        assert_eq!(StreamSocket::connect(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn attempt_ends_while_clients_connect_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vf.sock");
        let listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
        let ended = AtomicBool::new(false);
        let flood = || {
            let mut connections = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                connections.extend(StreamSocket::connect(&path));
                connections.truncate(100);
            }
        };
        thread::scope(|scope| {
            scope.spawn(flood);
            let (mut door, mut clients) = (listener.door().unwrap(), Vec::new());
            for _ in 0..20 {
                let result = door.shut(&mut clients);
                assert!(clients.len() <= STEPS, "{}", clients.len());
                clients.clear();
                if let Err(error) = result {
                    assert_eq!(error.kind(), ErrorKind::TimedOut);
                }
                door = listener.door().unwrap();
            }
            ended.store(true, Ordering::Relaxed);
        });
    }
}
