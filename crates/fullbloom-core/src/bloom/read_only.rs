//! Why a filter cannot be written to.

use crate::error::Error;

/// The answer to whoever writes to a filter that cannot be written to.
#[cold]
pub(super) fn refuse_writing(closed: bool, inherited: bool) -> Error {
    Error::ReadOnly(match (closed, inherited) {
        (true, _) => "the filter is closed; open its file again".into(),
        (_, true) => "the filter was opened with mode=\"r+\" by a parent process, which alone writes to the file; \
                      take a copy(), or open the file here when the parent has closed it"
            .into(),
        _ => "the filter is mapped read-only; open it with mode=\"r+\" or take a copy()".into(),
    })
}
