//! [`End`]: how far the end of the service has come, as its connections are told.

use tokio::sync::watch;

/// See the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// It has not.
    Open,
    /// What has come in is answered, no more is read.
    Drain,
    /// Everything is let go of.
    Now,
}

/// Resolves once the end has come so far.
pub(super) async fn reached(ended: &mut watch::Receiver<End>, end: End) {
    // The listener dropped is the end as well.
    let _ = ended.wait_for(|now| *now >= end).await;
}
