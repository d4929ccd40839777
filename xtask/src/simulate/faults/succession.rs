//! Faults of what a process leaves to its successor: the journal, and the hand-over.

use super::row::{SeededFault, fault};

/// Rows of the table.
pub(super) const FAULTS: &[SeededFault] = &[
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
        "self.end_hand_over(device.own);\n        let function",
        "if !FAULT { self.end_hand_over(device.own); }\n        let function",
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
        "a successor keeps the clients that it cannot resume, as those of removed VFs",
        "daemon/src/port/open.rs",
        "for orphan in lost {",
        "for orphan in lost { if FAULT { std::mem::forget(orphan); continue; }",
    ),
];
