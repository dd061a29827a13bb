//! Deltas of cascades: bytes as they are, and sound deltas between versions with changes whose checksums hold again.
#![no_main]

use std::sync::LazyLock;

use fullbloom_core::Error;
use fullbloom_core::chain::FilterCascade;
use fullbloom_core::chain::cascade::{LevelKind, Plan, Shapes};
use fullbloom_core::container::Container;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::structure::records::{Records, SortedRecords};
use fullbloom_core::structure::{Filter, Job};
use fullbloom_fuzz::{file, memory, structures};
use libfuzzer_sys::fuzz_target;

const HASHER: fn() -> KeyHasher = || KeyHasher::seeded(7);
/// Magic, version, checksums of both heads.
const FIXED: usize = 28;

/// Three versions of small sets, each made like the one before, of every kind of levels.
static VERSIONS: LazyLock<Vec<[FilterCascade; 3]>> = LazyLock::new(|| {
    let names = LevelKind::rows().map(|row| (row.name, "auto"));
    let kinds = names.chain([("bloom", "blocked")]).filter_map(|(name, layout)| LevelKind::new(name, layout).ok());
    kinds.map(versions).collect()
});

fn set(numbers: impl Iterator<Item = i64>) -> SortedRecords<1> {
    let mut records = Records::new(None);
    numbers.for_each(|number| records.push([HASHER().hash_signed(number)]).expect("memory"));
    records.sort(&Job::new(1)).expect("memory")
}

fn versions(kind: LevelKind) -> [FilterCascade; 3] {
    let build = |first: i64, like: Option<&Shapes>| {
        let (yes, no) = (set(first..first + 80), set(first + 80..first + 300));
        let plan = Plan { kind, hasher: HASHER(), like };
        FilterCascade::build(&yes, &no, plan, &Job::new(1)).expect("two sets")
    };
    let like = |cascade: &FilterCascade| cascade.shapes().expect("memory");
    let first = build(0, None);
    let second = build(3, Some(&like(&first)));
    let third = build(6, Some(&like(&second)));
    [first, second, third]
}

fn bytes(container: &Container<'_>) -> Vec<u8> {
    let head = container.head().expect("cells in memory");
    let mut bytes = Vec::new();
    container.write_with(&head, &mut bytes).expect("writing to memory");
    bytes
}

/// A delta with some of its bytes changed: place, what is done, value.
fn change(mut delta: Vec<u8>, edits: &[u8]) -> Vec<u8> {
    for &[low, high, what, value] in edits.as_chunks().0 {
        let at = usize::from(u16::from_le_bytes([low, high])) % delta.len();
        match what % 6 {
            0 => delta[at] = value,
            1 => delta[at] ^= 1 << (value % 8),
            2 => delta[at] = delta[at].wrapping_add(value),
            3 => delta.insert(at, value),
            4 if delta.len() > FIXED + 4 => drop(delta.drain(at..delta.len().min(at + 1 + usize::from(value % 16)))),
            _ => delta.truncate(FIXED.max(at)),
        }
        delta.resize(delta.len().max(FIXED), 0);
    }
    delta
}

/// The fixed part as that of `like`, and the checksum that the rest should have.
fn repair(delta: &mut Vec<u8>, like: &[u8]) {
    delta.truncate(delta.len() - 4);
    delta[..FIXED].copy_from_slice(&like[..FIXED]);
    let crc = crc32fast::hash(delta).to_le_bytes();
    delta.extend(crc);
}

/// What comes out is a file, or is refused; a sound one does what a cascade does.
fn check(base: &FilterCascade, delta: &[u8]) {
    match base.apply_delta(delta) {
        Ok(mut file) => {
            if !structures::check(&file) {
                file::repair(&mut file);
                structures::check(&file);
            }
        }
        Err(Error::Format(_) | Error::Incompatible(_) | Error::Memory(_)) => {}
        Err(error) => panic!("another error: {error}"),
    }
}

fuzz_target!(init: memory::limit(), |data: &[u8]| {
    let [kind, versions, rest @ ..] = data else { return };
    let cascades = &VERSIONS[usize::from(*kind) % VERSIONS.len()];
    let (base, new) = (&cascades[usize::from(*versions) % 3], &cascades[usize::from(*versions) / 3 % 3]);
    let sound = base.delta_to(new).expect("one rule of keys");
    assert!(base.apply_delta(&sound).expect("its own delta") == bytes(&new.container()), "another file than the version");
    // One in four as it lies.
    if *versions >= 192 {
        let mut given = [&sound[..FIXED], rest, &[0; 4]].concat();
        check(base, &given);
        repair(&mut given, &sound);
        check(base, &given);
        return;
    }
    let mut delta = change(sound.clone(), rest);
    delta.resize(delta.len().max(FIXED + 4), 0);
    check(base, &delta);
    repair(&mut delta, &sound);
    check(base, &delta);
});
