//! Check of the configuration keys `workers` and `dispatcher`, the threads that share a port's VFs.

use super::file::{CardFamily, DoorbellMode, PortConfigKeys};
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
        let Some(why) = obstacle(port).filter(|_| given) else { continue };
        return Err(value(format!("{name}.{key}"), format!("{why}, or leave {key} out")));
    }
    Ok(count.into())
}

/// Returns the reason why a port runs on one thread, with a remedy; `None` if it may run on several.
fn obstacle(port: &PortConfigKeys) -> Option<String> {
    match (port.family, port.wait) {
        (CardFamily::I82576, _) => Some(format!(
            "a port of family \"{}\" runs on one thread; use family = \"avf\" or \"virtio\"",
            port.family.name()
        )),
        (CardFamily::Avf, DoorbellMode::Sleep) => Some(
            "a port of family \"avf\" runs on one thread while its guests ring by message; use wait = \"mapped\" or \
             \"busy\""
                .to_owned(),
        ),
        (CardFamily::Avf | CardFamily::Virtio, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::config::file::DispatcherMode;
    use crate::config::tests::{check, refused};

    #[test]
    fn port_of_a_family_that_divides_has_the_configured_workers() {
        let config = check(
            "[[port]]\nfamily = \"virtio\"\nworkers = 4\ndispatcher = \"spread\"\n[[port]]\n\
             [[port]]\nfamily = \"avf\"\nwait = \"mapped\"\nworkers = 2\n",
        )
        .unwrap();
        let found: Vec<_> = config.ports.iter().map(|port| (port.workers, port.dispatcher)).collect();
        let [spread, balanced] = [DispatcherMode::Spread, DispatcherMode::Balanced];
        assert_eq!(found, [(4, spread), (1, balanced), (2, balanced)]);
    }

    #[test]
    fn wrong_number_of_workers_and_ports_of_one_thread_are_refused() {
        for (lines, expected) in [
            ("family = \"virtio\"\nworkers = 9", ["pf0.workers", "9 is not 1 to 8"]),
            ("family = \"virtio\"\nworkers = 0", ["pf0.workers", "0 is not 1 to 8"]),
            ("workers = 2", ["pf0.workers", "use family = \"avf\" or \"virtio\", or leave workers out"]),
            ("wait = \"mapped\"\nworkers = 2", ["pf0.workers", "family \"82576\" runs on one thread"]),
            ("family = \"avf\"\nworkers = 2", ["pf0.workers", "use wait = \"mapped\" or \"busy\""]),
            ("family = \"avf\"\ndispatcher = \"off\"", ["pf0.dispatcher", "or leave dispatcher out"]),
        ] {
            let problem = refused(&format!("[[port]]\n{lines}"));
            assert!(expected.iter().all(|part| problem.contains(part)), "{problem}");
        }
    }
}
