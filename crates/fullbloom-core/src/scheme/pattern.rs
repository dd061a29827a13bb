//! A line scheme as patterns: the line of a hash, and its bits there as a block of every instruction set.

use super::block::Block;

/// A scheme with one line per key.
pub trait LineScheme {
    /// Its blocks in plain Rust.
    type Words: Block + AsRef<[u64]>;
    /// Its blocks in the vector registers of this machine.
    type Registers: Block;

    /// The line of `hash` among `lines`: below `lines`, and never falling as `hash` rises.
    fn line(hash: u64, lines: u64) -> u64;

    /// The bits of `hash` in its line.
    fn words(hash: u64) -> Self::Words;

    /// [`LineScheme::words`] in registers.
    ///
    /// # Safety
    /// The vector set must be present.
    unsafe fn registers(hash: u64) -> Self::Registers;
}

/// An instruction set. A value of it proves that this machine has the set.
pub trait InstructionSet: Copy {
    /// Blocks of a scheme.
    type Block<S: LineScheme>: Block;

    /// The bits of `hash` in its line.
    fn pattern<S: LineScheme>(self, hash: u64) -> Self::Block<S>;

    /// True if all bits of `hash` are set in `line`.
    ///
    /// # Safety
    /// `line` is valid for reading a block and aligned to its size.
    #[inline(always)]
    unsafe fn contains<S: LineScheme>(self, line: *const u64, hash: u64) -> bool {
        // SAFETY: the caller's promise; `self` is proof of the instruction set.
        unsafe { !self.pattern::<S>(hash).misses(Block::read(line)) }
    }

    /// Sets all bits of `hash` in `line`; true if one of them was clear.
    ///
    /// # Safety
    /// As [`InstructionSet::contains`], and nobody else accesses the line.
    #[inline(always)]
    unsafe fn add<S: LineScheme>(self, line: *mut u64, hash: u64) -> bool {
        let bits = self.pattern::<S>(hash);
        // SAFETY: the caller's promise; `self` is proof of the instruction set.
        unsafe {
            let held = Block::read(line);
            bits.set(held, line);
            bits.misses(held)
        }
    }
}

/// Plain Rust.
#[derive(Clone, Copy)]
pub struct Portable;

impl InstructionSet for Portable {
    type Block<S: LineScheme> = S::Words;

    #[inline(always)]
    fn pattern<S: LineScheme>(self, hash: u64) -> S::Words {
        S::words(hash)
    }
}

/// The vector set of this machine.
#[derive(Clone, Copy)]
pub struct Vector(());

impl Vector {
    /// The set of this machine.
    ///
    /// # Safety
    /// Call it only in a function compiled for the set, on a machine that has it.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        Vector(())
    }
}

impl InstructionSet for Vector {
    type Block<S: LineScheme> = S::Registers;

    #[inline(always)]
    fn pattern<S: LineScheme>(self, hash: u64) -> S::Registers {
        // SAFETY: `self` is proof of the instruction set.
        unsafe { S::registers(hash) }
    }
}
