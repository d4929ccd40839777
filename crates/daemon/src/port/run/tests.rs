//! A port whose clock a test moves by hand.
