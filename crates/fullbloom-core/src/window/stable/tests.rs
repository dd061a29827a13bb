//! Tests of the file above.

use super::*;
use crate::structure::testing::{hash, reload};

/// Cells one by one.
struct Model(Vec<u8>);

impl Model {
    fn add(&mut self, shape: &Stable, hash: u64, start: u64) -> bool {
        let m = shape.num_cells;
        let mut sequence = Mcg::start(hash, m);
        let cells: Vec<usize> = (0..shape.num_hashes).map(|_| sequence.next() as usize).collect();
        let new = cells.iter().any(|&cell| self.0[cell] == 0);
        for i in 0..shape.decrements {
            let cell = &mut self.0[((start + i) % m) as usize];
            *cell = cell.saturating_sub(1);
        }
        cells.iter().for_each(|&cell| self.0[cell] = shape.max() as u8);
        new
    }
}

#[test]
fn words_do_what_cells_one_by_one_do() {
    for cell_bits in [1, 2, 4, 8] {
        for decrements in [1, 3, 17, 64, 200, 511] {
            let num_cells = 2048 / u64::from(cell_bits);
            let decrements = decrements.min(num_cells);
            let shape = Stable { num_cells, cell_bits, num_hashes: 3, decrements };
            let make = || StableBloomFilter::of_shape(shape, 10, 0.1, KeyHasher::seeded(5)).unwrap();
            let (mut filter, mut batch) = (make(), make());
            let mut model = Model(vec![0; num_cells as usize]);
            let keys: Vec<u64> = (0..700).map(|i| hash(hash(i) % 300)).collect();
            let result: Vec<u8> = (0..)
                .zip(&keys)
                .map(|(tick, &key)| {
                    let new = filter.add_hash(key).unwrap();
                    assert_eq!(new, model.add(&shape, key, start_of(5, tick, num_cells)));
                    assert!(filter.contains_hash(key));
                    u8::from(new)
                })
                .collect();
            let packed = crate::cells::PackedCells::new(cell_bits).unwrap();
            let cells = (0..num_cells).map(|i| packed.get(filter.memory.words(), i) as u8);
            assert!(cells.eq(model.0.iter().copied()), "{cell_bits} {decrements}");
            assert_eq!(filter.set_cells(), model.0.iter().filter(|&&cell| cell > 0).count() as u64);
            let mut new = vec![0; keys.len()];
            batch.add_hashes(&keys[..333], Some(&mut new[..333])).unwrap();
            batch = reload(&batch);
            batch.add_hashes(&keys[333..], Some(&mut new[333..])).unwrap();
            assert!(batch.same_as(&filter) && new == result);
        }
    }
}

#[test]
fn rate_fill_and_memory_settle_where_the_law_says() {
    for (cell_bits, capacity) in [(1, 2000), (2, 2000), (4, 1000)] {
        let mut filter = StableBloomFilter::construct(capacity, 0.01, cell_bits, None, KeyHasher::seeded(1)).unwrap();
        let (shape, n) = (*filter.shape(), capacity);
        let keys: Vec<u64> = (0..60 * n).map(hash).collect();
        filter.add_hashes(&keys, None).unwrap();
        let mut recalled = 0.0;
        for round in 0..20 {
            let fresh: Vec<u64> = (0..n).map(|i| hash(1 << 40 | round << 20 | i)).collect();
            filter.add_hashes(&fresh, None).unwrap();
            recalled += fresh.iter().filter(|&&key| filter.contains_hash(key)).count() as f64;
        }
        assert!((filter.fill() / (1.0 - shape.zeros()) - 1.0).abs() < 0.03, "{shape:?} {}", filter.fill());
        let absent = (0..200_000).filter(|i| filter.contains_hash(hash(1 << 50 | i))).count() as f64 / 2e5;
        assert!(absent < 0.0113, "{absent}");
        let model: f64 = (0..n).map(|age| shape.recall(age as f64)).sum::<f64>() / n as f64;
        let measured = recalled / 20.0 / n as f64;
        assert!((measured - model).abs() < 0.015, "{cell_bits}: {measured} for {model}");
    }
}
