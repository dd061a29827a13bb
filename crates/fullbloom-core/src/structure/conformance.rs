//! What every row of the registry promises, written once and run for each row in several sizes and choices.
//! The checks take any way to make a filter: the tests of one structure run them on shapes of its own. They take it by
//! reference, and are compiled once a structure: once a call, they were a sixth of the code of the core's tests.
#![cfg(test)]

use super::records::{RecordSet, Records};
use super::testing::{bytes, choices, hash, map_filter, one_count_suffices, reload, reload_changed};
use super::{Addable, Built, Countable, Declared, Job, Loadable, Mergeable, Planned, Removable, Sizable};
use crate::container::{Header, tag};
use crate::error::{Error, Result};
use crate::hash::splitmix::SplitMix;
use crate::key::KeyHasher;
use crate::labelled::valued::{Kind, Valued};
use std::collections::HashMap;

/// A structure with one way to add, also where a key comes with something else.
pub(crate) trait Subject: Declared + Loadable {
    /// Adds one key.
    fn put(&mut self, hash: u64) -> Result<bool>;
    /// Adds in order.
    fn put_all(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()>;
    /// Forgets every key.
    fn wipe(&mut self) -> Result<()>;
    /// The hash of a number: also a structure that takes only these takes it.
    fn key(&self, i: u64) -> u64 {
        self.hasher().hash_signed(i as i64)
    }
    /// The keys of some numbers.
    fn keys(&self, numbers: std::ops::Range<u64>) -> Vec<u64> {
        numbers.map(|i| self.key(i)).collect()
    }
}

impl<F: Addable + Declared + Loadable> Subject for F {
    fn put(&mut self, hash: u64) -> Result<bool> {
        self.add_hash(hash)
    }

    fn put_all(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        self.add_hashes(hashes, new)
    }

    fn wipe(&mut self) -> Result<()> {
        self.clear()
    }
}

impl<V: Kind> Subject for Valued<V>
where
    Valued<V>: Declared + Loadable,
{
    fn put(&mut self, hash: u64) -> Result<bool> {
        self.put_hash(hash, 1 + hash % 3)
    }

    fn put_all(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        self.put_hashes(hashes, &hashes.iter().map(|hash| 1 + hash % 3).collect::<Vec<_>>(), new)
    }

    fn wipe(&mut self) -> Result<()> {
        self.clear()
    }
}

/// Batches of adds, wherever they are cut, leave the bytes of single adds and answer the same, and so do batches of
/// questions; the file comes back as the same filter; a copy is independent and, cleared, as new. The filter.
pub(crate) fn adding<F: Subject>(make: &dyn Fn() -> F, number: u64) -> F {
    let (mut one, mut many, mut silent) = (make(), make(), make());
    // Some keys come again, one of them often.
    let hashes: Vec<u64> = (0..number).map(|i| one.key(if i % 11 == 10 { 0 } else { i - i % 3 * (i % 2) })).collect();
    let single: Vec<u8> = hashes.iter().map_while(|&hash| one.put(hash).ok()).map(u8::from).collect();
    let mut results = vec![9; hashes.len()];
    assert_eq!(many.put_all(&hashes, Some(&mut results)).is_ok(), single.len() == hashes.len());
    let silently = hashes.chunks(37).try_for_each(|some| silent.put_all(some, None));
    assert_eq!(silently.is_ok(), single.len() == hashes.len());
    assert_eq!(results[..single.len()], single);
    assert!(one.same_as(&many) && bytes(&one) == bytes(&many) && bytes(&one) == bytes(&silent));
    let probes = one.keys(0..3 * number + 100);
    let mut found = vec![9; probes.len()];
    many.contains_hashes(&probes, &mut found);
    for (&hash, found) in probes.iter().zip(found) {
        assert_eq!([i32::from(found); 2], [i32::from(one.contains_hash(hash)), one.look(hash)]);
    }
    let back = reload(&many);
    assert!(back.same_as(&many) && bytes(&back) == bytes(&many) && back.info() == many.info());
    one_count_suffices(&many);
    let mut copy = many.try_clone().unwrap();
    assert!(copy.same_as(&many) && copy.num_added() == many.num_added());
    copy.wipe().unwrap();
    assert_eq!((copy.num_added(), copy.fill()), (0, 0.0));
    assert!(bytes(&copy) == bytes(&make()) && bytes(&many) == bytes(&one));
    many
}

/// Batches of removals leave the bytes of single removals and answer the same.
pub(crate) fn removing<F: Subject + Removable>(make: &dyn Fn() -> F, number: u64) {
    let mut many = adding(make, number);
    let [mut one, mut silent] = [0, 1].map(|_| many.try_clone().unwrap());
    let hashes = many.keys(0..2 * number);
    let single: Vec<u8> = hashes.iter().map(|&hash| u8::from(one.remove_hash(hash).unwrap())).collect();
    let mut removed = vec![9; hashes.len()];
    many.remove_hashes(&hashes, Some(&mut removed)).unwrap();
    hashes.chunks(37).for_each(|some| silent.remove_hashes(some, None).unwrap());
    assert_eq!(removed, single);
    assert!(one.same_as(&many) && bytes(&one) == bytes(&many) && bytes(&one) == bytes(&silent));
}

/// Adds and removes random keys in random order, and returns the filter with its model: how often it holds each key. A
/// key that is new to the filter is new to the model, and a key of the model can be removed. `check` sees every state.
pub(crate) fn adding_and_removing<F: Subject + Removable>(
    mut filter: F,
    capacity: u64,
    seed: u64,
    check: impl Fn(&F, &HashMap<u64, u64>),
) -> (F, HashMap<u64, u64>) {
    let (mut random, mut model) = (SplitMix(seed), HashMap::new());
    let keys: Vec<u64> = (0..capacity * 2).map(|_| random.next()).collect();
    for _ in 0..4000 {
        let key = keys[(random.next() % keys.len() as u64) as usize];
        let copies = model.get(&key).copied().unwrap_or(0u64);
        if random.next().is_multiple_of(2) {
            let new = filter.put(key).unwrap();
            assert!(!new || copies == 0);
            model.insert(key, copies + 1);
        } else if copies > 0 {
            assert!(filter.remove_hash(key).unwrap());
            model.insert(key, copies - 1);
        }
        check(&filter, &model);
    }
    (filter, model)
}

/// Absent keys cannot be removed and change nothing; a filter without its 300 keys is as new.
pub(crate) fn removing_all<F: Subject + Removable>(make: impl Fn() -> F) {
    let mut filter = make();
    let hashes: Vec<u64> = (0..300).map(hash).collect();
    filter.put_all(&hashes, None).unwrap();
    let before = filter.try_clone().unwrap();
    let absent: Vec<u64> = (300..3000).map(hash).filter(|&hash| !filter.contains_hash(hash)).collect();
    assert!(absent.len() > 2500 && absent.iter().all(|&hash| !filter.remove_hash(hash).unwrap()));
    assert!(filter.same_as(&before));
    filter.remove_hashes(&hashes, None).unwrap();
    assert!(filter.same_as(&make()));
}

/// Batches of counts are single counts, above 0 for exactly the keys that are found.
pub(crate) fn counting<F: Subject + Countable>(make: &dyn Fn() -> F, number: u64) {
    let many = adding(make, number);
    let probes = many.keys(0..2 * number + 100);
    let mut counts = vec![9; probes.len()];
    many.count_hashes(&probes, &mut counts);
    for (&hash, count) in probes.iter().zip(counts) {
        assert_eq!((count, count > 0), (many.count_hash(hash), many.contains_hash(hash)));
    }
}

/// A merged filter finds the keys of both; one of another hash is refused and nothing changes.
fn merging<F: Subject + Mergeable + Sizable>(make: &dyn Fn() -> F, number: u64) {
    let (mut a, mut b) = (make(), make());
    a.put_all(&a.keys(0..number / 2), None).unwrap();
    b.put_all(&b.keys(number / 4..number * 3 / 4), None).unwrap();
    let before = [&a, &b].map(bytes);
    let seed = a.hasher().seed() ^ 1;
    for hasher in [KeyHasher::seeded(seed), KeyHasher::keyed(seed ^ 1, &[7; 16])] {
        let Ok(other) = F::for_capacity(a.capacity(), a.target_fpr(), &[], hasher) else { continue };
        assert!(matches!(a.merge(&other), Err(Error::Incompatible(m)) if m.contains("se")));
    }
    assert_eq!(bytes(&a), before[0]);
    assert!(matches!(map_filter(&a).merge(&b), Err(Error::ReadOnly(_))));
    a.merge(&b).unwrap();
    assert!(a.keys(0..number * 3 / 4).into_iter().all(|hash| a.contains_hash(hash)));
    assert_eq!(bytes(&b), before[1]);
}

/// A read-only mapping answers and refuses every change.
fn only_reading<F: Subject>(make: &dyn Fn() -> F, number: u64) {
    let filter = adding(make, number);
    let mut over = map_filter(&filter);
    let keys = over.keys(0..number);
    let refused = |result: Result<()>| assert!(matches!(result, Err(Error::ReadOnly(_))));
    refused(over.put(keys[0]).map(drop));
    refused(over.put_all(&keys, None));
    refused(over.wipe());
    assert!(over.same_as(&filter) && bytes(&over) == bytes(&filter));
    assert!(keys.iter().all(|&hash| over.contains_hash(hash) == filter.contains_hash(hash)));
}

/// A merged filter is the filter of all keys, bit for bit; `put` adds key number `i`.
pub(crate) fn merging_is_adding_all<F: Mergeable>(make: impl Fn() -> F, put: impl Fn(&mut F, u64)) {
    let [mut a, mut b, mut both] = [0, 1, 2].map(|_| make());
    for i in 0..500 {
        put(if i % 2 == 0 { &mut a } else { &mut b }, i);
        put(&mut both, i);
    }
    a.merge(&b).unwrap();
    assert!(a.same_as(&both));
}

/// Values that no parameter or few can have, beside some that are close to `value`.
fn wild(value: u64) -> [u64; 18] {
    let near = [value.wrapping_add(1), value.wrapping_sub(1), value / 2, value.wrapping_mul(2), value ^ 1 << 63];
    let [a, b, c, d, e] = near;
    let (nan, infinity) = (f64::NAN.to_bits(), f64::INFINITY.to_bits());
    [a, b, c, d, e, 0, 1, 2, 3, 8, 17, 65, 1 << 32, 1 << 40, 1 << 58, u64::MAX, nan, infinity]
}

/// Files with parameters too many or too few, of another scheme, or without cells are refused; one whose
/// parameters lie is refused, or `harmless(tag, index, wild)` and survives `using`.
pub(crate) fn lying<F: Subject>(filter: &F, harmless: impl Fn(u16, u16, u64) -> bool, using: impl Fn(F)) {
    let params = filter.container().header.params;
    for (i, &(tag, index, value)) in params.iter().enumerate() {
        // Files of earlier releases do not record the domains of keys.
        let recorded = tag == crate::container::tag::KEY_DOMAINS;
        match reload_changed(filter, |header, _| _ = header.params.remove(i)) {
            Ok(opened) => assert!(recorded && opened.hasher().domains().number().is_none()),
            Err(error) => {
                assert!(!recorded && matches!(error, Error::Format(_)), "{} {tag} {index} missing", F::CLASS);
            }
        }
        for wild in wild(value).into_iter().filter(|wild| *wild != value) {
            match reload_changed(filter, |header, _| header.params[i].2 = wild) {
                Ok(mut opened) => {
                    assert!(recorded || harmless(tag, index, wild), "{} {tag} {index} {wild}", F::CLASS);
                    let keys = opened.keys(0..50);
                    opened.contains_hashes(&keys, &mut [0; 50]);
                    let _ = (opened.put_all(&keys, None), opened.info(), opened.put(keys[7]), opened.estimate_missed());
                    let _ = (opened.wipe(), opened.put(keys[7]));
                    using(opened);
                }
                Err(error) => assert!(matches!(error, Error::Format(_)), "{} {tag} {index} {wild}: {error}", F::CLASS),
            }
        }
    }
    let refused = |what, change: &dyn Fn(&mut Header, &mut Vec<Vec<u8>>)| {
        assert!(matches!(reload_changed(filter, change), Err(Error::Format(_))), "{} {what}", F::CLASS);
    };
    refused("another parameter", &|header, _| header.params.push((tag::COUNT, 3, 0)));
    // Where each stage has a scheme of its own, that of the whole says nothing.
    let whole = filter.container().header;
    if whole.scheme != 0 || whole.get(tag::SCHEME, 0).is_err() {
        refused("another scheme", &|header, _| header.scheme = 99);
    }
    refused("no cells", &|_, cells| drop(cells.pop()));
    refused("more cells", &|_, cells| cells[0].extend([0; 64]));
}

/// Capacities and rates that no structure has; nothing is made.
fn nonsense<F: Declared + Sizable>() {
    let refused = |capacity, fpr, sized: bool| {
        let instance = F::for_capacity(capacity, fpr, &[], KeyHasher::seeded(0)).map(drop);
        // A chain has bytes for no keys, too.
        let sized_for = Some(F::nbytes_for(capacity, fpr, &[]).map(drop)).filter(|_| capacity > 0);
        for result in [instance].into_iter().chain(sized_for) {
            let memory = sized && matches!(result, Err(Error::Memory(_)));
            assert!(memory || matches!(result, Err(Error::Parameter(_))), "{} {capacity} {fpr} {result:?}", F::CLASS);
        }
    };
    refused(0, 0.01, false);
    for capacity in [1 << 60, u64::MAX] {
        refused(capacity, 0.01, true);
    }
    if F::PARAMETERS.iter().any(|p| p.name == "fpr") {
        for fpr in [0.0, 1.0, 1.5, -0.5, f64::NAN, f64::INFINITY, 1e-300] {
            refused(100, fpr, false);
        }
    }
}

/// Runs `check` on every choice among names that `F` has, in several sizes and seeds.
fn each<F: Subject + Sizable>(check: &dyn Fn(&dyn Fn() -> F, u64)) {
    for options in choices(F::PARAMETERS) {
        for (capacity, fpr, seed) in [(1, 0.1, 0), (44, 0.01, 7), (900, 2e-3, u64::MAX)] {
            let make = || F::for_capacity(capacity, fpr, &options, KeyHasher::seeded(seed));
            match make() {
                Ok(_) => check(&|| make().unwrap(), capacity),
                Err(error) => assert!(!options.is_empty(), "{}: {error}", F::CLASS),
            }
        }
    }
}

/// Numbers as the keys of a structure that is built, each `times` times, with 8 bits beside them.
fn record_set<const W: usize>(
    hasher: &KeyHasher,
    numbers: impl Iterator<Item = u64>,
    times: impl Fn(u64) -> u64,
    memory: Option<u64>,
) -> RecordSet<W> {
    let mut records = Records::new(memory);
    for i in numbers {
        let hash = hasher.hash_signed(i as i64);
        let record = std::array::from_fn(|word| if word == 0 { hash } else { hash % 256 });
        (0..times(i)).for_each(|_| records.push(record).unwrap());
    }
    records.try_into().unwrap()
}

/// A structure that is built finds its keys, one by one and in batches, and few others; order, threads and memory leave
/// no trace; the file comes back as the same structure, also mapped.
pub(crate) fn building<const W: usize, F>(number: u64, fpr: f64)
where
    F: Declared + Loadable + Built<Keys = RecordSet<W>>,
{
    for hasher in [KeyHasher::seeded(number), KeyHasher::keyed(7, &[9; 16])] {
        let of = |keys: &RecordSet<W>, threads| F::of_keys(keys, fpr, hasher, &Job::new(threads)).unwrap();
        let instance = of(&record_set(&hasher, 0..number, |i| 1 + i % 2, None), 1);
        let once: fn(u64) -> u64 = |_| 1;
        for (times, memory, threads) in
            [(once, None, 2), (|i| 1 + u64::from(i == 700), Some(u64::MAX), 2), (|i| 1 + i % 3, Some(1 << 32), 3)]
        {
            let again = of(&record_set(&hasher, (0..number).rev(), times, memory), threads);
            assert!(again.same_as(&instance) && bytes(&again) == bytes(&instance), "{} {number}", F::CLASS);
        }
        assert_eq!((instance.fpr() <= fpr, instance.fpr() == 0.0), (true, number == 0));
        // A key that was found already is not new.
        let (met, expected) = (number - instance.num_added(), number as f64 * fpr / 2.0);
        assert!(met as f64 <= expected + 4.0 * expected.sqrt(), "{} {number} {met}", F::CLASS);
        let hashes: Vec<u64> = (0..3 * number + 1000).map(|i| hasher.hash_signed(i as i64)).collect();
        let mut found = vec![9; hashes.len()];
        instance.contains_hashes(&hashes, &mut found);
        for (&hash, &found) in hashes.iter().zip(&found) {
            assert_eq!([i32::from(found); 2], [i32::from(instance.contains_hash(hash)), instance.look(hash)]);
        }
        let (members, others) = found.split_at(number as usize);
        assert!(members.iter().all(|&found| found == 1), "{} {number}", F::CLASS);
        let (wrong, trials) = (others.iter().map(|&found| f64::from(found)).sum::<f64>(), others.len() as f64);
        assert!(wrong <= trials * fpr + 4.0 * (trials * fpr).sqrt() + 2.0, "{} {number} {wrong}", F::CLASS);
        let other = of(&record_set(&hasher, 1..number + 2, once, None), 1);
        assert!(!other.same_as(&instance), "{} {number}", F::CLASS);
        for back in [reload(&instance), map_filter(&instance), instance.try_clone().unwrap()] {
            assert!(back.same_as(&instance) && bytes(&back) == bytes(&instance));
            assert!(hashes.iter().zip(&found).all(|(&hash, &found)| back.contains_hash(hash) == (found == 1)));
        }
        let results = F::nbytes_for(number, fpr, &[]).unwrap();
        let slack = if number < 1000 { 4096 } else { results / 50 };
        assert!(instance.nbytes().abs_diff(results) <= slack, "{} {number} {results} {}", F::CLASS, instance.nbytes());
    }
}

/// Files of structures that were built are refused, or answer, when a parameter lies.
fn lying_built<const W: usize, F>(number: u64)
where
    F: Declared + Loadable + Built<Keys = RecordSet<W>>,
{
    let hasher = KeyHasher::seeded(3);
    let instance = F::of_keys(&record_set(&hasher, 0..number, |_| 1, None), 0.01, hasher, &Job::new(1)).unwrap();
    for (i, &(tag, index, value)) in instance.container().header.params.iter().enumerate() {
        // Files of earlier releases do not record the domains of keys.
        let recorded = tag == crate::container::tag::KEY_DOMAINS;
        match reload_changed(&instance, |header, _| _ = header.params.remove(i)) {
            Ok(opened) => assert!(recorded && opened.hasher().domains().number().is_none()),
            Err(error) => {
                assert!(!recorded && matches!(error, Error::Format(_)), "{} {tag} {index} missing", F::CLASS);
            }
        }
        for wild in wild(value).into_iter().filter(|wild| *wild != value) {
            match reload_changed(&instance, |header, _| header.params[i].2 = wild) {
                Ok(opened) => {
                    let hashes: Vec<u64> = (0..50).map(|i| hasher.hash_signed(i)).collect();
                    opened.contains_hashes(&hashes, &mut [0; 50]);
                    let _ = (opened.info(), opened.fpr(), opened.fill(), opened.contains_hash(u64::MAX));
                }
                Err(error) => assert!(matches!(error, Error::Format(_)), "{} {tag} {index} {wild}: {error}", F::CLASS),
            }
        }
    }
}

/// The tests of one capability.
macro_rules! capability {
    (remove $Class:ident $when:ident $entry:tt) => {
        #[test]
        fn batches_of_removals_leave_what_single_ones_leave() {
            each::<$Class>(&|make, capacity| removing(make, capacity));
            each::<$Class>(&|make, capacity| {
                let mut over = map_filter(&adding(make, capacity));
                assert!(matches!(over.remove_hash(over.key(0)), Err(Error::ReadOnly(_))));
            });
        }
    };
    (delete $Class:ident $when:ident $entry:tt) => {
        capability!(remove $Class $when $entry);
    };
    (count $Class:ident $when:ident $entry:tt) => {
        #[test]
        fn batches_of_counts_are_single_counts() {
            each::<$Class>(&|make, capacity| counting(make, capacity));
        }
    };
    (merge $Class:ident built $entry:tt) => {
        #[test]
        fn merging_with_another_hash_is_refused() {
            let of = |hasher: KeyHasher| {
                $Class::of_keys(&record_set(&hasher, 0..50, |_| 1, None), 0.01, hasher, &Job::new(1)).unwrap()
            };
            let mut instance = of(KeyHasher::seeded(1));
            let before = bytes(&instance);
            for hasher in [KeyHasher::seeded(2), KeyHasher::keyed(1, &[7; 16])] {
                assert!(matches!(instance.merge(&of(hasher)), Err(Error::Incompatible(m)) if m.contains("se")));
            }
            assert!(matches!(map_filter(&instance).merge(&instance), Err(Error::ReadOnly(_))));
            instance.merge(&of(KeyHasher::seeded(1))).unwrap();
            assert_eq!(bytes(&instance), before);
        }
    };
    (merge $Class:ident $when:ident $entry:tt) => {
        #[test]
        fn a_merged_filter_finds_the_keys_of_both() {
            each::<$Class>(&|make, capacity| merging(make, capacity));
        }
    };
    ($other:ident $Class:ident $when:ident $entry:tt) => {};
}

/// The tests of every row.
macro_rules! rows {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: $when:ident $entry:tt, can: [$($can:ident)*], $($rest:tt)*
    })*) => {
        $(mod $module {
            #[allow(unused_imports)] // of what it can do
            use super::*;
            use crate::$family::$Class;

            matrix!($when $entry $Class);
            $(capability!($can $Class $when $entry);)*
        })*
    };
}

/// The tests of a row, by how keys come.
macro_rules! matrix {
    (built [key] $Class:ident) => {
        matrix!(@built 1 $Class);
    };
    (built [key value] $Class:ident) => {
        matrix!(@built 2 $Class);
    };
    (@built $words:literal $Class:ident) => {
        #[test]
        fn it_is_the_set_of_its_keys_whatever_their_order() {
            for (number, fpr) in [(0, 0.01), (1, 0.3), (2, 1e-3), (3, 0.01), (10, 1e-4), (300, 0.01), (20_000, 2e-3)] {
                building::<$words, $Class>(number, fpr);
            }
        }

        #[test]
        fn forged_files_are_refused_or_harmless() {
            [0, 1, 50].into_iter().for_each(lying_built::<$words, $Class>);
        }

        #[test]
        fn nonsense_is_refused() {
            let (hasher, job) = (KeyHasher::seeded(0), Job::new(1));
            for fpr in [0.0, 1.0, 1.5, -0.5, f64::NAN, f64::INFINITY, 1e-300] {
                let none = record_set::<$words>(&hasher, 0..0, |_| 1, None);
                assert!(matches!($Class::of_keys(&none, fpr, hasher, &job), Err(Error::Parameter(_))), "{fpr}");
                assert!(matches!($Class::nbytes_for(100, fpr, &[]), Err(Error::Parameter(_))), "{fpr}");
            }
        }
    };
    // One of a closed world has tests of its own.
    (built [included excluded] $Class:ident) => {
        #[allow(unused_imports)]
        use $Class as _;
    };
    (open $entry:tt $Class:ident) => {
        #[test]
        fn batches_files_and_copies_are_the_filter_of_single_adds() {
            each::<$Class>(&|make, capacity| drop(adding(make, capacity)));
        }

        #[test]
        fn a_read_only_mapping_refuses_changes() {
            each::<$Class>(&|make, capacity| only_reading(make, capacity));
        }

        #[test]
        fn forged_files_are_refused_or_harmless() {
            each::<$Class>(&|make, capacity| {
                if capacity < 100 {
                    lying(&adding(make, capacity), |_, _, _| true, drop);
                }
            });
        }

        #[test]
        fn nonsense_is_refused() {
            nonsense::<$Class>();
        }
    };
}
crate::variants!(rows! {});
