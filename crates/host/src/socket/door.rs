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
/// Maximum number of clients that are taken out of the queue when a door is shut. Hostile clients could fill the queue as fast
/// as it is emptied.
const MOST: usize = 64;

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

    /// Shuts the door: clients that connect from now on wait in connect(2), or get `WouldBlock`. Returns the clients that were
    /// in the queue.
    ///
    /// # Errors
    /// The socket's file is gone, or the process is out of descriptors.
    pub fn shut(&mut self) -> io::Result<Vec<StreamSocket>> {
        listen(&self.listener, 0)?;
        let mut clients = Vec::new();
        while clients.len() < MOST {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(fd) => clients.push(StreamSocket::accepted(fd)),
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(Errno::AGAIN) => match StreamSocket::connect(&self.path) {
                    Ok(filler) => {
                        self.filler = Some(filler);
                        break;
                    }
                    // Another client was faster.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Ok(clients)
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
    use crate::socket::{SocketFilePermissions, SocketListener, StreamSocket};
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn clients_wait_in_connect_until_the_door_opens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vf.sock");
        let mut listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
        let early = StreamSocket::connect(&path).unwrap();
        let mut door = listener.door().unwrap();
        assert_eq!(door.shut().unwrap().len(), 1, "the client in the queue is returned");
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
        door.shut().unwrap();
        drop(door);
        assert_eq!(StreamSocket::connect(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
        let mut door = listener.door().unwrap();
        assert_eq!(door.shut().unwrap().len(), 1, "the former filler");
        assert_eq!(StreamSocket::connect(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
        door.open().unwrap();
        StreamSocket::connect(&path).unwrap();
    }
}
