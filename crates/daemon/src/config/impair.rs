//! Table `impair` of a port: delay, loss and reordering of frames on the uplink (`crate::port` applies it).

use super::{ConfigError, value};
use serde::Deserialize;
use std::fmt;
use std::time::Duration;

/// Maximum configurable delay of a frame on the uplink, microseconds. Delayed frames occupy memory.
const LONGEST: u32 = 10_000_000;

/// Keys of a port's configuration table `impair`: delay, loss and reordering of the uplink's frames.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImpairmentConfigKeys {
    /// Delay of each frame on the uplink, microseconds.
    pub delay_us: u32,
    /// Maximum deviation from the delay in either direction, microseconds.
    pub jitter_us: u32,
    /// Percentage of the uplink's frames that are dropped at random.
    pub loss: f64,
    /// Percentage of frames that skip the delay, and so pass delayed ones.
    pub reorder: f64,
    /// Seed of the random decisions: the same seed gives the same sequence of decisions.
    pub seed: u64,
}

/// Checked impairment of an uplink's frames, in both directions: delay, jitter, loss, reordering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImpairmentConfig {
    /// Delay of each frame on the uplink.
    pub delay: Duration,
    /// Maximum deviation from the frame delay in either direction.
    pub jitter: Duration,
    /// Number of frames of a million that are dropped.
    pub loss: u32,
    /// Number of frames that skip the delay, out of a million frames.
    pub reorder: u32,
    /// Seed of the random generator that decides about loss, jitter and reordering.
    pub seed: u64,
}

impl ImpairmentConfig {
    /// 100 percent in the unit of `loss` and `reorder`, millionths.
    pub const MILLION: u32 = 1_000_000;

    pub(super) fn check(keys: &ImpairmentConfigKeys, port: &str) -> Result<Self, ConfigError> {
        let &ImpairmentConfigKeys { delay_us, jitter_us, loss, reorder, seed } = keys;
        let key = |name: &str| format!("{port}.impair.{name}");
        let part = |name: &str, percent: f64| match percent {
            0.0..=100.0 => Ok((percent * f64::from(Self::MILLION) / 100.0).round() as u32),
            _ => Err(value(key(name), format!("{percent} % is out of range (0-100)"))),
        };
        let (loss, reorder) = (part("loss", loss)?, part("reorder", reorder)?);
        if delay_us > LONGEST {
            return Err(value(key("delay_us"), format!("{delay_us} is out of range (0-{LONGEST})")));
        }
        if jitter_us > delay_us {
            let why = format!("{jitter_us} is out of range (0-{delay_us}, the value of delay_us)");
            return Err(value(key("jitter_us"), why));
        }
        if reorder > 0 && delay_us == 0 {
            let why = "needs delay_us too: frames without a delay keep their order";
            return Err(value(key("reorder"), why));
        }
        let [delay, jitter] = [delay_us, jitter_us].map(|us| Duration::from_micros(us.into()));
        Ok(Self { delay, jitter, loss, reorder, seed })
    }
}

impl fmt::Display for ImpairmentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: u32| f64::from(part) * 100.0 / f64::from(Self::MILLION);
        let Self { delay, jitter, loss, reorder, seed } = self;
        let (delay, jitter) = (delay.as_micros(), jitter.as_micros());
        let (loss, reorder) = (percent(*loss), percent(*reorder));
        write!(f, "delay {delay} us, jitter {jitter} us, loss {loss} %, reorder {reorder} %, seed {seed}")
    }
}
