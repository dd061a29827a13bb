//! Results as bytes and as texts: a byte or a bit each, `true` and `false`, decimal numbers.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Packs eight results into a byte, the first in the lowest bit.
pub(super) fn pack_bits(answers: &[u8]) -> Vec<u8> {
    let byte = |eight: &[u8]| eight.iter().enumerate().fold(0, |byte, (at, answer)| byte | ((answer & 1) << at));
    answers.chunks(8).map(byte).collect()
}

/// Results of a byte each as `true` and `false`, separated by `separator`.
#[pyfunction]
pub(super) fn flags_text<'py>(py: Python<'py>, flags: &[u8], separator: &[u8]) -> Bound<'py, PyBytes> {
    let text = py.detach(|| {
        let mut out = Vec::with_capacity(flags.len() * (5 + separator.len()));
        for (at, &flag) in flags.iter().enumerate() {
            out.extend_from_slice(if at > 0 { separator } else { b"" });
            out.extend_from_slice(if flag == 1 { b"true" } else { b"false" });
        }
        out
    });
    PyBytes::new(py, &text)
}

/// Numbers of 8 bytes each in decimal, separated by `separator`; "null" where the byte of `nulls` is 1.
#[pyfunction]
pub(super) fn numbers_text<'py>(
    py: Python<'py>,
    numbers: &[u8],
    separator: &[u8],
    nulls: &[u8],
) -> Bound<'py, PyBytes> {
    let text = py.detach(|| {
        let mut out = Vec::with_capacity(numbers.len() / 4);
        for (at, number) in numbers.as_chunks::<8>().0.iter().enumerate() {
            out.extend_from_slice(if at > 0 { separator } else { b"" });
            match nulls.get(at) {
                Some(1) => out.extend_from_slice(b"null"),
                _ => out.extend_from_slice(u64::from_le_bytes(*number).to_string().as_bytes()),
            }
        }
        out
    });
    PyBytes::new(py, &text)
}
