//! Dates, times and durations of Python, pandas and NumPy as canonical bytes.

use fullbloom_core::key::Domain;
use fullbloom_core::key::number::NumberBytes;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::Sink;
use crate::column::ticks::{SECOND, Ticks};
use crate::errors::key_type;

/// `datetime.date(1970, 1, 1).toordinal()`.
const EPOCH: i64 = 719_163;

/// The classes of `datetime`.
struct Classes {
    date: Py<PyType>,
    time: Py<PyType>,
    datetime: Py<PyType>,
    timedelta: Py<PyType>,
}

impl Classes {
    fn get(py: Python<'_>) -> PyResult<&'static Self> {
        static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
        CLASSES.get_or_try_init(py, || {
            let module = py.import("datetime")?;
            let class = |name| PyResult::Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind());
            Ok(Classes {
                date: class("date")?,
                time: class("time")?,
                datetime: class("datetime")?,
                timedelta: class("timedelta")?,
            })
        })
    }
}

/// Passes the canonical bytes of `key` to `sink`; false if it is not a date, time or duration of Python or pandas.
pub(super) fn encode(key: &Bound<'_, PyAny>, sink: &mut impl Sink) -> PyResult<bool> {
    let py = key.py();
    let classes = Classes::get(py)?;
    let (domain, count) = if key.is_instance(classes.datetime.bind(py))? {
        let zone = key.getattr(intern!(py, "tzinfo"))?;
        let offset = if zone.is_none() { zone } else { key.call_method0(intern!(py, "utcoffset"))? };
        let domain = if offset.is_none() { Domain::LocalTimestamp } else { Domain::Timestamp };
        // Those of pandas have nanoseconds, and years beyond the calendar of Python.
        let exact = key.get_type().is(classes.datetime.bind(py));
        if !exact && key.hasattr(intern!(py, "to_datetime64"))? {
            let (ticks, value) = of_numpy(&key.call_method0(intern!(py, "to_datetime64"))?)?;
            (domain, ticks.count(value))
        } else {
            let local = days(key)? * 86_400 * i128::from(SECOND) + time_of_day(key)?;
            (domain, if offset.is_none() { local } else { local - duration(&offset)? })
        }
    } else if key.is_instance(classes.timedelta.bind(py))? {
        (Domain::Duration, duration(key)?)
    } else if key.is_instance(classes.date.bind(py))? {
        (Domain::Date, days(key)?)
    } else if key.is_instance(classes.time.bind(py))? {
        if !key.getattr(intern!(py, "tzinfo"))?.is_none() {
            let remedy = "pass key.replace(tzinfo=None), or a datetime with its date";
            return Err(key_type(py, format!("a time of day with a zone is not an instant, and not a key; {remedy}")));
        }
        (Domain::Time, time_of_day(key)?)
    } else {
        return Ok(false);
    };
    sink.take(py, domain, NumberBytes::of(count).as_slice())?;
    Ok(true)
}

/// [`encode`] for NumPy's `datetime64` and `timedelta64`.
pub(super) fn encode_numpy(key: &Bound<'_, PyAny>, sink: &mut impl Sink) -> PyResult<()> {
    let (ticks, value) = of_numpy(key)?;
    sink.take(key.py(), ticks.domain, NumberBytes::of(ticks.count(value)).as_slice())
}

fn number(key: &Bound<'_, PyAny>, name: &Bound<'_, pyo3::types::PyString>) -> PyResult<i128> {
    Ok(key.getattr(name)?.extract::<i64>()?.into())
}

/// Days since 1970-01-01.
fn days(key: &Bound<'_, PyAny>) -> PyResult<i128> {
    let ordinal: i64 = key.call_method0(intern!(key.py(), "toordinal"))?.extract()?;
    Ok(i128::from(ordinal - EPOCH))
}

/// Nanoseconds since midnight.
fn time_of_day(key: &Bound<'_, PyAny>) -> PyResult<i128> {
    let py = key.py();
    let minutes = number(key, intern!(py, "hour"))? * 60 + number(key, intern!(py, "minute"))?;
    let seconds = minutes * 60 + number(key, intern!(py, "second"))?;
    Ok(seconds * i128::from(SECOND) + number(key, intern!(py, "microsecond"))? * 1000)
}

/// Nanoseconds of a `timedelta`.
fn duration(key: &Bound<'_, PyAny>) -> PyResult<i128> {
    let py = key.py();
    if key.hasattr(intern!(py, "to_timedelta64"))? {
        let (ticks, value) = of_numpy(&key.call_method0(intern!(py, "to_timedelta64"))?)?;
        return Ok(ticks.count(value));
    }
    let seconds = number(key, intern!(py, "days"))? * 86_400 + number(key, intern!(py, "seconds"))?;
    Ok(seconds * i128::from(SECOND) + number(key, intern!(py, "microseconds"))? * 1000)
}

/// The unit of a NumPy scalar, and its number.
fn of_numpy(key: &Bound<'_, PyAny>) -> PyResult<(Ticks, i64)> {
    let py = key.py();
    let (ticks, key) = units(key)?;
    let value: i64 = key.call_method1(intern!(py, "view"), (intern!(py, "int64"),))?.extract()?;
    if value == i64::MIN {
        return Err(key_type(py, "NaT is not a key; drop it, or pass a column in which it is a null"));
    }
    Ok((ticks, value))
}

/// The unit of a scalar or an array of NumPy dates or durations, and the scalar or array, converted to days if it counts
/// months or years.
pub(super) fn units<'py>(keys: &Bound<'py, PyAny>) -> PyResult<(Ticks, Bound<'py, PyAny>)> {
    let py = keys.py();
    let dtype = keys.getattr("dtype")?;
    let kind: char = dtype.getattr("kind")?.extract()?;
    let (unit, count): (String, i64) = py.import("numpy")?.call_method1("datetime_data", (&dtype,))?.extract()?;
    if kind == 'M' && matches!(unit.as_str(), "Y" | "M") {
        let days = keys.call_method1("astype", ("datetime64[D]",))?;
        return Ok((Ticks::new(Domain::Date, 1), days));
    }
    let remedy = match unit.as_str() {
        "Y" | "M" => "its length varies; pass whole numbers of them as integers",
        "generic" => "it has no unit; give it one",
        _ => "its unit is finer than a nanosecond; pass astype(\"datetime64[ns]\") or astype(\"timedelta64[ns]\")",
    };
    match Ticks::of_numpy(kind, &unit, count) {
        Some(ticks) => Ok((ticks, keys.clone())),
        None => Err(key_type(py, format!("{} holds no keys: {remedy}", dtype.str()?))),
    }
}
