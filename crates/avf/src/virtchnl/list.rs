//! What comes several times in a message: elements of one size, read where they lie. Left out: how many there may be,
//! which the message's length says.

use crate::bytes::Reader;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// An element of a message.
pub trait Item: Copy {
    /// Bytes of an element.
    const SIZE: usize;

    /// Reads an element, of which there are as many bytes as it wants.
    fn read(from: &mut Reader<'_>) -> Self;

    /// Writes an element.
    fn write(&self, to: &mut Vec<u8>);
}

/// The elements of a message, where they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List<'a, T> {
    bytes: &'a [u8],
    item: PhantomData<T>,
}

impl<'a, T: Item> List<'a, T> {
    /// The first `count` elements in `bytes`; fewer if `bytes` ends before.
    pub(crate) fn new(bytes: &'a [u8], count: usize) -> Self {
        let length = count.saturating_mul(T::SIZE);
        Self { bytes: bytes.get(..length).unwrap_or(bytes), item: PhantomData }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / T::SIZE
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + Clone + use<'a, T> {
        self.bytes.chunks_exact(T::SIZE).map(|bytes| T::read(&mut Reader::new(bytes)))
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Elements in the form of a message.
#[derive(Debug, Clone)]
pub struct Packed<T> {
    bytes: Vec<u8>,
    item: PhantomData<T>,
}

impl<T: Item> Packed<T> {
    /// Puts elements into the form of a message.
    #[must_use]
    pub fn new(items: &[T]) -> Self {
        let mut bytes = Vec::with_capacity(items.len() * T::SIZE);
        items.iter().for_each(|item| item.write(&mut bytes));
        Self { bytes, item: PhantomData }
    }

    /// All of them.
    #[must_use]
    pub fn list(&self) -> List<'_, T> {
        List { bytes: &self.bytes, item: PhantomData }
    }
}
