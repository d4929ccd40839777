#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`config`] | a VF's configuration space |
//! | [`register`], [`table`], [`bits`] | a VF's registers: offsets, effects of an access, bits |
//! | [`pf_register`] | the registers of an X710 that a PF driver without interrupts needs |
//! | [`admin`] | the 32-byte descriptor of the mailbox, of VF and PF alike |
//! | [`virtchnl`] | each message as a type, with its length rules |
//! | [`control`] | the orders of a PF driver to the card, for a VF |
//! | [`descriptor`] | the records that pass buffers: transmit data and context, receive in three formats |
//! | [`packet_type`] | the card's classification of a frame's headers |
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_lossless, clippy::cast_possible_truncation, clippy::cast_sign_loss))]

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
