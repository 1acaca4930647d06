//! Finds the agent's own process above a hook.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Shells that may stand between an agent and its hook.
const SHELLS: &[&str] = &["ash", "bash", "busybox", "dash", "fish", "ksh", "sh", "zsh"];
/// The most shells that are passed over.
const MAX_SHELLS: usize = 8;

/// A process, told apart from any later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UniqueProcessId {
    pid: u32,
    /// In ticks since the machine started.
    started: u64,
}

impl UniqueProcessId {
    /// Its process number.
    pub fn pid(self) -> u32 {
        self.pid
    }

    /// The process of this number that started so many ticks after the machine.
    pub fn new(pid: u32, started: u64) -> Self {
        Self { pid, started }
    }

    /// Finds the nearest process above this one that is no shell; `None` where that cannot be found
    /// out, or where only the first process is left.
    pub(crate) fn find_agent_process() -> Option<Self> {
        Self::nearest_non_shell_ancestor(std::process::id(), &ProcStat::read_proc_stat)
    }

    fn nearest_non_shell_ancestor(
        pid: u32,
        status_of: &dyn Fn(u32) -> Option<ProcStat>,
    ) -> Option<Self> {
        let mut pid = status_of(pid)?.parent;
        for _ in 0..MAX_SHELLS {
            let status = status_of(pid)?;
            if !SHELLS.contains(&status.name.as_str()) {
                let started = status.started;
                // Process 1 adopts orphans, so it says nothing about an agent.
                return (pid > 1).then_some(Self { pid, started });
            }
            pid = status.parent;
        }
        None
    }

    /// Whether the process lives.
    pub(crate) fn is_alive(self) -> bool {
        // The start time tells it from a later process with the same number. A zombie does nothing
        // any more.
        ProcStat::read_proc_stat(self.pid)
            .is_some_and(|status| status.started == self.started && !status.is_dead)
    }
}

/// The fields of `/proc/PID/stat` that are needed.
struct ProcStat {
    name: String,
    parent: u32,
    started: u64,
    is_dead: bool,
}

impl ProcStat {
    fn read_proc_stat(pid: u32) -> Option<Self> {
        let path = Path::new("/proc").join(pid.to_string()).join("stat");
        Self::parse_proc_stat(&std::fs::read_to_string(path).ok()?)
    }

    /// Parses the fields. The name is the second one; it may hold blanks and parentheses.
    fn parse_proc_stat(text: &str) -> Option<Self> {
        let (before, rest) = text.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Self {
            name,
            is_dead: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            // Field 22 of the file in proc(5); counting starts behind the name, which is field 2.
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_behind_whatever_name() {
        let text = "42 (a (b) c) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9876 11 12";
        let status = ProcStat::parse_proc_stat(text).unwrap();
        assert_eq!((status.name.as_str(), status.parent), ("a (b) c", 7));
        assert_eq!((status.started, status.is_dead), (9876, false));
        assert!(ProcStat::parse_proc_stat("42 (a").is_none());
        assert!(ProcStat::parse_proc_stat("").is_none());
    }

    /// The agent above a process, where each has a name and the next one is its parent.
    fn above(names: &[&str], first: u32) -> Option<u32> {
        let status = |pid: u32| {
            let name = names.get(usize::try_from(first - pid).unwrap())?;
            Some(ProcStat {
                name: (*name).to_owned(),
                parent: pid - 1,
                started: 0,
                is_dead: false,
            })
        };
        UniqueProcessId::nearest_non_shell_ancestor(first, &status).map(UniqueProcessId::pid)
    }

    #[test]
    fn the_agent_is_the_nearest_that_is_no_shell() {
        assert_eq!(above(&["checkrein", "agent", "sh"], 42), Some(41));
        assert_eq!(above(&["checkrein", "sh", "bash", "agent"], 42), Some(39));
        // All of the others are gone, and so is who tells of them.
        assert_eq!(above(&["checkrein", "init"], 2), None);
        assert_eq!(above(&["checkrein", "sh"], 42), None);
        let shells = |count| [vec!["checkrein"], vec!["sh"; count], vec!["agent"]].concat();
        assert_eq!(above(&shells(MAX_SHELLS - 1), 42), Some(42 - 8));
        assert_eq!(above(&shells(MAX_SHELLS), 42), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_has_ended_or_was_another_does_not_live() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let of = |pid: u32| {
            let started = ProcStat::read_proc_stat(pid).unwrap().started;
            UniqueProcessId::new(pid, started)
        };
        let (ours, theirs) = (of(std::process::id()), of(child.id()));
        assert!(ours.is_alive());
        assert!(!UniqueProcessId::new(ours.pid, ours.started + 1).is_alive());
        // It has ended, and nobody has asked how.
        while !ProcStat::read_proc_stat(child.id()).unwrap().is_dead {
            std::thread::yield_now();
        }
        assert!(!theirs.is_alive());
        child.wait().unwrap();
        assert!(!theirs.is_alive());
    }
}
