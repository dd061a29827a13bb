//! Functions of the module: hashing, opening, sizes, the registry.

use std::collections::HashMap;

use fullbloom_core::bloom::{BaseHash, Layout, Shape, with_base_hash};
use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{kind, tag, unreadable};
use fullbloom_core::isa::Isa;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::registry;
use fullbloom_core::sizing::{self, check_fpr, largest_items};
use fullbloom_core::structure::opening::with_path;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::bank::FilterBank;
use crate::classes::bloom::BloomFilter;
use crate::classes::{class_of, open_as};
use crate::errors::{OrRaise, parameter};
use crate::files::{self, Mode};
use crate::foreign::arguments::ForeignArguments;
use crate::foreign::sources::{AnyFile, open_any};
use crate::foreign::{ForeignCuckooFilter, ForeignFilter, ForeignScalableFilter, ForeignStaticFilter, opening};
use crate::keys::{batch, scalar};
use crate::operations::Hash;
use crate::parameters;
use crate::python_objects::bytes::read_bytes;
use crate::signature::SignatureIndex;
use crate::stored::StoredClass;

/// The classes of files that have no row in the registry.
const STORED: [StoredClass; 6] = [
    StoredClass::of::<FilterBank>(),
    StoredClass::of::<SignatureIndex>(),
    StoredClass::of::<ForeignFilter>(),
    StoredClass::of::<ForeignStaticFilter>(),
    StoredClass::of::<ForeignScalableFilter>(),
    StoredClass::of::<ForeignCuckooFilter>(),
];

/// The `hash=` argument.
fn hash_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    parameters::text("hash", value)
}

/// Reads the hasher of a seed, a secret and a base hash.
fn hasher(
    py: Python<'_>,
    seed: Option<&Bound<'_, PyAny>>,
    secret: Option<&Bound<'_, PyAny>>,
    hash: &str,
) -> PyResult<KeyHasher> {
    let hasher = parameters::read_hasher(seed.map_or(Ok(0), parameters::seed)?, secret)?;
    with_base_hash(hasher, hash).or_raise(py)
}

/// The 64-bit hash of a key, as every filter with this seed, secret and base hash sees it.
///
/// Rule: docs/keys.md. hash: the base hash of filters that were created with hash=, which take no secret. Raises
/// KeyTypeError for a key without canonical bytes, ParameterError.
///
/// >>> import fullbloom
/// >>> fullbloom.hash_key("a") == fullbloom.hash_key(b"a")
/// True
#[pyfunction]
#[pyo3(signature = (key: "Key", *, seed: "int" = None, secret: "bytes | None" = None, hash: "str" = "xxh3"))]
#[pyo3(text_signature = "(key, *, seed=0, secret=None, hash='xxh3')")]
pub(crate) fn hash_key(
    key: &Bound<'_, PyAny>,
    seed: Option<&Bound<'_, PyAny>>,
    secret: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = hash_name)] hash: &str,
) -> PyResult<u64> {
    let hasher = hasher(key.py(), seed, secret, hash)?;
    scalar::hash_key(&hasher, key)
}

/// The hashes of many keys, in the same container type, for add_hashed() and contains_hashed().
///
/// Takes what contains_many() takes; null hashes to null. Hash once, then query many filters with one seed and base hash
/// (hash, as for hash_key).
///
/// >>> import fullbloom
/// >>> fullbloom.hash_many([1, 2]) == [fullbloom.hash_key(1), fullbloom.hash_key(2)]
/// True
#[pyfunction]
#[pyo3(signature = (
    keys: "Keys", *, seed: "int" = None, secret: "bytes | None" = None, hash: "str" = "xxh3"
) -> "Answers[int]")]
#[pyo3(text_signature = "(keys, *, seed=0, secret=None, hash='xxh3')")]
pub(crate) fn hash_many<'py>(
    keys: &Bound<'py, PyAny>,
    seed: Option<&Bound<'_, PyAny>>,
    secret: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = hash_name)] hash: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let hasher = hasher(keys.py(), seed, secret, hash)?;
    batch::run(&Hash, &hasher, keys, true)
}

/// Opens the file of any filter, as its class; also one that another program wrote (see fullbloom.formats).
///
/// mode "r" maps it in constant time, "r+" maps it for adding in place (BloomFilter only) after every byte was
/// checked. verify "header" checks lengths and tables, "full" every byte and that the cells agree with each
/// other. max_bytes, for untrusted files: more bytes of cells are refused, now and when the filter grows.
///
/// format, key_type, num_bits, num_hashes, order, block_hash: of files of other programs, as for
/// fullbloom.formats.open_foreign(); each is needed only where the bytes do not say it. Such a file is read once, into
/// memory. Raises FormatError, OSError, ParameterError, FilterMemoryError.
#[pyfunction]
#[pyo3(signature = (
    path: "str | bytes | os.PathLike[str] | os.PathLike[bytes]", *, mode: "str" = "r",
    verify: "str" = "header", secret: "bytes | None" = None, max_bytes: "int | None" = None,
    format: "str | None" = None, key_type: "str | None" = None, num_bits: "int | None" = None,
    num_hashes: "int | None" = None, order: "str | None" = None, block_hash: "bytes | None" = None
) -> "_Filter")]
#[allow(clippy::too_many_arguments)] // the public signature
pub(crate) fn open<'py>(
    path: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = crate::parameters::mode)] mode: &str,
    #[pyo3(from_py_with = crate::parameters::verify)] verify: &str,
    secret: Option<&Bound<'_, PyAny>>,
    max_bytes: Option<&Bound<'py, PyAny>>,
    format: Option<&Bound<'py, PyAny>>,
    key_type: Option<&Bound<'py, PyAny>>,
    num_bits: Option<&Bound<'py, PyAny>>,
    num_hashes: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    block_hash: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = path.py();
    let (mode, wanted) = (files::mode(py, mode)?, files::read_open_options(py, verify, secret, max_bytes)?);
    let given = ForeignArguments { format, key_type, num_bits, num_hashes, order, block_hash, max_bytes };
    let path = files::path(path)?;
    if mode == Mode::Write {
        opening::check_ours(py, &given, &path)?;
        let filter = py.detach(|| files::open_write(&path, &wanted)).or_raise(py)?;
        return Ok(Bound::new(py, BloomFilter::wrap(filter).with_limit(wanted.max_bytes))?.into_any());
    }
    let file = match py.detach(|| with_path(open_any(&path), &path)).or_raise(py)? {
        AnyFile::Ours(file) => py.detach(|| with_path(OpenFile::of(file, &path), &path)).or_raise(py)?,
        AnyFile::Theirs(source) => {
            if let Some(filter) = opening::open_theirs(py, &path, source, (&given, &wanted))? {
                return Ok(filter);
            }
            py.detach(|| files::open(&path)).or_raise(py)?
        }
    };
    opening::check_ours(py, &given, &path)?;
    let variant = file.parsed.header.variant;
    if let Some(class) = STORED.iter().find(|class| class.variant == variant) {
        return (class.open)(py, &file, &path, &wanted);
    }
    open_as(py, file, &path, &wanted).unwrap_or_else(|| Err(unreadable(variant)).or_raise(py))
}

/// The filter in `data`, the bytes of a file, as its class; all of it is checked.
///
/// max_bytes: as for open(). Raises FormatError for anything that is not a whole, undamaged filter, and
/// FilterMemoryError for a larger one.
///
/// >>> import fullbloom
/// >>> f = fullbloom.BloomFilter(100)
/// >>> fullbloom.loads(f.to_bytes()) == f
/// True
#[pyfunction]
#[pyo3(signature = (
    data: "bytes | bytearray | memoryview", *, secret: "bytes | None" = None, max_bytes: "int | None" = None
) -> "_Filter")]
pub(crate) fn loads<'py>(
    data: &Bound<'py, PyAny>,
    secret: Option<&Bound<'_, PyAny>>,
    max_bytes: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    use fullbloom_core::container::{ContainerIndex, Verify};
    let py = data.py();
    let bytes = read_bytes("data", data)?;
    let parsed = py.detach(move || ContainerIndex::new(&bytes, Verify::Header)).or_raise(py)?;
    let options = PyDict::new(py);
    options.set_item("secret", secret)?;
    options.set_item("max_bytes", max_bytes)?;
    let variant = parsed.header.variant;
    let stored = STORED.iter().find(|class| class.variant == variant).map(|class| (class.class)(py));
    let class = stored.or_else(|| class_of(py, variant));
    let class = class.ok_or_else(|| unreadable(variant)).or_raise(py)?;
    class.call_method("from_bytes", (data,), Some(&options))
}

/// One dict per structure: the registry from which classes, docs, tests and choices derive.
///
/// A row has the structure's number, name, class, capabilities, layouts, guarantee, law and paper, and the parameters
/// of its constructor. Constant time.
///
/// >>> import fullbloom
/// >>> [row["class"] for row in fullbloom.variants() if "count" in row["capabilities"]][:2]
/// ['CountingBloomFilter', 'SpectralBloomFilter']
#[pyfunction]
#[pyo3(signature = () -> "list[dict[str, Any]]")]
pub(crate) fn variants(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = PyList::empty(py);
    for variant in registry::VARIANTS {
        let row = PyDict::new(py);
        row.set_item("id", variant.id)?;
        row.set_item("name", variant.name)?;
        row.set_item("class", variant.class)?;
        row.set_item("family", variant.family)?;
        row.set_item("capabilities", variant.capabilities)?;
        row.set_item("layouts", variant.layouts)?;
        row.set_item("ns", variant.ns)?;
        row.set_item("false_negatives", variant.false_negatives.name())?;
        row.set_item("merging", variant.merging)?;
        row.set_item("formula", variant.formula)?;
        row.set_item("paper", variant.paper)?;
        row.set_item("adds", variant.adds)?;
        row.set_item("entry", variant.entry)?;
        row.set_item("stage", variant.stage)?;
        row.set_item("role", Some(variant.role).filter(|role| !role.is_empty()))?;
        row.set_item("once", variant.once)?;
        row.set_item("fixed", variant.fixed.iter().copied().collect::<HashMap<_, _>>())?;
        row.set_item("parameters", parameters(py, variant.id)?)?;
        rows.append(row)?;
    }
    Ok(rows)
}

/// The parameters of a constructor except seed and secret: name, type, and the default as Rust writes it.
fn parameters(py: Python<'_>, variant: u16) -> PyResult<Bound<'_, PyList>> {
    let rows = parameters::of_variant(variant).iter().map(|p| (p.name, p.python, p.default));
    PyList::new(py, rows.collect::<Vec<_>>())
}

/// One dict per layout of the plain filter.
///
/// `one_line`: all bits of a key are in one cache line. `two_lines`: they are in two. `auto`: the layout "auto" may choose it.
/// `parquet`: its bits are those of a Parquet file's filter.
#[pyfunction]
#[pyo3(signature = () -> "list[dict[str, Any]]")]
pub(crate) fn layouts(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = PyList::empty(py);
    for &(layout, name) in Layout::NAMES {
        let row = PyDict::new(py);
        row.set_item("name", name)?;
        row.set_item("one_line", layout.is_one_line())?;
        row.set_item("two_lines", layout.is_two_lines())?;
        row.set_item("auto", layout.is_automatic())?;
        row.set_item("parquet", layout.is_parquet())?;
        rows.append(row)?;
    }
    Ok(rows)
}

/// The meaning of the numbers in files: {"tag": [(number, name, meaning)], "kind": ...}.
#[pyfunction]
#[pyo3(signature = () -> "dict[str, list[tuple[int, str, str]]]")]
pub(crate) fn format_numbers(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let kinds = PyDict::new(py);
    for (kind, numbers) in [("tag", tag::ALL), ("kind", kind::ALL)] {
        let rows: Vec<_> = numbers.iter().map(|n| (n.number, n.name, n.meaning.trim())).collect();
        kinds.set_item(kind, rows)?;
    }
    Ok(kinds)
}

/// The `scheme=` argument.
fn scheme_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a str>> {
    if value.is_none() { Ok(None) } else { parameters::text("scheme", value).map(Some) }
}

/// (num_bits, num_hashes) of the smallest filter of `layout` and `scheme` that keeps `fpr` at `capacity` keys.
#[pyfunction]
#[pyo3(signature = (
    layout: "str", capacity: "int", fpr: "float", scheme: "str | None" = None
) -> "tuple[int, int]")]
pub(crate) fn size_for(
    py: Python<'_>,
    layout: &Bound<'_, PyAny>,
    capacity: &Bound<'_, PyAny>,
    fpr: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = scheme_name)] scheme: Option<&str>,
) -> PyResult<(u64, u32)> {
    let (capacity, fpr) = (parameters::parse_whole("capacity", capacity, 1)?, parameters::real("fpr", fpr)?);
    let named = Shape::from_names(parameters::text("layout", layout)?, scheme, BaseHash::Xxh3, capacity, fpr);
    let shape = named.or_raise(py)?;
    Ok((shape.num_bits, shape.num_hashes))
}

/// (num_bits, num_hashes) of the largest shape of at most `num_bits`, for every k that `layout` can have.
#[pyfunction]
#[pyo3(signature = (layout: "str", num_bits: "int") -> "list[tuple[int, int]]")]
pub(crate) fn shapes_within(layout: &Bound<'_, PyAny>, num_bits: &Bound<'_, PyAny>) -> PyResult<Vec<(u64, u32)>> {
    let num_bits = parameters::parse_whole("num_bits", num_bits, 1)?;
    let shapes = Shape::list_layouts(layout_of(layout)?, num_bits).or_raise(layout.py())?;
    Ok(shapes.into_iter().map(|shape| (shape.num_bits, shape.num_hashes)).collect())
}

/// The lowest rate that constructors take for `items` keys.
#[pyfunction]
#[pyo3(signature = (items: "int") -> "float")]
pub(crate) fn least_fpr(items: &Bound<'_, PyAny>) -> PyResult<f64> {
    Ok(sizing::least_fpr(parameters::parse_whole("items", items, 0)? as f64))
}

/// The law of the core with this name, for these numbers, which fullbloom.theory re-exports.
#[pyfunction]
#[pyo3(signature = (name: "str", *numbers: "float") -> "float")]
#[pyo3(text_signature = "(name, *numbers)")]
pub(crate) fn law(py: Python<'_>, name: &str, numbers: Vec<f64>) -> PyResult<f64> {
    sizing::law(name, &numbers).ok_or_else(|| parameter(py, format!("no law {name:?} of {} numbers", numbers.len())))
}

/// The layout that "auto" chooses.
#[pyfunction]
#[pyo3(signature = (capacity: "int", fpr: "float") -> "str")]
pub(crate) fn layout_for(capacity: &Bound<'_, PyAny>, fpr: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    let keys = parameters::parse_whole("capacity", capacity, 1)?;
    let shape = Shape::auto(keys, parameters::real("fpr", fpr)?).or_raise(capacity.py())?;
    Ok(shape.layout.name())
}

/// A layout by name, which may not be "auto".
fn layout_of(name: &Bound<'_, PyAny>) -> PyResult<Layout> {
    let unnamed =
        || parameter(name.py(), "layout must be classic, blocked, split, partitioned or two-block, got 'auto'");
    parameters::layout(name)?.ok_or_else(unnamed)
}

fn shape_of(
    layout: &Bound<'_, PyAny>,
    num_bits: &Bound<'_, PyAny>,
    num_hashes: &Bound<'_, PyAny>,
    scheme: Option<&str>,
) -> PyResult<Shape> {
    let (named, scheme) = (layout_of(layout)?, Shape::scheme_named(scheme).or_raise(layout.py())?);
    let (num_bits, num_hashes) =
        (parameters::parse_whole("num_bits", num_bits, 1)?, parameters::parse_whole("num_hashes", num_hashes, 1)?);
    Shape::explicit(named, scheme, num_bits, num_hashes).or_raise(layout.py())
}

/// Model rate of a filter of this shape that holds `items` keys.
#[pyfunction]
#[pyo3(signature = (
    layout: "str", num_bits: "int", num_hashes: "int", items: "float", scheme: "str | None" = None
) -> "float")]
pub(crate) fn fpr_at(
    layout: &Bound<'_, PyAny>,
    num_bits: &Bound<'_, PyAny>,
    num_hashes: &Bound<'_, PyAny>,
    items: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = scheme_name)] scheme: Option<&str>,
) -> PyResult<f64> {
    let shape = shape_of(layout, num_bits, num_hashes, scheme)?;
    let keys = parameters::real("items", items)?;
    if !(keys >= 0.0 && keys.is_finite()) {
        return Err(parameter(items.py(), format!("items must be at least 0 and finite, got {keys}")));
    }
    Ok(shape.law().fpr(keys))
}

/// The largest number of keys at which a filter of this shape keeps `fpr`.
#[pyfunction]
#[pyo3(signature = (
    layout: "str", num_bits: "int", num_hashes: "int", fpr: "float", scheme: "str | None" = None
) -> "int")]
pub(crate) fn capacity_at(
    layout: &Bound<'_, PyAny>,
    num_bits: &Bound<'_, PyAny>,
    num_hashes: &Bound<'_, PyAny>,
    fpr: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = scheme_name)] scheme: Option<&str>,
) -> PyResult<u64> {
    let shape = shape_of(layout, num_bits, num_hashes, scheme)?;
    let rate = check_fpr(parameters::real("fpr", fpr)?).or_raise(fpr.py())?;
    Ok(largest_items(&*shape.law(), rate))
}

/// The vector instructions in use.
#[pyfunction]
pub(crate) fn isa() -> &'static str {
    Isa::current().name()
}

/// All sets of instructions this machine can use, slowest first.
#[pyfunction]
pub(crate) fn isas() -> Vec<&'static str> {
    Isa::available().into_iter().map(Isa::name).collect()
}

/// Chooses the instructions for the whole process: for tests and measurements.
#[pyfunction]
pub(crate) fn force_isa(py: Python<'_>, name: &str) -> PyResult<()> {
    let known = Isa::available().into_iter().find(|isa| isa.name() == name);
    if known.is_some_and(Isa::force) {
        return Ok(());
    }
    Err(parameter(py, format!("isa must be one of {}, got {name:?}", isas().join(", "))))
}
