use super::*;
use crate::container::tag;
use crate::sizing::cascade::bits as formula;
use crate::structure::records::Records;
use crate::structure::testing::{bytes, hash, mapped, reload, reloaded};

fn set(numbers: impl Iterator<Item = u64>) -> Sorted<1> {
    let mut records = Records::new(None);
    numbers.for_each(|i| records.push([hash(i)]).unwrap());
    records.sorted(&Job::new(1)).unwrap()
}

fn made(included: u64, excluded: u64) -> FilterCascade {
    let (yes, no) = (set(0..included), set(included..included + excluded));
    assert_eq!(common(&yes, &no).unwrap(), None);
    FilterCascade::build(&yes, &no, KeyHasher::seeded(3), &Job::new(1)).unwrap()
}

fn errors(cascade: &FilterCascade, included: u64, excluded: u64) -> usize {
    let hashes: Vec<u64> = (0..included + excluded).map(hash).collect();
    let mut found = vec![9; hashes.len()];
    cascade.contains_hashes(&hashes, &mut found);
    assert!(hashes.iter().zip(&found).all(|(&hash, &found)| cascade.contains_hash(hash) == (found == 1)));
    (0..).zip(found).filter(|&(i, found)| (found == 1) != (i < included)).count()
}

#[test]
fn every_key_of_its_world_is_told() {
    for (r, s) in [(0, 0), (0, 5), (5, 0), (1, 1), (1, 1000), (1000, 1), (300, 300), (50, 20_000), (20_000, 700)] {
        let cascade = made(r, s);
        assert_eq!((cascade.num_included(), cascade.num_excluded(), cascade.fpr()), (r, s, 0.0));
        for same in [reload(&cascade), mapped(&cascade), cascade.try_clone().unwrap()] {
            assert!(same.same_as(&cascade) && bytes(&same) == bytes(&cascade));
            assert_eq!(errors(&same, r, s), 0, "{r} {s}");
        }
    }
}

#[test]
fn it_is_as_small_as_the_formula_and_the_same_whatever_the_order() {
    for (r, s) in [(1_000, 10_000), (10_000, 100_000), (2_000, 500_000)] {
        let (cascade, want) = (made(r, s), formula(r as f64, s as f64));
        // What goes on from level to level scatters like its square root, of 4.2 bits each.
        let slack = 4.0 * 4.2 * (r as f64 / 2.0).sqrt() + 0.002 * want;
        assert!((cascade.num_bits() as f64 - want).abs() < slack, "{r} {s} {} {want}", cascade.num_bits());
        let (yes, no) = (set((0..r).rev().chain(0..9)), set((r..r + s).rev()));
        let again = FilterCascade::build(&yes, &no, KeyHasher::seeded(3), &Job::new(3)).unwrap();
        assert_eq!(bytes(&again), bytes(&cascade));
    }
}

#[test]
fn sets_that_overlap_are_found_and_end() {
    let (yes, no) = (set(0..500), set(499..9000));
    assert_eq!(common(&yes, &no).unwrap(), Some(hash(499)));
    assert_eq!(common(&no, &yes).unwrap(), Some(hash(499)));
    let refused = FilterCascade::build(&yes, &no, KeyHasher::seeded(0), &Job::new(1));
    assert!(matches!(refused, Err(Error::Parameter(why)) if why.contains("in common")));
}

#[test]
fn work_can_be_ended_and_is_bounded() {
    let stop = |done, _| if done < 300 { Ok(()) } else { Err(Error::parameter("enough")) };
    let (yes, no) = (set(0..100), set(100..9000));
    let ended = FilterCascade::build(&yes, &no, KeyHasher::seeded(0), &Job::watched(1, &stop));
    assert!(matches!(ended, Err(Error::Parameter(why)) if why == "enough"));
    let few = |numbers: std::ops::Range<u64>| {
        let mut few = Records::new(Some(1 << 11));
        numbers.for_each(|i| few.push([hash(i)]).unwrap());
        few.sorted(&Job::new(1)).unwrap()
    };
    let refused = FilterCascade::build(&few(0..9000), &few(9000..20_000), KeyHasher::seeded(0), &Job::new(1));
    assert!(matches!(refused, Err(Error::Memory(why)) if why.contains("memory=4096")));
}

#[test]
fn files_that_lie_are_refused_or_answer() {
    for (r, s) in [(0, 3), (3, 0), (40, 300)] {
        let cascade = made(r, s);
        for (i, &(tag, _, value)) in cascade.container().header.params.iter().enumerate() {
            assert!(matches!(reloaded(&cascade, |h, _| _ = h.params.remove(i)), Err(Error::Format(_))), "{tag}");
            for wild in [0, 1, 2, value + 1, value.wrapping_sub(1), 1 << 20, 1 << 40, u64::MAX, 254, 255, 256] {
                match reloaded(&cascade, |h, _| h.params[i].2 = wild) {
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
            assert!(matches!(reloaded(&cascade, lie), Err(Error::Format(_))) || (r * s == 0 && row == 0), "{row}");
        }
        let behind = reloaded(&cascade, |_, cells| *cells[1].last_mut().unwrap() = 0x80).unwrap();
        assert!(matches!(behind.check_cells(), Err(Error::Format(_))));
    }
}
