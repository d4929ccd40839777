//! Limit of the number of log lines that clients and guests can cause.

use i82576::Time;
use std::fmt::Display;
use std::time::Duration;

/// Limit of log lines per minute for one kind of message, with the number of suppressed lines.
#[derive(Debug)]
pub(crate) struct LogRateLimit {
    most: u32,
    used: u32,
    suppressed: u64,
    window: Time,
}

const MINUTE: Duration = Duration::from_secs(60);

impl LogRateLimit {
    pub(crate) fn per_minute(most: u32) -> Self {
        Self { most, used: 0, suppressed: 0, window: Time::ZERO }
    }

    /// Requests permission to log a line. Returns the number of lines suppressed since the last logged line, or `None`
    /// if this line must be suppressed too.
    pub(crate) fn allow(&mut self, now: Time) -> Option<u64> {
        if now.since(self.window) >= MINUTE {
            (self.window, self.used) = (now, 0);
        }
        if self.used == self.most {
            self.suppressed += 1;
            return None;
        }
        self.used += 1;
        Some(std::mem::take(&mut self.suppressed))
    }

    /// Logs a failure of a PCI function, unless the limit of log lines is reached.
    pub(crate) fn warn(&mut self, now: Time, function: &str, what: &str, error: &dyn Display) {
        if let Some(suppressed) = self.allow(now) {
            tracing::warn!(function, %error, suppressed, "{what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LogRateLimit;
    use i82576::Time;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::fmt::MakeWriter;

    #[test]
    fn suppressed_log_lines_are_counted_in_the_next_line() {
        let mut limit = LogRateLimit::per_minute(2);
        let second = |s: u64| Time::from_micros(s * 1_000_000);
        assert_eq!((limit.allow(second(100)), limit.allow(second(101))), (Some(0), Some(0)));
        assert_eq!((limit.allow(second(102)), limit.allow(second(103))), (None, None));
        assert_eq!(limit.allow(second(161)), Some(2));
    }

    #[test]
    fn endless_failures_are_logged_at_the_rate_limit() {
        let lines = LogBuffer::default();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
        let mut limit = LogRateLimit::per_minute(3);
        tracing::subscriber::with_default(subscriber, || {
            for n in 0..1_000 {
                limit.warn(Time::from_micros(n), "pf0vf0", "cannot apply the VF's policy", &"no such VF");
            }
            limit.warn(Time::from_micros(60_000_000), "pf0vf0", "cannot apply the VF's policy", &"again");
        });
        let written = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(written.lines().count(), 4, "{written}");
        let last = written.lines().last().unwrap();
        assert!(last.contains("pf0vf0") && last.contains("suppressed=997"), "{last}");
    }

    /// Log lines that the test's logger has written.
    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for LogBuffer {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }
}
