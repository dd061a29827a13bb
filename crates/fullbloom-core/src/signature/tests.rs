//! Every true match is a candidate, in every shape; files restore indexes.

use super::file::Conditions;
use super::*;
use crate::container::Verify;
use crate::hash::splitmix::SplitMix;
use crate::sizing::signatures::Width;

const ALL: Conditions<'_> = Conditions { verify: Verify::Full, secret: None, max_bytes: u64::MAX };

fn file(index: &SignatureIndex) -> Result<Vec<u8>> {
    index.with_container(|container| {
        let mut bytes = Vec::new();
        container.write_with(&container.head()?, &mut bytes).map_err(|error| Error::Io(error, "test".into()))?;
        Ok(bytes)
    })
}

fn candidates(index: &SignatureIndex, query: &Query) -> Vec<u64> {
    let mut found = Vec::new();
    index.each_candidate(query, |row| found.push(row));
    found
}

fn width(num_bits: u64, bits_per_term: u64) -> Width {
    Width { num_bits, bits_per_term }
}

/// Indexes of several shapes, and the documents in them.
fn examples(random: &mut SplitMix) -> Result<Vec<(SignatureIndex, Vec<Vec<u64>>)>> {
    let none = width(0, 0);
    let shapes = [
        vec![width(40, 4)],
        vec![width(64, 2), width(32, 1)],
        vec![width(48, 1), none, none, width(128, 3)],
        vec![width(16, 1), none, none, none, none, none, width(512, 2)],
    ];
    let mut all = Vec::new();
    for (i, ranks) in shapes.into_iter().enumerate() {
        let listed =
            vec![(1, Treatment::Private(0)), (2, Treatment::Private(1)), (3, Treatment::Shared([1, 0, 0, 0, 0, 0, 0]))];
        let shape = Shape::new(ranks, Vec::new(), 2, 700)?;
        let mut index = SignatureIndex::new(shape, listed, &KeyHasher::seeded(random.next()))?;
        let mut documents = Vec::new();
        for _ in 0..random.next() % 3000 + 400 * i as u64 {
            let terms: Vec<u64> = (0..random.next() % 8).map(|_| random.next() % 60).collect();
            assert_eq!(index.add_document(&terms)?, documents.len() as u64);
            documents.push(terms);
        }
        all.push((index, documents));
    }
    Ok(all)
}

#[test]
fn every_document_with_the_terms_is_a_candidate_and_others_by_their_bits_alone() -> Result<()> {
    let mut random = SplitMix(0x5151);
    for (index, documents) in examples(&mut random)? {
        for _ in 0..60 {
            let terms: Vec<u64> = (0..random.next() % 4).map(|_| random.next() % 60).collect();
            let query = index.query(&terms);
            let found = candidates(&index, &query);
            assert!(found.is_sorted() && found.iter().all(|row| *row < index.len()));
            let of = |document: &[u64]| index.query(document);
            let holds = |held: &Query, all: &Query| {
                all.rows.iter().zip(&held.rows).all(|(all, held)| all.iter().all(|row| held.contains(row)))
            };
            for (row, document) in documents.iter().enumerate() {
                if terms.iter().all(|term| document.contains(term)) {
                    assert!(found.binary_search(&(row as u64)).is_ok(), "row {row} of {terms:?}");
                }
            }
            // Rank 0 alone decides by a document's own bits; those of higher ranks are shared by 2^rank documents.
            if index.shape().ranks().len() == 1 {
                let naive = (0..documents.len() as u64).filter(|row| holds(&of(&documents[*row as usize]), &query));
                assert_eq!(found, naive.collect::<Vec<_>>());
            }
        }
        assert_eq!(candidates(&index, &index.query(&[])).len() as u64, index.len());
    }
    Ok(())
}

#[test]
fn files_restore_indexes_and_no_prefix_or_flipped_bit_is_accepted() -> Result<()> {
    let mut random = SplitMix(0x77);
    for (index, _) in examples(&mut random)? {
        let bytes = file(&index)?;
        let mut read = SignatureIndex::from_file(&bytes, ALL)?;
        assert!(read.equals(&index) && file(&read)? == bytes);
        read.add_document(&[7, 8])?;
        assert!(!read.equals(&index));
        let small = Conditions { max_bytes: 8, ..ALL };
        assert!(matches!(SignatureIndex::from_file(&bytes, small), Err(Error::Memory(_))));
        for _ in 0..200 {
            let len = random.next() as usize % bytes.len();
            assert!(matches!(SignatureIndex::from_file(&bytes[..len], ALL), Err(Error::Format(_))));
            let mut wrong = bytes.clone();
            wrong[len] ^= 1 << (random.next() % 8);
            assert!(matches!(SignatureIndex::from_file(&wrong, ALL), Err(Error::Format(_) | Error::Parameter(_))));
        }
    }
    Ok(())
}

#[test]
fn values_count_in_their_own_column_only() -> Result<()> {
    let column = |name: &str, bits| shape::Column { name: name.into(), bits };
    let shape = Shape::new(vec![width(4096, 2)], vec![column("a", 4), column("b", 2)], 0, 1)?;
    let mut index = SignatureIndex::new(shape, Vec::new(), &KeyHasher::seeded(1))?;
    index.add_values(&[Some(5), Some(6)])?;
    index.add_values(&[Some(6), None])?;
    assert!(index.add_values(&[Some(6)]).is_err());
    let found = |values: &[(usize, u64)]| candidates(&index, &index.query_columns(values));
    assert_eq!((found(&[(0, 5)]), found(&[(1, 6)]), found(&[(0, 6)])), (vec![0], vec![0], vec![1]));
    assert_eq!((found(&[(1, 5)]), found(&[(0, 5), (1, 6)]), found(&[])), (vec![], vec![0], vec![0, 1]));
    assert_eq!(index.query_columns(&[(0, 5)]).positions().count(), 4);
    let bytes = file(&index)?;
    assert!(SignatureIndex::from_file(&bytes, ALL)?.equals(&index));
    Ok(())
}

#[test]
fn frequent_terms_have_fewer_rows_and_very_frequent_ones_a_row_of_their_own() -> Result<()> {
    let frequencies = [(1, 0.9), (2, 0.03), (3, 0.001), (4, 0.0)];
    let (shape, listed) = size(40, 1e-4, 0.1, 3, 1000, &frequencies, 10.0)?;
    let index = SignatureIndex::new(shape, listed, &KeyHasher::seeded(0))?;
    let rows: Vec<_> = (1..6).map(|term| index.query(&[term]).positions().count()).collect();
    assert_eq!(rows, [1, 3, 4, 4, 4]);
    assert_eq!(index.query(&[1]).rows[0], [index.shape().ranks()[0].num_bits]);
    Ok(())
}
