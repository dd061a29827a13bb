//! Hands PyO3's knowledge of the interpreter (`Py_GIL_DISABLED`, `PyPy`, ...) on to `cfg`.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
