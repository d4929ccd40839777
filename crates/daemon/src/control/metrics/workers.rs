//! Metrics of the workers of ports that have several. The first worker, 0, is the port's own thread.

use super::{counter, gauge, register};
use crate::control::status::PortStatus;
use prometheus::{CounterVec, Error, Opts, Registry};

/// Adds the metrics of workers to the registry.
pub(super) fn metrics(registry: &Registry, ports: &[PortStatus]) -> Result<(), Error> {
    let labels = ["pf", "worker"];
    let busy = "Seconds for which the worker was busy";
    let busy = Opts::new("softiov_port_worker_busy_seconds_total", busy);
    let busy = register(registry, CounterVec::new(busy, &labels)?)?;
    let frames = "Frames that VFs have sent or received on the worker";
    let frames = counter(registry, "softiov_port_worker_frames_total", frames, &labels)?;
    let home =
        gauge(registry, "softiov_vf_worker", "Number of the worker that serves the VF", &["pf", "vf"])?;
    for port in ports {
        for (number, worker) in (0_u8..).zip(&port.workers) {
            let name = number.to_string();
            let labels = [port.name.as_str(), &name];
            busy.with_label_values(&labels).inc_by(worker.busy_ns as f64 / 1e9);
            frames.with_label_values(&labels).inc_by(worker.frames);
            for vf in &worker.vfs {
                home.with_label_values(&[port.name.as_str(), &vf.to_string()]).set(number.into());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::control::status::PortStatus;
    use serde_json::json;

    #[test]
    fn metrics_have_the_work_of_each_worker_and_the_worker_of_each_vf() {
        let port = json!({
            "name": "pf0", "mac": "02:00:00:00:00:ff", "uplink": "none", "link": true, "vfs": [],
            "workers": [
                {"busy_permille": 10, "busy_ns": 1_500_000_000, "frames": 3, "vfs": [0, 2]},
                {"busy_permille": 0, "busy_ns": 0, "frames": 0, "vfs": [1]},
            ],
        });
        let port: PortStatus = serde_json::from_value(port).unwrap();
        let text = super::super::text(&[port]).unwrap();
        for line in [
            "softiov_port_worker_busy_seconds_total{pf=\"pf0\",worker=\"0\"} 1.5\n",
            "softiov_port_worker_frames_total{pf=\"pf0\",worker=\"0\"} 3\n",
            "softiov_port_worker_frames_total{pf=\"pf0\",worker=\"1\"} 0\n",
            "softiov_vf_worker{pf=\"pf0\",vf=\"1\"} 1\n",
            "softiov_vf_worker{pf=\"pf0\",vf=\"2\"} 0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
