//! Container files as inputs: repaired after a mutation, or sealed as they lie, and mutated where it matters.

use fullbloom_core::container::UNREGISTERED;
use fullbloom_core::container::header::{FORMAT_VERSION, MAGIC};
use fullbloom_core::key::KEY_RULE_VERSION;
use fullbloom_core::registry::VARIANTS;

const FIXED: usize = 64;
const PARAM: usize = 16;
const SECTION: usize = 32;
const LINE: usize = 64;
/// Where the fixed part holds the variant, its own length of the file, the flags, and the two table lengths.
const VARIANT_AT: usize = 10;
const LENGTH_AT: usize = 32;
const FLAGS_AT: usize = 40;
const PARAMS_AT: usize = 44;
const SECTIONS_AT: usize = 46;

fn align(len: usize) -> usize {
    len.next_multiple_of(LINE)
}

fn u16_at(file: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([file[at], file[at + 1]]))
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The length of fixed part and tables, if `file` has room for them.
fn tables(file: &[u8]) -> Option<(usize, usize)> {
    let (params, sections) = (u16_at(file, PARAMS_AT), u16_at(file, SECTIONS_AT));
    (FIXED + params * PARAM + sections * SECTION <= file.len()).then_some((params, sections))
}

/// Makes a file of `file` that a reader of headers has no reason to refuse: magic, versions, lengths, places of
/// sections, padding and checksums hold, whatever parameters and cells say.
///
/// Sections keep the lengths they state, as far as there are bytes; the last takes what is left.
pub fn repair(file: &mut Vec<u8>) {
    file.resize(align(file.len().max(FIXED)), 0);
    put(file, 0, &MAGIC);
    put(file, 8, &FORMAT_VERSION.to_le_bytes());
    put(file, 14, &KEY_RULE_VERSION.to_le_bytes());
    put(file, FLAGS_AT, &[0; 4]);
    file[FIXED - 16..FIXED].fill(0);
    if tables(file).is_none() {
        let most = (file.len() - FIXED) / (PARAM + SECTION);
        for at in [PARAMS_AT, SECTIONS_AT] {
            let fewer = u16_at(file, at).min(most) as u16;
            put(file, at, &fewer.to_le_bytes());
        }
    }
    let Some((params, sections)) = tables(file) else { return };
    for i in 0..params {
        put(file, FIXED + i * PARAM + 4, &[0; 4]);
    }
    let end_of_tables = FIXED + params * PARAM + sections * SECTION;
    let mut at = align(end_of_tables).min(file.len());
    file[end_of_tables..at].fill(0);
    for i in 0..sections {
        let entry = FIXED + params * PARAM + i * SECTION;
        let left = file.len() - at;
        let mut stated = [0; 8];
        stated.copy_from_slice(&file[entry + 16..entry + 24]);
        let len = if i + 1 == sections { left } else { u64::from_le_bytes(stated).min(left as u64) as usize };
        file[at + len..align(at + len)].fill(0);
        let crc = crc32fast::hash(&file[at..at + len]);
        put(file, entry + 8, &(at as u64).to_le_bytes());
        put(file, entry + 16, &(len as u64).to_le_bytes());
        put(file, entry + 24, &crc.to_le_bytes());
        put(file, entry + 28, &[0; 4]);
        at = align(at + len);
    }
    file.truncate(at);
    let len = file.len() as u64;
    put(file, LENGTH_AT, &len.to_le_bytes());
    seal(file);
}

/// Gives header and tables the checksum that they must have, whatever they say.
pub fn seal(file: &mut [u8]) {
    if file.len() < FIXED {
        return;
    }
    let Some((params, sections)) = tables(file) else { return };
    let head = align(FIXED + params * PARAM + sections * SECTION).min(file.len());
    put(file, FIXED - 4, &[0; 4]);
    let crc = crc32fast::hash(&file[..head]);
    put(file, FIXED - 4, &crc.to_le_bytes());
}

/// Values at which arithmetic turns.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    7,
    8,
    63,
    64,
    65,
    255,
    256,
    1 << 16,
    (1 << 31) - 1,
    1 << 32,
    1 << 52,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
    0x7ff8_0000_0000_0000,
];

/// One change of a parameter, of the variant, of a section's entry, or of a run of cells; `None` where `file` has none of these.
pub fn mutate(file: &mut [u8], mut random: u64) -> Option<()> {
    let mut draw = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) as usize) % below.max(1)
    };
    if file.len() < FIXED {
        return None;
    }
    let (params, sections) = tables(file)?;
    let cells = align(FIXED + params * PARAM + sections * SECTION);
    match draw(14) {
        // A number that a section states: kind, index, place or length.
        8 if sections > 0 => {
            let entry = FIXED + params * PARAM + draw(sections) * SECTION;
            let at = entry + [0, 8, 16, 16][draw(4)];
            let mut old = [0; 8];
            old.copy_from_slice(&file[at..at + 8]);
            let old = u64::from_le_bytes(old);
            let new = [EDGES[draw(EDGES.len())], old.wrapping_add(64), old.wrapping_sub(1), old ^ 1 << 32][draw(4)];
            put(file, at, &new.to_le_bytes());
        }
        0 => {
            let others = UNREGISTERED.iter().map(|(number, _)| *number);
            let numbers: Vec<u16> = VARIANTS.iter().map(|variant| variant.id).chain(others).collect();
            put(file, VARIANT_AT, &numbers[draw(numbers.len())].to_le_bytes());
        }
        1 | 2 if cells < file.len() => {
            let at = cells + draw(file.len() - cells);
            let end = (at + 1 + draw(16)).min(file.len());
            let byte = [0, 0xff, 1, 0x80, draw(256) as u8][draw(5)];
            file[at..end].fill(byte);
        }
        // What the parts of a structure say of each other: one bit, a number one higher or lower, a part in the place of
        // another, two parts that change places, all of a section.
        kind @ 9..=13 if cells + 8 <= file.len() => {
            let words = (file.len() - cells) / 8;
            let at = cells + 8 * draw(words);
            let mut word = [0; 8];
            word.copy_from_slice(&file[at..at + 8]);
            let value = u64::from_le_bytes(word);
            match kind {
                9 => put(file, at, &(value ^ 1 << [0, 1, draw(64)][draw(3)]).to_le_bytes()),
                10 => {
                    let step = [1, 1 << 32, u64::MAX, 1 << draw(64)][draw(4)];
                    put(file, at, &value.wrapping_add(step).to_le_bytes());
                }
                11 => {
                    let from = cells + 8 * draw(words);
                    let len = (8 << draw(4)).min(file.len() - at.max(from));
                    file.copy_within(from..from + len, at);
                }
                12 => {
                    let other = cells + 8 * draw(words);
                    (0..8).for_each(|i| file.swap(at + i, other + i));
                }
                _ => {
                    let end = (at + (8 << draw(9))).min(file.len());
                    file[if draw(2) == 0 { cells } else { at }..end].fill([0, 0xff][draw(2)]);
                }
            }
        }
        _ if params > 0 => {
            let at = FIXED + draw(params) * PARAM + 8;
            let mut old = [0; 8];
            old.copy_from_slice(&file[at..at + 8]);
            let old = u64::from_le_bytes(old);
            let near = [1, 2, 3, 8, 64][draw(5)];
            let mut other = || {
                let at = FIXED + draw(params) * PARAM + 8;
                let mut value = [0; 8];
                value.copy_from_slice(&file[at..at + 8]);
                u64::from_le_bytes(value)
            };
            let (one, two) = (other(), other());
            let new = match draw(9) {
                0 => EDGES[draw(EDGES.len())],
                1 => old.wrapping_add(near),
                2 => old.wrapping_sub(near),
                3 => old ^ 1 << draw(64),
                4 => (f64::from_bits(old) * [0.5, 2.0, -1.0, 1e300, 1e-300][draw(5)]).to_bits(),
                // What bounds a count is often another parameter, or a product of two.
                5 => one.wrapping_add(draw(3) as u64).wrapping_sub(1),
                6 | 7 => one.wrapping_mul(two).wrapping_sub(draw(2) as u64),
                _ => old.wrapping_mul(near).wrapping_add(draw(2) as u64),
            };
            put(file, at, &new.to_le_bytes());
        }
        _ => return None,
    }
    Some(())
}
