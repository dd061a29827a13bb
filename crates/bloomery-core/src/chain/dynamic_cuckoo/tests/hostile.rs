//! Files that lie, and cells of any bits.

use super::*;
use crate::container::tag;
use crate::error::Error;

#[test]
fn lying_files_are_refused_or_harm_nobody() {
    let mut filter = made(planned(30, 5, 4, 8));
    filter.add_hashes(&(0..80).map(mix).collect::<Vec<_>>(), None).unwrap();
    let damaged =
        |change: &dyn Fn(&mut Header, &mut Vec<Vec<u8>>)| matches!(reloaded(&filter, change), Err(Error::Format(_)));
    let params = filter.container().header.params;
    for (i, &(tag, index, value)) in params.iter().enumerate() {
        assert!(damaged(&|header, _| _ = header.params.remove(i)), "{tag} {index} missing");
        for wild in
            [0, 1, 2, 3, u64::MAX, 1 << 40, value + 1, value.wrapping_sub(1), value ^ 1 << 63, f64::NAN.to_bits()]
        {
            let Ok(mut opened) = reloaded(&filter, |header, _| header.params[i].2 = wild) else { continue };
            // What may differ without contradiction: counts, a stash, the rate and stages of the whole.
            let free = [tag::COUNT, tag::STASH_FINGERPRINT, tag::STASH_BUCKET].contains(&tag)
                || index == 0xffff && [tag::FPR, tag::MAX_STAGES].contains(&tag);
            assert!(wild == value || free, "{tag} {index} {wild}");
            for hash in (0..300).map(mix) {
                let _ = (opened.contains_hash(hash), opened.add_hash(hash), opened.count_hash(hash));
                let _ = opened.remove_hash(mix(hash)).unwrap();
            }
            let _ = (opened.compact(), opened.merge(&filter), opened.fpr(), opened.fill(), opened.info());
        }
    }
    assert!(damaged(&|header, _| header.params.push((tag::COUNT, 3, 0))));
    assert!(damaged(&|header, _| header.params.retain(|(_, index, _)| *index == 0xffff)), "no stage");
    assert!(damaged(&|header, _| header.params.retain(|(_, index, _)| *index != 1)), "a stage between is missing");
    assert!(damaged(&|header, _| header.scheme = 1));
    assert!(damaged(&|_, cells| _ = cells.pop()), "cells of a stage are missing");
    assert!(damaged(&|_, cells| cells[1].iter_mut().for_each(|byte| *byte = 255)), "bits beyond the buckets");
    // More stages than are allowed.
    let allow = |most: u64| reloaded(&filter, move |header, _| header.params[2].2 = most);
    assert!(allow(2).is_err() && allow(3).is_ok() && allow(1024).is_ok() && allow(1025).is_err());
}
