//! Which field of a header is not valid. The filters themselves answer in the words of `RedisBloom`, which name none.

use super::bloom::{LN2, LN2_SQUARED, bytes_for};
use super::cuckoo::is_expansion;
use super::fields::Fields;

const LAYER: [&str; 5] = ["bytes", "bits", "items", "error", "bits per entry"];

/// The first field of the header of a Bloom filter that cannot be.
pub(super) fn of_bloom(header: &[u8]) -> String {
    let mut fields = Fields(header);
    let mut read = || Some((fields.u64()?, fields.u32()?, fields.u32()?, fields.u32()?));
    let Some((items, count, options, _)) = read() else {
        return format!("its header has {} bytes, and 20 come before the first layer", header.len());
    };
    let wanted = 20 + 53 * u64::from(count);
    if count == 0 || wanted != header.len() as u64 {
        let len = header.len();
        return format!("its number of layers is {count}, whose header has {wanted} bytes, and its header has {len}");
    }
    if options & !8 != 5 {
        return format!("its options are {options}, not 5 or 13");
    }
    let mut sum = 0u64;
    for layer in 1..=count {
        let mut read = || {
            let whole = [fields.u64()?, fields.u64()?, fields.u64()?];
            let real = [fields.f64()?, fields.f64()?];
            Some((whole, real, fields.u32()?, fields.u64()?, fields.u8()?))
        };
        let Some(([bytes, bits, own], [error, per_entry], hashes, entries, rounded)) = read() else { break };
        let named = |at: usize, value: &dyn std::fmt::Display| format!("{} of layer {layer} is {value}", LAYER[at]);
        if bytes == 0 || bytes.checked_mul(8) != Some(bits) {
            return format!("{}, and {}", named(0, &bytes), named(1, &bits));
        }
        if !(error > 0.0 && error < 1.0) {
            return named(3, &error);
        }
        let exact = (error.ln() / LN2_SQUARED).abs();
        if !(per_entry.is_finite() && (per_entry / exact - 1.0).abs() < 1e-9) {
            return format!("{}, and its error asks for {exact}", named(4, &per_entry));
        }
        let wanted = (LN2 * per_entry).ceil();
        if f64::from(hashes) != wanted {
            return format!("the number of hashes of layer {layer} is {hashes}, not {wanted}");
        }
        if rounded != 0 {
            return format!("the rounding of layer {layer} is {rounded}, not 0");
        }
        let wanted = bytes_for(entries, per_entry);
        if wanted != Some(bytes) {
            let wanted = wanted.map_or("more than a layer has".into(), |wanted| format!("{wanted} bytes"));
            return format!("the entries of layer {layer} are {entries}, {wanted}, and its bytes are {bytes}");
        }
        sum = sum.saturating_add(own);
    }
    if sum != items {
        return format!("its number of items is {items}, and its layers have {sum}");
    }
    "its sizes are beyond those that a filter can have".into()
}

/// The first field of the header of a cuckoo filter that cannot be.
pub(super) fn of_cuckoo(header: &[u8]) -> String {
    let mut fields = Fields(header);
    let mut read = || {
        let wide = [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?];
        let narrow = [fields.u16()?, fields.u16()?, fields.u16()?];
        fields.0.is_empty().then_some((wide, narrow))
    };
    let Some(([items, buckets, _, tables], [bucket_size, iterations, expansion])) = read() else {
        return format!("its header has {} bytes, not 38", header.len());
    };
    if !buckets.is_power_of_two() {
        return format!("its number of buckets is {buckets}, not a power of two");
    }
    if !(1..=255).contains(&bucket_size) {
        return format!("its bucket size is {bucket_size}, not 1 to 255");
    }
    if iterations == 0 {
        return "its number of iterations is 0".into();
    }
    if !is_expansion(expansion) {
        return format!("its expansion is {expansion}, neither 0 nor a power of two");
    }
    if tables == 0 || expansion == 0 && tables > 1 {
        return format!("its number of tables is {tables}, with expansion {expansion}");
    }
    format!(
        "its sizes, {tables} tables from {buckets} buckets on, or its {items} items are beyond those that it can have"
    )
}
