//! What systems are made of. A part knows what it is connected to, and nothing of the system that it is in.
//!
//! | module | what it is |
//! |---|---|
//! | `wire` | clients and the line they share |
//! | `card` | a card with its PF driver, fed by its wire |
//! | `avf` | the same of the second family, with queue pairs and doorbells |
//! | `bulk` | a stream in bulk, its frames counted |
//! | `bus` | memory requests and interrupts of a card's functions |
//! | `guest` | a guest's hardware: its controller and its virtual MSI-X table |
//! | `registers` | a VF's registers and memory, each access charged |
//! | `platform` | what is under a guest's kernel: each access charged, some trapped |
//! | `service` | a virtual CPU of the service domain: its ticks and device models |
//! | `monitor` | the PF drivers, as the service domain visits them |
//! | `cdna` | a card with a context for each guest, and the hypervisor's checks |
//! | `channel` | what goes from a front end to a driver domain, in one piece or cut |
//! | `thin` | a PF driver that takes no interrupt: its admin queue and its visits |
//! | `quality` | rules of direct assignment: resets, interrupt lines, memory types, registers that tell too much |
//! | `disk` | a disk with a buffer |
//! | `split` | the split driver: the service domain's own drivers, bridges, back end, and the guests' side |

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
pub(crate) mod wire;
