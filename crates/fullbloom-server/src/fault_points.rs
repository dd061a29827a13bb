//! Fault points: named places at which a test ends the process, returns an I/O error, or pauses the thread.
//!
//! Outside the unit tests [`reach`] is an empty function. In them, a test arms a point for the stores of one folder:
//!
//! ```text
//! let armed = fault_points::arm(folder, "segment.created", 0, Action::Fail(ENOSPC));   // until `armed` is dropped
//! let armed = fault_points::arm(folder, "change.applied", 0, Action::Pause);           // until `armed.release()`
//! ```
//!
//! A test that ends a process at a point starts itself again: [`Child::start`] runs an ignored test of the same
//! binary with the folder and the point in its environment, and returns the lines that it reported before it died. A
//! new point needs a line in `POINTS`; `kill_tests` fails for a point that no workload reaches.

use std::io;
use std::path::Path;

#[cfg(test)]
pub(crate) use armed::{Action, Child, ENOSPC, POINTS, arm};

/// Marks a place where a test may inject a fault.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn reach(_point: &'static str, _folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Marks a place where a test may inject a fault, in a store whose folder is `folder` or contains it.
#[cfg(test)]
pub(crate) fn reach(point: &'static str, folder: &Path) -> io::Result<()> {
    armed::reach(point, folder)
}

#[cfg(test)]
mod armed {
    use std::io::{self, BufRead, BufReader};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::str::FromStr;
    use std::time::Duration;

    use parking_lot::{Condvar, Mutex};

    /// Every fault point, in the order in which a store reaches them.
    pub(crate) const POINTS: &[&str] = &[
        "log.replayed",
        "segment.create",
        "segment.created",
        "segment.written",
        "segment.synced",
        "log.append",
        "log.write",
        "log.written",
        "log.sync",
        "log.synced",
        "change.applied",
        "change.appended",
        "change.logged",
        "catalogue.logged",
        "file.create",
        "file.created",
        "file.written",
        "files.sync",
        "files.synced",
        "merge.round",
        "checkpoint.rotated",
        "checkpoint.written",
        "manifest.create",
        "manifest.created",
        "manifest.written",
        "manifest.synced",
        "manifest.renamed",
        "checkpoint.removed",
        "checkpoint.done",
        "secret.created",
        "secret.synced",
        "secret.renamed",
    ];

    /// `ENOSPC`: no space left on device.
    pub(crate) const ENOSPC: i32 = 28;

    /// What happens at a point.
    #[derive(Clone, Copy)]
    pub(crate) enum Action {
        /// The process ends as if killed: nothing is written or closed.
        Abort,
        /// The system call fails with this error number.
        Fail(i32),
        /// The thread waits until the point is released.
        Pause,
        /// Nothing; the point only counts.
        Count,
    }

    struct Rule {
        number: u64,
        folder: PathBuf,
        point: &'static str,
        /// How often the point is passed before the action.
        skip: u64,
        reached: u64,
        action: Action,
    }

    static RULES: Mutex<(u64, Vec<Rule>)> = Mutex::new((0, Vec::new()));
    static CHANGED: Condvar = Condvar::new();

    /// A point that is armed until this is dropped.
    pub(crate) struct Armed(u64);

    /// Arms `point` for stores in `folder`, after it was passed `skip` times.
    pub(crate) fn arm(folder: &Path, point: &str, skip: u64, action: Action) -> Armed {
        let point = POINTS.iter().find(|known| **known == point);
        let point = point.unwrap_or_else(|| panic!("no such point in POINTS"));
        let mut rules = RULES.lock();
        rules.0 += 1;
        let number = rules.0;
        rules.1.push(Rule { number, folder: folder.to_owned(), point, skip, reached: 0, action });
        Armed(number)
    }

    impl Armed {
        /// How often the point was reached.
        pub(crate) fn count_reached(&self) -> u64 {
            RULES.lock().1.iter().find(|rule| rule.number == self.0).map_or(0, |rule| rule.reached)
        }

        /// Waits until the action has happened at least once.
        pub(crate) fn wait(&self) {
            let mut rules = RULES.lock();
            let done =
                |rules: &(u64, Vec<Rule>)| rules.1.iter().any(|rule| rule.number == self.0 && rule.reached > rule.skip);
            while !done(&rules) {
                let timeout = CHANGED.wait_for(&mut rules, Duration::from_secs(120)).timed_out();
                assert!(!timeout || done(&rules), "the point was not reached in 120 s");
            }
        }

        /// Lets the paused threads continue, and disarms the point.
        pub(crate) fn release(self) {}
    }

    impl Drop for Armed {
        fn drop(&mut self) {
            RULES.lock().1.retain(|rule| rule.number != self.0);
            CHANGED.notify_all();
        }
    }

    pub(super) fn reach(point: &'static str, folder: &Path) -> io::Result<()> {
        assert!(POINTS.contains(&point), "{point} is not in POINTS");
        let mut rules = RULES.lock();
        let Some(rule) = rules.1.iter_mut().find(|rule| rule.point == point && folder.starts_with(&rule.folder)) else {
            return Ok(());
        };
        rule.reached += 1;
        let (number, due, action) = (rule.number, rule.reached > rule.skip, rule.action);
        CHANGED.notify_all();
        match action {
            _ if !due => Ok(()),
            Action::Count => Ok(()),
            Action::Abort => std::process::abort(),
            Action::Fail(errno) => Err(io::Error::from_raw_os_error(errno)),
            Action::Pause => {
                while rules.1.iter().any(|rule| rule.number == number) {
                    CHANGED.wait(&mut rules);
                }
                Ok(())
            }
        }
    }

    const FOLDER: &str = "FULLBLOOM_TEST_FOLDER";
    const POINT: &str = "FULLBLOOM_TEST_POINT";
    const SKIP: &str = "FULLBLOOM_TEST_SKIP";
    const SEED: &str = "FULLBLOOM_TEST_SEED";
    /// The prefix of a line that a child reports.
    const REPORT: &str = "reports: ";

    /// This process, if a test started it to be ended at a point.
    pub(crate) struct Child {
        pub(crate) folder: PathBuf,
        /// A number chosen by the parent.
        pub(crate) seed: u64,
        _armed: Armed,
    }

    impl Child {
        /// This process as a child, with its point armed.
        pub(crate) fn this() -> Self {
            let word = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is set by the parent"));
            let number = |name: &str| u64::from_str(&word(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            let folder = PathBuf::from(word(FOLDER));
            let _armed = arm(&folder, &word(POINT), number(SKIP), Action::Abort);
            Child { folder, seed: number(SEED), _armed }
        }

        /// Sends a line to the parent.
        pub(crate) fn report(&self, line: &str) {
            println!("{REPORT}{line}");
        }

        /// Runs the ignored test `test` (its full path) as a child that ends at `point`, after passing it `skip` times;
        /// returns the lines that it reported, and whether it ended there.
        pub(crate) fn start(test: &str, folder: &Path, seed: u64, point: &str, skip: u64) -> (Vec<String>, bool) {
            let program = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
            let mut child = Command::new(program)
                .args(["--ignored", "--exact", "--nocapture", "--test-threads=1", test])
                .env(FOLDER, folder)
                .env(POINT, point)
                .env(SKIP, skip.to_string())
                .env(SEED, seed.to_string())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap_or_else(|error| panic!("{error}"));
            let out = child.stdout.take().unwrap_or_else(|| unreachable!());
            let lines = BufReader::new(out).lines().map_while(io::Result::ok);
            let lines: Vec<String> = lines
                // The harness writes the name of the test before the first line.
                .filter_map(|line| line.split_once(REPORT).map(|(_, said)| said.to_string()))
                .collect();
            let ended = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
            let aborted = ended.status.code().is_none();
            let said = String::from_utf8_lossy(&ended.stderr);
            assert!(aborted || ended.status.success(), "{test} failed before {point}: {said}");
            (lines, aborted)
        }
    }
}
