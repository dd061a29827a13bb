//! [`Steps`]: when a generation of a window of time ends, exactly.

const ROUNDINGS: usize = 8;

/// Steps of `window / parts` seconds from `began` on, compared as real numbers: rounding would drop a key
/// whose age is the window to the last digit.
pub(super) struct Steps {
    pub(super) began: f64,
    pub(super) window: f64,
    pub(super) parts: u32,
}

impl Steps {
    /// True when `n` steps have passed at `now`: (now - began) parts >= n window.
    pub(super) fn has_passed(&self, n: u32, now: f64) -> bool {
        let (parts, n) = (f64::from(self.parts), f64::from(n));
        let (gone, lost) = sum(now, -self.began);
        let (left, right) = (gone * parts, n * self.window);
        if !(left - right).is_finite() {
            return left >= right;
        }
        let low = gone.mul_add(parts, -left) + lost * parts - n.mul_add(self.window, -right);
        (left - right) + low >= 0.0
    }

    /// The first time at which `n` steps have passed.
    pub(super) fn end(&self, n: u32) -> f64 {
        if n == 0 {
            return self.began;
        }
        let (n_steps, parts) = (f64::from(n), f64::from(self.parts));
        let product = n_steps * self.window;
        let step = product / parts;
        let rest = (step.mul_add(-parts, product) + n_steps.mul_add(self.window, -product)) / parts;
        let (rounded, lost) = sum(self.began, step);
        // Exact to a few roundings, even if `began` and the steps cancel out.
        let exact = rounded + (lost + rest);
        let mut end = if exact.is_finite() { exact } else { rounded };
        for _ in 0..ROUNDINGS {
            end = if self.has_passed(n, end.next_down()) { end.next_down() } else { end };
        }
        for _ in 0..ROUNDINGS {
            end = if self.has_passed(n, end) { end } else { end.next_up() };
        }
        end
    }
}

/// Knuth's sum: the two numbers returned are `a + b` without error.
fn sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

#[cfg(test)]
mod tests {
    use super::Steps;

    #[test]
    fn a_step_has_passed_at_its_end_and_not_before() {
        for (began, window, parts) in [
            (0.0, 60.0, 1),
            (1.7e9, 0.3, 2),
            (1.6e9 + 0.1, 1e-3, 3),
            (-5.5, 7.7, 15),
            (1e300, 1e290, 7),
            (0.1, 1e-300, 4),
        ] {
            let steps = Steps { began, window, parts };
            for n in 1..=parts + 1 {
                let end = steps.end(n);
                assert!(
                    steps.has_passed(n, end) && !steps.has_passed(n, end.next_down()),
                    "{began} {window} {parts} {n}"
                );
            }
        }
    }

    #[test]
    fn round_numbers_stay_round() {
        let steps = Steps { began: 100.0, window: 60.0, parts: 2 };
        assert_eq!([0, 1, 2, 3].map(|n| steps.end(n)), [100.0, 130.0, 160.0, 190.0]);
    }

    #[test]
    fn numbers_beyond_all_bounds_end() {
        let steps = Steps { began: -f64::MAX, window: f64::MAX, parts: 1 };
        assert!(steps.has_passed(1, f64::MAX) && !steps.end(2).is_nan());
    }
}
