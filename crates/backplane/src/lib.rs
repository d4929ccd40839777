//! The card and its drivers plugged together in one process: memory per function, recorded interrupts, a clock moved by hand.
