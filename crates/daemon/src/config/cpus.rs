//! Check of the configuration key `cpus`, the processors of a port's thread. The check that the machine has these
//! processors is made when the port opens.

use super::{ConfigError, value};
use host::cpus::CpuList;

pub(super) fn check(given: Option<&[u32]>, port: &str) -> Result<CpuList, ConfigError> {
    let refused = |problem: String| Err(value(format!("{port}.cpus"), problem));
    let Some(given) = given else { return Ok(CpuList::default()) };
    if given.is_empty() {
        return refused("the list is empty; name a CPU, or leave cpus out".to_owned());
    }
    match given.iter().find(|cpu| **cpu > CpuList::LAST) {
        Some(cpu) => refused(format!("CPU {cpu} is out of range (0-{})", CpuList::LAST)),
        None => Ok(given.iter().copied().collect()),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::tests::{check, refused};

    #[test]
    fn port_thread_runs_on_configured_cpus_or_on_any() {
        let config = check("[[port]]\ncpus = [3, 1, 3]\n[[port]]").unwrap();
        assert_eq!(config.ports[0].cpus, [1, 3].into_iter().collect());
        assert!(config.ports[1].cpus.is_empty());
    }

    #[test]
    fn invalid_cpu_is_named_in_the_error() {
        for (text, parts) in
            [("cpus = []", ["pf0.cpus", "leave cpus out"]), ("cpus = [5000]", ["pf0.cpus", "CPU 5000"])]
        {
            let message = refused(&format!("[[port]]\n{text}"));
            assert!(parts.iter().all(|part| message.contains(part)), "{text}\n{message}");
        }
    }
}
