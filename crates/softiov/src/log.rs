//! The host's log on its way to standard error, which may be a full disk, a terminal that is gone, or a pipe that nobody
//! reads. Whoever logs never waits for it, and nothing that becomes of it ends the host.
//!
//! Lines go into a queue, bounded in bytes, and a thread of its own writes them. Lines that found no room or could not
//! be written are counted, and the count is written before the next line that can be. Left out: which lines there are.

mod events;

pub(crate) use events::Records;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Bytes of lines that wait to be written.
const ROOM: usize = 256 * 1024;
/// How often a descriptor that is full and does not block is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// The log. Clones write to the same place.
#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// There are lines.
    filled: Condvar,
    /// There are none, and none is being written.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    /// Whole lines.
    lines: Vec<u8>,
    /// Lines that are lost and not told yet.
    lost: u64,
    /// Lines are being written.
    busy: bool,
}

impl Log {
    /// A log that collects lines until [`Self::start`].
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Has a thread of its own write to `out` what there is and what comes. The thread first gives up what it does not
    /// need: `begin` does that.
    ///
    /// # Errors
    /// There can be no more threads, or `begin` has failed.
    pub(crate) fn start(
        &self,
        out: impl Write + Send + 'static,
        begin: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let shared = Arc::clone(&self.0);
        let (tell, begun) = mpsc::sync_channel(1);
        std::thread::Builder::new().name("log".into()).spawn(move || {
            let outcome = begin();
            let over = outcome.is_err();
            let _ = tell.send(outcome);
            if !over {
                shared.write_for_ever(out);
            }
        })?;
        begun.recv()?
    }

    /// Waits until everything is written, but not for longer than `patience`.
    pub(crate) fn finish(&self, patience: Duration) {
        let unwritten = |queue: &mut Queue| queue.busy || !queue.lines.is_empty();
        drop(self.0.emptied.wait_timeout_while(self.0.lock(), patience, unwritten));
    }
}

impl Write for Log {
    /// Takes a whole line, or counts it as lost.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut queue = self.0.lock();
        if queue.lines.len() + line.len() > ROOM {
            queue.lost += 1;
        } else {
            queue.lines.extend_from_slice(line);
        }
        self.0.filled.notify_one();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Shared {
    /// Holds for as long as it takes to copy a line. A thread that panicked meanwhile left whole lines behind.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_for_ever(&self, mut out: impl Write) {
        let (mut lines, mut lost, mut torn) = (Vec::new(), 0, false);
        loop {
            // Those found no room behind the lines that did.
            let behind = self.take(&mut lines);
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                tell(&mut out, &mut lost, &mut torn);
                if lost > 0 || !write(&mut out, line, &mut torn) {
                    lost += 1;
                }
            }
            lost += behind;
            tell(&mut out, &mut lost, &mut torn);
        }
    }

    /// Waits for lines and takes them; answers how many were lost before. `lines` is emptied, and its room used again.
    fn take(&self, lines: &mut Vec<u8>) -> u64 {
        lines.clear();
        let mut queue = self.lock();
        queue.busy = false;
        self.emptied.notify_all();
        while queue.lines.is_empty() {
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.busy = true;
        std::mem::swap(lines, &mut queue.lines);
        std::mem::take(&mut queue.lost)
    }
}

/// Says how many lines are lost, on a line of its own; `lost` is 0 when that was written.
fn tell(out: &mut impl Write, lost: &mut u64, torn: &mut bool) {
    let end_of_torn_line = if *torn { "\n" } else { "" };
    let notice = format!("{end_of_torn_line}softiov: {lost} log lines were lost: nothing took them\n");
    if *lost > 0 && write(out, notice.as_bytes(), torn) {
        *lost = 0;
    }
}

/// Whether all of it was written. `torn` says afterwards whether a line was left unfinished.
fn write(out: &mut impl Write, mut rest: &[u8], torn: &mut bool) -> bool {
    while !rest.is_empty() {
        match out.write(rest) {
            Ok(0) => return false,
            Ok(count) => {
                rest = &rest[count..];
                *torn = !rest.is_empty();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY),
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A place that takes a write when it is allowed to, and as the test wishes.
    struct Place {
        allowed: Receiver<io::Result<usize>>,
        written: Sender<Vec<u8>>,
    }

    impl Write for Place {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.allowed.recv().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            self.written.send(bytes[..count].to_vec()).map_err(|_| ErrorKind::BrokenPipe)?;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A log, what allows its writes, and what is written.
    fn log() -> (Log, Sender<io::Result<usize>>, Receiver<Vec<u8>>) {
        let (allow, allowed) = channel();
        let (written, seen) = channel();
        let log = Log::new();
        log.start(Place { allowed, written }, || Ok(())).unwrap();
        (log, allow, seen)
    }

    #[test]
    fn what_is_logged_is_written_in_order() {
        let (mut log, allow, seen) = log();
        drop(allow);
        for number in 0..100 {
            log.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        log.finish(Duration::from_secs(60));
        let text = String::from_utf8(seen.try_iter().flatten().collect()).unwrap();
        assert_eq!(text.lines().count(), 100);
        assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("line 99\n"), "{text}");
    }

    #[test]
    fn whoever_logs_does_not_wait_and_the_loss_is_told() {
        let (mut log, allow, seen) = log();
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        for _ in 0..10_000 {
            log.write_all(&line).unwrap();
        }
        log.finish(Duration::from_millis(1));
        assert!(seen.try_recv().is_err(), "nothing was taken so far");
        drop(allow);
        log.finish(Duration::from_secs(60));
        log.write_all(b"the last\n").unwrap();
        log.finish(Duration::from_secs(60));
        let text = String::from_utf8(seen.try_iter().flatten().collect()).unwrap();
        let lines = text.matches('x').count() / 1023;
        let notices = text.lines().filter(|line| line.contains("lost"));
        let lost: usize = notices.map(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap()).sum();
        assert_eq!(lines + lost, 10_000);
        assert!(lines <= 2 * ROOM / 1024 && text.ends_with("the last\n"));
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_a_torn_one_is_ended() {
        let (mut log, allow, seen) = log();
        let failure = || Err(io::Error::from(ErrorKind::StorageFull));
        // The first line is torn, and so is the word of its loss, twice.
        for outcome in [Ok(3), failure(), failure(), failure()] {
            allow.send(outcome).unwrap();
        }
        log.write_all(b"one\ntwo\n").unwrap();
        log.finish(Duration::from_secs(60));
        drop(allow);
        log.write_all(b"three\n").unwrap();
        log.finish(Duration::from_secs(60));
        let text = String::from_utf8(seen.try_iter().flatten().collect()).unwrap();
        assert_eq!(text, "one\nsoftiov: 2 log lines were lost: nothing took them\nthree\n");
    }
}
