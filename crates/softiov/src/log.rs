//! Writes the host's log to standard error, by a thread of its own. A full disk, a closed terminal or a pipe without a
//! reader neither blocks a caller nor ends the host.
//!
//! Lines wait in a queue bounded in bytes. Lines that find no room or cannot be written are counted, and the count is
//! written before the next line.

mod events;

pub(crate) use events::EventRecordLayer;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Capacity of the queue of log lines, bytes.
const QUEUE_BYTES: usize = 256 * 1024;
/// Delay before the next write to a nonblocking log file descriptor that is full.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Log of the host on standard error. Clones share one queue.
#[derive(Debug, Clone)]
pub(crate) struct HostLog(Arc<SharedLogQueue>);

#[derive(Debug, Default)]
struct SharedLogQueue {
    queue: Mutex<LogQueue>,
    /// Signalled when log lines are queued.
    filled: Condvar,
    /// Signalled when no log line is queued or being written.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct LogQueue {
    /// Whole log lines that are not written yet.
    lines: Vec<u8>,
    /// Number of log lines lost since the last report of lost lines.
    lost: u64,
    /// True while the log's thread is writing lines.
    busy: bool,
}

impl HostLog {
    /// Creates a log that collects lines until [`Self::start`].
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Starts the thread that writes collected and future lines to `out`. The thread first calls `begin`, which gives
    /// up privileges that it does not need.
    ///
    /// # Errors
    /// No thread is available, or `begin` fails.
    pub(crate) fn start(
        &self,
        out: impl Write + Send + 'static,
        begin: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let shared = Arc::clone(&self.0);
        let (report, begun) = mpsc::sync_channel(1);
        std::thread::Builder::new().name("log".into()).spawn(move || {
            let outcome = begin();
            let failed = outcome.is_err();
            let _ = report.send(outcome);
            if !failed {
                shared.run_writer(out);
            }
        })?;
        begun.recv()?
    }

    /// Waits until all log lines are written, at most for `timeout`.
    pub(crate) fn finish(&self, timeout: Duration) {
        let unwritten = |queue: &mut LogQueue| queue.busy || !queue.lines.is_empty();
        drop(self.0.emptied.wait_timeout_while(self.0.lock(), timeout, unwritten));
    }
}

impl Write for HostLog {
    /// Queues a whole log line, or counts it as lost.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut queue = self.0.lock();
        if queue.lines.len() + line.len() > QUEUE_BYTES {
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

impl<'a> MakeWriter<'a> for HostLog {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl SharedLogQueue {
    /// Locks the queue of log lines, for as long as copying a line takes. A thread that panicked meanwhile left whole
    /// lines behind.
    fn lock(&self) -> MutexGuard<'_, LogQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_writer(&self, mut out: impl Write) {
        let (mut lines, mut lost, mut torn) = (Vec::new(), 0, false);
        loop {
            // Lines that found no room after the queued ones.
            let lost_after = self.take(&mut lines);
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                report_lost(&mut out, &mut lost, &mut torn);
                if lost > 0 || !write(&mut out, line, &mut torn) {
                    lost += 1;
                }
            }
            lost += lost_after;
            report_lost(&mut out, &mut lost, &mut torn);
        }
    }

    /// Waits for queued lines, moves them to `lines`, and returns the number of lines lost after them. Reuses the
    /// capacity of `lines`.
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

/// Writes the number of lost log lines on a line of its own, and sets `lost` to 0 once that line is written.
fn report_lost(out: &mut impl Write, lost: &mut u64, torn: &mut bool) {
    let end_of_torn_line = if *torn { "\n" } else { "" };
    let notice = format!(
        "{end_of_torn_line}softiov: {lost} log lines were lost: standard error did not accept them\n"
    );
    if *lost > 0 && write(out, notice.as_bytes(), torn) {
        *lost = 0;
    }
}

/// Writes bytes to the log's destination, and returns true if all were written. Sets `torn` if the last line is
/// unfinished.
fn write(out: &mut impl Write, mut rest: &[u8], torn: &mut bool) -> bool {
    while !rest.is_empty() {
        match out.write(rest) {
            Ok(0) => return false,
            Ok(count) => {
                rest = &rest[count..];
                *torn = !rest.is_empty();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY_DELAY),
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Log destination that waits until the test allows each write.
    struct GatedWriter {
        allowed: Receiver<io::Result<usize>>,
        written: Sender<Vec<u8>>,
    }

    impl Write for GatedWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.allowed.recv().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            self.written.send(bytes[..count].to_vec()).map_err(|_| ErrorKind::BrokenPipe)?;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Starts a log for a test. Returns the log, the sender that allows each of its writes, and the receiver of the
    /// bytes written.
    fn log() -> (HostLog, Sender<io::Result<usize>>, Receiver<Vec<u8>>) {
        let (allow, allowed) = channel();
        let (written, seen) = channel();
        let log = HostLog::new();
        log.start(GatedWriter { allowed, written }, || Ok(())).unwrap();
        (log, allow, seen)
    }

    #[test]
    fn log_lines_are_written_in_order() {
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
    fn full_log_blocks_no_caller_and_reports_lost_lines() {
        let (mut log, allow, seen) = log();
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        for _ in 0..10_000 {
            log.write_all(&line).unwrap();
        }
        log.finish(Duration::from_millis(1));
        assert!(seen.try_recv().is_err(), "nothing was written so far");
        drop(allow);
        log.finish(Duration::from_secs(60));
        log.write_all(b"the last\n").unwrap();
        log.finish(Duration::from_secs(60));
        let text = String::from_utf8(seen.try_iter().flatten().collect()).unwrap();
        let lines = text.matches('x').count() / 1023;
        let notices = text.lines().filter(|line| line.contains("lost"));
        let lost: usize = notices.map(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap()).sum();
        assert_eq!(lines + lost, 10_000);
        assert!(lines <= 2 * QUEUE_BYTES / 1024 && text.ends_with("the last\n"));
    }

    #[test]
    fn lost_log_lines_are_counted_and_partial_lines_ended() {
        let (mut log, allow, seen) = log();
        let failure = || Err(io::Error::from(ErrorKind::StorageFull));
        // The first line is cut short, and two reports of its loss fail.
        for outcome in [Ok(3), failure(), failure(), failure()] {
            allow.send(outcome).unwrap();
        }
        log.write_all(b"one\ntwo\n").unwrap();
        log.finish(Duration::from_secs(60));
        drop(allow);
        log.write_all(b"three\n").unwrap();
        log.finish(Duration::from_secs(60));
        let text = String::from_utf8(seen.try_iter().flatten().collect()).unwrap();
        assert_eq!(text, "one\nsoftiov: 2 log lines were lost: standard error did not accept them\nthree\n");
    }
}
