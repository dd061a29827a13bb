//! Many keys of a short shard as one string of bits, which the server merges with its own atomically.
//!
//! A BITFIELD has four words per bit: 1.5 us per key on redis-server 7.0, 2.8 if a replica has to repeat it. If a shard has
//! so few bytes per key that its bits are shorter than those words, the server receives all of them, and replies with the
//! previous string; this side computes which keys are new.

use super::cells::{Cells, MARK_BYTES};
use super::command;
use super::cut::Shard;
use crate::cells::allocation::{reserve, zeroed};
use crate::error::Result;

/// Bytes of cells per key up to which bits are sent as a whole: no more than the BITFIELD of a key at 1 %, which has 329.
const WORTH: u64 = 256;
/// Fewest keys sent together: a script and its calls cost as much as some ten commands.
const LEAST: usize = 16;
/// Bytes of the longest string sent as a whole: the server reads and writes it in one step, about a ms a megabyte.
const LONGEST: u64 = 4 << 20;
/// Merges ARGV[1] into KEYS[1] by way of KEYS[2], and returns the previous string. A string of another length belongs
/// to another client: it is not changed, and the script returns an empty one for it, since it may exceed the size
/// limit. BITOP would remove the TTL of its target.
const MERGE: &[u8] = b"\
local was = redis.call('GET', KEYS[1])
if not was then return was end
if #was ~= #ARGV[1] + 16 then return '' end
redis.call('SET', KEYS[2], ARGV[1])
if redis.call('PTTL', KEYS[1]) < 0 then
  redis.call('BITOP', 'OR', KEYS[1], KEYS[1], KEYS[2])
else
  redis.call('BITOP', 'OR', KEYS[2], KEYS[1], KEYS[2])
  redis.call('SETRANGE', KEYS[1], 0, redis.call('GET', KEYS[2]))
end
redis.call('DEL', KEYS[2])
return was";

/// True if the keys of a shard are better sent as its bits than one by one.
pub fn pays(cells: &Cells, shard: u64, keys: usize) -> bool {
    let bytes = cells.range(shard).1;
    !cells.is_by_key() && keys >= LEAST && bytes <= LONGEST && bytes <= WORTH.saturating_mul(keys as u64)
}

/// Appends the command that sets the bits of all hashes, and returns the previous string.
pub fn put(cells: &Cells, out: &mut Vec<u8>, shard: &Shard, hashes: &[u64]) -> Result<()> {
    let bytes = cells.range(shard.number).1 as usize;
    reserve(out, bytes + MERGE.len() + shard.key.len() + shard.beside.len() + 96)?;
    command::begin(out, 6);
    [b"EVAL", MERGE, b"2", &shard.key, &shard.beside].iter().for_each(|word| command::word(out, word));
    command::room(out, bytes, |bits| {
        hashes.iter().for_each(|&hash| cells.each_bit(hash, |bit| bits[place(bit)] |= mask(bit)));
    });
    Ok(())
}

/// The cells and the owner tag of a string; `None` for one that has another length, which was not changed.
pub fn split<'a>(cells: &Cells, shard: u64, string: Option<&'a [u8]>) -> Option<(&'a [u8], &'a [u8])> {
    let bytes = cells.range(shard).1;
    let string = string.filter(|string| string.len() as u64 == bytes + MARK_BYTES)?;
    Some(string.split_at(bytes as usize))
}

/// Says of each hash whether it was new, to cells as they were before the first; returns the number of bits that were set.
pub fn answer(cells: &Cells, before: &[u8], hashes: &[u64], answers: &mut [u8]) -> Result<u64> {
    let (mut now, mut set): (Vec<u8>, u64) = (zeroed(before.len())?, 0);
    now.copy_from_slice(before);
    for (&hash, answer) in hashes.iter().zip(answers) {
        let mut unset = 0;
        cells.each_bit(hash, |bit| {
            unset += u64::from(now[place(bit)] & mask(bit) == 0);
            now[place(bit)] |= mask(bit);
        });
        *answer |= u8::from(unset > 0);
        set += unset;
    }
    Ok(set)
}

/// The byte of a bit as a server numbers it.
fn place(bit: u64) -> usize {
    (bit / 8) as usize
}

/// Its place there: the highest first.
fn mask(bit: u64) -> u8 {
    0x80 >> (bit % 8)
}
