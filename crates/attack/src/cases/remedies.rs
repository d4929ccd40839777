//! Remedies that the tables share, by the part of the host that has them.

use crate::remedy::Remedy;

/// Setting that ends each attack of a client.
const DISABLE: &str = "`softiov vf set VF --quarantine on`";
/// Setting that ends the connection of a client.
const DISCONNECT: &str = "`softiov vf disconnect VF`, and `access` for the socket's users";

// vfio-user
pub(super) const FRAMING: Remedy = Remedy::new(
    "ends the connection that has lost its framing; buffers what has arrived, never what is claimed",
    "crates/vfio-user/src/decoder.rs",
)
.or_set(DISCONNECT);
pub(super) const REQUEST: Remedy = Remedy::new(
    "refuses the request with an error, and handles the next one",
    "crates/vfio-user/src/server/mod.rs",
)
.or_set(DISCONNECT);
pub(super) const REGION: Remedy = Remedy::new(
    "reads ones and ignores writes outside a region, without an error that hangs a virtual processor",
    "crates/vfio-user/src/server/region.rs",
);
pub(super) const INFORMATION: Remedy =
    Remedy::new("refuses the question with an error", "crates/vfio-user/src/server/info.rs");
pub(super) const VERSION_TEXT: Remedy = Remedy::new(
    "parses capabilities with bounded depth, and refuses what it cannot parse",
    "crates/vfio-user/src/wire/version.rs",
);
pub(super) const CONFIG_SPACE: Remedy =
    Remedy::new("keeps read-only fields of configuration space", "crates/pcie/src/lib.rs");
pub(super) const WINDOWS: Remedy =
    Remedy::new("maps whole, disjoint DMA windows only, up to a limit", "crates/vfio-user/src/server/dma.rs")
        .or_set("`client_memory`, the memory that a client may share");
pub(super) const INTERRUPTS: Remedy =
    Remedy::new("accepts interrupts of existing vectors only", "crates/vfio-user/src/server/irq.rs");
pub(super) const VFIO_CLIENT: Remedy = Remedy::new(
    "frees the VF when its connection ends, at any byte",
    "crates/daemon/src/port/clients/vfio.rs",
)
.or_set(DISCONNECT);
pub(super) const DEVICE: Remedy = Remedy::new(
    "charges the client for each reset, from its own turns",
    "crates/daemon/src/port/clients/device.rs",
)
.or_set(DISABLE);

// Files and memory of a client
pub(super) const MESSAGE_FILES: Remedy = Remedy::new(
    "receives a bounded number of descriptors, and closes those of no use",
    "crates/host/src/socket/fds.rs",
)
.or_set(DISCONNECT);
pub(super) const INTERRUPT_FILES: Remedy =
    Remedy::new("takes eventfds only, since others could block", "crates/host/src/eventfd/mod.rs");
pub(super) const MEMORY_FILES: Remedy =
    Remedy::new("maps memory files only", "crates/host/src/memory/source.rs");
pub(super) const MAPPING: Remedy = Remedy::new(
    "maps what the file has; a file that shrinks ends its client, not the host",
    "crates/host/src/memory/mod.rs",
)
.or_set("`client_memory`, the memory that a client may share");
pub(super) const CONNECTIONS: Remedy = Remedy::new(
    "serves one client a VF, charges connections to the VF, and refuses others",
    "crates/daemon/src/port/clients/service.rs",
)
.or_set(DISCONNECT);

// vhost-user
pub(super) const VHOST_FRAMING: Remedy = Remedy::new(
    "ends the connection that has lost its framing; buffers at most 4,096 bytes of a message",
    "crates/vhost-user/src/decoder.rs",
)
.or_set(DISCONNECT);
pub(super) const VHOST_REQUEST: Remedy = Remedy::new(
    "refuses the request by its acknowledgement, or ends a connection that wants none",
    "crates/vhost-user/src/backend/mod.rs",
)
.or_set(DISCONNECT);
pub(super) const VHOST_SESSION: Remedy = Remedy::new(
    "keeps rings stopped until their front end has started them",
    "crates/vhost-user/src/backend/session.rs",
);
pub(super) const VHOST_MEMORY: Remedy = Remedy::new(
    "refuses a table of regions whole, and keeps no part of it",
    "crates/daemon/src/port/clients/vhost/mod.rs",
)
.or_set("`client_memory`, the memory that a client may share");
pub(super) const VHOST_REGIONS: Remedy = Remedy::new(
    "maps what the file has; a file that shrinks ends its client, not the host",
    "crates/daemon/src/port/clients/vhost/regions.rs",
)
.or_set("`client_memory`, the memory that a client may share");
pub(super) const VHOST_APPLY: Remedy = Remedy::new(
    "charges the front end for changes of its rings, from its own turns",
    "crates/daemon/src/port/clients/vhost/apply.rs",
)
.or_set(DISABLE);
pub(super) const VIRTIO_CARD: Remedy =
    Remedy::new("stops a ring that breaks the rules, and counts it", "crates/virtio-nic/src/card.rs")
        .or_set(DISABLE);
pub(super) const VIRTIO_HEADER: Remedy =
    Remedy::new("drops a packet whose header is malformed", "crates/virtio/src/net/header.rs");

// 82576
pub(super) const TRANSMIT: Remedy = Remedy::new(
    "counts a DMA fault and stops the ring; visits a bounded number of descriptors a poll",
    "crates/nic/src/queue/transmit.rs",
)
.or_set(DISABLE);
pub(super) const RECEIVE: Remedy =
    Remedy::new("counts a DMA fault of that guest, and drops its frame", "crates/nic/src/queue/receive.rs")
        .or_set(DISABLE);
pub(super) const SEGMENTS: Remedy = Remedy::new(
    "drops the packet, or makes a bounded number of segments a poll",
    "crates/offload/src/segment.rs",
)
.or_set("`max_tx_rate`");
pub(super) const OFFLOADS: Remedy = Remedy::new(
    "takes lengths from the descriptors, never from the packet",
    "crates/driver/src/offload.rs: the card's side is crates/offload/src",
);
pub(super) const MESSAGES: Remedy =
    Remedy::new("refuses the request in the mailbox", "crates/driver/src/pf/messages.rs");
pub(super) const MAILBOX: Remedy = Remedy::new(
    "serves one message a visit, after the reset message only",
    "crates/driver/src/pf/mailbox.rs",
);
pub(super) const ADDRESSES: Remedy = Remedy::new(
    "refuses addresses that another VF, the port or the uplink has",
    "crates/driver/src/pf/policy.rs",
)
.or_set("`mac` for each tenant's VF");
pub(super) const CONDUCT: Remedy =
    Remedy::new("throttles a VF that asks too often, and tells the log", "crates/driver/src/conduct.rs")
        .or_set("`limits.mailbox`");
pub(super) const FUNCTION: Remedy =
    Remedy::new("resets that function alone", "crates/nic/src/function/vf.rs").or_set(DISABLE);
pub(super) const LINK_CONTROL: Remedy =
    Remedy::new("drops MAC control frames of guests", "crates/plane/src/guard.rs");

// Adaptive Virtual Functions
pub(super) const AVF_TRANSMIT: Remedy = Remedy::new(
    "drops malformed packets, and visits a bounded number of descriptors a poll",
    "crates/avf-nic/src/tx_ring.rs",
)
.or_set(DISABLE);
pub(super) const AVF_MAILBOX: Remedy = Remedy::new(
    "marks the descriptor as failed, and reads no memory that the client has not shared",
    "crates/avf-nic/src/mailbox.rs",
);
pub(super) const VIRTCHNL: Remedy = Remedy::new(
    "answers each request but RESET_VF, with an error if it is invalid",
    "crates/driver/src/avf/pf/requests.rs",
);
pub(super) const AVF_QUEUES: Remedy = Remedy::new(
    "checks a request for queues whole before any of it takes effect",
    "crates/driver/src/avf/pf/queues.rs",
);
pub(super) const AVF_FILTERS: Remedy = Remedy::new(
    "refuses addresses beyond the VF's quota, and those of others",
    "crates/driver/src/avf/pf/filters.rs",
)
.or_set("`mac` for each tenant's VF");
pub(super) const AVF_VLANS: Remedy = Remedy::new(
    "refuses VLANs that do not exist, and withholds those that policy denies",
    "crates/driver/src/avf/pf/vlans.rs",
)
.or_set("`vlan` or `vlans`");
pub(super) const AVF_RESET: Remedy =
    Remedy::new("resets that function alone", "crates/avf-nic/src/reset.rs").or_set(DISABLE);
pub(super) const AVF_BRAKE: Remedy =
    Remedy::new("serves requests at a limited rate", "crates/avf-nic/src/brake.rs")
        .or_set("`limits.mailbox`");

// Switch, turns and control
pub(super) const SWITCH: Remedy =
    Remedy::new("drops the frame in the VF's own switch port", "crates/plane/src/switch/decide.rs")
        .or_set("`spoofchk = true` (the default), `mac`, `vlan`");
pub(super) const WORK: Remedy = Remedy::new(
    "charges work to the function that causes it, and serves the others in between",
    "crates/units/src/work.rs: costs; crates/daemon/src/port/clients has the turns",
)
.or_set("`max_tx_rate`, `limits`");
pub(super) const HTTP: Remedy = Remedy::new(
    "bounds head, body, depth and number of requests, and ends slow connections",
    "crates/daemon/src/control/server/service.rs",
)
.or_set("`control`, the users of the control socket");
pub(super) const ROUTE: Remedy = Remedy::new(
    "answers with a status; a path names a route and never a file",
    "crates/daemon/src/control/route.rs",
)
.or_set("`control`, the users of the control socket");
pub(super) const HTTP_STREAM: Remedy = Remedy::new(
    "ends connections that do not read their answers",
    "crates/daemon/src/control/server/stream.rs",
)
.or_set("`control`, the users of the control socket");

// Process and surroundings
pub(super) const STOPPED_VMM: Remedy = Remedy::new(
    "never waits for a client: it keeps a bounded number of replies, and then does not read",
    "crates/daemon/src/port/clients/vfio.rs",
)
.or_set(DISCONNECT);
pub(super) const DESCRIPTORS: Remedy = Remedy::new(
    "refuses what needs a descriptor, and keeps the clients that it has",
    "crates/daemon/src/port/clients/service.rs",
)
.or_set("`LimitNOFILE=` of the host's unit");
pub(super) const DISK: Remedy = Remedy::new(
    "continues without the file, and refuses a policy that it cannot store",
    "crates/daemon/src/store.rs",
)
.or_set("a state folder with room, and no file-size limit");
pub(super) const LOG: Remedy = Remedy::new(
    "writes the log on a thread of its own, and counts the lines that are lost",
    "crates/softiov/src/serve/mod.rs",
)
.or_set("a log that is read, such as the journal");
pub(super) const SIGNALS: Remedy =
    Remedy::new("handles signals on its first thread", "crates/host/src/poll/signals.rs");
pub(super) const SOCKET_FOLDER: Remedy = Remedy::new(
    "opens its folders at its start, and uses sockets by their descriptors",
    "crates/host/src/socket/listener.rs",
)
.or_set("a runtime folder that the host's user alone may write to");
pub(super) const CONTROL_FOLDER: Remedy =
    Remedy::new("serves the control socket by its descriptor", "crates/daemon/src/control/server/mod.rs")
        .or_set("a runtime folder that the host's user alone may write to");
pub(super) const KEEPER: Remedy = Remedy::new(
    "keeps copies of all descriptors in a keeper process, which starts another host",
    "crates/keeper/src/supervisor.rs",
)
.or_set("`Restart=on-failure` of the host's unit");
