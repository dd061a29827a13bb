use super::*;

/// Random operations on a row of buckets against plain vectors (sorted: order is the rule's own).
fn agrees_with_vectors<B: Buckets>(rule: B, slots: u32, width: u32) {
    let number = 40u64;
    let mut words = vec![0u64; (number * rule.bits()).div_ceil(64) as usize + 2];
    let mut model = vec![vec![0u64; slots as usize]; number as usize];
    let mut x = u64::from(slots * 100 + width);
    for _ in 0..6000 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (i, values) = ((x >> 40) % number, (1u64 << width.min(5)) - 1);
        let fp = ((x >> 20) & values) << (width - width.min(5)) | x >> 63;
        let mut bucket = rule.load(&words, i);
        let held = &mut model[i as usize];
        assert_eq!(rule.has(bucket, fp), held.contains(&fp), "b {slots} f {width}");
        assert_eq!(rule.count(bucket, fp) as usize, held.iter().filter(|&&v| v == fp).count());
        match (x >> 33) % 3 {
            0 => {
                let free = held.iter().position(|&v| v == 0);
                assert_eq!(rule.replace(&mut bucket, 0, fp), free.is_some());
                free.into_iter().for_each(|j| held[j] = fp);
            }
            1 => {
                let there = held.iter().position(|&v| v == fp);
                assert_eq!(rule.replace(&mut bucket, fp, 0), there.is_some());
                there.into_iter().for_each(|j| held[j] = 0);
            }
            _ => {
                let old = rule.swap(&mut bucket, (x >> 50) as u32 % slots, fp);
                let there = held.iter().position(|&v| v == old).expect("what was handed out was there");
                held[there] = fp;
            }
        }
        rule.store(&mut words, i, bucket);
    }
}

#[test]
fn buckets_of_every_size_hold_what_plain_vectors_hold() {
    for width in 4..=32 {
        for slots in [1, 2, 4, 8] {
            agrees_with_vectors(Slots::new(slots, width).unwrap(), slots, width);
            if let Some(lanes) = Lanes::new(slots, width) {
                agrees_with_vectors(lanes, slots, width);
            }
        }
        agrees_with_vectors(SemiSorted::new(width).unwrap(), 4, width);
    }
}

#[test]
fn lanes_and_slots_write_the_same_bits() {
    let (lanes, slots) = (Lanes::new(4, 12).unwrap(), Slots::new(4, 12).unwrap());
    let (mut a, mut b) = ([0u64; 4], [0u64; 4]);
    lanes.store(&mut a, 3, 0x123_456_789_abc);
    slots.store(&mut b, 3, [0xabc, 0x789, 0x456, 0x123, 0, 0, 0, 0]);
    assert_eq!(a, b);
}

#[test]
fn every_sorted_quadruple_has_its_own_rank() {
    assert_eq!(rank([15, 15, 15, 15]), 3875);
    let ranks = (0..3876).filter(|&code| rank(NIBBLES[code as usize].map(u32::from)) == code).count();
    assert_eq!(ranks, 3876);
}
