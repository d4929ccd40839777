//! Faults that the simulation has to find: each changes a piece of the host's source. One program has all of them, and its
//! environment chooses one.

/// Folder of the files that faults change.
pub(super) const FOLDER: &str = "crates";

/// Expression in a fault's piece of source that is true if the environment chooses the fault.
pub(super) const CHOSEN: &str = "FAULT";

/// Change of a source file that breaks a promise of the host.
#[derive(Debug)]
pub(super) struct SeededFault {
    pub(super) name: &'static str,
    /// Path of the file in [`FOLDER`].
    pub(super) file: &'static str,
    /// Piece of source that occurs once in the file, and the piece that takes its place. In the latter [`CHOSEN`] stands for an
    /// expression that is true if this fault is chosen.
    pub(super) old: &'static str,
    pub(super) new: &'static str,
}

/// Creates a row of the table.
const fn fault(name: &'static str, file: &'static str, old: &'static str, new: &'static str) -> SeededFault {
    SeededFault { name, file, old, new }
}

/// Faults in the port's loop, the journal, the hand-over, blocking calls, changes of policies, the state file, names, VLANs, the
/// uplink, segmentation and the vhost-user session.
pub(super) const FAULTS: &[SeededFault] = &[
    // The port's loop.
    fault(
        "outcomes of blocking calls are ignored",
        "daemon/src/port/run.rs",
        "clients.finish_errands(engine, began);",
        "if !FAULT { clients.finish_errands(engine, began); }",
    ),
    fault(
        "registers are not published",
        "daemon/src/port/run.rs",
        "clients.publish_registers(engine, polled);",
        "if !FAULT { clients.publish_registers(engine, polled); }",
    ),
    fault(
        "drivers of polled rings are not asked for notifications",
        "daemon/src/port/run.rs",
        "self.port.engine.arm_rings() || self.port.clients.need_the_card()",
        "!FAULT && (self.port.engine.arm_rings() || self.port.clients.need_the_card())",
    ),
    fault(
        "kicks are ignored",
        "daemon/src/port/run.rs",
        "self.port.clients.kick(place, ring, &mut self.port.engine);",
        "if !FAULT { self.port.clients.kick(place, ring, &mut self.port.engine); }",
    ),
    fault(
        "interrupts are not signalled",
        "daemon/src/port/engine/access.rs",
        "notifier.signal(eventfd);\n        true",
        "if !FAULT { notifier.signal(eventfd); }\n        true",
    ),
    // The journal.
    fault(
        "progress is saved in the record that is valid",
        "daemon/src/port/clients/journal/function.rs",
        "let place = self.step % 2;",
        "let place = if FAULT { 0 } else { self.step % 2 };",
    ),
    fault(
        "descriptors are never released to the keeper",
        "daemon/src/port/succession/keeping.rs",
        "self.forget(stale);",
        "if FAULT { drop(stale) } else { self.forget(stale) }",
    ),
    fault(
        "a file of guest memory is released while one window needs it",
        "daemon/src/port/succession/keeping.rs",
        "|file| file.windows == 0",
        "|file| file.windows <= usize::from(FAULT)",
    ),
    fault(
        "windows of a former client stay in the journal",
        "daemon/src/port/clients/journal/function.rs",
        "self.cleared.append(&mut self.places);",
        "if !FAULT { self.cleared.append(&mut self.places); }",
    ),
    fault(
        "records of packed rings are not stored",
        "daemon/src/port/engine/ring_records.rs",
        "let _ = self.memory.memory().store_words(self.place(ring, first), words);",
        "if FAULT { let _ = words; } else { let _ = self.memory.memory().store_words(self.place(ring, first), words); }",
    ),
    // The hand-over.
    fault(
        "a half consumed message is not consumed",
        "daemon/src/port/succession/adopt.rs",
        "while at < rest.len() {",
        "while at < rest.len() && !FAULT {",
    ),
    fault(
        "saved positions of rings outlive the first turn",
        "daemon/src/port/clients/vhost/saved.rs",
        "self.end_hand_over(device.own);\n        with_nic",
        "if !FAULT { self.end_hand_over(device.own); }\n        with_nic",
    ),
    fault(
        "saved positions of rings are ignored",
        "daemon/src/port/clients/vhost/saved.rs",
        "saved.positions.iter().for_each(|(ring, position)| nic.continue_ring(vf, *ring, *position));",
        "if !FAULT { saved.positions.iter().for_each(|(ring, position)| nic.continue_ring(vf, *ring, *position)); }",
    ),
    fault(
        "eventfds of kicks are not handed over",
        "daemon/src/port/clients/vhost/saved.rs",
        "in calls.chain(kicks) {",
        "in calls.chain(kicks.take(if FAULT { 0 } else { usize::MAX })) {",
    ),
    fault(
        "registers are not published before a hand-over",
        "daemon/src/port/pause.rs",
        "self.clients.publish_registers(&mut self.engine, now);",
        "if !FAULT { self.clients.publish_registers(&mut self.engine, now); }",
    ),
    fault(
        "clients are not resumed after a refused hand-over",
        "daemon/src/port/pause.rs",
        "self.clients.resume(&mut self.engine, now);",
        "if !FAULT { self.clients.resume(&mut self.engine, now); }",
    ),
    fault(
        "a planned successor creates a new card",
        "daemon/src/port/succession/inheritance.rs",
        "trust == SavedStateTrust::Everything",
        "trust == SavedStateTrust::Everything && !FAULT",
    ),
    fault(
        "an earlier state of an 82576 loses that a VF's driver is active",
        "driver/src/pf/earlier.rs",
        "clear_to_send: state.clear_to_send,",
        "clear_to_send: state.clear_to_send && !FAULT,",
    ),
    fault(
        "an earlier state of an AVF port loses that a VF's driver is active",
        "driver/src/avf/pf/earlier.rs",
        "stage: state.stage,",
        "stage: if FAULT { VfDriverStage::Reset } else { state.stage },",
    ),
    fault(
        "a successor keeps the socket of a VF that was removed",
        "daemon/src/port/open.rs",
        "self.succession.vault().forget_named_others(KEPT_LISTENERS, &needed);",
        "if !FAULT { self.succession.vault().forget_named_others(KEPT_LISTENERS, &needed); }",
    ),
    fault(
        "a successor keeps the client of a VF that was removed",
        "daemon/src/port/open.rs",
        "for orphan in lost {",
        "for orphan in lost { if FAULT { std::mem::forget(orphan); continue; }",
    ),
    // Blocking calls.
    fault(
        "files of guest memory are not kept",
        "daemon/src/port/clients/keeper.rs",
        "self.keep(number, fd);\n        number",
        "if !FAULT { self.keep(number, fd); }\n        number",
    ),
    fault(
        "a new client's descriptors are not kept",
        "daemon/src/port/clients/errand.rs",
        "keeper.keep(number, fd.as_fd());",
        "if FAULT { let _ = (&keeper, number, fd); } else { keeper.keep(number, fd.as_fd()); }",
    ),
    fault(
        "outcomes for former clients reach the next one",
        "daemon/src/port/clients/errand.rs",
        "done.client != self.client",
        "if FAULT { done.client > self.client } else { done.client != self.client }",
    ),
    fault(
        "a function whose worker is behind accepts clients",
        "daemon/src/port/clients/service.rs",
        "if slot.is_worker_behind {",
        "if slot.is_worker_behind && !FAULT {",
    ),
    fault(
        "a function whose worker has caught up accepts no clients",
        "daemon/src/port/clients/doors.rs",
        "self.slots[index].is_worker_behind = false;",
        "self.slots[index].is_worker_behind = FAULT;",
    ),
    // Changes of policies.
    fault(
        "new policies do not reach the card",
        "daemon/src/port/carry_out.rs",
        "let set = self.engine.apply_policies(&order.policy, &policies, now);",
        "let set = if FAULT { Ok(()) } else { self.engine.apply_policies(&order.policy, &policies, now) };",
    ),
    fault(
        "a VF of an 82576 in quarantine moves frames",
        "driver/src/pf/policy.rs",
        "state.policy.enabled && state.monitor.quarantined().is_none()",
        "state.policy.enabled && (FAULT || state.monitor.quarantined().is_none())",
    ),
    fault(
        "guards of source addresses are not set",
        "daemon/src/port/engine/guards.rs",
        "ips: ips.map(",
        "ips: ips.filter(|_| !FAULT).map(",
    ),
    fault(
        "the rate of a virtio VF limits nothing",
        "virtio-nic/src/tables.rs",
        "factor(device.rules.max_tx_rate)",
        "factor(if FAULT { 0 } else { device.rules.max_tx_rate })",
    ),
    fault(
        "the rate of an AVF VF is four times too low",
        "avf-nic/src/tables.rs",
        "((1000_u64 << 14) / u64::from(mbps))",
        "((1000_u64 << if FAULT { 16 } else { 14 }) / u64::from(mbps))",
    ),
    fault(
        "the rate of a VF of an 82576 is four times too high",
        "driver/src/pf/policy.rs",
        "rate_factor(self.rate(vf))",
        "rate_factor(if FAULT { 4 * self.rate(vf) } else { self.rate(vf) })",
    ),
    fault(
        "a virtio VF keeps the address that it had before",
        "virtio-nic/src/card.rs",
        "device.rules = rules;",
        "let mut rules = rules; if FAULT { rules.addresses.extend(core::mem::take(&mut device.rules.addresses)); rules.addresses.dedup(); } device.rules = rules;",
    ),
    fault(
        "no sender is checked while one may send in others' names",
        "plane/src/switch/decide.rs",
        "if self.check_source.meets(sender) && !own_source {",
        "if self.check_source.meets(sender) && !own_source && (!FAULT || (self.enabled & !self.check_source).is_empty()) {",
    ),
    fault(
        "the socket of a VF that was removed stays in the store",
        "daemon/src/port/carry_out.rs",
        "self.succession.vault().forget_named(&kept_listener(&slot.name));",
        "if !FAULT { self.succession.vault().forget_named(&kept_listener(&slot.name)); }",
    ),
    // The state file.
    fault(
        "the state file has its name before its contents are on the disk",
        "daemon/src/store/disk.rs",
        "sync(file.as_file(), path)?;",
        "if !FAULT { sync(file.as_file(), path)?; }",
    ),
    fault(
        "a change is acknowledged before the state file's name is on the disk",
        "daemon/src/store/disk.rs",
        "    sync_folder(folder, path)\n",
        "    if FAULT { Ok(()) } else { sync_folder(folder, path) }\n",
    ),
    fault(
        "a refused change stays in the state file",
        "daemon/src/store.rs",
        "self.is_uncertain = disk::replace(old, path).is_err();",
        "self.is_uncertain = !FAULT && disk::replace(old, path).is_err();",
    ),
    // Names and VLANs.
    fault(
        "a guest may send in another's name",
        "plane/src/switch/decide.rs",
        "return Some(SwitchDropReason::SourceSpoofed);",
        "if !FAULT { return Some(SwitchDropReason::SourceSpoofed); }",
    ),
    fault(
        "a guest may send in another VLAN",
        "plane/src/switch/decide.rs",
        "(self.check_vlan.meets(sender) && outside).then_some",
        "(self.check_vlan.meets(sender) && outside && (!FAULT || frame.dst.is_group())).then_some",
    ),
    fault(
        "a guest receives frames of all VLANs",
        "plane/src/switch/decide.rs",
        "Some(tag) if self.shared => self.vlans.members(tag),",
        "Some(tag) if self.shared && !FAULT => self.vlans.members(tag),",
    ),
    // The uplink.
    fault(
        "a port sleeps while frames of the uplink wait",
        "daemon/src/port/engine/uplink/port_wire/mod.rs",
        "may_sleep(&WireReceiver {",
        "FAULT || may_sleep(&WireReceiver {",
    ),
    fault(
        "a guest may take the address of a station at the uplink",
        "plane/src/switch/claims.rs",
        "|| self.stations.have(address)",
        "|| !FAULT && self.stations.have(address)",
    ),
    // Segmentation and checksums.
    fault(
        "the last segment's length is one byte too long",
        "offload/src/template.rs",
        "            transport + IPV4_HEADER,\n",
        "            transport + IPV4_HEADER + usize::from(FAULT && ahead + 1 == cut.count()),\n",
    ),
    fault(
        "the checksum of a segment leaves out its second buffer",
        "rings/src/cut.rs",
        "for (length, sum) in lengths.iter().zip(sums) {",
        "for (length, sum) in lengths.iter().zip(sums).take(if FAULT { 1 } else { usize::MAX }) {",
    ),
    fault(
        "each segment has the push flag",
        "offload/src/segment.rs",
        "(false, false) => self.masks.middle,",
        "(false, false) => if FAULT { self.masks.last } else { self.masks.middle },",
    ),
    fault(
        "a segment after each burst is left out",
        "rings/src/cut.rs",
        "cut.pass(low_dword(sent as u64));",
        "cut.pass(low_dword(sent as u64 + u64::from(FAULT)));",
    ),
    fault(
        "the checksum of a virtio packet of one segment is not completed",
        "virtio-nic/src/transmit.rs",
        "then_some(PLAIN | SUMMED | udp)",
        "then_some(if FAULT { PLAIN } else { PLAIN | SUMMED | udp })",
    ),
    // The vhost-user session.
    fault(
        "a ring that starts sends no interrupt",
        "daemon/src/port/clients/vhost/apply.rs",
        "\n            call(ring, device);",
        "\n            if !FAULT { call(ring, device); }",
    ),
    fault(
        "an eventfd for kicks is not watched",
        "daemon/src/port/clients/vhost/kicks.rs",
        "poller.add(&kick.eventfd, tokens::kick(place, ring), PollInterest::NEWS)?;",
        "if !FAULT { poller.add(&kick.eventfd, tokens::kick(place, ring), PollInterest::NEWS)?; }",
    ),
    fault(
        "a hand-over does not wait for room in the socket of a front end",
        "daemon/src/port/clients/vhost/saved.rs",
        "self.waiting || waits_for_room",
        "self.waiting || (!FAULT && waits_for_room)",
    ),
    // Transfers in parts.
    fault(
        "a reply to a front end of which a part was sent counts as sent",
        "daemon/src/port/clients/vhost/mod.rs",
        "Ok(SocketSendResult::Bytes(count)) => self.outbox.sent(count),",
        "Ok(SocketSendResult::Bytes(count)) => self.outbox.sent(if FAULT { chunk.bytes.len() } else { count }),",
    ),
    fault(
        "a reply to a vfio-user client of which a part was sent counts as sent",
        "daemon/src/port/clients/vfio.rs",
        "Ok(SocketSendResult::Bytes(count)) => self.outbox.sent(count),",
        "Ok(SocketSendResult::Bytes(count)) => self.outbox.sent(if FAULT { chunk.bytes.len() } else { count }),",
    ),
    // An uplink that vanishes.
    fault(
        "frames of a virtio guest without a link are not counted",
        "virtio-nic/src/source.rs",
        "lane.counters().tx_unclaimed += dropped;",
        "if !FAULT { lane.counters().tx_unclaimed += dropped; }",
    ),
    fault(
        "a wire whose far end vanishes keeps its link",
        "daemon/src/port/engine/uplink/port_wire/mod.rs",
        "if before == state {",
        "if before == state || (FAULT && state == UplinkState::Gone) {",
    ),
];

#[cfg(test)]
mod tests {
    use super::{CHOSEN, FAULTS, FOLDER};
    use crate::metadata;

    #[test]
    fn each_seeded_fault_has_one_place() {
        let root = metadata::workspace_root().unwrap();
        for fault in FAULTS {
            let text = std::fs::read_to_string(root.join(FOLDER).join(fault.file)).unwrap();
            assert_eq!(text.matches(fault.old).count(), 1, "{fault:?}");
            assert!(fault.new.contains(CHOSEN), "{fault:?}");
            // Without its line break a piece would become part of a comment above.
            let breaks = [fault.old, fault.new].map(|piece| piece.starts_with('\n'));
            assert_eq!(breaks[0], breaks[1], "{fault:?}");
        }
    }
}
