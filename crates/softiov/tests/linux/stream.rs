//! Runs a guest's TCP connection that must survive what happens to the host, and pings that measure interruptions.

use crate::guest::{COMMAND, ScenarioGuest, eventually, eventually_within};
use anyhow::{Context, Result, anyhow, ensure};
use linux_guest::BackgroundScript;
use std::time::Duration;

/// Duration of an iperf3 stream: without end, because checks end their streams, and because the clock of an emulated guest may
/// jump by an hour when the machine below is moved.
const ENDLESS: u32 = 0;
/// Longest silence that iperf3 accepts, in milliseconds of the guest's clock: its largest value, a day.
const IDLE_MS: u32 = 86_400_000;
/// Highest rate of an iperf3 stream, so that the stream leaves processor time to the measurement.
const RATE: &str = "40M";
/// Size, rate and burst of datagrams: many descriptors at once, and a rate that leaves processor time to pings and TCP.
const DATAGRAMS: &str = "-l 100 -b 8M/64";
/// Interval between two readings of a TCP stream in seconds: iperf3's shortest.
const INTERVAL: &str = "0.1";
/// Longest wait for a TCP retransmission: TCP doubles its timeout up to 120 s (RFC 6298).
const BACK_OFF: Duration = Duration::from_secs(150);

/// Stream of iperf3, running in the background: TCP to `guest`, or datagrams from it.
#[derive(Debug)]
pub(crate) struct IperfStream<'a> {
    guest: &'a ScenarioGuest,
    running: BackgroundScript,
    file: String,
    seen: u64,
}

impl<'a> IperfStream<'a> {
    /// Starts a stream from the iperf3 server `from` to `guest`, and waits for its first bytes.
    pub(crate) fn open(guest: &'a ScenarioGuest, from: &str) -> Result<Self> {
        Self::open_in(guest, "", from)
    }

    /// Starts a stream as [`Self::open`] does, by a command that begins with `runner`, such as one that enters a network
    /// namespace of the guest.
    pub(crate) fn open_in(guest: &'a ScenarioGuest, runner: &str, from: &str) -> Result<Self> {
        Self::start(guest, runner, from, &format!("-R --rcv-timeout {IDLE_MS} -b {RATE}"))
    }

    /// Starts datagrams from `guest` to the iperf3 server `to`, in bursts, so that the guest's transmit ring has many
    /// descriptors in use.
    pub(crate) fn send_datagrams(guest: &'a ScenarioGuest, to: &str) -> Result<Self> {
        Self::start(guest, "", to, &format!("-u {DATAGRAMS}"))
    }

    /// Starts an endless stream to or from an iperf3 server with these options, and waits for its first bytes.
    fn start(guest: &'a ScenarioGuest, runner: &str, server: &str, options: &str) -> Result<Self> {
        let file = format!("/run/stream-{server}");
        let options = format!("{options} -t {ENDLESS} -i {INTERVAL} --forceflush");
        let script = format!("rm -f {file}; exec {runner} iperf3 -c {server} {options} > {file} 2>&1");
        // A server accepts one client at a time and needs a moment between two.
        eventually(|| {
            let stream =
                Self { guest, running: guest.linux.spawn_background(&script)?, file: file.clone(), seen: 0 };
            let begun = eventually(|| {
                let text = stream.text()?;
                ensure!(text.contains("error") || moving(&text) > 0, "the stream carries no bytes: {text}");
                Ok(text)
            })?;
            ensure!(!begun.contains("error"), "{}: no stream with {server}: {begun}", guest.name());
            Ok(stream)
        })
    }

    /// Waits until the stream has carried new bytes since the last call. A stream that has ended is an error at once.
    pub(crate) fn moves(&mut self) -> Result<()> {
        // Several intervals, because bytes that were pending before prove nothing.
        let enough = self.intervals()? + 5;
        let outcome = eventually_within(BACK_OFF, || {
            let text = self.text()?;
            if text.contains("error") {
                return Ok(Err(anyhow!("the stream ended: {text}")));
            }
            let now = moving(&text);
            ensure!(now >= enough, "only {now} intervals had bytes; {enough} are required");
            self.seen = now;
            Ok(Ok(()))
        });
        outcome.flatten().with_context(|| format!("{}: {}", self.guest.name(), self.file))
    }

    /// Ends the stream, and returns the longest time without a received byte, in seconds.
    pub(crate) fn close(self) -> Result<f64> {
        let text = self.text()?;
        self.running.kill();
        ensure!(!text.contains("error"), "{}: {text}", self.guest.name());
        Ok(longest_gap(&text))
    }

    fn intervals(&self) -> Result<u64> {
        Ok(moving(&self.text()?).max(self.seen))
    }

    fn text(&self) -> Result<String> {
        self.guest.check(&format!("cat {}", self.file))
    }
}

/// Parses lines of iperf3 such as `[  5]   0.10-0.20   sec   512 KBytes  41.9 Mbits/sec`: begin and end of the
/// interval, and true if bytes arrived.
fn intervals(text: &str) -> impl Iterator<Item = (f64, f64, bool)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_once(']')?.1.split_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let amount: f64 = words.nth(1)?.parse().ok()?;
        Some((begin.parse().ok()?, end.parse().ok()?, amount > 0.0))
    })
}

fn moving(text: &str) -> u64 {
    intervals(text).filter(|(_, _, bytes)| *bytes).count() as u64
}

fn longest_gap(text: &str) -> f64 {
    let (mut longest, mut since) = (0.0_f64, None);
    for (begin, end, bytes) in intervals(text) {
        if bytes {
            since = None;
        } else {
            longest = longest.max(end - *since.get_or_insert(begin));
        }
    }
    longest
}

/// Pings of a guest at a short interval, running in the background, to find interruptions.
#[derive(Debug)]
pub(crate) struct PingSeries<'a> {
    guest: &'a ScenarioGuest,
    running: BackgroundScript,
}

/// Result of a series of pings: number sent, number answered, and length of the longest run of unanswered pings.
#[derive(Debug)]
pub(crate) struct PingSummary {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Number of pings in the longest run of unanswered pings.
    pub(crate) missed: u64,
}

/// Returns the number of pings in the longest run of unanswered ones between two answers that ping has printed.
pub(crate) fn missed(text: &str) -> Result<u64> {
    let (mut missed, mut next) = (0, 0);
    for line in text.lines() {
        if let Some(number) = line.split_once("seq=").and_then(|(_, rest)| rest.split(' ').next()) {
            let number: u64 = number.parse()?;
            missed = missed.max(number.saturating_sub(next));
            next = number + 1;
        }
    }
    Ok(missed)
}

/// Interval between two pings of a series, in milliseconds.
pub(crate) const EVERY_MS: u64 = 10;

impl<'a> PingSeries<'a> {
    pub(crate) fn start(guest: &'a ScenarioGuest, address: &str) -> Result<Self> {
        let script = format!("ping -i 0.{EVERY_MS:03} {address}");
        let counted = || guest.snmp("Icmp", "InEchoReps");
        let before = counted()?;
        let running = guest.linux.spawn_background(&script)?;
        eventually(|| {
            ensure!(counted()? > before, "{}: {address} does not answer", guest.name());
            Ok(())
        })?;
        Ok(Self { guest, running })
    }

    /// Ends the series of pings, and returns its result.
    pub(crate) fn stop(self) -> Result<PingSummary> {
        self.guest.check("killall -INT ping")?;
        let text = self.guest.linux.wait(&self.running, COMMAND)?.stdout;
        let mut answers = PingSummary { sent: 0, received: 0, missed: missed(&text)? };
        for line in text.lines() {
            if line.contains("packets transmitted") {
                let numbers: Vec<_> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
                let [sent, received, ..] = numbers[..] else { continue };
                (answers.sent, answers.received) = (sent, received);
            }
        }
        Ok(answers)
    }
}
