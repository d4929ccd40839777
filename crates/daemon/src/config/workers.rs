//! Check of the configuration keys `workers` and `dispatcher`, the threads that share a port's VFs.

use super::file::{CardFamily, PortConfigKeys};
use super::{ConfigError, value};

/// Maximum number of workers of a port.
const MOST: u8 = 8;

/// Returns the number of workers of a port.
pub(super) fn check(port: &PortConfigKeys, name: &str) -> Result<usize, ConfigError> {
    let count = port.workers.unwrap_or(1);
    if !(1..=MOST).contains(&count) {
        return Err(value(format!("{name}.workers"), format!("{count} is not 1 to {MOST}")));
    }
    for (key, given) in [("workers", count > 1), ("dispatcher", port.dispatcher.is_some())] {
        if given && port.family != CardFamily::Virtio {
            let family = port.family.name();
            let why = format!(
                "a port of family \"{family}\" runs on one thread; leave {key} out, or use family = \"virtio\""
            );
            return Err(value(format!("{name}.{key}"), why));
        }
    }
    Ok(count.into())
}

#[cfg(test)]
mod tests {
    use crate::config::file::DispatcherMode;
    use crate::config::tests::{check, refused};

    #[test]
    fn virtio_port_has_the_configured_workers() {
        let config =
            check("[[port]]\nfamily = \"virtio\"\nworkers = 4\ndispatcher = \"spread\"\n[[port]]").unwrap();
        let found: Vec<_> = config.ports.iter().map(|port| (port.workers, port.dispatcher)).collect();
        assert_eq!(found, [(4, DispatcherMode::Spread), (1, DispatcherMode::Balanced)]);
    }

    #[test]
    fn wrong_number_of_workers_and_other_families_are_refused() {
        for (lines, expected) in [
            ("family = \"virtio\"\nworkers = 9", ["pf0.workers", "9 is not 1 to 8"]),
            ("family = \"virtio\"\nworkers = 0", ["pf0.workers", "0 is not 1 to 8"]),
            ("workers = 2", ["pf0.workers", "family \"82576\" runs on one thread; leave workers out"]),
            ("family = \"avf\"\ndispatcher = \"off\"", ["pf0.dispatcher", "leave dispatcher out"]),
        ] {
            let problem = refused(&format!("[[port]]\n{lines}"));
            assert!(expected.iter().all(|part| problem.contains(part)), "{problem}");
        }
    }
}
