//! The card: a pure state machine, one folder per stop of a frame.
