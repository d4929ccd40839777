//! BPF program that passes an interface's frames to AF_XDP sockets, and its map of sockets: bpf(2).
//!
//! ```text
//! r2 = context->rx_queue_index
//! r1 = the map of sockets
//! r3 = XDP_PASS: what becomes of a frame of a queue without a socket
//! return bpf_redirect_map(r1, r2, r3)
//! ```
//!
//! Creating map and program takes CAP_BPF and CAP_NET_ADMIN, or root; later kernels let any holder of their
//! descriptors add sockets to the map and attach the program. The program is written as instructions, so that
//! building needs no BPF compiler.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::XdpTransferMode;

/// Maximum number of an interface's queues with AF_XDP sockets.
pub(super) const MAX_QUEUES: u32 = 16;

/// Number of the bpf(2) command that creates a map (`enum bpf_cmd`). Other commands follow.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
/// Type of a map of AF_XDP sockets (`enum bpf_map_type`). A program type, an attachment and a helper function follow
/// (`enum bpf_prog_type`, `enum bpf_attach_type`, `enum bpf_func_id`).
const XSKMAP: u32 = 17;
const XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const REDIRECT_MAP: i32 = 51;
/// Result of a program that leaves a frame to the kernel's network stack (`enum xdp_action`).
const XDP_PASS: i32 = 2;
/// Flag `XDP_FLAGS_SKB_MODE`: the kernel's generic code runs the program. `XDP_FLAGS_DRV_MODE` follows: the driver runs
/// it.
const BY_KERNEL: u32 = 1 << 1;
const BY_DRIVER: u32 = 1 << 2;
/// Licence of the BPF program, which the kernel requires. The kernel's helper function is available to programs of any
/// licence.
const LICENCE: &[u8] = b"Apache-2.0 OR MIT\0";
const NAME: [u8; 16] = *b"softiov\0\0\0\0\0\0\0\0\0";

/// Commands of bpf(2) that a host may still call after start-up. With the descriptors that the host holds, the commands
/// attach the XDP program to an interface that was removed and created again.
pub(crate) const LATER: &[u32] = &[MAP_UPDATE as u32, LINK_CREATE as u32];

/// Instruction of a BPF program (`struct bpf_insn`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct BpfInstruction {
    code: u8,
    /// Written register of a BPF instruction in the low half, read register in the high half.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Returns the instructions of the BPF program, which refer to this map.
fn instructions(map: BorrowedFd<'_>) -> [BpfInstruction; 6] {
    const LOAD_WORD: u8 = 0x61;
    const LOAD_WIDE: u8 = 0x18;
    const SET: u8 = 0xb7;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    /// Offset of `rx_queue_index` in `struct xdp_md`.
    const RX_QUEUE: i16 = 16;
    /// Value of the register field for an immediate that is a map's descriptor (`BPF_PSEUDO_MAP_FD`).
    const IS_MAP: u8 = 1;
    let registers = |written: u8, read: u8| read << 4 | written;
    let plain = |code, registers, immediate| BpfInstruction { code, registers, offset: 0, immediate };
    [
        BpfInstruction { code: LOAD_WORD, registers: registers(2, 1), offset: RX_QUEUE, immediate: 0 },
        plain(LOAD_WIDE, registers(1, IS_MAP), map.as_raw_fd()),
        plain(0, 0, 0),
        plain(SET, registers(3, 0), XDP_PASS),
        plain(CALL, 0, REDIRECT_MAP),
        plain(EXIT, 0, 0),
    ]
}

/// Loaded BPF program and its map, not attached to an interface yet.
#[derive(Debug)]
pub struct XdpProgram {
    map: OwnedFd,
    program: OwnedFd,
}

/// BPF program that is attached to an interface. The kernel removes it when its last descriptor is closed, however the
/// process ends.
#[derive(Debug)]
pub(super) struct XdpProgramLink {
    _link: OwnedFd,
}

impl XdpProgram {
    /// Loads the map and the BPF program into the kernel, which verifies them.
    ///
    /// # Errors
    /// `PermissionDenied` without the privilege; `Unsupported` where the kernel lacks bpf(2) or a thread's seccomp
    /// filter refuses it.
    pub fn load() -> io::Result<Self> {
        let map = create_map()?;
        let program = load(&instructions(map.as_fd()))?;
        Ok(Self { map, program })
    }

    /// Makes the BPF program pass a queue's frames to an AF_XDP socket.
    pub(super) fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        #[derive(Clone, Copy)]
        #[repr(C)]
        struct BpfMapElementRequest {
            map: u32,
            _pad: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let (key, value) = (queue, number(socket));
        let element = BpfMapElementRequest {
            map: number(self.map.as_fd()),
            _pad: 0,
            key: address(&key),
            value: address(&value),
            flags: 0,
        };
        call(MAP_UPDATE, &element).map(drop)
    }

    /// Attaches the BPF program to an interface by its index.
    pub(super) fn attach(&self, interface: u32, mode: XdpTransferMode) -> io::Result<XdpProgramLink> {
        #[derive(Clone, Copy)]
        #[repr(C)]
        struct BpfLinkCreateRequest {
            program: u32,
            interface: u32,
            attach_type: u32,
            flags: u32,
        }
        let flags = if mode == XdpTransferMode::Generic { BY_KERNEL } else { BY_DRIVER };
        let program = number(self.program.as_fd());
        let link = BpfLinkCreateRequest { program, interface, attach_type: ATTACH_XDP, flags };
        Ok(XdpProgramLink { _link: descriptor(call(LINK_CREATE, &link)?) })
    }
}

fn create_map() -> io::Result<OwnedFd> {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct BpfMapCreateRequest {
        kind: u32,
        key_size: u32,
        value_size: u32,
        entries: u32,
        flags: u32,
        inner: u32,
        node: u32,
        name: [u8; 16],
    }
    let word = mem::size_of::<u32>() as u32;
    let (key_size, value_size, entries) = (word, word, MAX_QUEUES);
    let map = BpfMapCreateRequest {
        kind: XSKMAP,
        key_size,
        value_size,
        entries,
        flags: 0,
        inner: 0,
        node: 0,
        name: NAME,
    };
    Ok(descriptor(call(MAP_CREATE, &map)?))
}

fn load(instructions: &[BpfInstruction]) -> io::Result<OwnedFd> {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct BpfProgramLoadRequest {
        kind: u32,
        count: u32,
        instructions: u64,
        licence: u64,
        log_level: u32,
        log_size: u32,
        log: u64,
        kernel: u32,
        flags: u32,
        name: [u8; 16],
        interface: u32,
        attach_type: u32,
    }
    let load = BpfProgramLoadRequest {
        kind: XDP,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr().expose_provenance() as u64,
        licence: LICENCE.as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel: 0,
        flags: 0,
        name: NAME,
        interface: 0,
        attach_type: ATTACH_XDP,
    };
    Ok(descriptor(call(PROGRAM_LOAD, &load)?))
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn address(word: &u32) -> u64 {
    std::ptr::from_ref(word).expose_provenance() as u64
}

/// Calls bpf(2) with the first part of `union bpf_attr`; the kernel reads the rest as zero.
fn call<T: Copy>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    let (attributes, size) = (std::ptr::from_ref(attributes), mem::size_of::<T>() as libc::c_uint);
    // SAFETY: the kernel reads `size` bytes of a plain structure of the command's layout, and the memory that its
    // addresses point to, all of which lives until the call returns.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

fn descriptor(number: libc::c_int) -> OwnedFd {
    // SAFETY: the kernel has just opened this descriptor for the call, closed on exec; no other code has it.
    unsafe { OwnedFd::from_raw_fd(number) }
}
