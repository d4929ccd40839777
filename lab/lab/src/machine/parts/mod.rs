//! Parts of the modelled machines (cards, guests, disks). A part knows its connections, but not the system it belongs
//! to.
//!
//! | module | contents |
//! |---|---|
//! | `traffic` | what the clients of a port send |
//! | `wire` | clients and the line they share |
//! | `card` | a card with its PF driver and wire |
//! | `avf` | an adaptive-VF card, with queue pairs and doorbells |
//! | `bulk` | a bulk stream with counted frames |
//! | `bus` | memory requests and interrupts of a card's functions |
//! | `guest` | a guest's hardware: its controller and its virtual MSI-X table |
//! | `registers` | a VF's registers and memory, with charges |
//! | `platform` | the platform of a guest's kernel, with charges and traps |
//! | `service` | a virtual CPU of the service domain: its ticks and device models |
//! | `monitor` | the PF drivers, visited by the service domain |
//! | `cdna` | a card with a context per guest, and the hypervisor's checks |
//! | `channel` | the channel from a front end to a driver domain, with software segmentation |
//! | `thin` | an interrupt-less PF driver: its admin queue and visits |
//! | `quality` | rules of direct assignment: resets, interrupt lines, memory types, virtualization holes |
//! | `disk` | a disk with a buffer |
//! | `split` | the split driver: service domain's drivers, bridges, back end, and front ends |

pub(crate) mod avf;
pub(crate) mod bulk;
pub(crate) mod bus;
pub(crate) mod card;
pub(crate) mod cdna;
pub(crate) mod channel;
pub(crate) mod disk;
pub(crate) mod guest;
pub(crate) mod monitor;
pub(crate) mod platform;
pub mod quality;
pub(crate) mod registers;
pub(crate) mod service;
pub(crate) mod split;
pub(crate) mod thin;
pub(crate) mod traffic;
pub(crate) mod wire;
