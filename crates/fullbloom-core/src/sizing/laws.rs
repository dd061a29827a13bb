//! The laws that `fullbloom.theory` hands on, by name.

use super::{
    Law, any_among, any_of, blocked, cascade, chain, classic, each_of, fingerprints, golomb, invertible, peeled,
    ribbon, signatures, stable, zone,
};

/// The law with this name at these numbers; `None` if no law takes that many.
pub fn law(name: &str, numbers: &[f64]) -> Option<f64> {
    Some(match (name, numbers) {
        ("any_of", &[p, n]) => any_of(p, n),
        ("each_of", &[any, n]) => each_of(any, n),
        ("any_among", chances) => any_among(chances.iter().copied()),
        ("goel_gupta", &[items, m, k]) => classic::goel_gupta(items, m, k),
        ("quotient", &[items, bits]) => fingerprints::quotient(items, to_count(bits)),
        ("cuckoo", &[compared, bits]) => fingerprints::cuckoo(compared, to_count(bits)),
        ("cuckoo_table", &[items, buckets, bits]) => fingerprints::cuckoo_table(items, buckets, to_count(bits)),
        ("layers", &[items, lines, per_column, layers]) => {
            blocked::layers(lines as u64, to_count(per_column), to_count(layers)).fpr(items)
        }
        ("passed_on", &[load, bin_size]) => fingerprints::passed_on(load, to_count(bin_size)),
        ("prefix", &[load, bits, asking, spare]) => fingerprints::prefix(load, to_count(bits), asking, spare),
        ("golomb", &[fpr, rice_bits]) => golomb::bits_per_key(fpr, to_count(rice_bits)),
        ("rice_bits", &[fpr]) => f64::from(golomb::rice_bits(fpr)),
        ("invertible", &[items, each, k]) => invertible::rate(items, each, to_count(k)),
        ("twins", &[items, each, k]) => invertible::twins(items, each, k),
        ("decodable", &[items]) => invertible::decodable(items as u64) as f64,
        ("fuse_cells", &[keys, arity]) => peeled::fuse_cells(keys as u64, to_count(arity)) as f64,
        ("fuse_segment_bits", &[keys, arity]) => f64::from(peeled::segments(keys as u64, to_count(arity)).0),
        ("own_cell", &[keys, cells, arity]) => peeled::own_cell(keys, cells, to_count(arity)),
        ("xor_cells", &[keys]) => 3.0 * peeled::third(keys as u64) as f64,
        ("zone_hashes", &[universe, zone]) => zone::reaching(universe as u64, zone as u64).ok()?.len() as f64,
        ("zone_cells", &[universe, zone]) => zone::cells(&zone::reaching(universe as u64, zone as u64).ok()?) as f64,
        ("zone_counter_bits", &[zone]) => f64::from(zone::counter_bits(zone as u64)),
        ("cascade", &[included, excluded]) => cascade::bits(included, excluded),
        ("missed", &[lost, k]) => classic::missed_rate(lost, k),
        ("stage_rate", &[fpr, tightening, index]) => chain::stage_rate(fpr, tightening, to_count(index)),
        ("stable_zeros", &[m, k, p, max]) => stable::zeros([m, k, p, max]),
        ("stable_fpr", &[m, k, p, max]) => stable::fpr([m, k, p, max]),
        ("stable_recall", &[age, m, k, p, max]) => stable::recall(age, [m, k, p, max]),
        ("false_drop", &[num_bits, bits, terms, probes]) => signatures::false_drop(num_bits, bits, terms, probes),
        ("query_false_drop", &[num_bits, bits, terms, query]) => {
            signatures::query_false_drop(num_bits, bits, terms, query)
        }
        ("signature_bits", &[terms, fpr, fill]) => {
            signatures::widths(terms as u64, fpr, fill, 0).ok()?.first()?.num_bits as f64
        }
        ("signature_bits_per_term", &[fpr, fill]) => signatures::bits_per_term(fpr, fill) as f64,
        ("ribbon_bits", &[fpr]) => ribbon::bits_per_key(fpr),
        ("ribbon_failure", &[keys, starts]) => ribbon::failure(keys, starts),
        _ => return None,
    })
}

/// A number of bits, slots or stages; no law distinguishes those beyond 2^20.
fn to_count(number: f64) -> u32 {
    number.min(1048576.0) as u32
}
