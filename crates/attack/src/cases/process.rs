//! Cases on the host's process and what is around it: VMMs that do not run, limits, signals, folders, the log and the keeper.

use super::remedies::{
    CONTROL_FOLDER, DESCRIPTORS, DISK, KEEPER, LOG, MAPPING, SIGNALS, SOCKET_FOLDER, STOPPED_VMM,
};
use super::steps::{BAR0, DMA_MAP, MAP, NO_FILE, READ, VIRTIO_RING};
use crate::case::Attack::Surroundings;
use crate::case::AttackCase;
use crate::case::row;
use crate::control::ControlStep::{self, Status, Text};
use crate::control::STORE_POLICY;
use crate::family::AttackedFamily::{Avf, I82576, Virtio};
use crate::field::Field::{U16, U32, U64};
use crate::host_process::HostSetup::{ClosedLog, FullLog, Keeper, UnreadLog};
use crate::socket::AttachedFile::{Memory, SparseMemory};
use crate::socket::ExpectedAnswer::{End, Refused};
use crate::socket::SocketStep;
use crate::socket::SocketStep::{
    Bytes as Raw, Expect, Greet, Kick, Message, Reconnect, Repeat as Again, Steps,
};
use crate::surroundings::HostLimit::{AddressSpaceInUse, At, DescriptorsInUse};
use crate::surroundings::LimitedResource::{AddressSpace, FileSize, OpenFiles};
use crate::surroundings::Replacement::{self, File, Folder, Link, Nothing};
use crate::surroundings::SurroundingsStep::{
    AwaitSuccessor, Control, Exchange, KillStarter, Limit, More, Recover, Repeat, Replace, Restore, Signal,
    SignalKeeper, StopVmm, Vmm,
};
use rustix::process::Signal as Number;

/// VMM that does not read the replies to its requests.
const UNREAD_REPLIES: SocketStep = Again(60, &[Message(READ, 0, &[U64(0), U32(BAR0), U32(4096)], NO_FILE)]);
/// VMM that makes the host write a line into its log.
const LOG_LINE: SocketStep =
    Steps(&[Reconnect, Raw(&[U16(9), U16(9), U32(0), U32(0), U32(0)], NO_FILE), Expect(End)]);
/// Request that changes a VF's policy, and its answer if the policy cannot be stored.
const SET_TRUST: ControlStep = Text(
    "PATCH /v1/vfs/pf0vf3 HTTP/1.1\r\nhost: softiov\r\ncontent-type: application/json\r\ncontent-length: 22\r\n\r\n{\"set\":{\"trust\":true}}",
);
const SET_POLICY_FAILS: &[ControlStep] = &[SET_TRUST, Status(409, 409)];
/// Creates the row of a case on a folder of the host that something else replaces while VMMs connect.
const fn replaced(
    name: &'static str,
    rule: &'static str,
    steps: &'static [crate::surroundings::SurroundingsStep],
) -> AttackCase {
    row(name, I82576, rule, SOCKET_FOLDER, Surroundings(steps))
}

pub(super) const CASES: &[AttackCase] = &[
    row(
        "vmm-stopped-with-unread-replies",
        I82576,
        "A VMM that is stopped while replies wait for it delays no other",
        STOPPED_VMM,
        Surroundings(&[Vmm(&[Greet, UNREAD_REPLIES]), StopVmm, Exchange]),
    ),
    row(
        "vmm-stopped-within-a-message",
        Avf,
        "A VMM that is stopped within a message delays no other",
        STOPPED_VMM,
        Surroundings(&[Vmm(&[Greet, Raw(&[U16(1), U16(2), U32(48), U32(0)], &[Memory])]), StopVmm, Exchange]),
    ),
    row(
        "vmm-stopped-with-a-live-ring",
        Virtio,
        "A VMM that is stopped with a live ring delays no other, and its memory stays its own",
        STOPPED_VMM,
        Surroundings(&[
            Vmm(&[VIRTIO_RING, Kick, Message(11, 0, &[U32(1), U32(0)], NO_FILE)]),
            StopVmm,
            Exchange,
        ]),
    ),
    row(
        "vmm-stopped-before-its-greeting",
        Virtio,
        "A VMM that connects, says nothing and is stopped delays no other",
        STOPPED_VMM,
        Surroundings(&[Vmm(&[]), StopVmm, Exchange]),
    ),
    row(
        "descriptor-table-full-for-new-clients",
        I82576,
        "A host without a free descriptor refuses clients, and serves those that it has",
        DESCRIPTORS,
        Surroundings(&[Limit(OpenFiles, DescriptorsInUse(0)), Repeat(5, &[Vmm(&[])]), Exchange, Restore]),
    ),
    row(
        "descriptor-table-full-for-a-window",
        I82576,
        "A descriptor that the host cannot receive ends its client alone",
        DESCRIPTORS,
        Surroundings(&[
            Vmm(&[Greet]),
            Limit(OpenFiles, DescriptorsInUse(1)),
            More(&[Message(DMA_MAP, 0, &[U32(32), U32(3), U64(0), U64(0), U64(1 << 20)], &[Memory; 16])]),
            Exchange,
            Restore,
        ]),
    ),
    row(
        "descriptor-limit-of-zero",
        Virtio,
        "A descriptor limit below those in use closes none of them",
        DESCRIPTORS,
        Surroundings(&[Limit(OpenFiles, At(0)), Vmm(&[]), Exchange, Restore]),
    ),
    row(
        "control-clients-without-a-descriptor",
        I82576,
        "Control clients that the host cannot accept wait, and are answered when descriptors are free",
        DESCRIPTORS,
        Surroundings(&[
            Limit(OpenFiles, DescriptorsInUse(0)),
            Control(&[Text("GET /v1/ports HTTP/1.1\r\nhost: x\r\n\r\n")]),
            Exchange,
            Restore,
        ]),
    ),
    row(
        "address-space-full",
        I82576,
        "Memory that the host cannot map is refused, and the host continues",
        MAPPING,
        Surroundings(&[
            Vmm(&[Greet]),
            Limit(AddressSpace, AddressSpaceInUse(64 << 20)),
            More(&[
                Message(DMA_MAP, 0, &[U32(32), U32(3), U64(0), U64(0), U64(1 << 30)], &[SparseMemory]),
                Expect(Refused),
            ]),
            Exchange,
            Restore,
        ]),
    ),
    row(
        "file-size-limit-for-the-log",
        I82576,
        "A log file at its size limit loses lines, and ends no host",
        DISK,
        Surroundings(&[Limit(FileSize, At(0)), Vmm(&[Again(5, &[LOG_LINE])]), Exchange]),
    ),
    row(
        "file-size-limit-for-the-policy",
        I82576,
        "A policy that cannot be stored is refused, since it would be lost with the host",
        DISK,
        Surroundings(&[Limit(FileSize, At(0)), Control(SET_POLICY_FAILS), Restore, Control(STORE_POLICY)]),
    ),
    row(
        "state-folder-gone",
        I82576,
        "A policy whose folder is gone is stored in a new one or refused, and the host continues",
        DISK,
        Surroundings(&[
            Replace("state", Nothing),
            Control(&[SET_TRUST, Status(200, 599)]),
            Restore,
            Control(STORE_POLICY),
        ]),
    ),
    row(
        "state-folder-is-a-file",
        I82576,
        "A policy whose folder is a file is refused, and the file stays as it is",
        DISK,
        Surroundings(&[Replace("state", File), Control(SET_POLICY_FAILS), Restore, Control(STORE_POLICY)]),
    ),
    row(
        "log-on-a-full-disk",
        I82576,
        "A log that cannot be written loses lines, and ends no host",
        LOG,
        Surroundings(&[Vmm(&[Again(5, &[LOG_LINE])]), Exchange]),
    )
    .on(FullLog),
    row(
        "log-pipe-that-is-never-read",
        I82576,
        "A log without a reading process blocks no port and no control client",
        LOG,
        Surroundings(&[Vmm(&[Again(5, &[LOG_LINE])]), Control(STORE_POLICY), Exchange]),
    )
    .on(UnreadLog),
    row(
        "log-pipe-without-a-reader",
        I82576,
        "A log whose reader has gone ends no host",
        LOG,
        Surroundings(&[Vmm(&[Again(5, &[LOG_LINE])]), Control(STORE_POLICY), Exchange]),
    )
    .on(ClosedLog),
    row(
        "host-stopped-and-continued",
        I82576,
        "A host that was stopped continues where it was, with the messages that waited",
        SIGNALS,
        Surroundings(&[
            Vmm(&[Greet]),
            Signal(Number::STOP),
            More(&[UNREAD_REPLIES]),
            Signal(Number::CONT),
            Exchange,
        ]),
    ),
    row(
        "reload-ten-times",
        I82576,
        "Reloads of an unchanged configuration change nothing",
        SIGNALS,
        Surroundings(&[Repeat(10, &[Signal(Number::HUP)]), Exchange]),
    ),
    row(
        "reload-while-the-host-is-busy",
        Virtio,
        "A reload during a client's requests changes nothing of the client",
        SIGNALS,
        Surroundings(&[
            Vmm(&[VIRTIO_RING]),
            Signal(Number::HUP),
            More(&[Kick]),
            Signal(Number::HUP),
            Exchange,
        ]),
    ),
    row(
        "harmless-signals",
        I82576,
        "Signals of pipes, sizes, children, windows and urgent data end no host",
        SIGNALS,
        Surroundings(&[
            Signal(Number::PIPE),
            Signal(Number::XFSZ),
            Signal(Number::CHILD),
            Signal(Number::WINCH),
            Signal(Number::URG),
            Exchange,
        ]),
    ),
    replaced(
        "socket-folder-gone",
        "A socket folder that is gone disturbs no attached guest",
        &[Replace("run/pf0vf0", Nothing), Exchange],
    ),
    replaced(
        "socket-folder-is-a-link",
        "A link in the place of a socket folder is not followed by the host",
        &[Replace("run/pf0vf0", Link), Signal(Number::HUP), Exchange],
    ),
    replaced(
        "socket-of-another-program",
        "A socket of another program in the place of a VF's is neither used nor removed by the host",
        &[Replace("run/pf0vf0/vf.sock", Replacement::Socket), Signal(Number::HUP), Exchange],
    ),
    replaced(
        "all-socket-folders-gone",
        "A runtime folder that is replaced disturbs no attached guest",
        &[Replace("run", Folder), Exchange, Restore],
    ),
    row(
        "control-socket-gone",
        I82576,
        "A control socket that is gone disturbs no attached guest, and a restored one answers",
        CONTROL_FOLDER,
        Surroundings(&[Replace("run/control/control.sock", File), Exchange, Restore]),
    ),
    row(
        "keeper-killed",
        I82576,
        "Without its keeper the host continues, and new clients can attach",
        KEEPER,
        Surroundings(&[Vmm(&[Greet]), SignalKeeper(Number::KILL), Exchange]),
    )
    .on(Keeper),
    row(
        "keeper-stopped",
        I82576,
        "A keeper that does not run delays no guest, and no new client",
        KEEPER,
        Surroundings(&[SignalKeeper(Number::STOP), Vmm(&[Greet, MAP]), Exchange, SignalKeeper(Number::CONT)]),
    )
    .on(Keeper),
    row(
        "starter-killed",
        Avf,
        "Without its starter a keeper keeps, and the host continues",
        KEEPER,
        Surroundings(&[Vmm(&[Greet]), KillStarter, Exchange]),
    )
    .on(Keeper),
    row(
        "host-killed-within-a-message",
        I82576,
        "A killed host is replaced, guests keep their connections, and half a message is lost or finished",
        KEEPER,
        Surroundings(&[
            Vmm(&[Greet, MAP, Raw(&[U16(2), U16(9), U32(32)], NO_FILE)]),
            Signal(Number::KILL),
            AwaitSuccessor,
            Recover,
            Exchange,
        ]),
    )
    .on(Keeper),
    row(
        "host-killed-with-unread-replies",
        Avf,
        "A killed host is replaced, though a client reads no replies",
        KEEPER,
        Surroundings(&[
            Vmm(&[Greet, UNREAD_REPLIES]),
            Signal(Number::KILL),
            AwaitSuccessor,
            Recover,
            Exchange,
        ]),
    )
    .on(Keeper),
    row(
        "hand-over-to-a-stopped-vmm",
        Virtio,
        "A planned restart does not wait for a VMM that is stopped",
        KEEPER,
        Surroundings(&[
            Vmm(&[VIRTIO_RING, Kick]),
            StopVmm,
            SignalKeeper(Number::USR2),
            AwaitSuccessor,
            Exchange,
        ]),
    )
    .on(Keeper),
];
