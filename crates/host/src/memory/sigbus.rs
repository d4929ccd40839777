//! Handles SIGBUS from shrinking memory: a client may truncate its memfd while the card is copying from it.
//!
//! The kernel then sends SIGBUS, which by default ends the process and disconnects every guest. So every mapping is
//! entered in a table of atomics, and a handler looks up the faulting address: if a mapping holds it, the whole
//! mapping is replaced by private zeros and marked, and the interrupted copy continues. The whole mapping rather
//! than the page, because huge pages cannot be replaced in part, and because a client that punches every second
//! page away would otherwise cost the process one kernel mapping per page. Other SIGBUS go to the previous handler,
//! by default the end of the process.
//!
//! The handler uses async-signal-safe operations only: atomics, `mmap`, `sigaction`, `raise`; no lock, no
//! allocation. SIGSEGV is not handled: no guest can cause it.

mod atomic;
mod table;

use std::io;
use std::mem;
use std::ptr;
use std::sync::OnceLock;

use atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use rustix::io::Errno;
pub(crate) use table::MappedAddressRange;
use table::{FREE, MappingTableEntry, poison_holder, take_entry};

/// Number of entries in this process's table of mappings. The kernel's limit for all of them is 65,530
/// (vm.max_map_count).
const CAPACITY: usize = 32_768;
/// Number of entries of the mapping table that are never reserved for clients, for mappings of this process's own
/// memory.
const UNSHARED: usize = 4_096;
/// Number of mappings that are usually reserved for one client.
const SHARE: usize = 256;
/// Smallest number of mappings that are reserved for one client, while the table of mappings is nearly full.
const LEAST_SHARE: usize = 32;
/// Number of reservations of one size that must fit into the free mapping table before one is granted. This leaves room
/// for ports with 64 VFs beside each other.
const EQUALS: usize = 32;
const PAGE: usize = 4096;

static SLOTS: [MappingTableEntry; CAPACITY] = [const {
    MappingTableEntry {
        generation: AtomicU32::new(0),
        start: AtomicUsize::new(FREE),
        len: AtomicUsize::new(0),
        poisoned: AtomicBool::new(false),
    }
}; CAPACITY];

/// Number of entries of the mapping table that are reserved for clients.
static SHARED: AtomicUsize = AtomicUsize::new(0);
/// Entry of the mapping table where the next search for a free entry begins.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static POISON_EVENTS: AtomicU64 = AtomicU64::new(0);
static PREVIOUS_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PREVIOUS_FLAGS: AtomicI32 = AtomicI32::new(0);

/// Returns the number of this process's mappings that have lost their memory file and were replaced by zeros. While the
/// number is unchanged, no further mapping was replaced.
#[must_use]
pub fn poison_events() -> u64 {
    POISON_EVENTS.load(Ordering::Acquire)
}

/// Part of the table of mappings that is reserved for one client. Released when dropped.
#[derive(Debug)]
pub struct MappingTableReservation(usize);

impl MappingTableReservation {
    /// Reserves 256 mappings for a client, or fewer when most of the table is taken. Returns `None` when the table is
    /// full.
    #[must_use]
    pub fn reserve() -> Option<Self> {
        let sizes = std::iter::successors(Some(SHARE), |size| Some(size / 2));
        let mut sizes = sizes.take_while(|size| *size >= LEAST_SHARE);
        let take = |size: usize| {
            let equals = if size > LEAST_SHARE { EQUALS } else { 1 };
            let room =
                |shared: usize| (shared + size * equals <= CAPACITY - UNSHARED).then_some(shared + size);
            SHARED.fetch_update(Ordering::AcqRel, Ordering::Relaxed, room).is_ok()
        };
        sizes.find(|size| take(*size)).map(Self)
    }

    /// Returns the number of mappings that are reserved for the client.
    #[must_use]
    pub fn mappings(&self) -> usize {
        self.0
    }
}

impl Drop for MappingTableReservation {
    fn drop(&mut self) {
        SHARED.fetch_sub(self.0, Ordering::AcqRel);
    }
}

/// Entry of a memory mapping in the SIGBUS handler's table.
#[derive(Debug)]
pub(crate) struct MappingRegistration(usize);

impl MappingRegistration {
    pub(crate) fn poisoned(&self) -> bool {
        SLOTS[self.0].poisoned()
    }

    /// Frees the mapping's entry in the SIGBUS handler's table. The owner's `drop` calls it once, before it unmaps.
    pub(crate) fn release(&self) {
        SLOTS[self.0].release();
    }
}

/// Enters a mapping in the SIGBUS handler's table. Returns `None` if the table is full.
pub(crate) fn register(span: MappedAddressRange) -> Option<MappingRegistration> {
    let index = take_entry(&SLOTS, NEXT.load(Ordering::Relaxed), span)?;
    NEXT.store((index + 1) % CAPACITY, Ordering::Relaxed);
    Some(MappingRegistration(index))
}

/// Installs the SIGBUS handler, once per process.
pub(crate) fn install() -> Result<(), Errno> {
    static INSTALLED: OnceLock<Result<(), Errno>> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        // SAFETY: all-zero is a valid `sigaction`: default handler, no flags, empty mask.
        let mut previous: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: only queries; `previous` is valid for the result.
        check(unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut previous) })?;
        // Before the handler can run, so that it always knows the previous one.
        PREVIOUS_FLAGS.store(previous.sa_flags, Ordering::Release);
        PREVIOUS_HANDLER.store(previous.sa_sigaction, Ordering::Release);
        // SAFETY: as above.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_sigbus as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: `on_sigbus` has the signature SA_SIGINFO asks for and is async-signal-safe.
        check(unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) })
    })
}

fn check(result: libc::c_int) -> Result<(), Errno> {
    if result == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the errno of this thread; the interrupted code must not see it change.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes a valid `siginfo_t` to a SA_SIGINFO handler, and `si_addr` to a SIGBUS.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let of_memory = code == libc::BUS_ADRERR || code == libc::BUS_MCEERR_AR;
    if !(of_memory && poison(address)) {
        chain(signal, code, info, context);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Replaces the mapping that holds `address` by zeros. Returns false if no mapping holds it, or the kernel refuses.
fn poison(address: usize) -> bool {
    let Some(span) = poison_holder(&SLOTS, address) else {
        return false;
    };
    POISON_EVENTS.fetch_add(1, Ordering::AcqRel);
    // The single page only where strict memory accounting refuses the whole mapping.
    replace(span) || replace(MappedAddressRange { start: address - address % PAGE, len: PAGE })
}

fn replace(span: MappedAddressRange) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the span is (part of) a mapping of guest memory that its owner still holds, since a copy from it was
    // interrupted; only such copies access it, and they accept any bytes.
    let at = unsafe { libc::mmap(span.start as *mut _, span.len, prot, flags, -1, 0) };
    at != libc::MAP_FAILED
}

/// Passes a SIGBUS outside all mappings to the previous handler.
fn chain(signal: libc::c_int, code: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let sent_by_a_process = code <= 0;
    match PREVIOUS_HANDLER.load(Ordering::Acquire) {
        libc::SIG_IGN if sent_by_a_process => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: all-zero is the default action; returning then repeats the faulting access under it.
            unsafe {
                let default: libc::sigaction = mem::zeroed();
                libc::sigaction(signal, &raw const default, ptr::null_mut());
            }
            if sent_by_a_process {
                // SAFETY: async-signal-safe; delivered when this handler returns.
                unsafe { libc::raise(signal) };
            }
        }
        handler if PREVIOUS_FLAGS.load(Ordering::Acquire) & libc::SA_SIGINFO != 0 => {
            type SignalHandlerWithInfo = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: the kernel would have called this address with these arguments.
            unsafe { mem::transmute::<usize, SignalHandlerWithInfo>(handler)(signal, info, context) };
        }
        handler => {
            // SAFETY: as above, for a handler installed without SA_SIGINFO.
            unsafe { mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal) };
        }
    }
}
