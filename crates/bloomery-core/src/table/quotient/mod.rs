//! [`QuotientFilter`]: sorted runs of remainders, found by rank and select.
//!
//! Bender and others, "Don't thrash: how to cache your hash on flash", VLDB 2012; the layout with
//! rank and select is that of Pandey, Bender, Johnson and Patro, "A general-purpose counting
//! filter", SIGMOD 2017.
//!
//! The fingerprint of a key is the top `f = q + r` bits of its hash. The top q bits are the
//! quotient, the slot where the key is at home; the next r bits are the remainder, which is stored.
//! Remainders of one quotient form a *run*, sorted; runs lie in the order of their quotients,
//! pushed to the right where homes are taken, and the last slot is followed by the first. Three
//! arrays describe this:
//!
//! * `occupied`, a bit a quotient: some key has this quotient;
//! * `runends`, a bit a slot: a run ends here. The i-th occupied quotient has the i-th run;
//! * `offsets`, a byte a block of 64 slots: how many slots from the first of the block on belong to
//!   runs of earlier quotients; 255 stands for 255 or more, which is then counted from the blocks
//!   before. With these, rank and select need to look at one block and its neighbours only.
//!
//! A slot holds `remainder << c | count - 1`. Without counting c is 0 and every copy of a
//! fingerprint has a slot of its own; with it c is 8 and a slot stands for up to 256 copies. Of the
//! slots with equal remainders all but the last are full. Free slots are zero. The bits of a table
//! are therefore a function of the multiset of its fingerprints, whatever the order of operations.
//!
//! * [`words`]: select in a word, and runs of bits moved by some places;
//! * [`geometry`]: how many bits of what;
//! * [`slots`]: finding, inserting and removing one fingerprint;
//! * [`stream`]: the fingerprints of tables in order, and tables from such streams;
//! * [`filter`] holds [`QuotientFilter`], [`stored`] its file.

pub mod filter;
pub mod geometry;
pub mod slots;
pub mod stored;
pub mod stream;
pub mod words;

pub use filter::QuotientFilter;
pub use geometry::Geometry;

#[cfg(test)]
mod tests;
