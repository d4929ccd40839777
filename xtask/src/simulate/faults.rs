//! Faults that the simulation has to find: each changes a piece of the host's source.

/// Folder of the files that faults change.
pub(super) const FOLDER: &str = "crates";

/// Change of a source file that breaks a promise of the host.
#[derive(Debug)]
pub(super) struct SeededFault {
    pub(super) name: &'static str,
    /// Path of the file in [`FOLDER`].
    pub(super) file: &'static str,
    /// Piece of source that occurs once in the file, and the piece that takes its place.
    pub(super) old: &'static str,
    pub(super) new: &'static str,
}

/// Creates a row of the table.
const fn fault(name: &'static str, file: &'static str, old: &'static str, new: &'static str) -> SeededFault {
    SeededFault { name, file, old, new }
}

/// Faults in the port's loop, the journal, the hand-over, blocking calls, changes of policies, names, VLANs and the vhost-user
/// session.
pub(super) const FAULTS: &[SeededFault] = &[
    // The port's loop.
    fault(
        "outcomes of blocking calls are ignored",
        "daemon/src/port/run.rs",
        "clients.finish_errands(engine, began);",
        "",
    ),
    fault(
        "registers are not published",
        "daemon/src/port/run.rs",
        "clients.publish_registers(engine, polled);",
        "",
    ),
    fault(
        "drivers of polled rings are not asked for notifications",
        "daemon/src/port/run.rs",
        "self.port.engine.arm_rings() || self.port.clients.need_the_card()",
        "false",
    ),
    fault(
        "kicks are ignored",
        "daemon/src/port/run.rs",
        "self.port.clients.kick(place, ring, &mut self.port.engine);",
        "",
    ),
    fault(
        "interrupts are not signalled",
        "daemon/src/port/engine/access.rs",
        "notifier.signal(eventfd);\n        true",
        "true",
    ),
    // The journal.
    fault(
        "progress is saved in the record that is valid",
        "daemon/src/port/clients/journal/function.rs",
        "let place = self.step % 2;",
        "let place = 0;",
    ),
    fault(
        "descriptors are never released to the keeper",
        "daemon/src/port/succession/keeping.rs",
        "self.forget(stale);",
        "drop(stale);",
    ),
    fault(
        "a file of guest memory is released while one window needs it",
        "daemon/src/port/succession/keeping.rs",
        "|file| file.windows == 0",
        "|file| file.windows <= 1",
    ),
    fault(
        "windows of a former client stay in the journal",
        "daemon/src/port/succession/keeping.rs",
        "self.journal.clear_windows();\n        numbers",
        "numbers",
    ),
    fault(
        "records of packed rings are not stored",
        "daemon/src/port/engine/ring_records.rs",
        "let _ = self.memory.memory().store_words(self.place(ring, first), words);",
        "let _ = words;",
    ),
    // The hand-over.
    fault(
        "a half consumed message is not consumed",
        "daemon/src/port/succession/adopt.rs",
        "while at < rest.len() {",
        "while at < rest.len() && false {",
    ),
    fault(
        "saved positions of rings outlive the first turn",
        "daemon/src/port/clients/vhost/saved.rs",
        "self.end_hand_over(device.own);\n        with_nic",
        "with_nic",
    ),
    fault(
        "saved positions of rings are ignored",
        "daemon/src/port/clients/vhost/saved.rs",
        "saved.positions.iter().for_each(|(ring, position)| nic.continue_ring(vf, *ring, *position));",
        "",
    ),
    fault(
        "eventfds of kicks are not handed over",
        "daemon/src/port/clients/vhost/saved.rs",
        "in calls.chain(kicks) {",
        "in calls.chain(kicks.take(0)) {",
    ),
    fault(
        "registers are not published before a hand-over",
        "daemon/src/port/carry_out.rs",
        "self.clients.publish_registers(&mut self.engine, now);",
        "",
    ),
    fault(
        "clients are not resumed after a refused hand-over",
        "daemon/src/port/carry_out.rs",
        "self.clients.resume(&mut self.engine, now);",
        "",
    ),
    // Blocking calls.
    fault(
        "files of guest memory are not kept",
        "daemon/src/port/clients/keeper.rs",
        "self.keep(number, fd);\n        number",
        "number",
    ),
    fault(
        "a new client's descriptors are not kept",
        "daemon/src/port/clients/errand.rs",
        "keeper.keep(number, fd.as_fd());",
        "let _ = (&keeper, number, fd);",
    ),
    fault(
        "outcomes for former clients reach the next one",
        "daemon/src/port/clients/errand.rs",
        "done.client != self.client",
        "done.client > self.client",
    ),
    // Changes of policies.
    fault(
        "new policies do not reach the card",
        "daemon/src/port/carry_out.rs",
        "let set = self.engine.apply_policies(&order.policy, &policies, now);",
        "let set = Ok(());",
    ),
    // Names and VLANs.
    fault(
        "a guest may send in another's name",
        "plane/src/switch/decide.rs",
        "return Some(SwitchDropReason::SourceSpoofed);",
        "",
    ),
    fault(
        "a guest may send in another VLAN",
        "plane/src/switch/decide.rs",
        "(self.check_vlan.meets(sender) && outside).then_some",
        "(self.check_vlan.meets(sender) && outside && frame.dst.is_group()).then_some",
    ),
    fault(
        "a guest receives frames of all VLANs",
        "plane/src/switch/decide.rs",
        "Some(tag) if self.shared => self.vlans.members(tag),",
        "",
    ),
    // The vhost-user session.
    fault(
        "a ring that starts is not visited",
        "daemon/src/port/clients/vhost/apply.rs",
        "with_nic(device, |nic, vf| nic.make_ready(vf, ring));\n            call(ring, device);",
        "call(ring, device);",
    ),
    fault(
        "a ring that starts sends no interrupt",
        "daemon/src/port/clients/vhost/apply.rs",
        "with_nic(device, |nic, vf| nic.make_ready(vf, ring));\n            call(ring, device);",
        "with_nic(device, |nic, vf| nic.make_ready(vf, ring));",
    ),
    fault(
        "an eventfd for kicks is not watched",
        "daemon/src/port/clients/vhost/kicks.rs",
        "poller.add(&kick.eventfd, tokens::kick(place, ring), PollInterest::NEWS)?;",
        "",
    ),
];

#[cfg(test)]
mod tests {
    use super::{FAULTS, FOLDER};
    use crate::metadata;

    #[test]
    fn each_seeded_fault_has_one_place() {
        let root = metadata::workspace_root().unwrap();
        for fault in FAULTS {
            let text = std::fs::read_to_string(root.join(FOLDER).join(fault.file)).unwrap();
            assert_eq!(text.matches(fault.old).count(), 1, "{fault:?}");
        }
    }
}
