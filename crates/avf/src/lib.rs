//! What Intel's Adaptive Virtual Function (AVF, the device of Linux's `iavf`) is: the register table, the admin queue's
//! descriptors, the messages of the virtual channel (virtchnl), receive and transmit descriptors, packet types.
//! The card (`avf-nic`) and the drivers (`driver`) are both written against this crate and against nothing of each other.
//!
//! | module | what it says |
//! |---|---|
//! | [`config`] | a VF's configuration space |
//! | [`register`], [`table`], [`bits`] | where a VF's registers are, what an access does, what their bits mean |
//! | [`pf_register`] | the registers of an X710 that a PF driver without interrupts needs |
//! | [`admin`] | the 32-byte descriptor of the mailbox, of VF and PF alike |
//! | [`virtchnl`] | each message as a type, with its length rules |
//! | [`control`] | what a PF driver has the card do for a VF |
//! | [`descriptor`] | what passes buffers: transmit data and context, receive in three forms |
//! | [`packet_type`] | what the card says of a frame's headers |
//!
//! Sources: `virtchnl.h` and the drivers `iavf` and `i40e` of Linux, those of DPDK, FreeBSD and iPXE. Where they differ
//! from each other a comment says so. Left out: all behaviour, and what no driver in use asks for (iWARP, traffic
//! classes, IPsec, flow rules, large VFs beyond 16 queue pairs).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod admin;
pub mod bits;
mod bytes;
pub mod config;
pub mod control;
pub mod descriptor;
pub mod ids;
pub mod packet_type;
pub mod pf_register;
pub mod register;
pub mod table;
pub mod virtchnl;
