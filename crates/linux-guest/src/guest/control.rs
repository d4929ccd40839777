//! The host's end of the control channel: commands and answers over the socket that QEMU connects to its virtio
//! port. One thread reads; any thread may send commands. It is independent of QEMU.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::frame::{GuestMessage, GuestMessageReader, RequestToGuest};

/// Result of a command that ran in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestCommandOutput {
    /// Exit status of the command as the shell reports it: 128 + N for a command that signal N ended.
    pub status: i32,
    /// Standard output of the command; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Standard error of the guest command.
    pub stderr: String,
}

impl GuestCommandOutput {
    /// Returns true if the guest command's exit status was zero.
    pub fn success(&self) -> bool {
        self.status == 0
    }
}

/// Reason why the host received no result of a command in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuestCommandError {
    /// The virtual machine ended before the result of the command.
    Closed,
    /// The guest has booted again since the command was sent.
    Rebooted,
    /// The caller's timeout passed before the command ended.
    Late,
}

/// Host's end of the control channel to one guest, over which the host sends commands.
#[derive(Debug)]
pub(super) struct ControlChannel {
    writer: Mutex<UnixStream>,
    shared: Arc<SharedControlChannelState>,
}

#[derive(Debug, Default)]
struct SharedControlChannelState {
    state: Mutex<ControlChannelState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ControlChannelState {
    closed: bool,
    /// Number of the stream that is in use. The end of an earlier one, which a migration has replaced, means nothing.
    stream: u64,
    boots: u64,
    boot_id: String,
    release: String,
    last_id: u64,
    /// Guest commands that a caller waits for, by number, with their results once finished. Results of other commands
    /// are dropped.
    jobs: BTreeMap<u64, Option<GuestCommandOutput>>,
}

impl ControlChannel {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        let shared = Arc::new(SharedControlChannelState::default());
        read_from(&stream, 0, &shared)?;
        Ok(Self { writer: Mutex::new(stream), shared })
    }

    /// Continues the channel over another stream, after a migration of the guest. Running commands continue.
    pub(super) fn continue_over(&self, stream: UnixStream) -> io::Result<()> {
        let number = {
            let mut state = self.shared.lock();
            state.stream += 1;
            state.closed = false;
            state.stream
        };
        read_from(&stream, number, &self.shared)?;
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = stream;
        Ok(())
    }

    /// Returns the number of times that the guest has booted.
    pub(super) fn boots(&self) -> u64 {
        self.shared.lock().boots
    }

    /// Returns the kernel release that the guest reported, once it has booted.
    pub(super) fn release(&self) -> String {
        self.shared.lock().release.clone()
    }

    /// Waits until the guest has booted `boots` times.
    pub(super) fn wait_boots(&self, boots: u64, timeout: Duration) -> Result<(), GuestCommandError> {
        self.shared.wait(timeout, |state| (state.boots >= boots).then_some(()))
    }

    /// Starts a shell script in the guest; [`wait`](Self::wait) returns its result.
    pub(super) fn start(&self, script: &str) -> io::Result<PendingCommand> {
        let job = {
            let mut state = self.shared.lock();
            state.last_id += 1;
            let id = state.last_id;
            state.jobs.insert(id, None);
            PendingCommand { id, boots: state.boots }
        };
        let sent = self.send(RequestToGuest::Run { id: job.id, script });
        if sent.is_err() {
            self.discard(job);
        }
        sent.map(|()| job)
    }

    /// Waits for a command in the guest to end. After a timeout the caller may wait again.
    pub(super) fn wait(
        &self,
        job: PendingCommand,
        timeout: Duration,
    ) -> Result<GuestCommandOutput, GuestCommandError> {
        let answer = self.shared.wait(timeout, |state| match state.jobs.get(&job.id) {
            Some(Some(output)) => Some(Ok(output.clone())),
            _ if state.boots != job.boots => Some(Err(GuestCommandError::Rebooted)),
            _ => None,
        });
        let answer = answer.and_then(|answer| answer);
        if answer != Err(GuestCommandError::Late) {
            self.discard(job);
        }
        answer
    }

    /// Drops the result of a guest command, now or when it arrives.
    pub(super) fn discard(&self, job: PendingCommand) {
        self.shared.lock().jobs.remove(&job.id);
    }

    pub(super) fn send(&self, request: RequestToGuest<'_>) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(request.line().as_bytes())
    }
}

/// Starts the thread that reads the control channel's stream `number`.
fn read_from(stream: &UnixStream, number: u64, shared: &Arc<SharedControlChannelState>) -> io::Result<()> {
    // The timeout prevents that a guest which does not read blocks its host forever.
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let (reader, shared) = (stream.try_clone()?, Arc::clone(shared));
    thread::Builder::new().name("guest-control".into()).spawn(move || shared.read(reader, number)).map(drop)
}

/// Command that was sent to the guest, identified by its number and the boot of the guest.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingCommand {
    pub(super) id: u64,
    boots: u64,
}

impl SharedControlChannelState {
    fn lock(&self) -> MutexGuard<'_, ControlChannelState> {
        // A panic of another thread does not leave the state incomplete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, mut stream: UnixStream, number: u64) {
        let mut frames = GuestMessageReader::default();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => frames.feed(&buffer[..count], |frame| self.take(frame)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let mut state = self.lock();
        state.closed |= state.stream == number;
        drop(state);
        self.changed.notify_all();
    }

    fn take(&self, frame: GuestMessage) {
        let mut state = self.lock();
        match frame {
            GuestMessage::Ready { boot_id, release } if boot_id != state.boot_id => {
                state.boots += 1;
                state.boot_id = boot_id;
                state.release = release;
            }
            GuestMessage::Ready { .. } => {}
            GuestMessage::Done { id, status, stdout, stderr } => {
                if let Some(answer) = state.jobs.get_mut(&id) {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    *answer =
                        Some(GuestCommandOutput { status, stdout: text(&stdout), stderr: text(&stderr) });
                }
            }
        }
        self.changed.notify_all();
    }

    fn wait<T>(
        &self,
        timeout: Duration,
        mut ready: impl FnMut(&ControlChannelState) -> Option<T>,
    ) -> Result<T, GuestCommandError> {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if let Some(value) = ready(&state) {
                return Ok(value);
            }
            if state.closed {
                return Err(GuestCommandError::Closed);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(GuestCommandError::Late);
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .map_or_else(|error| error.into_inner().0, |pair| pair.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    const SOON: Duration = Duration::from_secs(60);

    fn pair() -> (ControlChannel, UnixStream) {
        let (host, guest) = UnixStream::pair().unwrap();
        (ControlChannel::new(host).unwrap(), guest)
    }

    fn read_command(guest: &UnixStream) -> String {
        let mut line = String::new();
        BufReader::new(guest).read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn guest_commands_are_answered_in_any_order() {
        let (host, mut guest) = pair();
        let first = host.start("sleep 9").unwrap();
        assert_eq!(read_command(&guest), "run 1 sleep 9.\n");
        let second = host.start("id").unwrap();
        assert_eq!(read_command(&guest), "run 2 id.\n");
        guest.write_all(b"\ndone 2 0 o3a29 e .\n\ndone 1 1 o e21 .\n").unwrap();
        assert_eq!(host.wait(second, SOON).unwrap().stdout, ":)");
        let output = host.wait(first, SOON).unwrap();
        assert_eq!((output.status, output.success(), output.stderr.as_str()), (1, false, "!"));
    }

    #[test]
    fn guest_command_that_timed_out_can_be_waited_for_again() {
        let (host, mut guest) = pair();
        let job = host.start("x").unwrap();
        assert_eq!(host.wait(job, Duration::ZERO), Err(GuestCommandError::Late));
        guest.write_all(b"\ndone 1 0 o e .\n").unwrap();
        assert!(host.wait(job, SOON).is_ok());
    }

    #[test]
    fn guest_reboot_ends_the_wait_for_earlier_commands() {
        let (host, mut guest) = pair();
        guest.write_all(b"\nready one 6.1 .\n").unwrap();
        host.wait_boots(1, SOON).unwrap();
        let job = host.start("reboot -f").unwrap();
        guest.write_all(b"\nready one 6.1 .\n\nready two 6.1 .\n").unwrap();
        assert_eq!(host.wait(job, SOON), Err(GuestCommandError::Rebooted));
        assert_eq!((host.boots(), host.release().as_str()), (2, "6.1"));
    }

    #[test]
    fn guest_answers_to_unknown_commands_are_dropped() {
        let (host, mut guest) = pair();
        let job = host.start("x").unwrap();
        guest.write_all(b"\ndone 99 0 o e .\n").unwrap();
        drop(guest);
        assert_eq!(host.wait(job, SOON), Err(GuestCommandError::Closed));
        assert!(host.shared.lock().jobs.is_empty());
    }
}
