//! Keys are whole, and counted only when new: what that does to an estimate of their number, see [`super::estimates`].

/// The variance to report for a number of units: half a unit in quadrature, at most three times the variance.
pub fn of_whole(variance: f64, unit: f64) -> f64 {
    if variance.is_finite() {
        variance.max(0.0) + (3.0 * variance.max(0.0)).min(unit * unit / 4.0)
    } else {
        f64::INFINITY
    }
}

/// Of `items` distinct keys, those that were new when they were added: all except those that a lookup, of rate `fpr` at
/// so many keys, found.
pub fn new_among(items: f64, fpr: impl Fn(f64) -> f64) -> f64 {
    if !items.is_finite() {
        return items;
    }
    items * (1.0 - mean_over(items, fpr))
}

/// The inverse of [`new_among`]: the distinct keys of which `new` were new when they were added. Infinite if the rate is
/// almost 1 at so many keys, so that hardly any further key would be new.
pub fn distinct_among(new: f64, fpr: impl Fn(f64) -> f64) -> f64 {
    let mut items = new;
    // Newton's method. The function is concave, so each step stays below the root.
    for _ in 0..64 {
        let slope = 1.0 - fpr(items);
        if slope < 1e-9 {
            return f64::INFINITY;
        }
        let step = (new - new_among(items, &fpr)) / slope;
        items += step;
        // The next step would be about the square of this one.
        if step.abs() <= 1e-5 * items {
            break;
        }
    }
    items
}

/// The mean of a function over 0 to `items` keys, by Simpson's rule over 32 parts.
pub fn mean_over(items: f64, of: impl Fn(f64) -> f64) -> f64 {
    let parts = (0..=32).map(|part| {
        let weight = if part % 32 == 0 { 1.0 } else { f64::from(2 + part % 2 * 2) };
        weight * of(items * f64::from(part) / 32.0)
    });
    parts.sum::<f64>() / 96.0
}
