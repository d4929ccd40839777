//! systemd's watchdog (`WatchdogSec=`): a word to it as long as the host answers. That takes the thread that carries out
//! commands, and each port's, but for ports that were given up. Clients that ask too much are not in its way. A host that
//! hangs falls silent, and systemd starts the unit anew, with its guests.
//!
//! Left out: which part of the host hangs. Without systemd nobody hears the word: the keeper has nobody to pass it on to.

use anyhow::Context;
use daemon::Host;
use std::env;
use std::time::Duration;

const ALIVE: &str = "WATCHDOG=1";
/// So often within the time that systemd waits: one answer may be late, and one word may be lost.
const WORDS: u32 = 4;

/// Starts to tell systemd, if it wants to be told.
pub(super) fn start(host: &Host) -> anyhow::Result<()> {
    let Some(patience) = env::var("WATCHDOG_USEC").ok().and_then(|text| patience(&text)) else {
        return Ok(());
    };
    let (check, vault) = (host.check(), host.vault().clone());
    // The question may take seconds, and signals must not wait for it.
    let watch = move || loop {
        match check() {
            Ok(()) => vault.say(ALIVE),
            Err(error) => tracing::warn!(%error, "the watchdog is not told: the host does not answer itself"),
        }
        std::thread::sleep(patience / WORDS);
    };
    std::thread::Builder::new().name("watchdog".into()).spawn(watch).context("cannot start a thread")?;
    Ok(())
}

/// How long systemd waits for a word; `None` if it does not wait for one.
fn patience(microseconds: &str) -> Option<Duration> {
    microseconds.parse().ok().filter(|time| *time > 0).map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::patience;
    use std::time::Duration;

    #[test]
    fn systemd_says_in_microseconds_how_long_it_waits() {
        assert_eq!(patience("30000000"), Some(Duration::from_secs(30)));
        for none in ["0", "", "-1", "soon"] {
            assert_eq!(patience(none), None, "{none}");
        }
    }
}
