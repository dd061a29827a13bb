use super::*;
use crate::container::{ContainerIndex, Verify, tag};
use crate::sizing::cascade::bits as formula;
use crate::structure::records::Records;
use crate::structure::testing::{bytes, hash, map_filter, reload, reload_changed};

fn set(numbers: impl Iterator<Item = u64>) -> SortedRecords<1> {
    let mut records = Records::new(None);
    numbers.for_each(|i| records.push([hash(i)]).unwrap());
    records.sort(&Job::new(1)).unwrap()
}

const SEEDED: fn(u64) -> Plan<'static> =
    |seed| Plan { kind: LevelKind::Packed, hasher: KeyHasher::seeded(seed), like: None };

fn build(kind: LevelKind, included: u64, excluded: u64) -> FilterCascade {
    let (yes, no) = (set(0..included), set(included..included + excluded));
    assert_eq!(common(&yes, &no).unwrap(), None);
    FilterCascade::build(&yes, &no, Plan { kind, ..SEEDED(3) }, &Job::new(1)).unwrap()
}

fn create(included: u64, excluded: u64) -> FilterCascade {
    build(LevelKind::Packed, included, excluded)
}

fn kinds() -> Vec<LevelKind> {
    let named = LevelKind::rows().map(|row| LevelKind::new(row.name, "auto").unwrap());
    let layouts = ["classic", "blocked", "split", "partitioned"].map(|layout| LevelKind::new("bloom", layout).unwrap());
    named.chain(layouts).collect()
}

fn errors(cascade: &FilterCascade, included: u64, excluded: u64) -> usize {
    let hashes: Vec<u64> = (0..included + excluded).map(hash).collect();
    let mut found = vec![9; hashes.len()];
    cascade.contains_hashes(&hashes, &mut found);
    assert!(hashes.iter().zip(&found).all(|(&hash, &found)| cascade.contains_hash(hash) == (found == 1)));
    (0..).zip(found).filter(|&(i, found)| (found == 1) != (i < included)).count()
}

#[test]
fn every_key_of_its_world_is_classified() {
    for (r, s) in [(0, 0), (0, 5), (5, 0), (1, 1), (1, 1000), (1000, 1), (300, 300), (50, 20_000), (20_000, 700)] {
        let cascade = create(r, s);
        assert_eq!((cascade.num_included(), cascade.num_excluded(), cascade.fpr()), (r, s, 0.0));
        for same in [reload(&cascade), map_filter(&cascade), cascade.try_clone().unwrap()] {
            assert!(same.same_as(&cascade) && bytes(&same) == bytes(&cascade));
            assert_eq!(errors(&same, r, s), 0, "{r} {s}");
        }
    }
}

#[test]
fn it_is_as_small_as_the_formula_and_the_same_whatever_the_order() {
    for (r, s) in [(1_000, 10_000), (10_000, 100_000), (2_000, 500_000)] {
        let (cascade, want) = (create(r, s), formula(r as f64, s as f64));
        // What goes on from level to level scatters like its square root, of 4.2 bits each.
        let slack = 4.0 * 4.2 * (r as f64 / 2.0).sqrt() + 0.002 * want;
        assert!((cascade.num_bits() as f64 - want).abs() < slack, "{r} {s} {} {want}", cascade.num_bits());
        let (yes, no) = (set((0..r).rev().chain(0..9)), set((r..r + s).rev()));
        let again = FilterCascade::build(&yes, &no, SEEDED(3), &Job::new(3)).unwrap();
        assert_eq!(bytes(&again), bytes(&cascade));
    }
}

#[test]
#[ignore = "long: make test-all runs it"]
fn levels_of_any_kind_classify_every_key() {
    assert_eq!(kinds().len(), 11);
    for kind in kinds() {
        for (r, s) in [(0, 5), (5, 0), (1, 1), (1, 1000), (300, 300), (2000, 9000), (20_000, 24_000)] {
            let cascade = build(kind, r, s);
            assert_eq!((cascade.level_kind(), cascade.num_levels() > 0), (kind, r * s > 0));
            for same in [reload(&cascade), map_filter(&cascade), cascade.try_clone().unwrap()] {
                assert!(same.same_as(&cascade) && bytes(&same) == bytes(&cascade));
                assert_eq!(errors(&same, r, s), 0, "{kind:?} {r} {s}");
            }
        }
    }
    assert_eq!(build(LevelKind::new("ribbon", "auto").unwrap(), 20_000, 24_000).parts.len(), 3);
    assert!(matches!(LevelKind::new("cuckoo", "auto"), Err(Error::Parameter(_))));
    assert!(matches!(LevelKind::new("ribbon", "split"), Err(Error::Parameter(_))));
}

#[test]
fn levels_with_a_forged_kind_are_refused_or_answer() {
    for kind in kinds() {
        let cascade = build(kind, 50, 400);
        for (i, &(tag, index, value)) in cascade.container().header.params.iter().enumerate() {
            let missing = reload_changed(&cascade, |h, _| _ = h.params.remove(i));
            assert_eq!(missing.is_ok(), tag == tag::KEY_DOMAINS, "{kind:?} {tag}");
            for wild in [0, 1, 2, value + 1, value.wrapping_sub(1), 20, 21, 22, 23, 24, 26, 1 << 40, u64::MAX] {
                if let Ok(opened) = reload_changed(&cascade, |h, _| h.params[i] = (tag, index, wild)) {
                    let _ = (opened.info(), errors(&opened, 50, 400), opened.fill(), opened.check_cells());
                }
            }
            let moved = reload_changed(&cascade, |h, _| h.params[i].1 = index + 1);
            assert!(moved.is_err(), "{kind:?} {tag}");
        }
    }
}

/// Keys of a version that [`changed`] made of which the answer is wrong.
fn errors_in(new: &FilterCascade, r: u64, s: u64, changed: u64) -> usize {
    let yes = (changed..r).chain(1 << 40..(1 << 40) + changed).filter(|&i| !new.contains_hash(hash(i))).count();
    yes + (r + changed..r + s).chain(0..changed).filter(|&i| new.contains_hash(hash(i))).count()
}

/// Another version of the cascade of `0..r` against `r..r + s`: `changed` keys go, and as many come.
fn change(base: &FilterCascade, r: u64, s: u64, changed: u64) -> FilterCascade {
    let (yes, no) =
        (set((changed..r).chain(1 << 40..(1 << 40) + changed)), set((r + changed..r + s).chain(0..changed)));
    let shapes = base.shapes().unwrap();
    let plan = Plan { kind: base.kind, hasher: base.hasher, like: Some(&shapes) };
    FilterCascade::build(&yes, &no, plan, &Job::new(1)).unwrap()
}

#[test]
#[ignore = "long: make test-all runs it"]
fn a_delta_gives_the_other_version_and_is_short() {
    for kind in kinds() {
        let base = build(kind, 10_000, 50_000);
        assert!(base.delta_to(&base).unwrap().len() < 120);
        for number in [0, 1, 100, 9_000] {
            let new = change(&base, 10_000, 50_000, number);
            let delta = base.delta_to(&new).unwrap();
            assert_eq!(base.apply_delta(&delta).unwrap(), bytes(&new));
            let whole = bytes(&new).len();
            assert!(delta.len() < whole + 500, "{kind:?} {number}");
            if number <= 100 {
                assert!(delta.len() < whole / 6 + 300, "{kind:?} {number} {} {whole}", delta.len());
            }
            assert!(number > 0 || new.same_as(&base), "{kind:?}");
            assert_eq!(new.later > 0, kind != LevelKind::Packed && (1..=1000).contains(&number), "{kind:?} {number}");
            assert_eq!(errors_in(&new, 10_000, 50_000, number), 0, "{kind:?} {number}");
        }
    }
}

#[test]
fn deltas_between_any_two_are_sound() {
    let all: Vec<FilterCascade> =
        kinds().into_iter().flat_map(|kind| [(0, 9), (60, 700)].map(|(r, s)| build(kind, r, s))).collect();
    for (base, new) in all.iter().flat_map(|base| all.iter().map(move |new| (base, new))) {
        assert_eq!(base.apply_delta(&base.delta_to(new).unwrap()).unwrap(), bytes(new));
    }
    let (base, new) = (create(60, 700), create(61, 700));
    let delta = base.delta_to(&new).unwrap();
    assert!(matches!(new.apply_delta(&delta), Err(Error::Incompatible(_))));
    let other = FilterCascade::build(&set(0..60), &set(60..760), SEEDED(4), &Job::new(1)).unwrap();
    assert!(matches!(base.delta_to(&other), Err(Error::Incompatible(_))));
    assert!(matches!(other.apply_delta(&delta), Err(Error::Incompatible(_))));
}

/// With the checksum that it should have.
fn repair(mut delta: Vec<u8>) -> Vec<u8> {
    let end = delta.len() - 4;
    let crc = crc32fast::hash(&delta[..end]).to_le_bytes();
    delta[end..].copy_from_slice(&crc);
    delta
}

#[test]
fn forged_deltas_are_refused() {
    let base = create(60, 700);
    let new = change(&base, 60, 700, 3);
    let delta = base.delta_to(&new).unwrap();
    for end in 0..delta.len() {
        assert!(matches!(base.apply_delta(&delta[..end]), Err(Error::Format(_))), "{end}");
    }
    for at in 0..delta.len() {
        for value in [0, 1, 2, 3, 127, 128, 255, delta[at] ^ 1, delta[at] ^ 0x80] {
            if delta[at] == value {
                continue;
            }
            let mut lie = delta.clone();
            lie[at] = value;
            assert!(matches!(base.apply_delta(&lie), Err(Error::Format(_))), "{at} {value}");
            let lie = repair(lie);
            if lie == delta {
                continue;
            }
            match base.apply_delta(&lie) {
                // Cells of which the file's own checksums tell.
                Ok(file) => {
                    assert!(file == bytes(&new) || ContainerIndex::new(&file, Verify::Full).is_err(), "{at} {value}")
                }
                Err(error) => assert!(matches!(error, Error::Format(_) | Error::Incompatible(_)), "{at} {value}"),
            }
        }
    }
    let longer = [&delta[..delta.len() - 4], &[0; 9]].concat();
    assert!(matches!(base.apply_delta(&repair(longer)), Err(Error::Format(_))));
}

#[test]
fn sets_that_overlap_are_found_and_end() {
    let (yes, no) = (set(0..500), set(499..9000));
    assert_eq!(common(&yes, &no).unwrap(), Some(hash(499)));
    assert_eq!(common(&no, &yes).unwrap(), Some(hash(499)));
    let refused = FilterCascade::build(&yes, &no, SEEDED(0), &Job::new(1));
    assert!(matches!(refused, Err(Error::Parameter(why)) if why.contains("in common")));
}

#[test]
fn work_can_be_ended_and_is_bounded() {
    let stop = |done, _| if done < 300 { Ok(()) } else { Err(Error::parameter("enough")) };
    let (yes, no) = (set(0..100), set(100..9000));
    let ended = FilterCascade::build(&yes, &no, SEEDED(0), &Job::with_watch(1, &stop));
    assert!(matches!(ended, Err(Error::Parameter(why)) if why == "enough"));
    let few = |numbers: std::ops::Range<u64>| {
        let mut few = Records::new(Some(1 << 11));
        numbers.for_each(|i| few.push([hash(i)]).unwrap());
        few.sort(&Job::new(1)).unwrap()
    };
    let refused = FilterCascade::build(&few(0..9000), &few(9000..20_000), SEEDED(0), &Job::new(1));
    assert!(matches!(refused, Err(Error::Memory(why)) if why.contains("memory=4096")));
}

#[test]
fn forged_files_are_refused_or_answer() {
    for (r, s) in [(0, 3), (3, 0), (40, 300)] {
        let cascade = create(r, s);
        for (i, &(tag, _, value)) in cascade.container().header.params.iter().enumerate() {
            let missing = reload_changed(&cascade, |h, _| _ = h.params.remove(i));
            assert!(matches!(missing, Err(Error::Format(_))) || tag == tag::KEY_DOMAINS, "{tag}");
            for wild in [0, 1, 2, value + 1, value.wrapping_sub(1), 1 << 20, 1 << 40, u64::MAX, 254, 255, 256] {
                match reload_changed(&cascade, |h, _| h.params[i].2 = wild) {
                    Ok(opened) => {
                        assert!(tag != tag::LEVELS || wild == value, "{wild}");
                        let _ = (opened.info(), errors(&opened, r, s), opened.fill());
                    }
                    Err(error) => assert!(matches!(error, Error::Format(_)), "{tag} {wild} {error}"),
                }
            }
        }
        for row in [0, 1, 1 << 48, u64::MAX, 65 << 48 | 9, 1 << 60 | 7] {
            let lie = |_: &mut Header, cells: &mut Vec<Vec<u8>>| cells[0][..8].copy_from_slice(&u64::to_le_bytes(row));
            assert!(
                matches!(reload_changed(&cascade, lie), Err(Error::Format(_))) || (r * s == 0 && row == 0),
                "{row}"
            );
        }
        let behind = reload_changed(&cascade, |_, cells| *cells[1].last_mut().unwrap() = 0x80).unwrap();
        assert!(matches!(behind.check_cells(), Err(Error::Format(_))));
    }
}
