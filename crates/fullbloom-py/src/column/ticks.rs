//! The units of dates, times and durations in columns.

use fullbloom_core::key::Domain;

/// Nanoseconds of a second.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// Days, or nanoseconds, of a domain, counted in a unit of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) domain: Domain,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// One is this many days or nanoseconds.
    Times(i64),
    /// This many are one day, rounded down.
    Share(i64),
}

impl Ticks {
    /// Ticks of `each` days or nanoseconds.
    pub(crate) fn new(domain: Domain, each: i64) -> Self {
        Ticks { domain, unit: Unit::Times(each) }
    }

    /// The ticks of an Arrow format string, and the bytes of one.
    pub(crate) fn of_arrow(format: &str) -> Option<(Self, usize)> {
        let each = |unit| match unit {
            b's' => Some(SECOND),
            b'm' => Some(1_000_000),
            b'u' => Some(1000),
            b'n' => Some(1),
            _ => None,
        };
        match *format.as_bytes() {
            [b't', b'd', b'D'] => Some((Ticks::new(Domain::Date, 1), 4)),
            [b't', b'd', b'm'] => Some((Ticks { domain: Domain::Date, unit: Unit::Share(86_400_000) }, 8)),
            [b't', b't', unit] => {
                Some((Ticks::new(Domain::Time, each(unit)?), if matches!(unit, b's' | b'm') { 4 } else { 8 }))
            }
            [b't', b'D', unit] => Some((Ticks::new(Domain::Duration, each(unit)?), 8)),
            [b't', b's', unit, b':', ref zone @ ..] => {
                let domain = if zone.is_empty() { Domain::LocalTimestamp } else { Domain::Timestamp };
                Some((Ticks::new(domain, each(unit)?), 8))
            }
            _ => None,
        }
    }

    /// The ticks of NumPy's `datetime64` (`kind` M) or `timedelta64` (m) in steps of `count` units; `None` for units of
    /// varying length or finer than a nanosecond.
    pub(crate) fn of_numpy(kind: char, unit: &str, count: i64) -> Option<Self> {
        let domain = match (kind, unit) {
            ('M', "W" | "D") => Domain::Date,
            ('M', _) => Domain::LocalTimestamp,
            _ => Domain::Duration,
        };
        let each = match (domain, unit) {
            (Domain::Date, "W") => 7,
            (Domain::Date, _) => 1,
            (_, "W") => 7 * 86_400 * SECOND,
            (_, "D") => 86_400 * SECOND,
            (_, "h") => 3600 * SECOND,
            (_, "m") => 60 * SECOND,
            (_, "s") => SECOND,
            (_, "ms") => 1_000_000,
            (_, "us") => 1000,
            (_, "ns") => 1,
            _ => return None,
        };
        Some(Ticks::new(domain, each.checked_mul(count)?))
    }

    /// How many days or nanoseconds `ticks` are.
    #[inline(always)]
    pub(crate) fn count(self, ticks: i64) -> i128 {
        match self.unit {
            Unit::Times(each) => i128::from(ticks) * i128::from(each),
            Unit::Share(whole) => ticks.div_euclid(whole).into(),
        }
    }

    /// Whether a tick is one day or nanosecond.
    pub(crate) fn is_one(self) -> bool {
        self.unit == Unit::Times(1)
    }
}
