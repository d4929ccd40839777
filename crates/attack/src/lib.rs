//! Hand-made attacks on a running host, with checks during and after each: `cargo xtask attack`.
//!
//! A case is a row of a table in [`cases`]: a rule, the attack as data, and a remedy. A few engines carry out the data:
//!
//! | module | contents |
//! |---|---|
//! | [`case`] | a case, a group of cases, and the kinds of attacks |
//! | [`cases`] | the tables, a file for each group |
//! | [`family`] | families of attacked VFs |
//! | [`device`] | kinds of devices that a guest attacks, and their well-behaved drivers |
//! | [`field`] | bytes of messages, descriptors and frames as data |
//! | [`socket`] | engine of messages on a vfio-user or vhost-user socket |
//! | [`guest`] | engine of a guest's registers, memory and messages, over the drivers' [`Hal`](driver::Hal) |
//! | [`pf_rings`] | well-behaved driver of an 82576's PF |
//! | [`in_guest`] | the program `attack-guest`, with the same rows, for models of other projects |
//! | [`control`] | engine of bytes on the control socket |
//! | [`surroundings`] | engine of changes of the host's process, its files and its limits |
//! | [`host_process`] | the host under attack, and the resources that it holds |
//! | [`neighbours`] | well-behaved guests of the host |
//! | [`judge`] | checks while the attacker lives and after it, the same for all cases |
//! | [`remedy`] | what keeps an attack from harming others |
//! | [`run`] | runs cases and returns their results |
//! | [`report`] | the results as a table and as JSON |
//! | [`options`] | options of the command |
#![forbid(unsafe_code)]

pub mod case;
pub mod cases;
pub mod control;
pub mod device;
pub mod family;
pub mod field;
pub mod guest;
pub mod host_process;
pub mod in_guest;
pub mod judge;
pub mod neighbours;
pub mod options;
pub mod pf_rings;
pub mod remedy;
pub mod report;
pub mod run;
pub mod socket;
pub mod surroundings;
