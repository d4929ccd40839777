//! Variations of a card: settings of its port, and conduct of its guests, that differ from the defaults. A card is measured with
//! each variation beside the default.

use std::fmt;

/// Settings of a card's port, and conduct of its guests, that differ from the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variation {
    /// Settings of the port as in the configuration file, separated by `;`.
    pub settings: String,
    /// The guests sleep until an interrupt for received frames, instead of polling.
    pub events: bool,
}

impl Variation {
    /// Creates a variation of the port's settings.
    fn of_port(settings: impl Into<String>) -> Self {
        Self { settings: settings.into(), events: false }
    }

    /// Returns true if nothing differs from the defaults.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if the port may have several busy threads.
    #[must_use]
    pub fn has_workers(&self) -> bool {
        self.settings.contains("workers")
    }
}

impl fmt::Display for Variation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = if self.events { "events" } else { "" };
        let separator = if self.events && !self.settings.is_empty() { "; " } else { "" };
        write!(f, "{}{separator}{events}", self.settings)
    }
}

/// Number of workers of a port, and their dispatcher.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerSettings {
    /// Number of threads that share the port's VFs.
    pub count: u8,
    /// Dispatcher of the VFs to the workers, as in the configuration file.
    pub dispatcher: String,
}

impl WorkerSettings {
    /// Parses a variation's name. Returns `None` if the variation has no workers, or differs from the defaults in more than its
    /// workers and their dispatcher.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (mut count, mut dispatcher) = (None, "balanced");
        for setting in name.split(';') {
            let (key, value) = setting.split_once('=')?;
            match key.trim() {
                "workers" => count = value.trim().parse().ok(),
                "dispatcher" => dispatcher = value.trim().trim_matches('"'),
                _ => return None,
            }
        }
        Some(Self { count: count?, dispatcher: dispatcher.to_owned() })
    }
}

impl fmt::Display for WorkerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workers = {}; dispatcher = \"{}\"", self.count, self.dispatcher)
    }
}

/// Returns the defaults, then each of the ports' `settings`, and then each number of workers above 1 with each dispatcher. With
/// `events`, all of them follow once more for guests that sleep until an interrupt.
#[must_use]
pub fn all(settings: &[String], workers: &[u8], dispatchers: &[String], events: bool) -> Vec<Variation> {
    let mut variations = vec![Variation::default()];
    variations.extend(settings.iter().map(|settings| Variation::of_port(settings.trim())));
    for &count in workers.iter().filter(|count| **count > 1) {
        for dispatcher in dispatchers {
            let workers = WorkerSettings { count, dispatcher: dispatcher.clone() };
            variations.push(Variation::of_port(workers.to_string()));
        }
    }
    let asleep = variations.iter().map(|variation| Variation { events: true, ..variation.clone() });
    let asleep: Vec<_> = asleep.filter(|_| events).collect();
    variations.extend(asleep);
    variations
}

/// Returns the reason why a variation of this name cannot show what its settings do.
#[must_use]
pub fn note(name: &str) -> Option<&'static str> {
    let mut settings = name.split(';').filter_map(|setting| setting.split_once('='));
    settings.find(|(key, value)| key.trim() == "gro" && value.trim() == "true")?;
    Some(if name.contains("workers") {
        "gro joins nothing here: it joins frames of another worker, but the benchmark's guests accept no joined packets; \
         `measure::pairs` compares gro on and off"
    } else {
        "gro joins nothing here: frames between VFs of one worker are never joined (decision 36); `measure::pairs` compares \
         gro on and off"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_workers_vary_with_each_dispatcher() {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let found = all(&texts(&[" rx_usecs = 50 "]), &[1, 2], &texts(&["off", "spread"]), false);
        let settings: Vec<_> = found.iter().map(|variation| variation.settings.as_str()).collect();
        let workers = ["off", "spread"].map(|how| format!("workers = 2; dispatcher = \"{how}\""));
        assert_eq!(settings, ["", "rx_usecs = 50", &workers[0], &workers[1]]);
        assert!(found[0].is_default() && !found[1].has_workers() && found[2].has_workers());
    }

    #[test]
    fn variation_with_another_setting_is_no_worker_settings() {
        let spread = WorkerSettings { count: 2, dispatcher: "spread".to_owned() };
        assert_eq!(WorkerSettings::parse(&spread.to_string()), Some(spread));
        let balanced = WorkerSettings { count: 4, dispatcher: "balanced".to_owned() };
        assert_eq!(WorkerSettings::parse("workers = 4"), Some(balanced));
        for other in
            ["", "rx_usecs = 50", "dispatcher = \"off\"", "workers = 2; gro = true", "workers = 2; events"]
        {
            assert_eq!(WorkerSettings::parse(other), None, "{other}");
        }
    }

    #[test]
    fn rows_with_gro_say_why_it_shows_no_effect() {
        assert!(note("rx_usecs = 50; gro = true; events").unwrap().contains("one worker"));
        assert!(note("gro = true; workers = 2").unwrap().contains("accept no joined packets"));
        for name in ["gro = true", "gro = true; workers = 2"] {
            assert!(note(name).unwrap().ends_with("`measure::pairs` compares gro on and off"));
        }
        assert_eq!([note(""), note("gro = false"), note("rx_usecs = 50; events")], [None; 3]);
    }

    #[test]
    fn each_variation_is_repeated_with_guests_that_sleep() {
        let found = all(&["rx_usecs = 50".to_owned()], &[1], &[], true);
        let names: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["", "rx_usecs = 50", "events", "rx_usecs = 50; events"]);
        assert!(!found[2].is_default(), "guests that sleep are no default");
    }
}
