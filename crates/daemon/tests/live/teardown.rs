//! Tests of clients' memory and file descriptors that take long to map, unmap or close: only the client that owns them
//! waits. Also tests the limits of a client's memory.

use crate::support::alone::{alone, descriptors};
use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::{COMMAND, CONFIG, ENABLE};
use crate::support::qemu::QemuClient;
use crate::support::ram::GuestRam;
use crate::support::raw::{RawVfioUserConnection, dma_map, dma_map_at, dma_unmap, load, store};
use host::memory::{MappedFile, MemoryProtection};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use vfio_user::client::ClientDmaWindow;
use vfio_user::wire::Errno;

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn memfd(name: &str, size: u64) -> OwnedFd {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, size).unwrap();
    fd
}

/// Creates a memory file of `size` bytes, with all its pages allocated by writes.
fn touched(size: u64) -> OwnedFd {
    let fd = memfd("touched", size);
    let memory = MappedFile::map(&fd, 0, size, MemoryProtection::ReadWrite).unwrap();
    (0..size / PAGE).for_each(|page| memory.write(page * PAGE, &[1]).unwrap());
    fd
}

/// Returns the processor time that this process's threads with the name `name` have used.
fn processor_time_of(name: &str) -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of_task = |task: std::path::PathBuf| {
        let comm = std::fs::read_to_string(task.join("comm")).ok()?;
        let times = std::fs::read_to_string(task.join("schedstat")).ok()?;
        let nanoseconds = times.split(' ').next()?.parse().ok()?;
        (comm.trim_end() == name).then_some(Duration::from_nanos(nanoseconds))
    };
    tasks.filter_map(|task| of_task(task.unwrap().path())).sum()
}

#[test]
fn unmapping_a_large_guest_does_not_block_the_port_thread() {
    alone("teardown::unmapping_a_large_guest_does_not_block_the_port_thread", || {
        let live = LiveHost::start();
        let memory = touched(512 * MIB);
        let mut qemu = QemuClient::greet(&live.socket(0));
        let window = ClientDmaWindow { iova: 0, size: 512 * MIB, offset: 0, writable: true };
        // The host has the last descriptor, so the host frees the pages.
        qemu.done(|client, out| client.dma_map(out, window, Some(memory))).unwrap();
        let before = (processor_time_of("pf0"), processor_time_of("mem 0 pf0"));
        drop(qemu);
        eventually("the client and its mapping are gone", || {
            live.show(0).function.peer.is_none()
                && !std::fs::read_to_string("/proc/self/maps").unwrap().contains("touched")
        });
        // The file is freed after its mapping.
        let freed = || processor_time_of("mem 0 pf0") - before.1;
        let mut last = Duration::ZERO;
        eventually("the memory is freed", || {
            let quiet = freed() == last && freed() > Duration::ZERO;
            last = freed();
            thread::sleep(Duration::from_millis(50));
            quiet
        });
        let port = processor_time_of("pf0") - before.0;
        assert!(port < freed() / 2, "the port's thread took {port:?}, the other one {:?}", freed());
    });
}

/// Time for which the close of a test's TCP connection blocks, longer than a test takes on a busy machine.
const TEN_MINUTES: Duration = Duration::from_secs(600);

/// Returns both ends of a TCP connection. The first end has unsent data, so that closing it blocks for `patience`; the
/// second end reads nothing.
fn lingering(patience: Duration) -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    while stream.write(&[0; 1 << 16]).is_ok() {}
    stream.set_nonblocking(false).unwrap();
    rustix::net::sockopt::set_socket_linger(&stream, Some(patience)).unwrap();
    (stream.into(), other)
}

/// Passes the host `count` file descriptors whose close blocks, by `send`, and checks that two other guests are served
/// meanwhile.
fn beside_descriptors_that_do_not_close(count: usize, mut send: impl FnMut(&LiveHost, OwnedFd)) {
    let live = LiveHost::start();
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 1), VfGuest::under_qemu(&live, 2));
    let (fds, _others): (Vec<_>, Vec<_>) = (0..count).map(|_| lingering(TEN_MINUTES)).unzip();
    let began = Instant::now();
    fds.into_iter().for_each(|fd| send(&live, fd));
    exchange(&mut b, &mut c, 50);
    assert_eq!(live.port().vfs.len(), 7);
    assert!(began.elapsed() < TEN_MINUTES / 2, "{:?}", began.elapsed());
    assert!(live.is_whole());
}

/// Sends a message with a file descriptor and closes the test's copy, so that the host has the last one.
fn send_and_forget(raw: &mut RawVfioUserConnection, bytes: &[u8], fd: OwnedFd) {
    raw.send_with(&bytes[..20], &[fd.as_fd()]);
    drop(fd);
    raw.send(&bytes[20..]);
}

#[test]
fn slow_close_of_a_guest_memory_fd_blocks_no_other_vfs_client() {
    beside_descriptors_that_do_not_close(1, |live, fd| {
        send_and_forget(&mut RawVfioUserConnection::greet(&live.socket(0)), &dma_map(0, PAGE), fd);
    });
}

#[test]
fn slow_close_of_an_unexpected_fd_blocks_no_other_vfs_client() {
    beside_descriptors_that_do_not_close(1, |live, fd| {
        let mut raw = RawVfioUserConnection::greet(&live.socket(0));
        send_and_forget(&mut raw, &load(1, 7, 0, 4), fd);
        assert!(raw.reply().is_some());
    });
}

/// Number of clients that connect, each with a file descriptor, and are refused: enough that the host closes the last
/// copy of at least one of these descriptors.
const TRIES: usize = 8;

#[test]
fn slow_close_of_a_refused_clients_fd_blocks_no_other_client() {
    let mut first = None;
    beside_descriptors_that_do_not_close(TRIES, |live, fd| {
        first.get_or_insert_with(|| RawVfioUserConnection::greet(&live.socket(0)));
        let mut second = RawVfioUserConnection::connect(&live.socket(0));
        second.send_with(&dma_map(0, PAGE), &[fd.as_fd()]);
        thread::spawn(move || drop(fd));
        second.wait_for_end();
    });
}

#[test]
fn slow_close_of_too_many_fds_blocks_no_other_vfs_client() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    beside_descriptors_that_do_not_close(TRIES, |live, fd| {
        let mut raw = RawVfioUserConnection::greet(&live.socket(0));
        let fds = [fd.as_fd(); 100];
        let mut space = vec![std::mem::MaybeUninit::uninit(); SendAncillaryMessage::ScmRights(&fds).size()];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        let bytes = dma_map(0, PAGE);
        let bytes = [std::io::IoSlice::new(&bytes)];
        sendmsg(raw.stream(), &bytes, &mut control, SendFlags::empty()).unwrap();
        thread::spawn(move || drop(fd));
        raw.wait_for_end();
        eventually("the VF is free", || live.show(0).function.peer.is_none());
    });
}

/// Tries to connect to a socket, and closes the connection. Returns without a connection if the socket's queue is full.
fn knock(socket: &Path) {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let client = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    if connect(&client, &SocketAddrUnix::new(socket).unwrap()).is_err() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Each connection costs the host a descriptor until the function's worker closes it, and the client nothing.
#[test]
fn clients_behind_a_slow_close_use_few_descriptors() {
    alone("teardown::clients_behind_a_slow_close_use_few_descriptors", || {
        let live = LiveHost::start();
        let (mut b, mut c) = (VfGuest::under_qemu(&live, 1), VfGuest::under_qemu(&live, 2));
        let (fd, other) = lingering(TEN_MINUTES);
        let mut first = RawVfioUserConnection::greet(&live.socket(0));
        send_and_forget(&mut first, &load(1, 7, 0, 4), fd);
        assert!(first.reply().is_some());
        let before = descriptors();
        (0..2000).for_each(|_| knock(&live.socket(0)));
        exchange(&mut b, &mut c, 50);
        let hint = live.show(0).function.hint.unwrap_or_default();
        assert!(hint.contains("takes long to close"), "{hint:?}");
        let held = descriptors().saturating_sub(before);
        assert!(held < 200, "the host holds {held} descriptors for clients that are gone");
        drop(RawVfioUserConnection::greet(&live.socket(3)));
        // Without unsent data the close ends, and the function has clients again.
        drop((first, other));
        eventually("a client is served", || RawVfioUserConnection::try_greet(&live.socket(0)).is_some());
        assert!(live.is_whole());
    });
}

/// The look reads memory, which may have to come from a swap device. A worker thread that is busy shows who looks.
#[test]
fn only_the_worker_thread_looks_for_private_memory() {
    let live = LiveHost::start();
    let (blank, size) = (memfd("blank", 64 * MIB), 64 * MIB);
    let mut raw = RawVfioUserConnection::greet(&live.socket(0));
    raw.send_with(&dma_map(0, size), &[blank.as_fd()]);
    assert_eq!(raw.reply().map(|(error, _)| error), Some(0));
    let (fd, other) = lingering(TEN_MINUTES);
    send_and_forget(&mut raw, &load(1, 7, 0, 4), fd);
    assert!(raw.reply().is_some());
    raw.send(&store(2, CONFIG, COMMAND, &ENABLE.to_le_bytes()));
    assert_eq!(raw.reply().map(|(error, _)| error), Some(0));
    assert_eq!(live.show(0).function.hint, None);
    drop(other);
    eventually("the memory is found to be private", || live.show(0).function.hint.is_some());
}

#[test]
fn requests_of_one_client_stay_in_order_on_any_thread() {
    let live = LiveHost::start();
    let ram = GuestRam::new();
    let mut raw = RawVfioUserConnection::greet(&live.socket(0));
    for _ in 0..50 {
        raw.send_with(&dma_map(0, MIB), &[ram.fd().as_fd()]);
        raw.send(&dma_unmap(0, MIB));
        raw.send_with(&dma_map(0, 2 * MIB), &[ram.fd().as_fd()]);
        raw.send(&dma_unmap(0, MIB));
        raw.send(&load(2, 7, 0, 4));
        raw.send(&dma_unmap(0, 2 * MIB));
        let errors: Vec<u32> = (0..6).map(|_| raw.reply().unwrap().0).collect();
        assert_eq!(errors, [0, 0, 0, 2, 0, 0]);
    }
    drop(raw);
    eventually("the host has unmapped the guest's memory", || ram.mapped_by_the_host() == 0);
}

#[test]
fn client_lost_in_a_request_leaves_no_state_to_the_next_client() {
    let live = LiveHost::start();
    let ram = GuestRam::new();
    for _ in 0..100 {
        let mut raw = RawVfioUserConnection::greet(&live.socket(0));
        raw.send_with(&dma_map(0, MIB), &[ram.fd().as_fd()]);
        drop(raw);
        let qemu = QemuClient::greet(&live.socket(0));
        assert_eq!(live.show(0).function.peer.unwrap().windows, 0);
        drop(qemu);
    }
    eventually("the host has unmapped the guest's memory", || ram.mapped_by_the_host() == 0);
}

#[test]
fn host_stops_reading_a_client_with_too_many_descriptors() {
    let live = LiveHost::start();
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 1), VfGuest::under_qemu(&live, 2));
    let (fd, _other) = lingering(TEN_MINUTES);
    let mut raw = RawVfioUserConnection::greet(&live.socket(0));
    send_and_forget(&mut raw, &load(1, 7, 0, 4), fd);
    assert!(raw.reply().is_some());
    let ram = GuestRam::new();
    raw.stream().set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let stream = host::socket::StreamSocket::adopt(raw.stream().try_clone().unwrap().into()).unwrap();
    let copies: Vec<OwnedFd> = (0..16).map(|_| ram.fd()).collect();
    let copies: Vec<_> = copies.iter().map(AsFd::as_fd).collect();
    let mut taken = 0;
    for _ in 0..20 {
        while let Ok(host::socket::SocketSendResult::Bytes(_)) = stream.send(&load(2, 7, 0, 4), &copies) {
            taken += 1;
            assert!(taken < 50_000, "the host accepts messages without a bound");
        }
        exchange(&mut b, &mut c, 1);
    }
}

#[test]
fn client_shares_no_more_memory_than_its_limit() {
    let live = LiveHost::with("client_memory = \"1G\"");
    let fd = memfd("sparse", 64 * GIB);
    let mut qemu = QemuClient::greet(&live.socket(0));
    let mut map = |iova, size| {
        let window = ClientDmaWindow { iova, size, offset: iova, writable: true };
        let fd = fd.try_clone().unwrap();
        qemu.done(|client, out| client.dma_map(out, window, Some(fd)))
    };
    assert_eq!(map(0, 2 * GIB), Err(Errno(12)), "a window above the limit is accepted");
    assert_eq!(map(0, GIB - PAGE), Ok(()));
    assert_eq!(map(GIB, 2 * PAGE), Err(Errno(12)), "a sum above the limit is accepted");
    assert_eq!(map(GIB, PAGE), Ok(()));
    assert_eq!(qemu.unmap(0, GIB - PAGE), Ok(()));
    assert_eq!(live.show(0).function.peer.unwrap().shareable_bytes, PAGE);
}

#[test]
fn guest_behind_an_iommu_may_map_3000_single_pages() {
    let live = LiveHost::start();
    let fd = memfd("paged", 4 * GIB);
    let mut raw = RawVfioUserConnection::greet(&live.socket(0));
    let page = |number: u64| number * 7919 % (4 * GIB / PAGE) * PAGE;
    let iova = |number: u64| (1 << 40) - number * PAGE;
    for number in 0..3000 {
        raw.send_with(&dma_map_at(page(number), iova(number), PAGE), &[fd.as_fd()]);
        assert_eq!(raw.reply().map(|(error, _)| error), Some(0), "page {number}");
    }
    assert_eq!(live.show(0).function.peer.map(|peer| (peer.windows, peer.shareable)), Some((3000, 3000)));
    for number in 0..3000 {
        raw.send(&dma_unmap(iova(number), PAGE));
        assert_eq!(raw.reply().map(|(error, _)| error), Some(0), "page {number}");
    }
    assert_eq!(live.show(0).function.peer.map(|peer| peer.windows), Some(0));
}

#[test]
fn client_at_its_mapping_limit_leaves_mappings_for_others() {
    let live = LiveHost::start();
    let files: Vec<OwnedFd> = (0..16).map(|_| memfd("scattered", 64 * GIB)).collect();
    let refused: Vec<u32> = (0..6)
        .map(|vf| {
            let mut raw = RawVfioUserConnection::greet(&live.socket(vf));
            let places = (0..32).flat_map(|block| (0..files.len() as u64).map(move |file| (block, file)));
            let mut refused = 0;
            for (block, file) in places {
                let fd = files[file as usize].as_fd();
                let iova = (block * 16 + file) * PAGE;
                raw.send_with(&dma_map_at(block * 2 * GIB, iova, PAGE), &[fd]);
                refused += u32::from(raw.reply().unwrap().0 == 28);
            }
            std::mem::forget(raw);
            refused
        })
        .collect();
    assert!(refused.iter().all(|refused| *refused > 0), "{refused:?}");
    assert!(refused.windows(2).all(|pair| pair[0] == pair[1]), "clients have different limits: {refused:?}");
    let ram = GuestRam::new();
    let mut raw = RawVfioUserConnection::greet(&live.socket(6));
    raw.send_with(&dma_map(0, MIB), &[ram.fd().as_fd()]);
    assert_eq!(raw.reply().map(|(error, _)| error), Some(0));
}
