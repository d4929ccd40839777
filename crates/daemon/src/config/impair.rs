//! What is done to frames on their way over a port's uplink, as the file says it: delayed, lost, put out of order. Left
//! out: doing it (`crate::port`).

use super::{ConfigError, value};
use serde::Deserialize;
use std::fmt;
use std::time::Duration;

/// The longest delay. Frames on their way take memory.
const LONGEST: u32 = 10_000_000;

/// The keys of `impair`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImpairKeys {
    /// How long each frame takes, microseconds.
    pub delay_us: u32,
    /// By how much that is shorter or longer, at most.
    pub jitter_us: u32,
    /// So many percent of the frames are lost.
    pub loss: f64,
    /// So many percent go at once, before those that are delayed.
    pub reorder: f64,
    /// The same frames meet the same fate with the same seed.
    pub seed: u64,
}

/// What is done to frames, in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Impair {
    /// How long each takes.
    pub delay: Duration,
    /// By how much that is shorter or longer, at most.
    pub jitter: Duration,
    /// Lost, of a million.
    pub loss: u32,
    /// Going at once, of a million.
    pub reorder: u32,
    /// Of the generator that decides.
    pub seed: u64,
}

impl Impair {
    /// Of a hundred percent.
    pub const MILLION: u32 = 1_000_000;

    pub(super) fn check(keys: &ImpairKeys, port: &str) -> Result<Self, ConfigError> {
        let &ImpairKeys { delay_us, jitter_us, loss, reorder, seed } = keys;
        let key = |name: &str| format!("{port}.impair.{name}");
        let part = |name: &str, percent: f64| match percent {
            0.0..=100.0 => Ok((percent * f64::from(Self::MILLION) / 100.0).round() as u32),
            _ => Err(value(key(name), format!("{percent} is no percentage: 0 to 100"))),
        };
        let (loss, reorder) = (part("loss", loss)?, part("reorder", reorder)?);
        if delay_us > LONGEST {
            return Err(value(key("delay_us"), format!("{delay_us} is too long: at most {LONGEST}")));
        }
        if jitter_us > delay_us {
            let why = format!("{jitter_us} is more than the delay: at most delay_us, which is {delay_us}");
            return Err(value(key("jitter_us"), why));
        }
        if reorder > 0 && delay_us == 0 {
            let why = "without a delay no frame comes before another: set delay_us too";
            return Err(value(key("reorder"), why));
        }
        let [delay, jitter] = [delay_us, jitter_us].map(|us| Duration::from_micros(us.into()));
        Ok(Self { delay, jitter, loss, reorder, seed })
    }
}

impl fmt::Display for Impair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: u32| f64::from(part) * 100.0 / f64::from(Self::MILLION);
        let Self { delay, jitter, loss, reorder, seed } = self;
        let (delay, jitter) = (delay.as_micros(), jitter.as_micros());
        let (loss, reorder) = (percent(*loss), percent(*reorder));
        write!(f, "delay {delay} us, jitter {jitter} us, loss {loss} %, reorder {reorder} %, seed {seed}")
    }
}
