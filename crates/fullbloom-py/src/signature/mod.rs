//! Signatures of rows as a class: terms, tables and row numbers.

use std::path::PathBuf;

use fullbloom_core::key::KeyHasher;
use fullbloom_core::signature::query::Query;
use fullbloom_core::signature::shape::Shape;
use fullbloom_core::signature::{SignatureIndex as Index, size};
use fullbloom_core::sizing::signatures::Width;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{OrRaise, key_type, parameter, parameter_type};
use crate::locking::biased_lock::BiasedLock;
use crate::parameters;

mod arguments;
mod rows;
mod storage;
mod terms;

use arguments::{by_rank, read_capacity, read_columns};
use rows::Container;

/// Rows that are appended while the index is locked.
const LOCKED: usize = 1 << 11;

/// An index of signatures (superimposed codes): which rows may have all these terms?
///
/// Each term sets bits_per_term distinct bits in the signature of its row, of num_bits bits. A row with all terms of a
/// query is always among its candidates; another row is with the probability of a false drop, which theory.signature_fpr
/// computes. Bits are stored in slices, so that a query reads a few of them and not the rows.
///
/// With columns, rows of tables are indexed as PostgreSQL's bloom index does, and a query names any of the columns: a
/// sequence of names, or a dict of the bits of a value in each. Without, rows are documents, sets of terms. num_bits and
/// bits_per_term may be sequences, a number a rank: a bit of rank r is shared by 2**r documents, as in BitFunnel.
/// capacity: expected rows, if fewer than 32,768. seed, secret: as for filters. Raises ParameterError.
///
/// >>> from fullbloom import SignatureIndex
/// >>> index = SignatureIndex(64, 4)
/// >>> index.add(["steel", "bridge"]), index.add(["steel", "rail"])
/// (0, 1)
/// >>> index.candidates(["steel"]), index.candidates(["rail", "steel"])
/// ([0, 1], [1])
#[pyclass(frozen, module = "fullbloom")]
pub(crate) struct SignatureIndex {
    lock: BiasedLock<Index>,
    hasher: KeyHasher,
    names: Vec<String>,
    path: Option<PathBuf>,
}

/// The refusal of documents where rows have columns.
fn needs_table(py: Python<'_>) -> PyErr {
    key_type(py, "the index has columns; add rows with add_table(), and query with a dict of columns and values")
}

impl SignatureIndex {
    fn wrap(index: Index) -> Self {
        let names = index.shape().columns().iter().map(|column| column.name.clone()).collect();
        SignatureIndex { hasher: *index.hasher(), names, lock: BiasedLock::new(index, Index::nbytes), path: None }
    }

    fn look<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&Index) -> T + Send) -> T {
        self.lock.look(py, read)
    }

    /// The rows of the matrix that `query` reads.
    fn read_query(&self, query: &Bound<'_, PyAny>) -> PyResult<Query> {
        let py = query.py();
        if self.names.is_empty() {
            let terms = terms::hash_terms(&self.hasher, query)?;
            return Ok(self.look(py, |index| index.query(&terms)));
        }
        let values = terms::hash_values(&self.hasher, query, &self.names)?;
        Ok(self.look(py, |index| index.query_columns(&values)))
    }

    fn find(&self, query: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let wanted = self.read_query(query)?;
        let found = self.look(query.py(), |index| {
            let mut found = Vec::new();
            index.each_candidate(&wanted, |row| found.push(row));
            found
        });
        Ok(found)
    }
}

#[pymethods]
impl SignatureIndex {
    #[new]
    #[pyo3(signature = (
        num_bits: "Sequence[int] | int", bits_per_term: "Sequence[int] | int", *,
        columns: "Sequence[str] | Mapping[str, int] | None" = None, capacity: "int | None" = None, seed: "int" = 0,
        secret: "bytes | None" = None
    ))]
    fn new(
        num_bits: &Bound<'_, PyAny>,
        bits_per_term: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyAny>>,
        capacity: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = num_bits.py();
        let (bits, each) = (by_rank("num_bits", num_bits)?, by_rank("bits_per_term", bits_per_term)?);
        if bits.len() != each.len() {
            let (bits, each) = (bits.len(), each.len());
            return Err(parameter(
                py,
                format!("num_bits and bits_per_term must have as many ranks, got {bits} and {each}"),
            ));
        }
        let columns = read_columns(columns, each.first().copied().unwrap_or(1))?;
        let ranks = bits.into_iter().zip(each).map(|(num_bits, bits_per_term)| Width { num_bits, bits_per_term });
        let hasher = parameters::create_hasher(seed, secret)?;
        let shape = Shape::new(ranks.collect(), columns, 0, read_capacity(capacity)?).or_raise(py)?;
        Index::new(shape, Vec::new(), &hasher).or_raise(py).map(Self::wrap)
    }

    /// An index of documents of up to `terms` distinct terms, at most fpr false drops for a query of one absent term.
    ///
    /// fill: the share of set bits at that many terms; 0.5 takes least memory, less reads fewer slices. rank: where all
    /// bits of a term but two go, which lets queries skip 2**rank lines at a time. frequencies: the share of documents
    /// that have a term, for the most frequent ones: they get fewer bits, one false drop in snr true matches, or a slice
    /// of their own. Documents with more terms than `terms` have more false drops. Raises ParameterError, KeyTypeError.
    ///
    /// >>> from fullbloom import SignatureIndex
    /// >>> index = SignatureIndex.for_terms(100, 0.001)
    /// >>> index.num_bits, index.bits_per_term
    /// ([1448], [10])
    #[staticmethod]
    #[pyo3(signature = (
        terms: "int", fpr: "float" = None, *, fill: "float" = None, rank: "int" = None,
        frequencies: "Mapping[Any, float] | None" = None, snr: "float" = None, capacity: "int | None" = None,
        seed: "int" = None, secret: "bytes | None" = None
    ))]
    #[pyo3(
        text_signature = "(terms, fpr=0.01, *, fill=0.5, rank=0, frequencies=None, snr=10.0, capacity=None, seed=0, secret=None)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn for_terms(
        terms: &Bound<'_, PyAny>,
        fpr: Option<&Bound<'_, PyAny>>,
        fill: Option<&Bound<'_, PyAny>>,
        rank: Option<&Bound<'_, PyAny>>,
        frequencies: Option<&Bound<'_, PyAny>>,
        snr: Option<&Bound<'_, PyAny>>,
        capacity: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = terms.py();
        let real =
            |name, value: Option<&Bound<'_, PyAny>>, or: f64| value.map_or(Ok(or), |v| parameters::real(name, v));
        let terms = parameters::parse_whole("terms", terms, 1)?;
        let (fpr, fill, snr) = (real("fpr", fpr, 0.01)?, real("fill", fill, 0.5)?, real("snr", snr, 10.0)?);
        let rank = rank.map_or(Ok(0), |rank| parameters::parse_whole("rank", rank, 0))?.min(u32::MAX.into()) as u32;
        let hasher = parameters::create_hasher(seed.map_or(Ok(0), parameters::seed)?, secret)?;
        let mut listed = Vec::new();
        if let Some(frequencies) = frequencies.filter(|value| !value.is_none()) {
            let Ok(frequencies) = frequencies.cast::<PyDict>() else {
                return Err(parameter_type(py, "frequencies must be a dict of terms and their shares of documents"));
            };
            for (term, share) in frequencies {
                let hash = crate::keys::scalar::hash_key(&hasher, &term)?;
                listed.push((hash, parameters::real("frequencies", &share)?));
            }
        }
        let capacity = read_capacity(capacity)?;
        let (shape, listed) = py.detach(|| size(terms, fpr, fill, rank, capacity, &listed, snr)).or_raise(py)?;
        Index::new(shape, listed, &hasher).or_raise(py).map(Self::wrap)
    }

    /// Appends a document with these terms, in any container that batches take; returns its row number.
    ///
    /// Raises KeyTypeError, ReadOnlyFilter for a mapped index (copy() it), FilterFull.
    #[pyo3(signature = (terms: "Keys") -> "int")]
    fn add(&self, terms: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = terms.py();
        if !self.names.is_empty() {
            return Err(needs_table(py));
        }
        let terms = terms::hash_terms(&self.hasher, terms)?;
        self.lock.change(py, |index| index.add_document(&terms)).or_raise(py)
    }

    /// Appends documents: an iterable of containers of terms, or an Arrow column of lists. Returns how many.
    ///
    /// Null terms are left out; a null list is a document without terms, which matches the empty query only. Documents
    /// before a refused one are appended. Those that other threads append meanwhile may lie between them. Raises as
    /// add().
    ///
    /// >>> from fullbloom import SignatureIndex
    /// >>> index = SignatureIndex(256, 3)
    /// >>> index.add_many([["a", "b"], ["b"], ["c"]]), index.candidates(["b"])
    /// (3, [0, 1])
    #[pyo3(signature = (documents: "ArrowArray | Iterable[Keys]") -> "int")]
    fn add_many(&self, documents: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = documents.py();
        if !self.names.is_empty() {
            return Err(needs_table(py));
        }
        let mut count = 0;
        terms::each_documents(&self.hasher, documents, |ends, hashes| {
            let mut first = 0;
            for ends in ends.chunks(LOCKED) {
                let added = self.lock.change(py, |index| {
                    ends.iter().try_for_each(|&end| {
                        let terms = &hashes[first..end];
                        first = end;
                        index.add_document(terms).map(drop)
                    })
                });
                added.or_raise(py)?;
                count += ends.len() as u64;
                py.check_signals()?;
            }
            Ok(())
        })?;
        Ok(count)
    }

    /// Appends the rows of a table to an index with columns; returns how many.
    ///
    /// table: an Arrow table or record batch (pyarrow, Polars, DuckDB and others), a pandas frame, or a dict of columns.
    /// Further columns are not read. A null is in no query. Raises KeyTypeError, ParameterError, ReadOnlyFilter,
    /// FilterFull.
    ///
    /// >>> from fullbloom import SignatureIndex
    /// >>> index = SignatureIndex(80, 2, columns=["city", "year"])
    /// >>> index.add_table({"city": ["Ulm", "Bonn"], "year": [1879, 1770]})
    /// 2
    /// >>> index.candidates({"year": 1770})
    /// [1]
    #[pyo3(signature = (table: "ArrowArray | Frame[Any] | Mapping[str, Keys]") -> "int")]
    fn add_table(&self, table: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = table.py();
        if self.names.is_empty() {
            return Err(key_type(py, "the index has no columns; add documents with add() and add_many()"));
        }
        let (mut count, columns) = (0, self.names.len());
        terms::each_rows(&self.hasher, table, &self.names, |rows| {
            for start in (0..rows.rows).step_by(LOCKED) {
                let end = rows.rows.min(start + LOCKED);
                let added = self.lock.change(py, |index| {
                    let mut values = vec![None; columns];
                    (start..end).try_for_each(|row| {
                        for (column, value) in values.iter_mut().enumerate() {
                            let at = column * rows.rows + row;
                            *value = (rows.valid[at] != 0).then(|| rows.hashes[at]);
                        }
                        index.add_values(&values).map(drop)
                    })
                });
                added.or_raise(py)?;
                count += (end - start) as u64;
                py.check_signals()?;
            }
            Ok(())
        })?;
        Ok(count)
    }

    /// The numbers of all rows that may have all terms of `query`, in order: each row that has them, and false drops.
    ///
    /// query: terms in any container; for an index with columns a dict of columns and values. kind: "list", "numpy" or
    /// "arrow"; by default row numbers come in the container of the query, and in a list for a dict. The GIL is
    /// released. Raises KeyTypeError, ParameterError for an unknown column.
    #[pyo3(signature = (query: "Keys | Mapping[str, Any]", *, kind: "str | None" = None) -> "Any")]
    fn candidates<'py>(
        &self,
        query: &Bound<'py, PyAny>,
        kind: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let container = Container::choose(kind, query)?;
        container.of(&self.find(query)?, query)
    }

    /// The number of candidates(), without a list of them.
    #[pyo3(signature = (query: "Keys | Mapping[str, Any]") -> "int")]
    fn count_candidates(&self, query: &Bound<'_, PyAny>) -> PyResult<u64> {
        let wanted = self.read_query(query)?;
        Ok(self.look(query.py(), |index| {
            let mut count = 0;
            index.each_candidate(&wanted, |_| count += 1);
            count
        }))
    }

    /// The candidates that `recheck` confirms: the exact answer, if it compares the rows themselves.
    ///
    /// recheck: called with each row number; with batch=True once, with all of them in the container of the result, and
    /// returns as many truth values. query, kind: as for candidates(). Raises as candidates(), and what recheck raises.
    ///
    /// >>> from fullbloom import SignatureIndex
    /// >>> rows, index = [{"a", "b"}, {"b", "c"}], SignatureIndex(8, 4)
    /// >>> _ = index.add_many(rows)
    /// >>> index.search(["c"], lambda row: "c" in rows[row])
    /// [1]
    #[pyo3(signature = (
        query: "Keys | Mapping[str, Any]", recheck: "Callable[[Any], Any]", *, batch: "bool" = None,
        kind: "str | None" = None
    ) -> "Any")]
    #[pyo3(text_signature = "($self, query, recheck, *, batch=False, kind=None)")]
    fn search<'py>(
        &self,
        query: &Bound<'py, PyAny>,
        recheck: &Bound<'py, PyAny>,
        batch: Option<&Bound<'py, PyAny>>,
        kind: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, container) = (query.py(), Container::choose(kind, query)?);
        let batch = batch.map_or(Ok(false), |batch| parameters::flag("batch", batch))?;
        if !recheck.is_callable() {
            return Err(parameter_type(py, "recheck must be a function of a row number"));
        }
        let rows = self.find(query)?;
        let mut kept = Vec::new();
        if !batch {
            for &row in &rows {
                if recheck.call1((row,))?.is_truthy()? {
                    kept.push(row);
                }
            }
            return container.of(&kept, query);
        }
        let mut number = 0;
        for is_match in recheck.call1((container.of(&rows, query)?,))?.try_iter()? {
            if is_match?.is_truthy()?
                && let Some(row) = rows.get(number)
            {
                kept.push(*row);
            }
            number += 1;
        }
        if number != rows.len() {
            let why = format!("recheck must return one truth value per row, {} of them, got {number}", rows.len());
            return Err(parameter(py, why));
        }
        container.of(&kept, query)
    }

    /// The slices that `query` reads: pairs of a rank and a row of the bit matrix. Private rows of frequent terms come
    /// behind num_bits[0].
    #[pyo3(signature = (query: "Keys | Mapping[str, Any]") -> "list[tuple[int, int]]")]
    fn positions(&self, query: &Bound<'_, PyAny>) -> PyResult<Vec<(usize, u64)>> {
        Ok(self.read_query(query)?.positions().collect())
    }

    /// The share of rows that are candidates if slices are independent: the product of the densities of those that
    /// `query` reads, counted. Costs a pass over each of these.
    #[pyo3(signature = (query: "Keys | Mapping[str, Any]") -> "float")]
    fn expected_share(&self, query: &Bound<'_, PyAny>) -> PyResult<f64> {
        let wanted = self.read_query(query)?;
        Ok(self.look(query.py(), |index| index.expected_share(&wanted)))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let len = self.lock.read(py, Index::len);
        usize::try_from(len).map_err(|_| parameter(py, "the index has more rows than len() can say"))
    }

    fn __bool__(&self, py: Python<'_>) -> bool {
        self.lock.read(py, |index| !index.is_empty())
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.lock.look_both(&other.get().lock, py, Index::equals))
    }

    /// Bits of a signature at each rank.
    #[getter]
    fn num_bits(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.read(py, |index| index.shape().ranks().iter().map(|width| width.num_bits).collect())
    }

    /// Distinct bits that a term sets at each rank, unless frequencies or columns say otherwise.
    #[getter]
    fn bits_per_term(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.read(py, |index| index.shape().ranks().iter().map(|width| width.bits_per_term).collect())
    }

    /// Names of the columns; empty for an index of documents.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Bits of a value in each column.
    #[getter]
    fn column_bits(&self, py: Python<'_>) -> Vec<u64> {
        self.lock.read(py, |index| index.shape().columns().iter().map(|column| column.bits).collect())
    }

    /// Slices that belong to one frequent term each.
    #[getter]
    fn num_private(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |index| index.shape().private())
    }

    /// The share of set bits of rank 0, counted; private slices are left out.
    #[getter]
    fn fill(&self, py: Python<'_>) -> f64 {
        self.look(py, Index::fill)
    }

    /// Bytes of signatures and listed terms. Memory comes in blocks of up to 32,768 rows.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Index::nbytes)
    }

    /// Seed of the hash of terms.
    #[getter]
    fn seed(&self) -> u64 {
        self.hasher.seed()
    }

    /// Parameters, as a dict of plain values.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = PyDict::new(py);
        info.set_item("class", "SignatureIndex")?;
        info.set_item("rows", self.lock.read(py, Index::len))?;
        info.set_item("num_bits", self.num_bits(py))?;
        info.set_item("bits_per_term", self.bits_per_term(py))?;
        info.set_item("columns", self.columns())?;
        info.set_item("column_bits", self.column_bits(py))?;
        info.set_item("num_private", self.num_private(py))?;
        info.set_item("num_listed", self.lock.read(py, Index::num_listed))?;
        info.set_item("block_rows", self.lock.read(py, |index| index.shape().block_rows()))?;
        info.set_item("fill", self.fill(py))?;
        info.set_item("nbytes", self.nbytes(py))?;
        info.set_item("seed", self.seed())?;
        Ok(info)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let rows = self.lock.read(py, Index::len);
        let shown = |numbers: Vec<u64>| match numbers[..] {
            [only] => only.to_string(),
            _ => format!("{numbers:?}"),
        };
        let (bits, each) = (shown(self.num_bits(py)), shown(self.bits_per_term(py)));
        let columns = if self.names.is_empty() { String::new() } else { format!(", {} columns", self.names.len()) };
        format!("SignatureIndex({bits}, {each}{columns}: {rows} rows)")
    }
}
