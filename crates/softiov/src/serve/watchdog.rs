//! Notifies systemd's watchdog (`WatchdogSec=`) as long as the host answers. The answer needs the thread of every port that was
//! not given up, and the thread that carries out commands unless that one waits for a disk; clients that send too many
//! requests do not prevent it. If the host hangs, systemd restarts the unit with its guests.

use anyhow::Context;
use daemon::RunningHost;
use std::env;
use std::time::Duration;

const ALIVE: &str = "WATCHDOG=1";
/// Number of notices to systemd's watchdog per timeout, so that one notice may be late and one lost.
const NOTICES_PER_TIMEOUT: u32 = 4;

/// Starts the watchdog thread, if systemd has set a timeout.
pub(super) fn start(host: &RunningHost) -> anyhow::Result<()> {
    let Some(timeout) = env::var("WATCHDOG_USEC").ok().and_then(|text| parse_timeout(&text)) else {
        return Ok(());
    };
    let (check, vault) = (host.check(), host.vault().clone());
    // The check may take seconds, and signals must not wait for it.
    let watch = move || loop {
        match check() {
            Ok(()) => vault.say(ALIVE),
            Err(error) => {
                tracing::warn!(%error, "the host does not answer, so systemd's watchdog is not notified");
            }
        }
        std::thread::sleep(timeout / NOTICES_PER_TIMEOUT);
    };
    std::thread::Builder::new()
        .name("watchdog".into())
        .spawn(watch)
        .context("cannot start the watchdog thread")?;
    Ok(())
}

/// Parses systemd's watchdog timeout, or returns `None` if systemd has set none.
fn parse_timeout(microseconds: &str) -> Option<Duration> {
    microseconds.parse().ok().filter(|time| *time > 0).map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::parse_timeout;
    use std::time::Duration;

    #[test]
    fn systemd_watchdog_timeout_is_read_in_microseconds() {
        assert_eq!(parse_timeout("30000000"), Some(Duration::from_secs(30)));
        for none in ["0", "", "-1", "soon"] {
            assert_eq!(parse_timeout(none), None, "{none}");
        }
    }
}
