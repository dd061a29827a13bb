//! The exact rate of k throws over m cells of which N throws before have occupied X: E[(X/m)^k].
//!
//! With M(z) the same mean where the number of throws is Poisson(z), so that cells are independent of each other,
//!
//! ```text
//! M(z) = sum over d of P(k throws meet d cells) (1 - e^(-z/m))^d
//! rate = N! [z^N] e^z M(z) = mean of e^z M(z) N! / z^N over the circle |z| = r
//! ```
//!
//! (Cauchy). Through the saddle point, r (1 + M'(r) / M(r)) = N, nothing cancels, and the mean over points at equal
//! distances converges geometrically: 40 to 300 of them give 12 digits, for any N and m. Alternating sums over Stirling
//! numbers lose 15 digits at half fill and k = 50; the recurrence over X takes N steps.

use super::counters::distinct;
use std::f64::consts::PI;

/// From this number on, only the part of the circle that matters is walked.
const MANY: f64 = 400.0;
/// Standard deviations of a normal density that leave out 1e-22 of it.
const DEVIATIONS: f64 = 10.0;

/// A complex number.
#[derive(Clone, Copy)]
struct Complex(f64, f64);

impl Complex {
    fn times(self, other: Self) -> Self {
        Complex(self.0 * other.0 - self.1 * other.1, self.0 * other.1 + self.1 * other.0)
    }
}

/// M, by the chances of its powers of 1 - e^(-z/m).
struct Poissonized {
    cells: f64,
    chances: Vec<f64>,
}

impl Poissonized {
    /// M(r) and r M'(r) / M(r).
    fn at(&self, r: f64) -> (f64, f64) {
        let (free, taken) = ((-r / self.cells).exp(), -(-r / self.cells).exp_m1());
        let (mut sum, mut slope) = (0.0, 0.0);
        for &chance in self.chances.iter().rev() {
            slope = slope * taken + sum;
            sum = sum * taken + chance;
        }
        (sum, r * slope * free / self.cells / sum)
    }

    /// M(r e^(i t)).
    fn on_circle(&self, r: f64, t: f64) -> Complex {
        let (re, im) = (r * t.cos() / self.cells, r * t.sin() / self.cells);
        let (free, half) = ((-re).exp(), (im / 2.0).sin());
        let taken = Complex(-(-re).exp_m1() + 2.0 * free * half * half, free * im.sin());
        self.chances.iter().rev().fold(Complex(0.0, 0.0), |sum, &chance| {
            let Complex(re, im) = sum.times(taken);
            Complex(re + chance, im)
        })
    }

    /// r of the saddle point, near enough.
    fn saddle(&self, throws: f64) -> f64 {
        // r M'(r) / M(r) lies between 0 and k.
        let (mut low, mut high) = ((throws - self.chances.len() as f64).max(0.0), throws);
        for _ in 0..40 {
            let middle = low + (high - low) / 2.0;
            *(if middle + self.at(middle).1 < throws { &mut low } else { &mut high }) = middle;
        }
        high
    }

    /// The mean over the circle for a whole number of throws, 2 or more.
    fn coefficient(&self, throws: f64) -> f64 {
        let r = self.saddle(throws);
        let top = self.at(r).0;
        if top <= 0.0 {
            return 0.0;
        }
        let points = (12.0 * throws.sqrt() + 64.0).ceil();
        let last = if throws < MANY { PI } else { DEVIATIONS / r.sqrt() };
        let mut sum = 1.0;
        let mut j = 1.0;
        while 2.0 * PI * j / points <= last * (1.0 + 1e-9) {
            let t = 2.0 * PI * j / points;
            let size = (-2.0 * r * (t / 2.0).sin().powi(2)).exp();
            let turn = (r - throws) * t + r * below_sine(t);
            let Complex(re, im) = self.on_circle(r, t);
            // Both halves of the circle, which are conjugate and meet at pi.
            let halves = if 2.0 * j >= points { 1.0 } else { 2.0 };
            sum += halves * size * (re * turn.cos() - im * turn.sin()) / top;
            j += 1.0;
        }
        (log_weight(throws, r) + top.ln()).exp() * sum / points
    }
}

/// sin t - t, without cancellation.
fn below_sine(t: f64) -> f64 {
    if t > 0.1 {
        return t.sin() - t;
    }
    let square = t * t;
    -t * square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0 * (1.0 - square / 110.0))))
}

/// ln (N! e^r / r^N): the large terms of Stirling's series cancel, so only the others are summed.
fn log_weight(n: f64, r: f64) -> f64 {
    let apart = (r - n) / n;
    let near = if apart.abs() < 1e-3 {
        apart * apart * (0.5 - apart * (1.0 / 3.0 - apart * (0.25 - apart * (0.2 - apart / 6.0))))
    } else {
        apart - apart.ln_1p()
    };
    n * near + (2.0 * PI * n).ln() / 2.0 + beyond_stirling(n)
}

/// ln N! less ln sqrt(2 pi N) (N/e)^N, for a whole N of 1 or more.
fn beyond_stirling(n: f64) -> f64 {
    if n < 16.0 {
        let factorial = (2..=n as u32).fold(1.0, |product, i| product * f64::from(i));
        return f64::ln(factorial) - ((2.0 * PI * n).ln() / 2.0 + n * (n.ln() - 1.0));
    }
    let square = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square) / square)
        / n
}

/// E[(X/m)^k] after `throws` throws over `cells`, 2 or more; interpolated as a power between two integers.
pub fn occupied(throws: f64, cells: f64, hashes: u32) -> f64 {
    let chances = distinct(cells, hashes);
    let law = Poissonized { cells, chances };
    let whole = |throws: f64| match throws {
        0.0 => 0.0,
        1.0 => cells.powi(-(hashes as i32)),
        _ => law.coefficient(throws),
    };
    let (low, part) = (throws.floor(), throws.fract());
    if part == 0.0 {
        return whole(low).min(1.0);
    }
    let (below, above) = (whole(low), whole(low + 1.0));
    let rate = if below > 0.0 { below * (above / below).powf(part) } else { part * above };
    rate.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the recurrence over X.
    fn plainly(throws: u32, cells: usize, hashes: u32) -> f64 {
        let mut law = vec![0.0; cells + 1];
        law[0] = 1.0;
        for _ in 0..throws {
            for x in (0..=cells).rev() {
                let before = if x > 0 { law[x - 1] * (cells - x + 1) as f64 } else { 0.0 };
                law[x] = (law[x] * x as f64 + before) / cells as f64;
            }
        }
        law.iter().enumerate().map(|(x, p)| p * (x as f64 / cells as f64).powi(hashes as i32)).sum()
    }

    #[test]
    fn it_is_the_recurrence_over_occupied_cells() {
        for cells in [2, 3, 18, 100, 700] {
            for hashes in [1, 2, 7, 19, 50] {
                for throws in [1, 2, 3, 7, 50, 399, 400, 1300] {
                    let (result, exact) =
                        (occupied(throws.into(), cells as f64, hashes), plainly(throws, cells, hashes));
                    assert!((result / exact - 1.0).abs() < 1e-10, "{throws} {cells} {hashes}: {result:e} {exact:e}");
                }
            }
        }
    }

    #[test]
    fn it_grows_between_whole_numbers_too() {
        for start in [0.0, 1.0, 6.0, 7.0, 4000.0, 1e13] {
            let rates = [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| occupied(start + part, 1000.0, 7));
            assert!(rates.is_sorted() && rates[4] <= 1.0, "{rates:?}");
        }
    }
}
