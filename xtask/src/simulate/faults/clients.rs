//! Faults of the port's loop and of its clients: events, blocking calls, vhost-user sessions, and transfers in parts.

use super::row::{SeededFault, fault};

/// Rows of the table.
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
        "(!FAULT && self.port.engine.arm_rings()) || self.port.clients.need_the_card()",
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
];
