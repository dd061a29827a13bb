//! [`Job`]: long work on several threads, with progress reports, which can be cancelled.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::parallel::workers;

/// Receives the progress, from any thread; an error cancels the work.
pub type Watch<'a> = dyn Fn(u64, u64) -> Result<()> + Sync + 'a;

/// Threads, and who watches.
pub struct Job<'a> {
    threads: usize,
    watch: Option<&'a Watch<'a>>,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'a> Job<'a> {
    /// Work without progress reports.
    pub fn new(threads: usize) -> Self {
        Job { threads: threads.clamp(1, 256), watch: None, done: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    /// `watch` receives, between parts of the work, the number of parts done and the number expected.
    pub fn with_watch(threads: usize, watch: &'a Watch<'a>) -> Self {
        Job { watch: Some(watch), ..Self::new(threads) }
    }

    /// Threads that may work at a time.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Announces `parts` more parts.
    pub fn expect(&self, parts: u64) {
        self.total.fetch_add(parts, Ordering::Relaxed);
    }

    /// Reports `parts` parts as done.
    pub fn report(&self, parts: u64) -> Result<()> {
        let done = self.done.fetch_add(parts, Ordering::Relaxed) + parts;
        self.watch.map_or(Ok(()), |watch| watch(done, self.total.load(Ordering::Relaxed).max(done)))
    }

    /// Does `work` for every part, each on the next free thread; each counts as one part of the work. The first error
    /// ends it.
    pub fn run<T: Send>(
        &self,
        parts: impl ExactSizeIterator<Item = T> + Send,
        work: impl Fn(T) -> Result<()> + Sync,
    ) -> Result<()> {
        let (threads, failed) = (self.threads.min(parts.len()).max(1), Mutex::new(None));
        self.expect(parts.len() as u64);
        let parts = parts.map_while(|part| if workers::lock(&failed).is_none() { Some(part) } else { None });
        workers::queue(parts, threads, |part| {
            if let Err(error) = work(part).and_then(|()| self.report(1)) {
                workers::lock(&failed).get_or_insert(error);
            }
        });
        let failed = std::mem::take(&mut *workers::lock(&failed));
        failed.map_or(Ok(()), |error: Error| Err(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_done_and_reported() {
        for threads in [1, 3] {
            let result = Mutex::new(Vec::new());
            let watch = |done, total| {
                workers::lock(&result).push((done, total));
                Ok(())
            };
            let (job, sum) = (Job::with_watch(threads, &watch), AtomicU64::new(0));
            for _ in 0..2 {
                let add = |i: i32| {
                    sum.fetch_add(i as u64, Ordering::Relaxed);
                    Ok(())
                };
                job.run(0..100, add).unwrap();
            }
            assert_eq!(sum.load(Ordering::Relaxed), 2 * 4950);
            let mut result = std::mem::take(&mut *workers::lock(&result));
            result.sort_unstable();
            assert_eq!(result.iter().map(|(done, _)| *done).collect::<Vec<_>>(), (1..=200).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        let stop = |done, _| if done < 5 { Ok(()) } else { Err(Error::parameter("enough")) };
        let (job, number) = (Job::with_watch(1, &stop), AtomicU64::new(0));
        let count = |_: i32| {
            number.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let failed = job.run(0..1000, count);
        assert!(matches!(failed, Err(Error::Parameter(_))) && number.load(Ordering::Relaxed) == 5);
    }
}
