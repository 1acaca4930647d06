//! Plans the mounts of a confinement, in the order in which they are made: folders above guarded
//! ones are pinned (a mount point cannot be renamed away), guarded ones are read-only.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::guarded_paths::SandboxProtectedPath;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PlannedMount {
    /// Bind the folder on itself, so that neither it nor what is above it can be renamed.
    Pin(PathBuf),
    /// Show `from` read-only at `to`.
    ReadOnly {
        /// The file or folder that is shown there.
        from: PathBuf,
        /// The place.
        to: PathBuf,
    },
    /// Show an empty folder instead of this one.
    Hide(PathBuf),
}

/// All mounts of a confinement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MountPlan {
    pub(crate) mounts: Vec<PlannedMount>,
    /// Whether programs inside have the user id of root.
    pub(crate) root: bool,
}

impl MountPlan {
    pub(super) fn new(
        guarded: &[SandboxProtectedPath],
        exclude: Option<(PathBuf, PathBuf)>,
        desk: &Path,
        inside: &Path,
        runs: &Path,
    ) -> Self {
        let mut pairs: Vec<(PathBuf, PathBuf)> = guarded
            .iter()
            .filter(|guard| !guard.is_writable)
            .filter_map(|guard| guard.path.canonicalize().ok())
            .map(|path| (path.clone(), path))
            .collect();
        pairs.extend(exclude);
        pairs.sort_by_key(|(_, to)| (to.components().count(), to.clone()));
        pairs.dedup_by(|one, other| one.1 == other.1);
        let pins: BTreeSet<PathBuf> = pairs
            .iter()
            .flat_map(|(_, to)| to.ancestors().skip(1))
            .filter(|folder| folder.parent().is_some())
            .map(Path::to_owned)
            .collect();
        let mut mounts: Vec<PlannedMount> = pins.into_iter().map(PlannedMount::Pin).collect();
        mounts.extend(
            pairs
                .into_iter()
                .map(|(from, to)| PlannedMount::ReadOnly { from, to }),
        );
        // Mounts nearer to the root come first: a later one would hide those already made below it.
        mounts.sort_by_key(|mount| mount.planned_mount_target().components().count());
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        mounts.push(PlannedMount::ReadOnly {
            from: real(desk),
            to: real(inside),
        });
        // The folders of other runs are hidden: an agent must not reach their sockets.
        mounts.push(PlannedMount::Hide(real(runs)));
        Self {
            mounts,
            root: is_root_user(),
        }
    }

    /// Returns the plan as arguments for bubblewrap.
    pub(super) fn bubblewrap_arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = ["--bind", "/", "/", "--dev", "/dev"].map(Into::into).into();
        for mount in &self.mounts {
            match mount {
                PlannedMount::Pin(folder) => {
                    words.extend(["--bind".into(), folder.into(), folder.into()]);
                }
                PlannedMount::ReadOnly { from, to } => {
                    words.extend(["--ro-bind".into(), from.into(), to.into()]);
                }
                PlannedMount::Hide(folder) => words.extend(["--tmpfs".into(), folder.into()]),
            }
        }
        // A user namespace of its own: without it root could undo every mount, and any process
        // could look into ours.
        words.extend(["--unshare-user", "--die-with-parent", "--cap-drop", "ALL"].map(Into::into));
        if self.root {
            // What an agent's own sandbox needs to map root once more; it gives no file back.
            words.extend(["--cap-add", "CAP_SETFCAP"].map(Into::into));
        }
        words.push("--".into());
        words
    }
}

impl PlannedMount {
    fn planned_mount_target(&self) -> &Path {
        match self {
            PlannedMount::Pin(folder) | PlannedMount::Hide(folder) => folder,
            PlannedMount::ReadOnly { to, .. } => to,
        }
    }
}

#[cfg(target_os = "linux")]
fn is_root_user() -> bool {
    rustix::process::getuid().is_root()
}

#[cfg(not(target_os = "linux"))]
fn is_root_user() -> bool {
    false
}
