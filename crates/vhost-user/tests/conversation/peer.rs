//! Tests the front end of the published `vhost` crate, which Cloud Hypervisor uses, over a real socket: an independent
//! implementation of the specification.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserInflight};
use vhost::vhost_user::{Frontend, VhostUserFrontend, VhostUserProtocolFeatures};
use vhost::{VhostBackend, VhostUserDirtyLogRegion, VhostUserMemoryRegionInfo, VringConfigData};
use vhost_user::backend::{
    BackendEvent, BackendOffer, BackendProgress, BackendSession, HostOperation, HostOperationOutcome,
};
use vhost_user::message::{InflightArea, RingBase};
use vhost_user::outbox::OutgoingMessages;
use vmm_sys_util::eventfd::EventFd;

use crate::script::{DEVICE, EVERYTHING, MEMORY, PROTOCOL, SPLIT, USER};

/// Receives at most `room` bytes with their descriptors. Returns no bytes at the end of the connection.
fn receive(socket: &UnixStream, room: usize) -> (Vec<u8>, Vec<OwnedFd>) {
    let mut bytes = vec![0; room];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(32))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags).unwrap();
    bytes.truncate(received.bytes);
    let fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    (bytes, fds.flatten().collect())
}

fn send(socket: &UnixStream, bytes: &[u8], fds: &[OwnedFd]) -> usize {
    let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(&fds)));
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap()
}

/// Carries out a host task in the test, and records its name in `said`. Returns the task's outcome.
fn carry_out(task: HostOperation<OwnedFd>, said: &mut Vec<String>) -> HostOperationOutcome<OwnedFd> {
    let (text, outcome) = match task {
        HostOperation::ReplaceMemory(regions) => {
            (format!("memory {}", regions.len()), HostOperationOutcome::Done)
        }
        HostOperation::AddRegion(shared) => {
            (format!("add {:#x}", shared.region.guest_address), HostOperationOutcome::Done)
        }
        HostOperation::RemoveRegion(region) => {
            (format!("remove {:#x}", region.guest_address), HostOperationOutcome::Done)
        }
        HostOperation::StopRing { ring } => {
            (format!("stop {ring}"), HostOperationOutcome::Base(RingBase::Split { available: 42 }))
        }
        HostOperation::ReadConfig { offset, size } => {
            (format!("config {offset}+{size}"), HostOperationOutcome::Config(vec![0x52; size as usize]))
        }
        HostOperation::CreateInflight { .. } => {
            let area = InflightArea { size: 0x2000, ..InflightArea::default() };
            let fd = File::open("/dev/null").unwrap().into();
            ("inflight".into(), HostOperationOutcome::Inflight { area, fd })
        }
        HostOperation::SetLog { area, .. } => (format!("log {:#x}", area.size), HostOperationOutcome::Done),
        HostOperation::WriteConfig(_) => ("write config".into(), HostOperationOutcome::Failed),
        _ => ("other task".into(), HostOperationOutcome::Done),
    };
    said.push(text);
    outcome
}

/// Serves one front end to the end of its connection. Returns the recorded tasks and changes of rings.
fn serve(socket: &UnixStream) -> Vec<String> {
    let offer = BackendOffer { protocol_features: EVERYTHING, ..BackendOffer::net(1, DEVICE) };
    let mut session = BackendSession::new(offer);
    let mut out = OutgoingMessages::new();
    let mut said = Vec::new();
    loop {
        let (bytes, mut fds) = receive(socket, session.room());
        if bytes.is_empty() {
            return said;
        }
        session.push(&bytes, &mut fds).unwrap();
        loop {
            match session.step(&mut out).unwrap() {
                BackendProgress::Handled => {}
                BackendProgress::Event(BackendEvent::RingLive(ring)) => {
                    said.push(format!("live {}", ring.ring));
                }
                BackendProgress::Event(BackendEvent::RingPaused { ring }) => {
                    said.push(format!("pause {ring}"));
                }
                BackendProgress::Event(BackendEvent::RingEnabled { ring, enabled }) => {
                    said.push(format!("enable {ring} {enabled}"));
                }
                BackendProgress::Event(BackendEvent::DeviceReset) => said.push("reset".into()),
                BackendProgress::Event(_) => {}
                BackendProgress::Task(task) => {
                    let outcome = carry_out(task, &mut said);
                    session.complete(outcome);
                }
                _ => break,
            }
        }
        while let Some(chunk) = out.chunk() {
            let sent = send(socket, chunk.bytes, chunk.fds);
            out.sent(sent);
        }
    }
}

/// Returns the published crate's front end, connected to this crate's back end on another thread.
fn connected() -> (Frontend, JoinHandle<Vec<String>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Frontend::from_stream(theirs, 4), thread::spawn(move || serve(&ours)))
}

fn region(guest: u64, size: u64, user: u64, file: &File) -> VhostUserMemoryRegionInfo {
    VhostUserMemoryRegionInfo {
        guest_phys_addr: guest,
        memory_size: size,
        userspace_addr: user,
        mmap_offset: 0,
        mmap_handle: file.as_raw_fd(),
    }
}

/// Negotiates features with the requests of Cloud Hypervisor. From then on every request asks for an acknowledgement.
fn negotiate(frontend: &mut Frontend) {
    frontend.set_owner().unwrap();
    assert_eq!(frontend.get_features().unwrap(), DEVICE | PROTOCOL);
    let offered = frontend.get_protocol_features().unwrap();
    assert_eq!(offered.bits(), EVERYTHING);
    let wanted = offered - VhostUserProtocolFeatures::STATUS;
    frontend.set_protocol_features(wanted).unwrap();
    frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
    assert_eq!(frontend.get_queue_num().unwrap(), 2, "rings of one pair");
    frontend.set_features(SPLIT | PROTOCOL).unwrap();
}

fn set_up_ring(frontend: &Frontend, ring: usize, log: Option<u64>) {
    let start = USER + 0x1_0000 * ring as u64;
    let addresses = VringConfigData {
        queue_max_size: 256,
        queue_size: 256,
        flags: u32::from(log.is_some()),
        desc_table_addr: start,
        used_ring_addr: start + 0x2000,
        avail_ring_addr: start + 0x1000,
        log_addr: log,
    };
    frontend.set_vring_num(ring, 256).unwrap();
    frontend.set_vring_addr(ring, &addresses).unwrap();
}

#[test]
fn published_front_end_starts_migrates_and_stops_rings() {
    let (mut frontend, backend) = connected();
    negotiate(&mut frontend);
    let file = File::open("/dev/null").unwrap();
    frontend.set_mem_table(&[region(MEMORY.0, MEMORY.1, USER, &file)]).unwrap();
    let eventfd = EventFd::new(0).unwrap();
    for ring in 0..2 {
        set_up_ring(&frontend, ring, None);
        frontend.set_vring_base(ring, 0).unwrap();
        frontend.set_vring_call(ring, &eventfd).unwrap();
        frontend.set_vring_err(ring, &eventfd).unwrap();
        frontend.set_vring_kick(ring, &eventfd).unwrap();
        frontend.set_vring_enable(ring, true).unwrap();
    }
    let log = VhostUserDirtyLogRegion { mmap_size: 0x1000, mmap_offset: 0, mmap_handle: file.as_raw_fd() };
    frontend.set_log_base(0, Some(log)).unwrap();
    frontend.set_log_fd(eventfd.as_raw_fd()).unwrap();
    frontend.set_features(SPLIT | PROTOCOL | 1 << 26).unwrap();
    set_up_ring(&frontend, 0, Some(MEMORY.0 + 0x2000));
    for ring in 0..2 {
        frontend.set_vring_enable(ring, false).unwrap();
        assert_eq!(frontend.get_vring_base(ring).unwrap(), 42);
    }
    frontend.reset_device().unwrap();
    frontend.reset_owner().unwrap();
    drop(frontend);
    let said = backend.join().unwrap();
    let start = ["memory 1", "live 0", "enable 0 true", "live 1", "enable 1 true"];
    let end =
        ["log 0x1000", "pause 0", "live 0", "enable 0 false", "stop 0", "enable 1 false", "stop 1", "reset"];
    assert_eq!(said, [&start[..], &end].concat());
}

#[test]
fn published_front_end_adds_and_removes_memory_while_rings_run() {
    let (mut frontend, backend) = connected();
    negotiate(&mut frontend);
    assert_eq!(frontend.get_max_mem_slots().unwrap(), 64);
    let file = File::open("/dev/null").unwrap();
    let (first, more) = (region(MEMORY.0, MEMORY.1, USER, &file), region(1 << 32, 0x1000, 1 << 40, &file));
    frontend.add_mem_region(&first).unwrap();
    set_up_ring(&frontend, 1, None);
    frontend.set_vring_kick(1, &EventFd::new(0).unwrap()).unwrap();
    frontend.add_mem_region(&more).unwrap();
    frontend.remove_mem_region(&more).unwrap();
    frontend.remove_mem_region(&more).unwrap();
    let overlapping = region(MEMORY.0 + 0x1000, MEMORY.1, USER + 0x1000, &file);
    frontend.add_mem_region(&overlapping).unwrap_err();
    drop(frontend);
    let changes = ["pause 1", "add 0x100000000", "live 1", "pause 1", "remove 0x100000000", "live 1"];
    assert_eq!(backend.join().unwrap(), [&["add 0x100000", "live 1"][..], &changes].concat());
}

#[test]
fn published_front_end_uses_configuration_and_inflight_records() {
    let (mut frontend, backend) = connected();
    negotiate(&mut frontend);
    let flags = VhostUserConfigFlags::empty();
    let (_, contents) = frontend.get_config(0, 12, flags, &[0; 12]).unwrap();
    assert_eq!(contents, [0x52; 12]);
    frontend.set_config(0, flags, &[1; 6]).unwrap_err();
    let asked = VhostUserInflight::new(0, 0, 2, 256);
    let (area, file) = frontend.get_inflight_fd(&asked).unwrap();
    assert_eq!((area.mmap_size, area.num_queues, area.queue_size), (0x2000, 2, 256));
    frontend.set_inflight_fd(&area, file.as_raw_fd()).unwrap();
    frontend.set_vring_num(0, 0).unwrap_err();
    frontend.set_vring_num(0, 256).unwrap();
    drop(frontend);
    let said = backend.join().unwrap();
    assert_eq!(said, ["config 0+12", "write config", "inflight", "other task"]);
}
