//! [`Reader`]: Thrift's compact protocol. Nothing is trusted: a length is at most the bytes that are left.

/// What is wrong, for messages.
pub(super) type Result<T> = std::result::Result<T, &'static str>;

/// Types of fields, as the protocol numbers them.
pub(super) mod kind {
    pub(crate) const I32: u8 = 5;
    pub(crate) const I64: u8 = 6;
    pub(crate) const BINARY: u8 = 8;
    pub(crate) const LIST: u8 = 9;
    pub(crate) const STRUCT: u8 = 12;
}

/// Structs within structs: the schema of the format has ten.
const DEEPEST: u32 = 32;

/// Bytes that have not been read.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Before the first byte.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    /// Number of bytes that have not been read.
    pub(super) fn num_left(&self) -> usize {
        self.0.len()
    }

    /// The bytes that have not been read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.0.split_first().ok_or("it ends within a field")?;
        self.0 = rest;
        Ok(byte)
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let len = usize::try_from(len).ok().filter(|len| *len <= self.0.len()).ok_or("a length exceeds its bytes")?;
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number does not end")
    }

    /// A whole number of any width.
    pub(super) fn number(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A text.
    pub(super) fn text(&mut self) -> Result<&'a str> {
        let len = self.varint()?;
        str::from_utf8(self.take(len)?).map_err(|_| "a name is not UTF-8")
    }

    /// The type and the number of the items of a list, each of which takes a byte at least.
    pub(super) fn list(&mut self) -> Result<(u8, usize)> {
        let head = self.byte()?;
        let len = if head >> 4 == 15 { self.varint()? } else { (head >> 4).into() };
        let fits = usize::try_from(len).ok().filter(|len| *len <= self.0.len());
        Ok((head & 15, fits.ok_or("a list has more items than bytes follow")?))
    }

    /// Passes each field of a struct to `field`, which reads it and returns true, or returns false: then it is skipped.
    pub(super) fn fields(&mut self, mut field: impl FnMut(&mut Self, i64, u8) -> Result<bool>) -> Result<()> {
        let mut id = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let step = head >> 4;
            id = if step == 0 { self.number()? } else { id.wrapping_add(step.into()) };
            if !field(self, id, head & 15)? {
                self.skip(head & 15, false, 0)?;
            }
        }
    }

    /// Skips a struct in a list.
    pub(super) fn skip_struct(&mut self) -> Result<()> {
        self.skip(kind::STRUCT, true, 0)
    }

    /// Skips a value of a type; `listed` if it is an item of a list, where booleans take a byte.
    fn skip(&mut self, kind: u8, listed: bool, depth: u32) -> Result<()> {
        if depth > DEEPEST {
            return Err("its structs nest too deep");
        }
        match kind {
            1 | 2 if listed => self.byte().map(drop),
            1 | 2 => Ok(()),
            3 => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.take(8).map(drop),
            8 => {
                let len = self.varint()?;
                self.take(len).map(drop)
            }
            9 | 10 => {
                let (kind, len) = self.list()?;
                (0..len).try_for_each(|_| self.skip(kind, true, depth + 1))
            }
            11 => {
                let len = self.varint()?;
                if len == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                // Pairs take two bytes at least.
                if len > self.0.len() as u64 {
                    return Err("a map has more pairs than bytes follow");
                }
                for _ in 0..len {
                    self.skip(kinds >> 4, true, depth + 1)?;
                    self.skip(kinds & 15, true, depth + 1)?;
                }
                Ok(())
            }
            12 => loop {
                let head = self.byte()?;
                if head == 0 {
                    return Ok(());
                }
                if head >> 4 == 0 {
                    self.varint()?;
                }
                self.skip(head & 15, false, depth + 1)?;
            },
            _ => Err("a field has a type that the protocol does not have"),
        }
    }
}
