//! Controls: functions that panic for some values. The checker must find these values, or its model of the processor misses
//! such panics elsewhere.

use crate::bound;

/// Defines a control, with a condition that leaves some failures. Its value and its bound are of no interest.
macro_rules! control {
    (fn $name:ident($($number:ident: $kind:ty),+) if $condition:expr; $body:block) => {
        bound! {
            /// Control: panics for some values.
            fn $name($($number: $kind),+) if $condition; {
                let result = $body;
                [core::hint::black_box(result) == result, false]
            }
        }
    };
}

control! { fn control_add_8(a: u8, b: u8) if a.wrapping_add(b) < 128; { a + b } }
control! { fn control_add_16(a: u16, b: u16) if a.wrapping_add(b) < 128; { a + b } }
control! { fn control_add_32(a: u32, b: u32) if a.wrapping_add(b) < 128; { a + b } }
control! { fn control_add_64(a: u64, b: u64) if a.wrapping_add(b) < 128; { a + b } }
control! { fn control_subtract_32(a: u32, b: u32) if a.wrapping_sub(b) < 1 << 31; { a - b } }
control! { fn control_subtract_64(a: u64, b: u64) if a.wrapping_sub(b) < 1 << 31; { a - b } }
// angr's own flags of a multiplication miss products whose low half is small.
control! { fn control_multiply_8(a: u8, b: u8) if a.wrapping_mul(b) < 128; { a * b } }
control! { fn control_multiply_16(a: u16, b: u16) if a.wrapping_mul(b) < 128; { a * b } }
control! { fn control_multiply_32(a: u32, b: u32) if a.wrapping_mul(b) < 128; { a * b } }
control! { fn control_multiply_64(a: u64, b: u64) if a.wrapping_mul(b) < 128; { a * b } }
control! { fn control_add_signed(a: u64, b: u64) if b < 2; { a.cast_signed() + b.cast_signed() } }
control! { fn control_multiply_signed(a: u16, b: u16) if b < 4; { a.cast_signed() * b.cast_signed() } }
control! { fn control_negate(a: u32) if true; { -a.cast_signed() } }
control! { fn control_shift(a: u32, b: u8) if b < 33; { a << b } }
control! { fn control_divide(a: u32, b: u32) if true; { a / b } }
control! { fn control_index(a: u8) if a < 10; { [1_u64, 2, 4, 8, 16, 32, 64, 128, 256][usize::from(a)] } }
control! { fn control_unwrap(a: u32, b: u32) if b <= 1; { a.checked_sub(b).unwrap() } }
