//! Tests conversations of a vhost-user back end with its front end. Each module covers one part of the protocol;
//! `front_ends` has whole sessions of QEMU, virtio-user and Cloud Hypervisor.

mod cves;
mod front_ends;
mod frontend;
mod hostile;
mod negotiation;
mod peer;
mod properties;
mod rings;
mod saved;
mod script;
