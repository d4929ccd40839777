//! Lists in messages: elements of one size, read in place. The message's length limits the number of
//! elements.

use crate::bytes::MessageFieldReader;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// Element of a list in a message.
pub trait MessageListElement: Copy {
    /// Number of bytes of a list's element in a message.
    const SIZE: usize;

    /// Reads an element from a message; the caller ensures `SIZE` bytes.
    fn read(from: &mut MessageFieldReader<'_>) -> Self;

    /// Writes an element of a list to a message.
    fn write(&self, to: &mut Vec<u8>);
}

/// List of elements in a message, read in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageList<'a, T> {
    bytes: &'a [u8],
    item: PhantomData<T>,
}

impl<'a, T: MessageListElement> MessageList<'a, T> {
    /// Creates a list of the first `count` elements in `bytes`, or fewer if `bytes` ends before.
    pub(crate) fn new(bytes: &'a [u8], count: usize) -> Self {
        let length = count.saturating_mul(T::SIZE);
        Self { bytes: bytes.get(..length).unwrap_or(bytes), item: PhantomData }
    }

    /// Returns the number of elements in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / T::SIZE
    }

    /// Returns true if the list has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the elements of the list, in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + Clone + use<'a, T> {
        self.bytes.chunks_exact(T::SIZE).map(|bytes| T::read(&mut MessageFieldReader::new(bytes)))
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// List of elements, encoded as in a message.
#[derive(Debug, Clone)]
pub struct EncodedMessageList<T> {
    bytes: Vec<u8>,
    item: PhantomData<T>,
}

impl<T: MessageListElement> EncodedMessageList<T> {
    /// Encodes a list of elements as in a message.
    #[must_use]
    pub fn new(items: &[T]) -> Self {
        let mut bytes = Vec::with_capacity(items.len() * T::SIZE);
        items.iter().for_each(|item| item.write(&mut bytes));
        Self { bytes, item: PhantomData }
    }

    /// Returns all encoded elements as a list.
    #[must_use]
    pub fn list(&self) -> MessageList<'_, T> {
        MessageList { bytes: &self.bytes, item: PhantomData }
    }
}
