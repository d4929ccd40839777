//! The live host: port threads, configuration and the control socket.
